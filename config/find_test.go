package config

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/servers"
)

func TestFind(t *testing.T) {
	named := func(n string) string { return "name: " + n }
	claude := `{"mcpServers": {"a": {"command": "x"}}}`
	agent := "name: a\nmodel: {provider: openai, name: x}\ninstructions: {inline: i}\ntools: []\n"
	tests := []struct {
		name  string
		files map[string]string
		o     Options // Dir and Home are relative to the folder of the files
		env   []string
		want  string // file; "" = not found
		found bool
	}{
		{"working folder", map[string]string{"p/tenon.yaml": named("a")}, Options{Dir: "p"}, nil, "tenon.yaml", true},
		{"yml", map[string]string{"p/tenon.yml": named("a")}, Options{Dir: "p"}, nil, "tenon.yml", true},
		{"parent", map[string]string{"p/tenon.yaml": named("a"), "p/q/r/x": ""}, Options{Dir: "p/q"}, nil, "../tenon.yaml", true},
		{"far parent", map[string]string{"p/tenon.yaml": named("a"), "p/q/r/x": ""}, Options{Dir: "p/q/r"}, nil, "DIR/p/tenon.yaml", true},
		{"not above the repository", map[string]string{"p/tenon.yaml": named("a"), "p/q/.git/x": "", "p/q/r/x": ""}, Options{Dir: "p/q/r"}, nil, "", false},
		{"not above home", map[string]string{"tenon.yaml": named("a"), "p/q/x": ""}, Options{Dir: "p/q", Home: "p"}, nil, "", false},
		{"home itself", map[string]string{"p/tenon.yaml": named("a"), "p/q/x": ""}, Options{Dir: "p/q", Home: "p"}, nil, "../tenon.yaml", true},
		{"parent before .mcp.json", map[string]string{"p/tenon.yaml": named("a"), "p/q/.mcp.json": claude}, Options{Dir: "p/q"}, nil, "../tenon.yaml", true},
		{"agent.yaml before a parent", map[string]string{"p/tenon.yaml": named("a"), "p/q/agent.yaml": agent}, Options{Dir: "p/q"}, nil, "agent.yaml", true},
		{"tenon.yaml before agent.yaml", map[string]string{"p/tenon.yaml": named("a"), "p/agent.yaml": agent}, Options{Dir: "p"}, nil, "tenon.yaml", true},
		{"agent.yaml of another program", map[string]string{"p/tenon.yaml": named("a"), "p/q/agent.yaml": "kind: other"}, Options{Dir: "p/q"}, nil, "../tenon.yaml", true},
		{".mcp.json before mcp.json", map[string]string{"p/.git/x": "", "p/.mcp.json": claude, "p/mcp.json": claude}, Options{Dir: "p"}, nil, ".mcp.json", true},
		{"mcp.json", map[string]string{"p/.git/x": "", "p/mcp.json": claude}, Options{Dir: "p"}, nil, "mcp.json", true},
		{"mcp.json of a parent does not count", map[string]string{"p/mcp.json": claude, "p/q/.git/x": ""}, Options{Dir: "p/q"}, nil, "", false},
		{"named", map[string]string{"p/tenon.yaml": named("a"), "o.yaml": named("o")}, Options{Dir: "p", File: "../o.yaml"}, []string{"TENON_CONFIG", "tenon.yaml"}, "../o.yaml", false},
		{"TENON_CONFIG", map[string]string{"p/tenon.yaml": named("a"), "p/o.yaml": named("o")}, Options{Dir: "p"}, []string{"TENON_CONFIG", "o.yaml"}, "o.yaml", false},
		{"stdin", map[string]string{"p/tenon.yaml": named("a")}, Options{Dir: "p", File: "-", Stdin: strings.NewReader("name: in")}, nil, "stdin", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := write(t, tt.files)
			o := tt.o
			o.Dir, o.LookupEnv = filepath.Join(dir, o.Dir), env(tt.env...)
			o.Home = filepath.Join(dir, tt.o.Home)
			c, err := Load(context.Background(), o)
			if tt.want == "" {
				if tenon.ErrorCode(err) != tenon.CodeNotFound {
					t.Fatalf("%v, %v", c, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if want := strings.Replace(tt.want, "DIR", filepath.ToSlash(dir), 1); c.File != want || c.Found != tt.found {
				t.Errorf("file %s found %v, want %s %v", c.File, c.Found, want, tt.found)
			}
		})
	}
	t.Run("an agent.yaml that is no agent", func(t *testing.T) {
		dir := write(t, map[string]string{"p/agent.yaml": "name: x\nmodle: {provider: openai, name: y}\ninstructions: {inline: i}\n", "p/.git/x": ""})
		_, err := Load(context.Background(), Options{Dir: filepath.Join(dir, "p"), Home: dir, LookupEnv: env()})
		if err == nil || !strings.Contains(err.Error(), "agent.yaml is there, but is no agent") {
			t.Error(err)
		}
	})
	t.Run("named and missing", func(t *testing.T) {
		_, err := Load(context.Background(), Options{File: "none.yaml", Dir: t.TempDir(), Home: t.TempDir(), LookupEnv: env()})
		if tenon.ErrorCode(err) != tenon.CodeConfig || !strings.Contains(err.Error(), "no file none.yaml") {
			t.Error(err)
		}
	})
}

func TestMerge(t *testing.T) {
	dir := write(t, map[string]string{
		"p/tenon.yaml": "servers:\n  a: {command: mine}\nlimits: {max_turns: 3}\n",
		".config/tenon/config.yaml": "servers:\n  a: {command: theirs, title: A}\n  b: {command: theirs, cwd: sub}\n" +
			"limits: {max_turns: 5, parallel_tools: 2}\nmodels:\n  m: {provider: ollama, model: x}\n",
		".config/tenon/sub/x": "",
	})
	o := Options{Dir: filepath.Join(dir, "p"), Home: dir, LookupEnv: env()}
	c, err := Load(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if a := c.Servers["a"]; a.Command != "mine" || a.Title != "a" {
		t.Errorf("a server is replaced as a whole: %+v", a)
	}
	if b := c.Servers["b"]; b.Command != "theirs" || b.Cwd != filepath.Join(dir, ".config", "tenon", "sub") {
		t.Errorf("paths are relative to their own file: %+v", b)
	}
	if c.Limits.MaxTurns != 3 || c.Limits.ParallelTools != 2 {
		t.Errorf("%+v", c.Limits)
	}
	got := []string{c.Origin("limits.max_turns"), c.Origin("limits.parallel_tools"), c.Origin("limits.run_timeout"), c.Origin("servers.a.command")}
	want := []string{"tenon.yaml:3", "../.config/tenon/config.yaml:4", "default", "tenon.yaml:2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"a", "b"}, c.ServerNames()); diff != "" {
		t.Error(diff)
	}
	if err := os.Remove(filepath.Join(dir, "p", "tenon.yaml")); err != nil {
		t.Fatal(err)
	}
	if c, err = Load(context.Background(), o); err != nil || c.Found {
		t.Errorf("the user's own file alone: %v %v", c, err)
	}
}

func TestSecrets(t *testing.T) {
	dir := write(t, map[string]string{
		"tenon.yaml": `secrets:
  env: {env: TOKEN}
  dot: {env: DOTTED}
  unset: {env: UNSET}
  text: {file: text}
  json: {file: json}
  none: {file: none}
  open: {file: open}
  cmd: {command: [sh, -c, "echo one; echo two"]}
  bad: {command: [sh, -c, "echo locked >&2; exit 3"]}
servers:
  a: {url: "https://a.example/", auth: {type: bearer, secret: env}}
  b: {url: "https://a.example/", auth: {type: basic, secret: {file: json}}}
  c: {url: "https://a.example/", auth: {type: bearer, secret: unset}}
models:
  m: {provider: openai, model: x}
  n: {provider: openai, model: x, base_url: "https://a.example/v1"}
  o: {provider: openai, model: x, api_key: cmd}
`,
		"text": "hush\n", "json": `{"login": "joe", "password": "p:w"}`, "open": "x", ".env": "DOTTED=d\nOPENAI_API_KEY=k\n",
	})
	if err := os.Chmod(filepath.Join(dir, "open"), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	c, err := Load(ctx, Options{Dir: dir, Home: dir, LookupEnv: env("TOKEN", "t")})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0].Message, "others can read") {
		t.Errorf("warnings %v", c.Warnings)
	}
	for name, want := range map[string]string{"env": "t", "dot": "d", "text": "hush", "json": "joe:p:w", "cmd": "one", "open": "x"} {
		if s, err := c.Resolve(ctx, name); err != nil || s.Reveal() != want {
			t.Errorf("%s: %q %v, want %q", name, s.Reveal(), err, want)
		}
	}
	for name, want := range map[string]string{
		"unset": "secrets.unset (tenon.yaml:4): environment variable 'UNSET' not found; set it",
		"none":  "no file " + filepath.Join(dir, "none"), "bad": "exit status 3: locked",
	} {
		if _, err := c.Resolve(ctx, name); tenon.ErrorCode(err) != tenon.CodeAuth || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	a, err := c.Server(ctx, "a")
	if err != nil || a.Auth.Secret.Reveal() != "t" || !c.Servers["a"].Auth.Secret.IsZero() {
		t.Errorf("a: %v %v", a.Auth, err)
	}
	if b, err := c.Server(ctx, "b"); err != nil || b.Auth.Secret.Reveal() != "joe:p:w" {
		t.Errorf("b: %v %v", b.Auth, err)
	}
	if _, err := c.Server(ctx, "c"); tenon.ErrorCode(err) != tenon.CodeAuth {
		t.Errorf("c: %v", err)
	}
	if _, err := c.Server(ctx, "d"); tenon.ErrorCode(err) != tenon.CodeNotFound || err.Error() != "no server 'd'; servers: a, b, c" {
		t.Errorf("d: %v", err)
	}
	for name, want := range map[string]string{"": "k", "n": "", "o": "one"} {
		if m, err := c.Model(ctx, name); err != nil || m.APIKey.Reveal() != want {
			t.Errorf("model %q: %q %v, want %q", name, m.APIKey.Reveal(), err, want)
		}
	}
}

func TestAgent(t *testing.T) {
	dir := write(t, map[string]string{"tenon.yaml": "models: {z: {provider: ollama, model: x}, a: {provider: ollama, model: y}}\n" +
		"limits: {max_turns: 3}\nagents:\n  one: {instructions: {file: p.md}, limits: {parallel_tools: 1}}\n", "p.md": "Be brief."})
	c, err := Load(context.Background(), Options{Dir: dir, Home: dir, LookupEnv: env()})
	if err != nil {
		t.Fatal(err)
	}
	a, err := c.Agent("")
	if err != nil || a.Model != "z" || a.Instructions.Text != "Be brief." || a.Limits.MaxTurns != 3 || a.Limits.ParallelTools != 1 {
		t.Errorf("%+v %v", a, err)
	}
	if _, err := c.Agent("two"); tenon.ErrorCode(err) != tenon.CodeNotFound {
		t.Error(err)
	}
}

// TestByHand checks that a Config made in Go, without a file, has the same defaults.
func TestByHand(t *testing.T) {
	c := &Config{Servers: map[string]servers.Config{"b": {Command: "x"}, "a": {Command: "y"}},
		Models: map[string]model.Config{"m": {Provider: "ollama", Model: "x", APIKey: tenon.NewSecret("k")}}}
	ctx := context.Background()
	if diff := cmp.Diff([]string{"a", "b"}, c.ServerNames()); diff != "" {
		t.Error(diff)
	}
	if s, err := c.Server(ctx, "b"); err != nil || s.Transport != "stdio" || s.RequestTimeout == 0 {
		t.Errorf("%+v %v", s, err)
	}
	if m, err := c.Model(ctx, ""); err != nil || m.APIKey.Reveal() != "k" || m.Name != "m" || m.MaxTokens == 0 {
		t.Errorf("%+v %v", m, err)
	}
	if a, err := c.Agent(""); err != nil || a.Model != "m" || a.Limits.MaxTurns == 0 {
		t.Errorf("%+v %v", a, err)
	}
	if c.Origin("servers.a") != "default" {
		t.Error(c.Origin("servers.a"))
	}
}

// TestLaterKeys checks that the list of keys planned for later versions contains no key that already exists.
func TestLaterKeys(t *testing.T) {
	var walk func(reflect.Type)
	seen := map[reflect.Type]bool{}
	walk = func(typ reflect.Type) {
		for typ.Kind() == reflect.Map || typ.Kind() == reflect.Slice || typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct || seen[typ] {
			return
		}
		seen[typ] = true
		for _, f := range fields(typ) {
			if slices.Contains(laterKeys[typ.String()], f.name) {
				t.Errorf("%s.%s is no later key: it is there", typ, f.name)
			}
			walk(f.typ)
		}
	}
	walk(reflect.TypeFor[Config]())
	walk(reflect.TypeFor[SecretSource]())
}
