package peers

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// testInspector uses the gateway with the command line of MCP Inspector, over HTTP and over stdio. Each request is a
// process with its own connection.
func (p *peers) testInspector(t *testing.T, s shell, url, config string) {
	program := p.bin(t, "@modelcontextprotocol", "inspector", "clients", "launcher", "build", "index.js")
	for name, server := range map[string][]string{
		"inspector":       {url, "--transport", "http", "--header", "Authorization: Bearer " + apiToken},
		"inspector stdio": {p.tenon, "gateway", "-c", config},
	} {
		t.Run("GW-2_client_"+name, func(t *testing.T) {
			home := t.TempDir()
			ask := func(args ...string) (status int, result json.RawMessage) {
				t.Helper()
				args = append([]string{program, "--cli"}, slices.Concat(server, args, []string{"--format", "json"})...)
				cmd := exec.Command(p.node22(t), args...)
				cmd.Env = append(append(os.Environ(), s.Env...), "HOME="+home, "XDG_CONFIG_HOME="+home, "MCP_AUTO_OPEN_ENABLED=false")
				var said strings.Builder
				cmd.Stderr = &said
				out, err := cmd.Output()
				var exit *exec.ExitError
				if err != nil && !errors.As(err, &exit) {
					t.Fatal(err)
				}
				var answer struct{ Result json.RawMessage }
				if err := json.Unmarshal(out, &answer); err != nil {
					t.Fatalf("%v: %v: %s\n%s", args[1:], err, out, said.String())
				}
				return cmd.ProcessState.ExitCode(), answer.Result
			}
			var listed struct{ Tools []struct{ Name string } }
			_, raw := ask("--method", "tools/list")
			if err := json.Unmarshal(raw, &listed); err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, one := range listed.Tools {
				if !strings.HasPrefix(one.Name, "grow") {
					names = append(names, one.Name)
				}
			}
			slices.Sort(names)
			if d := cmp.Diff([]string{"count", "echo", "fail"}, names); d != "" {
				t.Error(d)
			}
			for _, tt := range []struct {
				args   []string
				status int
				want   string
			}{
				{[]string{"--method", "tools/call", "--tool-name", "echo", "--tool-arg", "text=grüezi"}, 0, `"grüezi"`},
				{[]string{"--method", "tools/call", "--tool-name", "fail"}, 5, "it went wrong"},
				{[]string{"--method", "resources/list"}, 0, `peer://note`},
				{[]string{"--method", "resources/read", "--uri", "peer://note"}, 0, `"grüezi"`},
				{[]string{"--method", "prompts/get", "--prompt-name", "greet", "--prompt-args", "name=Ann"}, 0, "Say hello to Ann"},
			} {
				if status, result := ask(tt.args...); status != tt.status || !strings.Contains(string(result), tt.want) {
					t.Errorf("%s: status %d, %s, want %d and %s", tt.args, status, result, tt.status, tt.want)
				}
			}
		})
	}
}

// node22 returns the Node that Inspector needs, which is a package, too.
func (p *peers) node22(t *testing.T) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(p.modules, "node-*", "bin", "node"))
	if err != nil || len(found) == 0 {
		return p.node // new enough, or Inspector says that it is not
	}
	return found[0]
}
