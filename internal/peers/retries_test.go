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

// testRetries sends one request with an SDK, to a run that reaches a limit or fails after tool calls, and counts the
// effects. The SDKs repeat a request by themselves after some statuses, so a wrong status would multiply the effects.
func (p *peers) testRetries(t *testing.T) {
	s := p.shell(t)
	s.WriteFile(t, "limit.yaml",
		"steps:\n  - {text: I count., calls: [{name: counter, arguments: {}}], repeat: forever}\n")
	s.WriteFile(t, "failure.yaml", "steps:\n  - {text: I count., calls: [{name: counter, arguments: {}}]}\n"+
		"  - error: {code: invalid, message: The model has gone.}\n")
	s.WriteFile(t, "tenon.yaml", "version: 1\nservers:\n  t: {command: "+p.tenon+", args: [testserver, --stdio]}\n"+
		"policy: {defaults: {approval: never}}\n"+
		"models:\n  limit: {provider: script, path: limit.yaml}\n  failure: {provider: script, path: failure.yaml}\n"+
		"agents:\n  limit: {model: limit, limits: {max_turns: 2}}\n  failure: {model: failure}\n"+
		"serve: {agent: failure}\n")
	token := s.WriteFile(t, "token", apiToken)
	port := clitest.FreePort(t)
	url := "http://127.0.0.1:" + port
	background(t, s.Env, p.tenon, "serve", "-c", filepath.Join(s.Dir, "tenon.yaml"), "--listen", "127.0.0.1:"+port,
		"--token-file", token, "--log-level", "warn")
	answers(t, url+"/healthz")
	python := []string{filepath.Join(filepath.Dir(p.modules), "python4", "bin", "python"),
		absolute(t, "testdata", "clients.py")}
	node := []string{p.node, absolute(t, "testdata", "openai.mjs"), p.bin(t, "openai", "index.mjs")}
	fetchRetry := []string{p.node, absolute(t, "testdata", "fetchretry.mjs"), p.bin(t, "fetch-retry", "index.js")}
	limit := map[string]any{"finish": "length", "text": "I count.\n\nI count.", "effects": 2.0}
	failure := map[string]any{"status": 424.0, "effects": 1.0}
	for name, tt := range map[string]struct {
		command []string
		want    map[string]any
	}{
		"RP-2_python":  {append(python, "retries"), map[string]any{"limit": limit, "failure": failure, "stream": failure}},
		"RP-2_node":    {node, map[string]any{"limit": limit, "failure": failure, "stream": failure}},
		"RP-2_urllib3": {append(python, "urllib3"), map[string]any{"chat": failure, "completions": failure}},
		"RP-2_fetch_retry": {fetchRetry, map[string]any{"chat": failure, "failure": failure,
			"limit": map[string]any{"status": 200.0, "finish": "length", "effects": 2.0}}},
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
