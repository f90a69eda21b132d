package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/model"
)

// answering is a model that is a Go function.
type answering func(*tenon.Request) (*tenon.Response, error)

func (answering) Name() string { return "test/answering" }

func (m answering) Generate(_ context.Context, req *tenon.Request) iter.Seq2[tenon.Delta, error] {
	return func(yield func(tenon.Delta, error) bool) {
		r, err := m(req)
		yield(tenon.Delta{Kind: tenon.DeltaResponse, Response: r}, err)
	}
}

func says(text string) *tenon.Response {
	return &tenon.Response{Stop: tenon.StopEnd, Usage: &tenon.Usage{Input: 100, Output: 10},
		Message: &tenon.Message{Role: tenon.RoleAssistant, Parts: []tenon.Part{{Type: tenon.PartText, Text: text}}}}
}

// TestCompact compacts a conversation by the configured threshold and on request. The model then sees a summary, but
// the stored messages do not change.
func TestCompact(t *testing.T) {
	var asked []*tenon.Request
	m := answering(func(req *tenon.Request) (*tenon.Response, error) {
		asked = append(asked, req)
		if last := req.Messages[len(req.Messages)-1].Text(); strings.HasPrefix(last, "<conversation>") {
			return says("They counted to " + fmt.Sprint(strings.Count(last, "Assistant: ")) + "."), nil
		}
		return says(fmt.Sprint(len(req.Messages))), nil
	})
	c := &config.Config{Agents: map[string]agent.Config{"default": agent.Config{Compaction: agent.Compaction{At: 100, Keep: 1}}.WithDefaults()}}
	h, err := host.Open(t.Context(), host.Config{Config: c, Home: t.TempDir(), Model: "m", Models: map[string]tenon.Model{"m": m},
		LookupEnv: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	var session string
	for i := range 3 {
		r, events := ask(t, h, host.Question{Text: fmt.Sprint("question ", i), Session: session})
		session = r.Session
		kinds := ""
		for _, e := range events {
			if e.Seq > 0 {
				kinds += e.Kind + ":" + e.Step + " "
			}
		}
		want := "run: started:1 model:1 done: "
		if i == 2 {
			want = "run: started:c1 compacted:c1 started:1 model:1 done: "
			if r.Usage.Input != 200 {
				t.Errorf("usage %+v does not count the summary", r.Usage)
			}
		}
		if kinds != want {
			t.Errorf("run %d: %s, want %s", i, kinds, want)
		}
	}
	// Question 0 and its answer are replaced by a summary. Question 1 and its answer stay.
	if got := texts(asked[len(asked)-1].Messages); !strings.HasPrefix(got[0], "This is a summary") || !strings.Contains(got[0], "counted to 1.") ||
		len(got) != 4 || got[1] != "question 1" || got[3] != "question 2" {
		t.Errorf("the model saw %q", got)
	}
	run, err := h.Sessions().Compact(t.Context(), session, "")
	if err != nil {
		t.Fatal(err)
	}
	if r, _ := follow(t, h, run.ID); r.State != tenon.RunCompleted || !strings.HasPrefix(r.Answer, "They counted to") {
		t.Errorf("by hand: %+v", r)
	}
	all, err := h.Sessions().Transcripts().Context(t.Context(), session, false)
	if err != nil {
		t.Fatal(err)
	}
	if got := texts(all); len(got) != 6 || got[0] != "question 0" {
		t.Errorf("what was said is %q", got)
	}
	seen, err := h.Sessions().Transcripts().Context(t.Context(), session, true)
	if err != nil {
		t.Fatal(err)
	}
	if got := texts(seen); len(got) != 1 {
		t.Errorf("what the model sees is %q", got)
	}
	if r, _ := ask(t, h, host.Question{Text: "and now?", Session: session}); r.Answer != "2" {
		t.Errorf("the next run's model saw %s messages, want the summary and the question", r.Answer)
	}
	replay(t, h, session)
}

// TestUX4_ContextTokens checks that a conversation is summarized before it exceeds the size that models.NAME has for the
// context, which the status line of the chat shows, too. An agent's own threshold wins.
func TestUX4_ContextTokens(t *testing.T) {
	for name, tt := range map[string]struct {
		size, at  int
		compacted bool
	}{
		"small":     {150, 0, true}, // 150 less 50 for the answer; the model counts 100 tokens in each request
		"large":     {200_000, 0, false},
		"not set":   {0, 0, false},
		"the agent": {150, 100_000, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := answering(func(*tenon.Request) (*tenon.Response, error) { return says("An answer."), nil })
			entry := model.Config{Provider: "openai-compatible", Model: "x", BaseURL: "http://127.0.0.1:1", ContextTokens: tt.size, MaxTokens: 50}
			c := &config.Config{Models: map[string]model.Config{"m": entry},
				Agents: map[string]agent.Config{"default": agent.Config{Compaction: agent.Compaction{At: tt.at, Keep: 1}}.WithDefaults()}}
			h, err := host.Open(t.Context(), host.Config{Config: c, Home: t.TempDir(), Model: "m", Models: map[string]tenon.Model{"m": m},
				LookupEnv: func(string) (string, bool) { return "", false }})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = h.Close() })
			session, compacted := "", false
			for i := range 3 {
				r, events := ask(t, h, host.Question{Text: fmt.Sprint("question ", i), Session: session})
				session = r.Session
				compacted = compacted || slices.ContainsFunc(events, func(e tenon.Event) bool { return e.Kind == agent.EventCompacted })
			}
			if compacted != tt.compacted {
				t.Errorf("compacted: %v", compacted)
			}
		})
	}
}

// replay checks that the core produces the same commands again from the journal of every run of a session.
func replay(t *testing.T, h *host.Host, session string) {
	t.Helper()
	s, err := h.Sessions().Get(t.Context(), session)
	if err != nil {
		t.Fatal(err)
	}
	for id := s.Head; id != ""; {
		row, err := h.Runs().Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		r, err := h.Runs().Open(id).Replay(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if b, _ := json.Marshal(r); !r.Same {
			t.Errorf("replay of %s: %s", id, b)
		}
		id = row.Parent
	}
}

func texts(messages []*tenon.Message) []string {
	var list []string
	for _, m := range messages {
		list = append(list, m.Text())
	}
	return list
}
