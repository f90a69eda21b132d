package peers

import (
	"fmt"
	"strings"
	"testing"
)

// testChaos lets the model misbehave at random: refused and dropped requests, truncated and malformed
// streams, late responses. With every wire format, each run ends with the complete answer or with a
// meaningful error.
func (p *peers) testChaos(t *testing.T) {
	const question, answer = "Tell me about chaos", "Out of chaos comes an answer of a few words, in several pieces."
	address := p.aimock(t, []m{{"match": m{"userMessage": "chaos"}, "response": m{"content": answer}}},
		"--chaos-drop", "0.1", "--chaos-malformed", "0.1", "--chaos-disconnect", "0.2", "--chaos-ratelimit",
		"0.1", "-l", "5")
	s := p.shell(t, "PEER_KEY=sk-not-a-key")
	key := m{"env": "PEER_KEY"}
	s.config(t, m{"models": m{
		"messages": m{"provider": "anthropic", "model": "a", "base_url": address, "api_key": key, "timeout": "20s"},
		"chat": m{"provider": "openai-compatible", "model": "c", "base_url": address + "/v1", "api_key": key,
			"timeout": "20s"},
		"responses": m{"provider": "openai-compatible", "api": "responses", "model": "r", "base_url": address + "/v1",
			"api_key": key, "timeout": "20s"},
		"gemini": m{"provider": "gemini", "model": "g", "base_url": address, "api_key": key, "timeout": "20s"},
	}})
	whole, failed := 0, map[string]int{}
	for _, model := range []string{"messages", "chat", "responses", "gemini"} {
		for i := range 8 {
			name := fmt.Sprintf("%s %d", model, i)
			o := s.Run(t, "run", "-c", "tenon.yaml", "--model", model, question)
			switch {
			case o.Status == 0 && o.Out == answer+"\n":
				whole++
			case o.Status == 0:
				t.Errorf("%s: not the whole answer, and status 0\n%s", name, o)
			case o.Status != 1 && o.Status != 4 || !strings.Contains(o.ErrOut, "tenon: "):
				t.Errorf("%s: want a meaningful error and status 1 or 4\n%s", name, o)
			case strings.Contains(o.Out, answer):
				t.Errorf("%s: a complete answer was reported as an error\n%s", name, o)
			default:
				line, _, _ := strings.Cut(o.ErrOut, "\n")
				failed[line]++
			}
		}
	}
	if whole < 8 {
		t.Errorf("%d of 32 questions were answered", whole)
	}
	t.Logf("%d of 32 answered; else: %v", whole, failed)
}
