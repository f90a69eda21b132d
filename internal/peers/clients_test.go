package peers

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
	Grown     int // tools that were added during the test
	Changes   int // notifications about them
	Quiet     int // notifications to a client whose list of tools did not change
}

// testGatewayClients connects clients of others to the gateway: over HTTP to tenon serve, and to tenon gateway, which
// they start. The servers behind it are of the official SDKs for TypeScript and Python.
func (p *peers) testGatewayClients(t *testing.T) {
	pythons := filepath.Dir(p.modules)
	s := p.shell(t)
	s.config(t, map[string]any{
		"policy":  map[string]any{"defaults": map[string]any{"approval": "never"}},
		"gateway": map[string]any{"endpoints": map[string]any{"quiet": map[string]any{"tools": []string{"echo"}}}},
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
	older := clitest.Build(t, "oldsdk", ".")
	script := absolute(t, "testdata", "mcpclient.mjs")
	bridge := func(url string) []string {
		return []string{"stdio", p.node, p.bin(t, "mcp-remote", "dist", "proxy.js"), url, "--header",
			"Authorization:Bearer " + apiToken}
	}
	python := func(version string, era ...string) peerClient {
		return peerClient{command: append([]string{filepath.Join(pythons, "python"+version, "bin", "python"),
			absolute(t, "testdata", "mcpclient.py"), url, apiToken}, era...)}
	}
	node := func(version string, where, quiet []string) peerClient {
		return peerClient{append([]string{p.node, script, p.modules, version}, where...), quiet}
	}
	remote, quiet := []string{url, apiToken}, []string{url + "/quiet", apiToken}
	local := []string{"stdio", p.tenon, "gateway", "-c", config}
	localQuiet := append(slices.Clone(local), "--endpoint", "quiet")
	for name, client := range map[string]peerClient{
		"typescript 1":        node("sdk", remote, quiet),
		"typescript 2":        node("client", remote, quiet),
		"typescript 2 modern": node("modern", remote, quiet),
		"typescript 1 stdio":  node("sdk", local, localQuiet),
		"typescript 2 stdio":  node("client", local, localQuiet),
		"python 1":            python("1"),
		"python 2":            python("2"),
		"fastmcp":             python("6"),
		"fastmcp legacy":      python("6", "legacy"),
		"go":                  {command: []string{rivals, "client", url}},
		"go 1.7":              {command: []string{older, url}},
		"mcp-remote":          node("sdk", bridge(url), bridge(url+"/quiet")),
	} {
		t.Run("GW-2_client_"+name, func(t *testing.T) {
			got, said := client.run(t, s.Env)
			// The SDK for TypeScript drops progress that it reads together with the result.
			if got.Progress == 0 && (strings.HasPrefix(name, "go") || strings.HasPrefix(name, "python")) {
				t.Error("no progress")
			}
			if !strings.Contains(got.Failure, "it went wrong") {
				t.Errorf("not the text of the tool: %q", got.Failure)
			}
			// The two tools are added at once. The notifications about them may be one or two. In the newer era, fastmcp
			// asks for none.
			if got.Changes < 1 && name != "fastmcp" || got.Changes > 2 {
				t.Errorf("%d notifications of a changed list", got.Changes)
			}
			got.Progress, got.Failure, got.Changes = 0, "", 0
			want := seen{Tools: []string{"count", "echo", "fail"}, Echo: "grüezi", Failed: true, Counted: "counted to 3",
				Resource: "grüezi", Resources: []string{"peer://note"}, Prompts: []string{"greet"},
				Prompt: "Say hello to Ann", Unknown: -32602, Grown: 2}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s\n%s", d, said)
			}
		})
	}
	p.testInspector(t, s, url, config)
}

// peerClient is a client of others. quiet is the place of an endpoint whose tools do not change, for clients that do not
// know it.
type peerClient struct{ command, quiet []string }

// run returns what the client got, and what it wrote to stderr.
func (c peerClient) run(t *testing.T, env []string) (got seen, said string) {
	t.Helper()
	quiet, err := json.Marshal(c.quiet)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(c.command[0], c.command[1:]...)
	cmd.Env = append(append(os.Environ(), env...), "TENON_PEER_TOKEN="+apiToken, "TENON_PEER_QUIET="+string(quiet),
		"MCP_REMOTE_CONFIG_DIR="+t.TempDir())
	var errors strings.Builder
	cmd.Stderr = &errors
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &got)
	}
	if err != nil {
		t.Fatalf("%v: %s\n%s", err, out, errors.String())
	}
	return got, errors.String()
}
