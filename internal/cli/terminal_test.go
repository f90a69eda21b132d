package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/table"
)

// writer is a toolset with one tool that changes something. It records the arguments of its calls.
type writer struct{ got []string }

func (w *writer) Tools(context.Context) ([]tenon.Tool, error) {
	return []tenon.Tool{{Remote: "write", Name: "write", Input: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`)}}, nil
}

func (w *writer) Call(_ context.Context, c tenon.Call) (*tenon.Result, error) {
	w.got = append(w.got, string(c.Arguments))
	return &tenon.Result{Content: []tenon.Content{tenon.Text("written")}}, nil
}

var _ tenon.Toolset = (*writer)(nil)

const writeSteps = `steps:
  - text: I write.
    calls: [{name: write, arguments: {text: "a\u202eb\e[2J"}}]
  - text: Done.
`

// atTerminal asks a question at a simulated terminal, with the given input of the person.
func atTerminal(t *testing.T, typed string, env ...string) (w *writer, stdout, stderr string, err error) {
	t.Helper()
	dir := t.TempDir()
	steps := filepath.Join(dir, "steps.yaml")
	if err := os.WriteFile(steps, []byte(writeSteps), 0o600); err != nil {
		t.Fatal(err)
	}
	w = &writer{}
	var out, errs bytes.Buffer
	a := newApp(stdio{strings.NewReader(typed), &out, &errs})
	a.lookupEnv = func(name string) (string, bool) {
		for _, v := range env {
			if value, ok := strings.CutPrefix(v, name+"="); ok {
				return value, true
			}
		}
		return "", false
	}
	a.inTTY, a.outTTY, a.errTTY = true, true, true
	h, err := host.Open(t.Context(), host.Config{Home: dir, Model: "script:" + steps, Toolsets: map[string]tenon.Toolset{"disk": w}})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	_, err = a.question(t.Context(), h, host.Question{Text: "write it"}, false)
	return w, out.String(), errs.String(), err
}

func TestApprovalAtTheTerminal(t *testing.T) {
	const proposed = `{"text":"a` + "\u202e" + `b\u001b[2J"}`
	tests := map[string]struct {
		typed string
		got   []string
		shown []string
	}{
		"yes":          {"y\n", []string{proposed}, []string{"● disk.write", "ok"}},
		"slip":         {"what\nyes\n", []string{proposed}, nil},
		"no":           {"n\n", nil, []string{"denied"}},
		"no because":   {"n not on a Friday\n", nil, []string{"not on a Friday"}},
		"edited":       {"e\n{\"text\":\"c\"}\n", []string{`{"text":"c"}`}, []string{`{"text":"c"}`}},
		"edited badly": {"e\n{\"text\":\ne\n{\"text\":1}\ne\n{\"text\":\"c\"}\n", []string{`{"text":"c"}`}, []string{"must be a JSON object"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w, stdout, stderr, err := atTerminal(t, tt.typed)
			if err != nil {
				t.Fatalf("%v\n%s", err, stderr)
			}
			if len(w.got) != len(tt.got) || len(w.got) > 0 && w.got[0] != tt.got[0] {
				t.Errorf("the tool got %q, want %q", w.got, tt.got)
			}
			if stdout != "I write.\nDone.\n" {
				t.Errorf("stdout is %q", stdout)
			}
			for _, s := range append(tt.shown, "approval required", "disk", `a\u202eb`) {
				if !strings.Contains(stderr, s) {
					t.Errorf("%q is not in:\n%s", s, stderr)
				}
			}
			if strings.ContainsAny(strings.ReplaceAll(stderr, "\r\x1b[K", ""), "\x1b\u202e") {
				t.Errorf("a hidden character reached the terminal: %q", stderr)
			}
		})
	}
}

// TestApprovalEditor checks that an empty editor variable means no editor, and that an editor that cannot be started is
// reported.
func TestApprovalEditor(t *testing.T) {
	for name, tt := range map[string]struct {
		env   []string
		typed string
		shown string
	}{
		"blank":       {[]string{"VISUAL= ", "EDITOR=\t"}, "e\n{\"text\":\"c\"}\n", "arguments, as JSON on one line"},
		"not there":   {[]string{"VISUAL=", "EDITOR=/nonexistent/editor -w"}, "e\ny\n", "the editor /nonexistent/editor"},
		"of no type":  {nil, "e\n[1]\ny\n", "the arguments must be a JSON object: it is of type array"},
		"of no bytes": {nil, "e\n\ny\n", "the arguments must be a JSON object: there is nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			w, _, stderr, err := atTerminal(t, tt.typed, tt.env...)
			if err != nil || len(w.got) != 1 || !strings.Contains(stderr, tt.shown) {
				t.Errorf("%v, calls %q, shown:\n%s", err, w.got, stderr)
			}
		})
	}
}

// TestApprovalUndecided checks that a run keeps waiting when the person ends the input without a decision.
func TestApprovalUndecided(t *testing.T) {
	w, _, stderr, err := atTerminal(t, "")
	if exitStatus(err) != exitWaiting || len(w.got) > 0 {
		t.Fatalf("%v, calls %q", err, w.got)
	}
	if !strings.Contains(stderr, "tenon approvals allow run_") || !strings.Contains(stderr, "tenon runs resume run_") {
		t.Errorf("it does not say how to go on:\n%s", stderr)
	}
}

func TestConsent(t *testing.T) {
	dir, state := t.TempDir(), t.TempDir()
	t.Chdir(dir)
	t.Setenv("HOME", dir)
	t.Setenv("XDG_STATE_HOME", state)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, "none"))
	write := func(text string) {
		if err := os.WriteFile("tenon.yaml", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ask := func(typed string) error {
		var errs bytes.Buffer
		a := newApp(stdio{strings.NewReader(typed), &errs, &errs})
		a.inTTY, a.errTTY = true, true
		cfg, err := a.load(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return a.requireTrust(t.Context(), cfg)
	}
	write("servers: {x: {command: nope, args: [a b]}}\n")
	if err := ask("n\n"); exitStatus(err) != exitDenied {
		t.Fatalf("no: %v", err)
	}
	if err := ask("y\n"); err != nil {
		t.Fatalf("yes: %v", err)
	}
	if err := ask(""); err != nil {
		t.Fatalf("it asks again: %v", err)
	}
	write("servers: {y: {command: nope, env: {K: \"${secret:k}\"}}}\nsecrets: {k: {env: HARMLESS}}\n")
	if err := ask("y\n"); err != nil {
		t.Fatalf("yes: %v", err)
	}
	for _, changed := range []string{
		"servers: {x: {command: nope, args: [a, b]}}\n",
		"servers: {x: {command: nope, args: [a b], env: {LD_PRELOAD: ./x.so}}}\n",
		"servers: {x: {command: nope, args: [a b], cwd: ..}}\n",
		"servers: {x: {url: \"http://127.0.0.1:1/mcp\"}}\n",
		"servers: {x: {command: nope, args: [a b]}}\nsecrets: {s: {command: [nope]}}\n",
		"servers: {x: {command: nope, args: [a b]}}\nmodels: {m: {provider: openai, model: x, base_url: \"http://127.0.0.1:1/v1\"}}\n",
		"servers: {x: {command: nope, args: [a b]}}\nmodels: {m: {provider: openai, model: x, api_key: {command: [nope]}}}\n",
		"servers: {x: {command: nope, args: [a b]}}\nmodels: {m: {provider: openai, model: x, api_key: {env: GITHUB_TOKEN}}}\n",
		"servers: {x: {command: nope, args: [a b], inherit_env: [PATH, GITHUB_TOKEN]}}\n",
		"servers: {x: {command: nope, args: [\"${NONE:-a b}\"]}}\n",
		"servers: {x: {command: nope, args: [a b]}}\ntelemetry: {otlp: \"http://127.0.0.1:1\"}\n",
		"servers: {x: {command: nope, args: [a b]}, y: {command: nope, env: {K: \"${secret:k}\"}}}\nsecrets: {k: {env: ANOTHER}}\n",
	} {
		write(changed)
		if err := ask(""); exitStatus(err) != exitInterrupted {
			t.Errorf("nobody is asked about %s: %v", changed, err)
		}
	}
	write("servers: {x: {command: nope, args: [a b]}}\n") // an earlier version was agreed to; this one is new
	if err := ask(""); exitStatus(err) != exitInterrupted {
		t.Errorf("nobody is asked about an earlier version: %v", err)
	}
}

// TestConsentToTables checks that a person is asked about the tools in the tables of a configuration that was found,
// and again about a changed table. About a command in a table, the person is always asked.
func TestConsentToTables(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("HOME", dir)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, "none"))
	if err := os.WriteFile("tenon.yaml", []byte("tool_tables: [t.arrow]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	put := func(tools ...*table.Tool) {
		t.Helper()
		var rows []table.Row
		for _, tool := range tools {
			rows = append(rows, table.Row{Tool: tool})
		}
		if err := table.WriteTools(t.Context(), "t.arrow", rows, table.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	tool := func(name, server string) *table.Tool {
		return &table.Tool{Kind: table.MCP, Name: name, Remote: name, Server: server, Message: -1}
	}
	ask := func(file, typed string) (string, error) {
		t.Helper()
		var errs bytes.Buffer
		a := newApp(stdio{strings.NewReader(typed), &errs, &errs})
		a.inTTY, a.errTTY, a.config = true, true, file
		cfg, err := a.load(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		err = a.requireTrust(t.Context(), cfg)
		if err == nil {
			err = a.agreeTables(t.Context(), cfg)
		}
		return errs.String(), err
	}
	const address = "http://127.0.0.1:1/mcp"
	put(tool("add", address))
	if _, err := ask("", "y\n"); err != nil {
		t.Fatal(err)
	}
	if said, err := ask("", ""); err != nil {
		t.Fatalf("it asks again: %v\n%s", err, said)
	}
	put(tool("add", address)) // written anew, and the same
	if said, err := ask("", ""); err != nil {
		t.Errorf("it asks about the same table: %v\n%s", err, said)
	}
	for name, tools := range map[string][]*table.Tool{
		"another tool":   {tool("add", address), tool("drop", address)},
		"another server": {tool("add", "http://127.0.0.1:2/mcp")},
		"a request":      {{Kind: table.HTTP, Name: "web", Message: -1, Server: table.Request{URL: "http://127.0.0.1:1/x"}.URI()}},
		"a command":      {tool("add", table.CommandURI([]string{"nope", "x"}))},
	} {
		t.Run(name, func(t *testing.T) {
			put(tools...)
			if said, err := ask("", ""); exitStatus(err) != exitInterrupted {
				t.Errorf("nobody is asked: %v\n%s", err, said)
			}
		})
	}
	t.Run("a command of a file that was named", func(t *testing.T) {
		put(tool("add", table.CommandURI([]string{"nope", "x"})))
		if said, err := ask("tenon.yaml", "n\n"); exitStatus(err) != exitDenied {
			t.Errorf("%v\n%s", err, said)
		}
		if said, err := ask("", "y\n"); err != nil {
			t.Errorf("the whole question has the command: %v\n%s", err, said)
		}
		if said, err := ask("tenon.yaml", ""); err != nil {
			t.Errorf("it asks again: %v\n%s", err, said)
		}
	})
}

// TestTrustItems checks that the list names what is started, called and handed over.
func TestTrustItems(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"key of a model": {"models: {m: {provider: openai, model: x, base_url: \"http://127.0.0.1:1/v1\", api_key: {env: OPENAI_API_KEY}}}",
			"ask the model openai x at http://127.0.0.1:1/v1, sending $OPENAI_API_KEY"},
		"provider's usual key": {"models: {m: {provider: openai, model: x}}", "ask the model openai x at https://api.openai.com/v1, sending $OPENAI_API_KEY"},
		"inline command": {"models: {m: {provider: openai, model: x, api_key: {command: [rm, -r]}}}",
			"start rm -r|ask the model openai x at https://api.openai.com/v1, sending what rm -r prints"},
		"secret of a server": {"servers: {x: {url: \"http://h/mcp?k=${KEY}\", auth: {type: bearer, secret: {command: [rm, -r]}}, headers: {X-A: \"${KEY}\", X-B: b}}}",
			"start rm -r|call http://h/mcp?k=${KEY}, sending what rm -r prints, the header X-A (from $KEY), the header X-B, $KEY in the address"},
		"not enabled": {"servers: {x: {enabled: false, url: \"http://h/mcp\", auth: {type: bearer, secret: {command: [rm, -r]}}}}", ""},
		"environment": {"servers: {x: {command: p, inherit_env: [PATH, AWS_KEY], env: {A: \"${KEY}\", B: b}}}",
			"start p, with A (from $KEY), B=b in its environment, handing it $AWS_KEY; not bound: what p loads"},
		"secrets by their names": {"servers: {x: {command: p, args: [\"${secret:a}\"], env: {E: \"${secret:b}\"}}, y: {url: \"http://h/mcp\", headers: {H: \"${secret:a}\"}}}\n" +
			"secrets: {a: {env: AWS_SECRET_ACCESS_KEY}, b: {file: /etc/shadow}}\ntools: {t: {kind: http, request: {url: \"https://h/\", headers: {X: \"{{ secrets.a }}\"}}}}",
			"start p '${secret:a}', with E (from the secret b, what is in /etc/shadow) in its environment, with the secret a, $AWS_SECRET_ACCESS_KEY in its command line; not bound: what p loads|" +
				"call http://h/mcp, sending the header H (from the secret a, $AWS_SECRET_ACCESS_KEY)|" +
				"without a question, send GET requests to https://h/, with the header X ({{ secrets.a }}, with the secret a, $AWS_SECRET_ACCESS_KEY)"},
		"telemetry": {"telemetry: {otlp: \"https://h/\"}", "send traces and metrics of all runs to https://h/"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			lookup := func(n string) (string, bool) { return "s3cret", n == "KEY" }
			cfg, err := config.Parse("tenon.yaml", []byte(tt.text), config.Options{Dir: t.TempDir(), Home: t.TempDir(), LookupEnv: lookup})
			if err != nil {
				t.Fatal(err)
			}
			var texts []string
			for _, i := range trustItems(cfg, "") {
				if i.Kind == itemCommand || i.Kind == itemURL || i.Kind == itemRequest {
					texts = append(texts, i.Text)
				}
			}
			if got := strings.Join(texts, "|"); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// besides is a toolset with a slow tool, which runs until another tool that needs approval has run.
type besides struct {
	let chan struct{}
	mu  sync.Mutex
	got []string
}

func (b *besides) Tools(context.Context) ([]tenon.Tool, error) {
	yes, object := true, json.RawMessage(`{"type":"object"}`)
	return []tenon.Tool{{Remote: "slow", Input: object, Annotations: tenon.Annotations{ReadOnly: &yes}}, {Remote: "write", Input: object}}, nil
}

func (b *besides) Call(ctx context.Context, c tenon.Call) (*tenon.Result, error) {
	if c.Tool == "write" {
		close(b.let)
	} else {
		select {
		case <-b.let:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Minute):
			return tenon.ErrorResult("nobody was asked beside this call"), nil
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.got = append(b.got, c.Tool)
	return &tenon.Result{Content: []tenon.Content{tenon.Text("done")}}, nil
}

// TestApprovalBesideASlowCall checks that the person at the terminal is asked once, while another call of the same turn
// is still running.
func TestApprovalBesideASlowCall(t *testing.T) {
	dir := t.TempDir()
	steps := filepath.Join(dir, "steps.yaml")
	if err := os.WriteFile(steps, []byte("steps:\n  - calls: [{name: slow}, {name: write}]\n  - text: Done.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := &besides{let: make(chan struct{})}
	var out, errs bytes.Buffer
	a := newApp(stdio{strings.NewReader("y\n"), &out, &errs})
	a.lookupEnv = func(string) (string, bool) { return "", false }
	a.inTTY, a.outTTY, a.errTTY = true, true, true
	h, err := host.Open(t.Context(), host.Config{Home: dir, Model: "script:" + steps, Toolsets: map[string]tenon.Toolset{"disk": b}})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	_, err = a.question(t.Context(), h, host.Question{Text: "go"}, false)
	if err != nil || strings.Join(b.got, " ") != "slow write" && strings.Join(b.got, " ") != "write slow" {
		t.Errorf("calls %v, %v\n%s", b.got, err, errs.String())
	}
	if n := strings.Count(errs.String(), "approval required"); n != 1 || strings.Contains(errs.String(), "nobody was asked") || !strings.Contains(out.String(), "Done.") {
		t.Errorf("asked %d times:\n%s%s", n, errs.String(), out.String())
	}
}

// TestFilesAreBounded checks that a huge file that is named by mistake is not read completely.
func TestFilesAreBounded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, 1<<40); err != nil { // a sparse file uses no space on the disk
		t.Skipf("no files with holes here: %v", err)
	}
	t.Chdir(t.TempDir())
	for _, args := range [][]string{{"tools", "call", "x", "--params", "@" + file}, {"policy", "test", file}, {"workflows", "unpack", file, "--out", "new"}} {
		t.Run(args[0], func(t *testing.T) {
			var said bytes.Buffer
			if status := run(t.Context(), args, stdio{strings.NewReader(""), &said, &said}); status == 0 || !strings.Contains(said.String(), " more than ") {
				t.Errorf("status %d: %s", status, said.String())
			}
		})
	}
}
