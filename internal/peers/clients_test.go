package peers

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon/internal/clitest"
)

// seen is what a client got through the gateway.
type seen struct {
	Tools     []string
	Echo      string
	Failed    bool
	Failure   string
	Counted   string
	Progress  int
	Resource  string
	Resources []string
	Prompts   []string
	Prompt    string
	Unknown   int
}

// testGatewayClients connects clients of others to the gateway: over HTTP to tenon serve, and to tenon gateway, which
// they start. The servers behind it are of the official SDKs for TypeScript and Python.
func (p *peers) testGatewayClients(t *testing.T) {
	pythons := filepath.Dir(p.modules)
	s := p.shell(t)
	s.config(t, map[string]any{
		"policy": map[string]any{"defaults": map[string]any{"approval": "never"}},
		"servers": map[string]any{
			"node": command([]string{p.node, absolute(t, "testdata", "typescript.mjs"), p.modules, "stdio"}),
			"python": map[string]any{"command": filepath.Join(pythons, "python2", "bin", "python"),
				"args": []string{absolute(t, "testdata", "python.py"), "stdio"}, "include": []string{"count"}, "load_prompts": false,
				"timeout": startTime},
		}})
	s.OK(t, "tools", "list", "-c", "tenon.yaml") // so that no client comes before the tools of a slow server
	config := filepath.Join(s.Dir, "tenon.yaml")
	token := s.WriteFile(t, "token", apiToken)
	port := clitest.FreePort(t)
	url := "http://127.0.0.1:" + port + "/mcp"
	background(t, s.Env, p.tenon, "serve", "-c", config, "--listen", "127.0.0.1:"+port, "--token-file", token,
		"--log-level", "warn")
	answers(t, "http://127.0.0.1:"+port+"/healthz")
	rivals := clitest.Build(t, filepath.Join("..", "rivals"), ".")
	script := absolute(t, "testdata", "mcpclient.mjs")
	bridge := []string{p.node, p.bin(t, "mcp-remote", "dist", "proxy.js"), url, "--header", "Authorization:Bearer " + apiToken}
	python := func(version string) []string {
		return []string{filepath.Join(pythons, "python"+version, "bin", "python"), absolute(t, "testdata", "mcpclient.py"),
			url, apiToken}
	}
	node := func(version string, more ...string) []string {
		return append([]string{p.node, script, p.modules, version}, more...)
	}
	for name, client := range map[string][]string{
		"typescript 1":       node("sdk", url, apiToken),
		"typescript 2":       node("client", url, apiToken),
		"typescript 1 stdio": node("sdk", "stdio", p.tenon, "gateway", "-c", config),
		"typescript 2 stdio": node("client", "stdio", p.tenon, "gateway", "-c", config),
		"python 1":           python("1"),
		"python 2":           python("2"),
		"go":                 {rivals, "client", url},
		"mcp-remote":         append(node("sdk", "stdio"), bridge...),
	} {
		t.Run("GW-2_client_"+name, func(t *testing.T) {
			cmd := exec.Command(client[0], client[1:]...)
			cmd.Env = append(append(os.Environ(), s.Env...), "TENON_PEER_TOKEN="+apiToken, "MCP_REMOTE_CONFIG_DIR="+t.TempDir())
			var said strings.Builder
			cmd.Stderr = &said
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v: %s\n%s", err, out, said.String())
			}
			var got seen
			if err := json.Unmarshal(out, &got); err != nil {
				t.Fatalf("%v: %s\n%s", err, out, said.String())
			}
			// The SDK for TypeScript drops progress that it reads together with the result.
			if got.Progress == 0 && (name == "go" || strings.HasPrefix(name, "python")) {
				t.Error("no progress")
			}
			if !strings.Contains(got.Failure, "it went wrong") {
				t.Errorf("not the text of the tool: %q", got.Failure)
			}
			got.Progress, got.Failure = 0, ""
			want := seen{Tools: []string{"count", "echo", "fail"}, Echo: "grüezi", Failed: true, Counted: "counted to 3",
				Resource: "grüezi", Resources: []string{"peer://note"}, Prompts: []string{"greet"},
				Prompt: "Say hello to Ann", Unknown: -32602}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s\n%s", d, said.String())
			}
		})
	}
}
