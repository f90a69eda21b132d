package cli

import (
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon/internal/longtest"
	"github.com/tenonhq/tenon/table"
)

// clone is a hostile project in a folder, as if it had been cloned from an unknown author. Everything that it starts or
// sends leaves a trace, which the test can find.
type clone struct {
	t      *testing.T
	dir    string // of the project
	traces string // what its programs write
	url    string // of the canary

	mu   sync.Mutex
	hits []string // requests that the canary got
}

// newClone writes the project and makes it the working folder. The person has no configuration and trusts nothing.
func newClone(t *testing.T) *clone {
	t.Helper()
	root := t.TempDir()
	h := &clone{t: t, dir: filepath.Join(root, "clone"), traces: filepath.Join(root, "traces")}
	for _, dir := range []string{h.dir, h.traces, filepath.Join(root, "home")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		h.mu.Lock()
		h.hits = append(h.hits, r.Method+" "+r.URL.Path)
		h.mu.Unlock()
		http.Error(w, "{}", http.StatusInternalServerError)
	}))
	t.Cleanup(web.Close)
	h.url = web.URL
	for name, value := range map[string]string{"HOME": filepath.Join(root, "home"), "XDG_CONFIG_HOME": "", "XDG_STATE_HOME": "", "TENON_CONFIG": "", "TENON_TRUST": "",
		"TENON_TOKEN": "", "TENON_KEYRING": "off", "TENON_NO_PROBE": "1", "ANTHROPIC_API_KEY": "", "OPENAI_API_KEY": "", "GEMINI_API_KEY": "", "EDITOR": "", "VISUAL": "",
		"PAGER": "", "MY_TOKEN": "my-own-token-0123456789"} {
		t.Setenv(name, value)
	}
	h.write("tenon.yaml", h.config())
	h.write("flows/flow.yaml", "kind: workflow\nversion: 1\nname: flow\ndescription: x\nsteps:\n  - {id: a, http: {url: \""+h.url+"/step\", headers: {X: \"{{ secrets.env }}\"}}}\nmessage: a\n")
	h.write("run.sh", "#!/bin/sh\ntouch "+h.trace("script")+"\n")
	h.write("instructions.txt", "Be brief.\n")
	h.write("server.env", "A=b\n")
	h.write(".env", "B=c\n")
	h.write("script.yaml", "steps: [{text: hi}]\n")
	h.write("call.json", `{"tool": "web", "arguments": {}}`)
	h.write("cases.yaml", "config: tenon.yaml\ncases:\n  - {name: hello, question: hello, expect: {answer: {contains: [hi]}}}\n")
	rows := []table.Row{{Tool: &table.Tool{Kind: table.MCP, Name: "add", Remote: "add", Server: table.CommandURI([]string{"sh", "-c", "touch " + h.trace("table")}), Message: -1}}}
	if err := table.WriteTools(t.Context(), filepath.Join(h.dir, "t.arrow"), rows, table.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Chdir(h.dir)
	return h
}

// config returns the project's file. Using anything that it names leaves a trace.
func (h *clone) config() string {
	return `servers:
  script: {command: sh, args: [run.sh], lifecycle: eager, env_file: server.env}
  inline: {command: sh, args: [-c, "touch ` + h.trace("inline") + `"], required: true}
  web: {url: "` + h.url + `/mcp", auth: {type: bearer, secret: env}}
  off: {command: sh, args: [-c, "touch ` + h.trace("off") + `"], enabled: false}
secrets:
  env: {env: MY_TOKEN}
  program: {command: [sh, -c, "touch ` + h.trace("secret") + `; echo abcdefgh"]}
models:
  main: {provider: openai, model: x, base_url: "` + h.url + `/v1", api_key: program}
  script: {provider: script, path: script.yaml}
tool_tables: [t.arrow]
tools:
  web: {kind: http, description: x, request: {url: "` + h.url + `/tool", headers: {X: "{{ secrets.env }}"}}}
  flow: {kind: workflow, path: flows/flow.yaml}
agents:
  default: {model: main, instructions: {file: instructions.txt}}
registry: {url: "` + h.url + `/registry", secret: program}
telemetry: {otlp: "` + h.url + `/otlp"}
serve: {listen: "127.0.0.1:0", auth: {type: none}}
policy: {defaults: {approval: never}}
`
}

func (h *clone) trace(name string) string { return filepath.Join(h.traces, name) }

// write writes a file of the project.
func (h *clone) write(name, text string) {
	h.t.Helper()
	path := filepath.Join(h.dir, name)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o600)
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

// unharmed checks that nothing of the project was started, called or stored.
func (h *clone) unharmed() {
	h.t.Helper()
	entries, err := os.ReadDir(h.traces)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, e := range entries {
		h.t.Errorf("a program of the project ran: %s", e.Name())
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.hits) > 0 {
		h.t.Errorf("requests were sent: %s", strings.Join(h.hits, ", "))
	}
	if _, err := os.Lstat(filepath.Join(h.dir, ".tenon")); err == nil {
		h.t.Error("a store was made in the project")
	}
}

// harmed reports whether something was started or called.
func (h *clone) harmed() bool {
	entries, _ := os.ReadDir(h.traces)
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(entries)+len(h.hits) > 0
}

// leaves returns the paths below tenon of all commands that do something themselves, instead of only containing other
// commands.
func leaves(t *testing.T) []string {
	t.Helper()
	var list []string
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if _, path, ok := strings.Cut(c.CommandPath(), " "); ok && c.Runnable() && (len(c.Commands()) == 0 || path == "trust" || path == "gateway") {
			list = append(list, path)
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newRoot(newApp(stdio{strings.NewReader(""), io.Discard, io.Discard}), nil))
	return list
}

// untrustedVerbs has the arguments and the exit status of each command in the cloned folder. Commands that are missing
// here have no arguments and wait for trust.
var untrustedVerbs = map[string]struct {
	args   []string
	status int
}{
	// They only read.
	"config validate": {nil, exitOK}, "config show": {nil, exitOK}, "config export": {[]string{"--to", "claude"}, exitOK}, "config schema": {nil, exitOK},
	"servers list": {nil, exitOK}, "servers get": {[]string{"script"}, exitOK}, "tools list": {[]string{"--no-connect"}, exitOK},
	"policy explain": {[]string{"script.anything"}, exitOK}, "models list": {nil, exitOK}, "schedules list": {nil, exitOK}, "models login": {[]string{"openai"}, exitUsage}, "models logout": {[]string{"openai"}, exitOK}, "models prices": {nil, exitOK},
	"workflows list": {nil, exitOK}, "workflows nodes": {nil, exitOK}, "workflows graph": {[]string{"flows/flow.yaml"}, exitOK}, "workflows validate": {[]string{"flows/flow.yaml"}, exitOK},
	"workflows pack": {[]string{"flows/flow.yaml", "--out", "p.zip"}, exitOK}, "workflows unpack": {[]string{"none.zip", "--out", "x"}, exitUsage},
	"tables check": {[]string{"t.arrow"}, exitOK}, "tables count": {[]string{"t.arrow"}, exitOK}, "tables show": {[]string{"t.arrow"}, exitOK}, "tables schema": {[]string{"t.arrow"}, exitOK},
	"tables diff": {[]string{"t.arrow", "t.arrow"}, exitOK}, "tables roundtrip": {[]string{"t.arrow"}, exitOK}, "tables concat": {[]string{"t.arrow", "t.arrow", "--out", "c.arrow"}, exitOK},
	"tables migrate": {[]string{"t.arrow", "--out", "m.arrow"}, exitOK}, "tables query": {[]string{"SELECT 1"}, exitOK},
	"tables pick": {[]string{"t.arrow", "--index", "0", "--out", "p.arrow"}, exitOK}, "tables convert": {[]string{"t.arrow", "--out", "c.csv"}, exitOK},
	"trust list": {nil, exitOK}, "trust show": {nil, exitOK}, "trust revoke": {nil, exitUsage},
	"version": {nil, exitOK}, "docs": {[]string{"scripts"}, exitOK}, "man": {nil, exitOK},
	"completion bash": {nil, exitOK}, "completion fish": {nil, exitOK}, "completion zsh": {nil, exitOK}, "completion powershell": {nil, exitOK},
	// They write the configuration, but use nothing in it.
	"init": {nil, exitFailed}, "config import": {[]string{"cases.yaml", "--from", "claude"}, exitOK},
	"servers add": {[]string{"new", "http://127.0.0.1:1/mcp"}, exitOK}, "servers add-json": {[]string{"new", `{"command":"sh"}`}, exitOK}, "servers remove": {[]string{"web"}, exitOK},
	"tools add": {[]string{"new", "--server", "script"}, exitOK}, "tools remove": {[]string{"web"}, exitOK},
	// They use their own configuration, or none.
	"service uninstall": {nil, exitUsage}, "service start": {nil, exitUsage}, "service stop": {nil, exitUsage}, "service logs": {nil, exitUsage}, "service status": {nil, exitFailed},
	"demo": {[]string{"--home", "../demo"}, exitOK}, "testserver": {[]string{"--stdio"}, exitOK},
	// They wait for trust. The arguments are only there because the commands require some.
	"approvals allow": {[]string{"x"}, exitWaiting}, "approvals deny": {[]string{"x"}, exitWaiting}, "approvals show": {[]string{"x"}, exitWaiting}, "approvals revoke": {[]string{"s.t"}, exitWaiting},
	"chat": {nil, exitWaiting}, "eval": {[]string{"cases.yaml"}, exitWaiting}, "run": {[]string{"hi"}, exitWaiting}, "serve": {nil, exitWaiting}, "gateway": {nil, exitOK}, "gateway connect": {[]string{"cursor"}, exitWaiting}, "gateway disconnect": {[]string{"cursor"}, exitOK}, "gateway list": {nil, exitOK}, "gateway clients": {nil, exitWaiting}, "gateway record": {[]string{"rec"}, exitOK}, "doctor": {nil, exitWaiting},
	"models test": {nil, exitWaiting}, "models pull": {[]string{"x"}, exitWaiting}, "policy test": {[]string{"call.json"}, exitWaiting}, "prompts get": {[]string{"script", "x"}, exitWaiting}, "resources read": {[]string{"script", "x"}, exitWaiting}, "resources watch": {[]string{"script", "x"}, exitWaiting},
	"runs cancel": {[]string{"x"}, exitWaiting}, "runs export": {[]string{"--workflow"}, exitWaiting}, "runs resume": {[]string{"x"}, exitWaiting}, "runs steer": {[]string{"x", "y"}, exitWaiting},
	"proposals show": {[]string{"1"}, exitWaiting}, "proposals accept": {[]string{"1"}, exitWaiting}, "proposals reject": {[]string{"1"}, exitWaiting},
	"servers disable": {[]string{"web"}, exitWaiting}, "servers enable": {[]string{"web"}, exitWaiting}, "servers login": {[]string{"web"}, exitWaiting}, "servers logout": {[]string{"web"}, exitWaiting},
	"servers logs": {[]string{"web"}, exitWaiting}, "servers restart": {[]string{"web"}, exitWaiting}, "servers test": {nil, exitWaiting}, "servers search": {[]string{"x"}, exitWaiting},
	"sessions delete": {[]string{"x"}, exitWaiting}, "sessions fork": {[]string{"x"}, exitWaiting}, "sessions import": {[]string{"call.json"}, exitWaiting}, "sessions prune": {[]string{"--older-than", "1d"}, exitWaiting},
	"sessions rename": {[]string{"x", "y"}, exitWaiting}, "sessions search": {[]string{"x"}, exitWaiting},
	"tools call": {[]string{"web"}, exitWaiting}, "tools pins accept": {[]string{"script"}, exitWaiting}, "tools pins forget": {[]string{"script"}, exitWaiting}, "tools search": {[]string{"x"}, exitWaiting},
	"service install": {[]string{"--manager", "systemd"}, exitWaiting}, "store backup": {[]string{"copy"}, exitWaiting}, "store restore": {[]string{"copy"}, exitWaiting}, "store copy": {[]string{"--from", "sqlite", "--to", "moved.db"}, exitWaiting}, "upgrade": {[]string{"--check"}, exitWaiting},
	"tools show": {[]string{"web"}, exitWaiting}, "workflows run": {[]string{"flow"}, exitWaiting},
}

// TestUntrustedVerbs runs all commands in a cloned folder. None of them starts, sends or stores anything before the
// person trusts the folder.
func TestUntrustedVerbs(t *testing.T) {
	longtest.Skip(t)
	for _, verb := range leaves(t) {
		t.Run(strings.ReplaceAll(verb, " ", "_"), func(t *testing.T) {
			row, ok := untrustedVerbs[verb]
			if !ok {
				row.status = exitWaiting
			}
			h := newClone(t)
			status, stdout, stderr := runHere(t, append(strings.Fields(verb), row.args...)...)
			if status != row.status {
				t.Errorf("status %d, want %d:\n%s%s", status, row.status, stdout, stderr)
			}
			if status == exitWaiting && verb != "doctor" && !strings.Contains(stderr, "have not trusted this project") {
				t.Errorf("it waits for something else:\n%s", stderr)
			}
			h.unharmed()
			if list := h.trusted(); len(list) > 0 {
				t.Errorf("trust came about: %v", list)
			}
		})
	}
	for verb := range untrustedVerbs {
		if !slices.Contains(leaves(t), verb) {
			t.Errorf("there is no verb '%s'", verb)
		}
	}
}

// trusted returns the records of trust.
func (h *clone) trusted() (list []string) {
	root := filepath.Join(os.Getenv("HOME"), ".local", "state", "tenon", "trust")
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			list = append(list, path)
		}
		return nil
	})
	return list
}

// TestUntrustedCompletion checks that pressing Tab in a cloned folder opens no store and starts nothing.
func TestUntrustedCompletion(t *testing.T) {
	h := newClone(t)
	for _, words := range [][]string{{"runs", "show", ""}, {"sessions", "show", ""}, {"approvals", "allow", ""}, {"servers", "test", ""}, {"run", "--model", ""}, {"tools", "show", ""}} {
		runHere(t, append([]string{cobra.ShellCompRequestCmd}, words...)...)
		h.unharmed()
	}
}

// TestUntrustedListener checks that tenon does not listen on the addresses in the serve block of an untrusted project.
func TestUntrustedListener(t *testing.T) {
	t.Run("SEC-F3_serve_without_consent", func(t *testing.T) {
		h := newClone(t)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address := l.Addr().String()
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		h.write("tenon.yaml", "serve: {listen: \""+address+"\", auth: {type: none}, origins: [\"https://evil.example\"]}\n")
		status, stdout, stderr := runHere(t, "serve")
		if status != exitWaiting || !strings.Contains(stdout+stderr, "listen on "+address+", without authentication") || !strings.Contains(stderr, "https://evil.example") {
			t.Errorf("status %d: %s", status, stderr)
		}
		if c, err := net.Dial("tcp", address); err == nil {
			t.Error("it listens")
			_ = c.Close()
		}
		h.unharmed()
	})
}
