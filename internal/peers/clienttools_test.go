package peers

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon/internal/clitest"
)

// testClientTools tests tools that OpenAI's SDKs execute themselves, in turns in which tenon executes the tools of the
// agent. It uses the SDKs' own loops, with and without streaming.
func (p *peers) testClientTools(t *testing.T) {
	s := p.shell(t)
	s.WriteFile(t, "sensing.yaml", "steps:\n  - text: I look.\n    calls:\n"+
		"      - {name: sensor, arguments: {room: hall}}\n      - {name: counter, arguments: {}}\n"+
		"      - {name: sensor, arguments: {room: attic}}\n  - text: It is warm.\n")
	s.WriteFile(t, "forming.yaml", "steps:\n  - {text: no JSON}\n  - {text: '{\"a\":1}'}\n")
	s.WriteFile(t, "tenon.yaml", "version: 1\nservers:\n  t: {command: "+p.tenon+", args: [testserver, --stdio]}\n"+
		"policy: {defaults: {approval: never}}\n"+
		"models:\n  sensing: {provider: script, path: sensing.yaml}\n  forming: {provider: script, path: forming.yaml}\n"+
		"agents:\n  sensing: {model: sensing}\n  forming: {model: forming}\nserve: {agent: sensing}\n")
	token := s.WriteFile(t, "token", apiToken)
	port := clitest.FreePort(t)
	url := "http://127.0.0.1:" + port
	background(t, s.Env, p.tenon, "serve", "-c", filepath.Join(s.Dir, "tenon.yaml"), "--listen", "127.0.0.1:"+port,
		"--token-file", token, "--log-level", "warn")
	answers(t, url+"/healthz")
	python := []string{filepath.Join(filepath.Dir(p.modules), "python4", "bin", "python"),
		absolute(t, "testdata", "clients.py"), "clienttools"}
	node := []string{p.node, absolute(t, "testdata", "clienttools.mjs"), p.bin(t, "openai", "index.mjs")}
	reasons := []any{"tool_calls", "stop"}
	loop := map[string]any{"text": "It is warm.", "rooms": "hall attic", "reasons": reasons, "effects": 1.0}
	runner := map[string]any{"text": "It is warm.", "rooms": "hall attic", "effects": 1.0}
	for name, tt := range map[string]struct {
		command []string
		want    map[string]any
	}{
		"RP-4_python": {python, map[string]any{"loop": loop, "stream": loop, "formed": map[string]any{"a": 1.0},
			"refused": true}},
		"RP-4_node": {node, map[string]any{"runner": runner, "stream": runner,
			"repeated": map[string]any{"finish": "tool_calls", "same": true, "effects": 1.0},
			"refused":  map[string]any{"status": 400.0, "named": true}}},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(tt.command[0], append(tt.command[1:], url, apiToken)...)
			var said strings.Builder
			cmd.Stderr = &said
			out, err := cmd.Output()
			var got map[string]any
			if err == nil {
				err = json.Unmarshal(out, &got)
			}
			if err != nil {
				t.Fatalf("%v: %s\n%s", err, out, said.String())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
