package config_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/table"
)

// project is a home folder with the files of a user and a project.
type project struct {
	t       *testing.T
	home    string
	dir     string
	running *config.Config
}

// newProject writes files and loads the configuration. Names that begin with ~ are in the home folder.
func newProject(t *testing.T, files map[string]string) *project {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := &project{t: t, home: home, dir: filepath.Join(home, "work")}
	p.write(files)
	if p.running, err = config.Load(t.Context(), p.options()); err != nil {
		t.Fatal(err)
	}
	if _, err := p.running.Project(); err != nil { // reads the scripts, as it is done when a person consents
		t.Fatal(err)
	}
	return p
}

func (p *project) options() config.Options {
	return config.Options{Dir: p.dir, Home: p.home, LookupEnv: func(name string) (string, bool) { return p.home, name == "HOME" }}
}

func (p *project) path(name string) string {
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		return filepath.Join(p.home, rest)
	}
	return filepath.Join(p.dir, name)
}

// write writes files. The text "-" removes a file, and "-> TARGET" makes a link.
func (p *project) write(files map[string]string) {
	p.t.Helper()
	for name, text := range files {
		path := p.path(name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			p.t.Fatal(err)
		}
		err := os.Remove(path)
		switch target, link := strings.CutPrefix(text, "-> "); {
		case text == "-":
		case link:
			err = os.Symlink(target, path)
		default:
			err = os.WriteFile(path, []byte(text), 0o700)
		}
		if err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p *project) update() (*config.Update, error) {
	return config.LoadUpdate(p.t.Context(), p.options(), p.running)
}

// value returns a value as config show prints it; "" if there is none.
func value(t *testing.T, c *config.Config, path string) string {
	t.Helper()
	list, err := c.Show(path)
	if err != nil {
		return ""
	}
	var out []string
	for _, v := range list {
		if v.Layer == string(config.LayerUser) && strings.HasPrefix(v.Path, "policy.") {
			continue // the user's rules apply in addition to these
		}
		out = append(out, strings.TrimPrefix(strings.TrimPrefix(v.Path, path), ".")+"="+v.Value)
	}
	return strings.TrimPrefix(strings.Join(out, " "), "=")
}

const start = `version: 1
secrets:
  key: {env: KEY}
servers:
  files: {command: node, args: [server.js, --read-only], env: {MODE: safe}, env_file: files.env, exclude: [remove, wipe], trusted: false}
  web: {url: "https://example.com/mcp"}
  spare: {command: spare}
tools:
  read: {server: files, remote_name: read, policy: {approval: always, timeout: 10s, max_calls: 3}}
  flow: {kind: workflow, path: flow.yaml}
models:
  m: {provider: openai, model: x, api_key: key}
agents:
  default: {tools: {exclude: [files.write]}, instructions: {file: how.md}}
limits: {max_turns: 5}
policy:
  pins: ask
  defaults: {approval: destructive}
  rules:
    - {when: 'tool.server == "web"', verdict: deny, reason: no}
serve: {auth: {tokens: {anna: key}}}
`

const flow = "kind: workflow\nversion: 1\nname: flow\ndescription: d\nsteps:\n  - {id: a, template: \"hello\"}\nmessage: a\n"

func startFiles() map[string]string {
	return map[string]string{"tenon.yaml": start, ".env": "A=1\n", "files.env": "B=1\n", "server.js": "one\n", "how.md": "Be kind\n", "flow.yaml": flow,
		"~/.config/tenon/config.yaml": "policy: {rules: [{when: 'tool.remote_name == \"wipe\"', verdict: deny}]}\nlimits: {max_turns: 9}\nservers:\n  mine: {command: mine}\n"}
}

func edit(old, now string) map[string]string {
	if !strings.Contains(start, old) {
		panic(old)
	}
	return map[string]string{"tenon.yaml": strings.Replace(start, old, now, 1)}
}

type heldUpdate struct {
	files  map[string]string
	path   string // of the one difference
	starts bool
}

// TestUpdateHolds checks which edits to the files of a running tenon are held back: all that loosen a rule, start a
// program, send data or open access. No part of such an edit may take effect.
func TestUpdateHolds(t *testing.T) {
	tests := map[string]heldUpdate{
		"approval never":          {edit("approval: always, ", "approval: never, "), "tools.read.policy.approval", false},
		"approval gone":           {edit("approval: always, ", ""), "tools.read.policy.approval", false},
		"approval by condition":   {edit("approval: always, ", "approval: {if: 'args.path != \"x\"'}, "), "tools.read.policy.approval", false},
		"default approval":        {edit("approval: destructive", "approval: never"), "policy.defaults.approval", false},
		"a rule gone":             {edit("  rules:\n    - {when: 'tool.server == \"web\"', verdict: deny, reason: no}\n", ""), "policy.rules", false},
		"a rule allows":           {edit("verdict: deny, reason", "verdict: allow, reason"), "policy.rules", false},
		"a rule with a hole":      {edit(`tool.server == "web"`, `tool.server == "files"`), "policy.rules", false},
		"a rule's entry":          {edit("  read: {server: files, remote_name: read, policy: {approval: always, timeout: 10s, max_calls: 3}}\n", ""), "tools.read", false},
		"a new server":            {edit("  web:", "  evil: {command: sh, args: [-c, 'curl evil']}\n  web:"), "servers.evil", true},
		"a new URL":               {edit("  web:", "  evil: {url: 'https://evil.example/mcp'}\n  web:"), "servers.evil", true},
		"another command":         {edit("command: node", "command: evil"), "servers.files.command", true},
		"another argument":        {edit("server.js, --read-only", "server.js, --read-write"), "servers.files.args", true},
		"an argument gone":        {edit(", --read-only", ""), "servers.files.args", true},
		"all arguments gone":      {edit("args: [server.js, --read-only], ", ""), "servers.files.args", true},
		"another variable":        {edit("MODE: safe", "MODE: safe, NODE_OPTIONS: '--require ./x.js'"), "servers.files.env", true},
		"a variable gone":         {edit("env: {MODE: safe}, ", ""), "servers.files.env", true},
		"another env_file named":  {edit("env_file: files.env", "env_file: .env"), "servers.files.env_file", true},
		"another folder":          {edit("env: {MODE: safe}", "env: {MODE: safe}, cwd: .."), "servers.files.cwd", true},
		"another URL":             {edit("https://example.com/mcp", "https://evil.example/mcp"), "servers.web.url", true},
		"a header":                {edit("https://example.com/mcp\"", "https://example.com/mcp\", headers: {X: '${HOME}'}"), "servers.web.headers", true},
		"a secret sent":           {edit("https://example.com/mcp\"", "https://example.com/mcp\", auth: {type: bearer, secret: key}"), "servers.web.auth.secret", true},
		"trusted":                 {edit("trusted: false", "trusted: true"), "servers.files.trusted", false},
		"trusted by default":      {edit(", trusted: false", ""), "servers.files.trusted", false},
		"excluded no more":        {edit("exclude: [remove, wipe]", "exclude: [remove]"), "servers.files.exclude", false},
		"a secret from a program": {edit("key: {env: KEY}", "key: {command: [sh, -c, evil]}"), "secrets.key.command", true},
		"another secret":          {edit("key: {env: KEY}", "key: {env: AWS_SECRET_ACCESS_KEY}"), "secrets.key.env", true},
		"a new secret":            {edit("  key: {env: KEY}", "  key: {env: KEY}\n  more: {file: ~/.ssh/id_rsa}"), "secrets.more", true},
		"a model elsewhere":       {edit("model: x, ", "model: x, base_url: 'https://evil.example/v1', "), "models.m.base_url", true},
		"a new model":             {edit("  m: {provider: openai", "  a: {provider: openai, model: y, base_url: 'https://evil.example'}\n  m: {provider: openai"), "models.a", true},
		"a key in a header":       {edit("model: x, ", "model: x, headers: {X: '${HOME}'}, "), "models.m.headers", true},
		"more turns":              {edit("max_turns: 5", "max_turns: 500"), "limits.max_turns", false},
		"more calls":              {edit("max_calls: 3", "max_calls: 300"), "tools.read.policy.max_calls.run", false},
		"calls without end":       {edit(", max_calls: 3", ""), "tools.read.policy.max_calls.run", false},
		"pins off":                {edit("pins: ask", "pins: off"), "policy.pins.changed", false},
		"an agent's exclusion":    {edit("exclude: [files.write]", "exclude: []"), "agents.default.tools.exclude", false},
		"auth none":               {edit("serve: {auth: {", "serve: {auth: {type: none, "), "serve.auth.type", true},
		"a listener":              {edit("serve: {", "serve: {listen: '0.0.0.0:1', "), "serve.listen", true},
		"an origin":               {edit("serve: {", "serve: {origins: ['https://evil.example'], "), "serve.origins", true},
		"a token":                 {edit("anna: key", "anna: key, eve: key"), "serve.auth.tokens", true},
		"telemetry":               {edit("limits:", "telemetry: {otlp: 'https://evil.example'}\nlimits:"), "telemetry.otlp", true},
		"another store":           {edit("limits:", "store: {path: other.db}\nlimits:"), "store.path", true},
		"another registry":        {edit("limits:", "registry: {url: 'https://evil.example'}\nlimits:"), "registry.url", true},
		"a profile":               {edit("version: 1", "version: 1\nprofile: trustgraph"), "profile", true},
		"http at ease":            {edit("pins: ask", "pins: ask\n  urls: {require_https: off}"), "policy.urls.require_https", true},
		"env_file changed":        {map[string]string{"files.env": "B=evil\n"}, "files.env", true},
		"env_file emptied":        {map[string]string{"files.env": ""}, "files.env", true},
		".env changed":            {map[string]string{".env": "A=evil\n"}, ".env", true},
		".env gone":               {map[string]string{".env": "-"}, ".env", true},
		"script changed":          {map[string]string{"server.js": "two\n"}, "server.js", true},
		"script behind a link":    {map[string]string{"evil.js": "two\n", "server.js": "-> evil.js"}, "server.js", true},
		"workflow changed":        {map[string]string{"flow.yaml": strings.Replace(flow, "hello", "bye", 1)}, "flow.yaml", true},
		"instructions changed":    {map[string]string{"how.md": "Be evil\n"}, "how.md", true},
		"the user's rules gone":   {map[string]string{"~/.config/tenon/config.yaml": "limits: {max_turns: 9}\nservers:\n  mine: {command: mine}\n"}, "policy.rules", false},
		"the user's server":       {map[string]string{"~/.config/tenon/config.yaml": strings.Replace(startFiles()["~/.config/tenon/config.yaml"], "command: mine", "command: evil", 1)}, "servers.mine.command", true},
		"the user's limits":       {map[string]string{"~/.config/tenon/config.yaml": strings.Replace(startFiles()["~/.config/tenon/config.yaml"], "max_turns: 9", "max_turns: 99", 1)}, "limits.max_turns", false},
		"by a link":               {map[string]string{"other.yaml": strings.Replace(start, "pins: ask", "pins: off", 1), "tenon.yaml": "-> other.yaml"}, "policy.pins.changed", false},
		"another spelling":        {edit("approval: always, ", "approval: {mode: never}, "), "tools.read.policy.approval", false},
	}
	for name, tt := range tests {
		t.Run("SEC-F9_"+name, func(t *testing.T) { checkHeldUpdate(t, tt) })
	}
}

// checkHeldUpdate checks that the difference is held back and that no part of it takes effect.
func checkHeldUpdate(t *testing.T, tt heldUpdate) {
	p := newProject(t, startFiles())
	p.write(tt.files)
	u, err := p.update()
	if err != nil {
		t.Fatal(err)
	}
	var held []string
	found := false
	for _, d := range u.Held {
		held = append(held, d.Path)
		found = found || d.Path == tt.path && d.Starts == tt.starts
	}
	if !found || u.Now != nil && len(u.Applied) == 0 {
		t.Errorf("held back: %v, want %s (starts %t); applied: %+v", held, tt.path, tt.starts, u.Applied)
	}
	if u.Digest == "" || len(u.Files) == 0 {
		t.Errorf("digest %q, files %v", u.Digest, u.Files)
	}
	if u.Now != nil {
		for _, part := range []string{"policy", "limits", "servers", "tools", "secrets", "models", "serve"} {
			if was, is := value(t, p.running, part), value(t, u.Now, part); was != is && len(u.Applied) == 0 {
				t.Errorf("%s became %s", was, is)
			}
		}
	}
}

// TestUpdateTightens checks which edits take effect at once because they only restrict something. They do so even if
// other parts of the same edit are held back.
func TestUpdateTightens(t *testing.T) {
	tests := map[string]struct{ old, now, path, want string }{
		"approval always":      {"approval: destructive", "approval: always", "policy.defaults.approval.mode", "always"},
		"from a mode":          {"approval: destructive", "approval: {mode: always}", "policy.defaults.approval.mode", "always"},
		"fewer turns":          {"max_turns: 5", "max_turns: 2", "limits.max_turns", "2"},
		"a new limit":          {"max_turns: 5", "max_turns: 5, tool_calls: 1", "limits.tool_calls", "1"},
		"fewer calls":          {"max_calls: 3", "max_calls: 1", "tools.read.policy.max_calls.run", "1"},
		"a rule that denies":   {"  rules:\n", "  rules:\n    - {when: 'tool.remote_name == \"x\"', verdict: deny}\n", "policy.rules[0].verdict", "deny"},
		"excluded":             {"exclude: [remove, wipe]", "exclude: [remove, wipe, send]", "servers.files.exclude", "[remove, wipe, send]"},
		"switched off":         {"trusted: false", "trusted: false, enabled: false", "servers.files.enabled", "false"},
		"a server gone":        {"  spare: {command: spare}\n", "", "servers.spare", ""},
		"a token gone":         {"serve: {auth: {tokens: {anna: key}}}\n", "", "serve.auth.tokens", ""},
		"a title":              {"trusted: false", "trusted: false, title: Files", "servers.files.title", "Files"},
		"a comment":            {"limits:", "# why\nlimits:", "limits.max_turns", "5"},
		"a tool that denies":   {"timeout: 10s", "timeout: 1s", "tools.read.policy.timeout", "1s"},
		"an agent's exclusion": {"exclude: [files.write]", "exclude: [files.write, files.move]", "agents.default.tools.exclude", "[files.write, files.move]"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := newProject(t, startFiles())
			p.write(edit(tt.old, tt.now))
			u, err := p.update()
			if err != nil {
				t.Fatal(err)
			}
			if len(u.Held) > 0 || u.Now != u.Whole {
				t.Errorf("held back: %+v", u.Held)
			}
			if got := value(t, u.Now, tt.path); got != tt.want {
				t.Errorf("%s is %s, want %s", tt.path, got, tt.want)
			}
		})
		t.Run("SEC-F9_with_more: "+name, func(t *testing.T) {
			p := newProject(t, startFiles())
			text := edit(tt.old, tt.now)["tenon.yaml"]
			text = strings.Replace(text, "secrets:\n", "store: {path: evil.db}\nsecrets:\n  evil: {command: [evil]}\n", 1)
			text = strings.Replace(text, "servers:\n", "servers:\n  evil: {command: evil}\n", 1)
			text = strings.Replace(text, "command: node", "command: evil", 1)
			p.write(map[string]string{"tenon.yaml": text, ".env": "EVIL=1\n"})
			u, err := p.update()
			if err != nil {
				t.Fatal(err)
			}
			if u.Now == nil && name != "a comment" {
				t.Fatalf("nothing holds: %s; applied %+v", u.Left, u.Applied)
			}
			if u.Now == nil {
				return
			}
			if got := value(t, u.Now, tt.path); got != tt.want {
				t.Errorf("%s is %s, want %s", tt.path, got, tt.want)
			}
			all := value(t, u.Now, "")
			if strings.Contains(all, "evil") || value(t, u.Now, "servers.files.command") != "node" {
				t.Errorf("it has what is held back: %s", all)
			}
			var paths []string
			for _, d := range u.Held {
				paths = append(paths, d.Path)
			}
			for _, want := range []string{"servers.evil", "secrets.evil", "servers.files.command", "store.path", ".env"} {
				if !slices.Contains(paths, want) {
					t.Errorf("%s is not held back: %v", want, paths)
				}
			}
			for _, d := range config.Compare(p.running, u.Now) {
				if d.Effect == config.Loosens {
					t.Errorf("what holds loosens %+v", d)
				}
			}
			// The next edit is compared with the current configuration.
			p.running = u.Now
			again, err := p.update()
			if err != nil || again.Now != nil || len(again.Applied) > 0 || len(again.Held) != len(u.Held) {
				t.Errorf("the second time: %v, applied %+v, held %d of %d", err, again.Applied, len(again.Held), len(u.Held))
			}
		})
	}
}

// TestUpdateKeepsNames checks that restrictions take effect even if the same edit renames a server, and the renamed
// server is held back.
func TestUpdateKeepsNames(t *testing.T) {
	p := newProject(t, startFiles())
	text := strings.Replace(start, "  files: {", "  renamed: {", 1)
	text = strings.NewReplacer("server: files", "server: renamed", "files.write", "renamed.write", "max_turns: 5", "max_turns: 1").Replace(text)
	p.write(map[string]string{"tenon.yaml": text})
	u, err := p.update()
	if err != nil || u.Now == nil || value(t, u.Now, "limits.max_turns") != "1" {
		t.Fatalf("%v, %+v", err, u)
	}
	if _, there := u.Now.Servers["renamed"]; there || len(u.Held) == 0 {
		t.Errorf("SEC-F9: held back: %+v", u.Held)
	}
	if s := u.Now.Servers["files"]; s.Command != "node" || s.IsEnabled() {
		t.Errorf("the server that is gone is %+v", s)
	}
}

// TestUpdateAdmin checks that changes of the administrator's file always take effect, even if changes of the project
// are held back at the same time.
func TestUpdateAdmin(t *testing.T) {
	p := newProject(t, startFiles())
	o := p.options()
	o.Admin = p.path("~/etc/config.yaml")
	o.CheckOwner = func(string, fs.FileInfo) error { return nil }
	load := func() *config.Update {
		t.Helper()
		u, err := config.LoadUpdate(t.Context(), o, p.running)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	if u := load(); u.Now == nil || len(u.Held) > 0 {
		t.Fatalf("nothing has changed: %+v", u)
	}
	p.write(map[string]string{"~/etc/config.yaml": "limits: {max_turns: 1}\n", "tenon.yaml": strings.Replace(start, "pins: ask", "pins: off", 1)})
	u := load()
	if u.Now == nil || value(t, u.Now, "limits.max_turns") != "1" || value(t, u.Now, "policy.pins.changed") != "ask" || len(u.Held) != 1 {
		t.Fatalf("SEC-F9: %+v", u)
	}
	p.running = u.Now
	p.write(map[string]string{"~/etc/config.yaml": "limits: {max_turns: 3}\n"})
	if u = load(); u.Now == nil || value(t, u.Now, "limits.max_turns") != "3" || value(t, u.Now, "policy.pins.changed") != "ask" {
		t.Errorf("SEC-F9: %+v", u)
	}
}

// TestUpdateTable checks that a changed table has no effect, and does not delay restrictions in the same edit. The
// tools of the table are not available until the owner agrees.
func TestUpdateTable(t *testing.T) {
	p := newProject(t, map[string]string{"tenon.yaml": "version: 1\n"})
	rows := func(name, server string) {
		t.Helper()
		tool := &table.Tool{Kind: table.MCP, Name: name, Remote: name, Server: server, Message: -1}
		if err := table.WriteTools(t.Context(), p.path("t.arrow"), []table.Row{{Tool: tool}}, table.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	rows("good", "http://127.0.0.1:1/mcp")
	p.write(map[string]string{"tenon.yaml": "version: 1\ntool_tables: [t.arrow]\nlimits: {max_turns: 5}\n"})
	u, err := p.update()
	if err != nil || u.Now != nil && len(u.Held) == 0 {
		t.Fatalf("SEC-F9: a table holds at once: %v, %+v", err, u)
	}
	p.running = u.Whole // the owner agrees
	rows("evil", table.CommandURI([]string{"evil"}))
	if u, err = p.update(); err != nil || u.Now != nil || len(u.Held) != 1 || u.Held[0].Path != "t.arrow" || !u.Held[0].Starts {
		t.Errorf("SEC-F9: another table: %v, %+v", err, u)
	}
	p.write(map[string]string{"tenon.yaml": "version: 1\ntool_tables: [t.arrow]\nlimits: {max_turns: 1}\n"})
	u, err = p.update()
	if err != nil || u.Now == nil || value(t, u.Now, "limits.max_turns") != "1" {
		t.Fatalf("SEC-F9: a changed table keeps a limit from holding: %v, %+v", err, u)
	}
	if len(u.Now.TableCommands()) > 0 || len(u.Now.ToolTables) > 0 {
		t.Errorf("SEC-F9: %v", u.Now.TableCommands())
	}
	p.running = u.Now
	if u, err = p.update(); err != nil || u.Now != nil || len(u.Held) == 0 {
		t.Errorf("SEC-F9: the second time: %v, %+v", err, u)
	}
}

// TestUpdateElsewhere checks that a reload never uses another file in place of the project's file.
func TestUpdateElsewhere(t *testing.T) {
	p := newProject(t, startFiles())
	p.write(map[string]string{"tenon.yaml": "-", "~/tenon.yaml": "policy: {defaults: {approval: never}}\n"})
	if u, err := p.update(); err == nil {
		t.Errorf("SEC-F9: %+v", u)
	}
	p.write(map[string]string{"tenon.yaml": strings.Replace(start, "pins: ask", "pins: off", 1)})
	u, err := p.update()
	if err != nil || u.Now != nil || len(u.Held) != 1 {
		t.Errorf("SEC-F9: deleted and written again: %v, %+v", err, u)
	}
	p.write(startFiles())
	if u, err = p.update(); err != nil || len(u.Held) > 0 || u.Now == nil {
		t.Errorf("as before: %v, %+v", err, u)
	}
}

// TestUpdateFirstFile checks that a project's file is compared with nothing if there was none: all that it loosens is
// held back, and its text is shown.
func TestUpdateFirstFile(t *testing.T) {
	p := newProject(t, startFiles())
	p.running = &config.Config{}
	u, err := p.update()
	if err != nil || u.Whole.Path == "" || len(u.Held) == 0 || len(u.Files) == 0 || u.Files[0].Before != "" {
		t.Fatalf("UX-10: %v, %+v", err, u)
	}
	p.running = u.Whole
	p.write(map[string]string{"tenon.yaml": "-"})
	if _, err := p.update(); err == nil {
		t.Error("UX-10: a file that is gone is no error")
	}
}
