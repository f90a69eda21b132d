package host_test

import (
	"cmp"
	"context"
	"encoding/json"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/mcp"
)

// target is an MCP server that counts the calls that reach it.
type target struct {
	url   string
	mu    sync.Mutex
	calls map[string]int  // by remote name
	auth  map[string]bool // values of the header Authorization
}

func newTarget(t *testing.T) *target {
	t.Helper()
	s := &target{calls: map[string]int{}, auth: map[string]bool{}}
	tool := func(name, hints string) mcp.ServerTool {
		return mcp.ServerTool{
			Definition: json.RawMessage(`{"name":"` + name + `","description":"d","inputSchema":{"type":"object"},"annotations":` + hints + `}`),
			Call: func(context.Context, *mcp.ToolRequest) (json.RawMessage, error) {
				s.mu.Lock()
				s.calls[name]++
				s.mu.Unlock()
				return json.RawMessage(`{"content":[{"type":"text","text":"{\"iban\":\"DE00\"}"}]}`), nil
			}}
	}
	srv, err := mcp.NewServer(mcp.ServerConfig{Name: "bank", Version: "1", Tools: []mcp.ServerTool{
		tool("transfer", `{}`), tool("balance", `{"readOnlyHint":true}`)}})
	if err != nil {
		t.Fatal(err)
	}
	handler := srv.HTTP(mcp.HTTPConfig{})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.auth[r.Header.Get("Authorization")] = true
		s.mu.Unlock()
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	s.url = web.URL
	return s
}

func (s *target) called() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls["transfer"] + s.calls["balance"]
}

// scene is a home folder with the user's configuration file, and a project in it.
type scene struct {
	dir   string
	bank  *target
	other *target
	env   map[string]string
}

// newScene writes files into a new home folder. The names are relative to it. BANK and OTHER in the texts are replaced
// by the addresses of two servers.
func newScene(t *testing.T, files map[string]string) *scene {
	t.Helper()
	p := &scene{dir: t.TempDir(), bank: newTarget(t), other: newTarget(t), env: map[string]string{}}
	for name, text := range files {
		p.write(t, name, text)
	}
	return p
}

func (p *scene) write(t *testing.T, name, text string) {
	t.Helper()
	file := filepath.Join(p.dir, name)
	text = strings.NewReplacer("BANK", p.bank.url, "OTHER", p.other.url).Replace(text)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

const (
	usersFile = ".config/tenon/config.yaml"
	adminFile = "admin/config.yaml"
	projects  = "p/tenon.yaml"
)

func (p *scene) options() config.Options {
	return config.Options{Dir: filepath.Join(p.dir, "p"), Home: p.dir, Admin: filepath.Join(p.dir, adminFile),
		CheckOwner: func(string, fs.FileInfo) error { return nil },
		LookupEnv:  func(name string) (string, bool) { v, ok := p.env[name]; return v, ok }}
}

// call runs a question whose model calls one tool. It returns the configuration, or nil if the configuration is
// refused. If the tool is not offered, there is no call.
func (p *scene) call(t *testing.T, o config.Options, tool, agent string) *config.Config {
	t.Helper()
	cfg, err := config.Load(t.Context(), o)
	if err != nil {
		t.Logf("refused: %v", err)
		return nil
	}
	p.ask(t, cfg, tool, agent)
	return cfg
}

func (p *scene) ask(t *testing.T, cfg *config.Config, tool, agent string) {
	t.Helper()
	p.write(t, "steps.yaml", "steps: [{calls: [{name: "+tool+"}]}, {text: done}]")
	h, err := host.Open(t.Context(), host.Config{Config: cfg, Home: filepath.Join(p.dir, "home"), Model: "script:" + filepath.Join(p.dir, "steps.yaml"),
		LookupEnv: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Logf("not opened: %v", err)
		return
	}
	defer h.Close()
	run, err := h.Start(t.Context(), host.Question{Text: "go", Agent: agent})
	if err != nil {
		t.Logf("not begun: %v", err)
		return
	}
	follow(t, h, run.ID)
}

const denyTransfer = "servers: {bank: {url: BANK}}\npolicy: {rules: [{when: 'tool.remote_name == \"transfer\"', verdict: deny}]}\n"

// TestLayers checks that no file of a project lets a call run that the user's rules stop: the call does not reach the
// server.
func TestLayers(t *testing.T) {
	const (
		asks    = "servers: {bank: {url: BANK}}\npolicy: {defaults: {approval: always}}\n"
		hints   = "servers: {bank: {url: BANK}}\npolicy: {defaults: {approval: destructive}}\n"
		grouped = "servers: {bank: {url: BANK}}\ntools: {transfer: {server: bank, groups: [risky]}}\npolicy: {groups: {risky: {approval: always}}}\n"
		own     = "servers: {bank: {url: BANK, policy: {approval: always}}}\n"
		never   = "policy: {defaults: {approval: never}}\n"
	)
	for name, tt := range map[string]struct {
		user, project string
		tool, agent   string // if empty, the tool is transfer and the agent is the default
	}{
		"rules emptied":                      {user: denyTransfer, project: "policy: {rules: [], defaults: {approval: never}}"},
		"rules null":                         {user: denyTransfer, project: "policy: {rules: ~, defaults: {approval: never}}"},
		"policy null":                        {user: denyTransfer, project: "policy: ~"},
		"rules replaced":                     {user: denyTransfer, project: "policy: {rules: [{when: 'true', verdict: allow}]}"},
		"defaults approval never":            {user: asks, project: never},
		"defaults approval if false":         {user: asks, project: "policy: {defaults: {approval: {if: 'false'}}}"},
		"defaults null":                      {user: asks, project: "policy: {defaults: ~, rules: [{when: 'true', verdict: allow}]}"},
		"defaults approval mode never":       {user: asks, project: "policy: {defaults: {approval: {mode: never}}}"},
		"built-in default written":           {user: hints, project: never},
		"group redefined":                    {user: grouped, project: "policy: {groups: {risky: {approval: never}}}\ntools: {transfer: {server: bank, groups: [risky]}}"},
		"group left":                         {user: grouped, project: "policy: {groups: {safe: {approval: never}}}\ntools: {transfer: {server: bank, groups: [safe]}}"},
		"group left under another name":      {user: grouped, project: "policy: {groups: {safe: {approval: never}}}\ntools: {pay: {server: bank, remote_name: transfer, groups: [safe]}}", tool: "pay"},
		"agent policy":                       {user: asks, project: "agents: {default: {policy: {approval: never}}}"},
		"agent of the user's name":           {user: "servers: {bank: {url: BANK}}\nagents: {ops: {policy: {approval: always}}, default: {}}\n", project: "agents: {ops: {policy: {approval: never}}}", agent: "ops"},
		"tool policy":                        {user: asks, project: "tools: {transfer: {server: bank, policy: {approval: never}}}"},
		"tool policy over the user's":        {user: "servers: {bank: {url: BANK}}\ntools: {transfer: {server: bank, policy: {approval: always}}}\n", project: "tools: {transfer: {server: bank, policy: {approval: never}}}"},
		"server policy over the user's":      {user: own, project: "servers: {bank: {url: BANK, policy: {approval: never}}}"},
		"annotations read_only":              {user: hints, project: "tools: {transfer: {server: bank, annotations: {read_only: true}}}"},
		"annotations in a rule":              {user: "servers: {bank: {url: BANK}}\npolicy: {rules: [{when: 'tool.annotations.read_only', verdict: allow}, {when: 'true', verdict: deny}]}\n", project: "tools: {transfer: {server: bank, annotations: {read_only: true}}}\n" + never},
		"annotations of its own server":      {user: "policy: {defaults: {approval: destructive}}\n", project: "servers: {bank: {url: BANK}}\ntools: {transfer: {server: bank, annotations: {read_only: true}}}"},
		"profile":                            {user: asks, project: "profile: trustgraph\n" + never},
		"exclude emptied":                    {user: "servers: {bank: {url: BANK, exclude: [transfer]}}\n", project: "servers: {bank: {url: BANK, exclude: []}}\n" + never},
		"exclude under another name":         {user: "servers: {bank: {url: BANK, exclude: [transfer]}}\n", project: "servers: {savings: {url: BANK}}\n" + never},
		"include widened":                    {user: "servers: {bank: {url: BANK, include: [balance]}}\n", project: "servers: {bank: {url: BANK}}\n" + never},
		"where removed":                      {user: "servers: {bank: {url: BANK, where: 'tool.annotations.read_only'}}\n", project: "servers: {bank: {url: BANK}}\ntools: {transfer: {server: bank, annotations: {read_only: true}}}\n" + never},
		"same name, same target":             {user: own, project: "servers: {bank: {url: BANK}}\n" + never},
		"same name, another target":          {user: own, project: "servers: {bank: {url: OTHER}}\n" + never},
		"same target, another name":          {user: own, project: "servers: {savings: {url: BANK}, bank: {url: OTHER}}\n" + never, tool: "savings_transfer"},
		"same target, a rule by name":        {user: "servers: {bank: {url: BANK}}\npolicy: {rules: [{when: 'tool.server == \"bank\"', verdict: deny}]}\n", project: "servers: {savings: {url: BANK}, bank: {enabled: false, url: OTHER}}\n" + never},
		"same target, slash and query":       {user: own, project: "servers: {savings: {url: 'BANK/?x=1#y'}, bank: {enabled: false, url: OTHER}}\n" + never},
		"same target, dot segments":          {user: own, project: "servers: {savings: {url: 'BANK/./'}, bank: {enabled: false, url: OTHER}}\n" + never},
		"same target, another transport":     {user: own, project: "servers: {savings: {url: BANK, transport: auto}, bank: {enabled: false, url: OTHER}}\n" + never},
		"trusted again, same name":           {user: "servers: {bank: {url: BANK, trusted: false}}\n", project: "servers: {bank: {url: BANK, trusted: true}}", tool: "balance"},
		"trusted again, another name":        {user: "servers: {bank: {url: BANK, trusted: false}}\n", project: "servers: {savings: {url: BANK, trusted: true}, bank: {enabled: false, url: OTHER}}", tool: "balance"},
		"anchors and aliases":                {user: asks, project: "x-a: &a {approval: never}\npolicy: {defaults: *a}"},
		"merge keys":                         {user: asks, project: "x-a: &a {defaults: {approval: never}}\npolicy: {<<: *a, rules: []}"},
		"a merge key for the user's entry":   {user: own, project: "x-a: &a {policy: {approval: never}}\nservers: {bank: {<<: *a, url: BANK}}"},
		"tool switched on again":             {user: "servers: {bank: {url: BANK}}\ntools: {transfer: {server: bank, enabled: false}}\n", project: "tools: {transfer: {server: bank}}\n" + never},
		"tool switched on elsewhere":         {user: "servers: {bank: {url: BANK}}\ntools: {transfer: {server: bank, enabled: false}}\n", project: "servers: {savings: {url: BANK}, bank: {enabled: false, url: OTHER}}\n" + never},
		"a description that a rule is about": {user: "servers: {bank: {url: BANK}}\npolicy: {rules: [{when: 'tool.description == \"d\"', verdict: deny}]}\n", project: "tools: {transfer: {server: bank, description: harmless}}\n" + never},
		"a description by a transform":       {user: "servers: {bank: {url: BANK}}\npolicy: {rules: [{when: 'tool.description == \"d\"', verdict: deny}]}\n", project: "servers: {savings: {url: BANK, transform: [{describe: harmless}]}, bank: {enabled: false, url: OTHER}}\n" + never},
		"a description that is allowed":      {user: "servers: {bank: {url: BANK}}\npolicy: {rules: [{when: 'tool.description == \"harmless\"', verdict: allow}]}\n", project: "tools: {transfer: {server: bank, description: harmless}}\n"},
		"a where about descriptions":         {user: "servers: {bank: {url: BANK, where: 'tool.description != \"d\"'}}\n", project: "servers: {savings: {url: BANK, transform: [{describe: harmless}]}, bank: {enabled: false, url: OTHER}}\n" + never},
		"tools not loaded":                   {user: "servers: {bank: {url: BANK, load_tools: false}}\ntools: {balance: {server: bank}}\n", project: "servers: {savings: {url: BANK}, bank: {enabled: false, url: OTHER}}\n" + never},
		"agent's exclude":                    {user: "servers: {bank: {url: BANK}}\nagents: {default: {tools: {exclude: [transfer]}}}\n", project: "agents: {default: {}}\n" + never},
		"agent's tools off":                  {user: "servers: {bank: {url: BANK}}\nagents: {default: {tools: {enabled: false}}}\n", project: "agents: {default: {}}\n" + never},
		"agent's include":                    {user: "servers: {bank: {url: BANK}}\nagents: {default: {tools: {include: [balance]}}}\n", project: "agents: {default: {}}\n" + never},
		"the user's allow, another target":   {user: "servers: {bank: {url: BANK, policy: {approval: never}}}\n", project: "servers: {bank: {url: OTHER}}"},
		"the user's allow, the same target":  {user: "servers: {bank: {url: BANK, policy: {approval: never}}}\n", project: "servers: {savings: {url: BANK}, bank: {enabled: false, url: OTHER}}"},
		"the user's rule, another target":    {user: "servers: {bank: {url: BANK}}\npolicy: {rules: [{when: 'tool.server == \"bank\"', verdict: allow}]}\n", project: "servers: {bank: {url: OTHER}}"},
		"the user's tool, another target":    {user: "servers: {bank: {url: BANK}}\ntools: {transfer: {server: bank, annotations: {read_only: true}, policy: {approval: never}}}\n", project: "servers: {bank: {url: OTHER}}"},
		"the user's agent, another agent":    {user: "agents: {ops: {policy: {approval: never}}, default: {}}\n", project: "servers: {bank: {url: BANK}}\nagents: {ops: {}}", agent: "ops"},
		"the user's group":                   {user: "policy: {groups: {safe: {approval: never}}}\n", project: "servers: {bank: {url: BANK}}\ntools: {transfer: {server: bank, groups: [safe]}}"},
		"an exposed name":                    {user: "policy: {rules: [{when: 'tool.exposed == \"weather\"', verdict: allow}]}\n", project: "servers: {bank: {url: BANK}}\ntools: {weather: {server: bank, remote_name: transfer}}", tool: "weather"},
	} {
		t.Run("SEC-F1_"+name, func(t *testing.T) {
			p := newScene(t, map[string]string{usersFile: tt.user, projects: tt.project})
			tool, agent := tt.tool, tt.agent
			tool = cmp.Or(tool, "transfer")
			p.call(t, p.options(), tool, agent)
			if n := p.bank.called() + p.other.called(); n > 0 {
				t.Errorf("%d calls reached a server", n)
			}
		})
	}
}

// TestLayersHonest checks what a project may do: loosen tenon's defaults, and set everything that the user's file does
// not set.
func TestLayersHonest(t *testing.T) {
	const bank = "servers: {bank: {url: BANK}}\n"
	for name, tt := range map[string]struct{ user, project, tool string }{
		"no user's file":                  {"", bank + "policy: {defaults: {approval: never}}", "transfer"},
		"the user says nothing":           {"limits: {max_turns: 9}", bank + "policy: {defaults: {approval: never}}", "transfer"},
		"a declared annotation":           {"", bank + "tools: {transfer: {server: bank, annotations: {read_only: true}}}", "transfer"},
		"a server's own hint":             {"policy: {defaults: {approval: destructive}}", bank, "balance"},
		"never of the user for all":       {"policy: {defaults: {approval: never}}", bank, "transfer"},
		"the user's server and rules":     {"servers: {bank: {url: BANK, policy: {approval: never}}}", "limits: {max_turns: 9}", "transfer"},
		"the user's tool":                 {"servers: {bank: {url: BANK}}\ntools: {pay: {server: bank, remote_name: transfer, policy: {approval: never}}}", "name: p", "pay"},
		"another server of the same host": {"servers: {bank: {url: 'BANK/other', policy: {approval: always}}}", "servers: {b: {url: BANK}}\npolicy: {defaults: {approval: never}}", "b_transfer"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newScene(t, map[string]string{usersFile: tt.user, projects: tt.project})
			if p.call(t, p.options(), tt.tool, "") == nil || p.bank.called() != 1 {
				t.Errorf("%d calls reached the server", p.bank.called())
			}
		})
	}
}

// TestLayersElsewhere checks that the user's rules apply wherever the project's file is and whatever it is called.
func TestLayersElsewhere(t *testing.T) {
	const loose = "servers: {bank: {url: BANK}}\npolicy: {rules: [], defaults: {approval: never}}\n"
	const claude = `{"mcpServers": {"bank": {"type": "http", "url": "BANK"}}}`
	for name, tt := range map[string]struct {
		file, text string
		set        func(*config.Options, *scene)
	}{
		"-c FILE":      {"elsewhere/c.yaml", loose, func(o *config.Options, p *scene) { o.File = filepath.Join(p.dir, "elsewhere/c.yaml") }},
		"TENON_CONFIG": {"elsewhere/c.yaml", loose, func(_ *config.Options, p *scene) { p.env["TENON_CONFIG"] = filepath.Join(p.dir, "elsewhere/c.yaml") }},
		"stdin": {"none", "", func(o *config.Options, p *scene) {
			o.File, o.Stdin = "-", strings.NewReader(strings.ReplaceAll(loose, "BANK", p.bank.url))
		}},
		"tenon.yml":           {"p/tenon.yml", loose, nil},
		".mcp.json":           {"p/.mcp.json", claude, nil},
		"mcp.json":            {"p/mcp.json", claude, nil},
		".vscode/mcp.json":    {"p/.vscode/mcp.json", `{"inputs": [], "servers": {"bank": {"type": "http", "url": "BANK"}}}`, nil},
		"a folder above":      {"tenon.yaml", loose, nil},
		"XDG_CONFIG_HOME set": {projects, loose, func(_ *config.Options, p *scene) { p.env["XDG_CONFIG_HOME"] = "relative/path" }},
	} {
		t.Run("SEC-F1_"+name, func(t *testing.T) {
			p := newScene(t, map[string]string{usersFile: denyTransfer, tt.file: tt.text, "p/x": ""})
			o := p.options()
			if tt.set != nil {
				tt.set(&o, p)
			}
			if cfg := p.call(t, o, "transfer", ""); cfg == nil {
				t.Error("the file is not read")
			}
			if n := p.bank.called(); n > 0 {
				t.Errorf("%d calls reached a server", n)
			}
		})
	}
}

// TestAdminLayer checks that neither the user nor a project can loosen the administrator's settings.
func TestAdminLayer(t *testing.T) {
	const never = "policy: {rules: [{when: 'true', verdict: allow}], defaults: {approval: never}}\n"
	p := func(t *testing.T, user, project string) *scene {
		return newScene(t, map[string]string{adminFile: denyTransfer, usersFile: user, projects: project})
	}
	t.Run("SEC-F1_user and project", func(t *testing.T) {
		p := p(t, never, never)
		p.call(t, p.options(), "transfer", "")
		if p.bank.called() > 0 {
			t.Error("the call reached the server")
		}
	})
	t.Run("SEC-F1_the user's server of the same name", func(t *testing.T) {
		p := p(t, never+"servers: {bank: {url: OTHER}}\n", never)
		p.call(t, p.options(), "transfer", "")
		if p.other.called() > 0 {
			t.Error("the call reached the server")
		}
	})
	t.Run("SEC-F1_trust.projects of the user", func(t *testing.T) {
		p := p(t, "trust: {projects: [{path: ~/p, loosen: ['*']}]}\n", never)
		p.call(t, p.options(), "transfer", "")
		if p.bank.called() > 0 {
			t.Error("the call reached the server")
		}
	})
	t.Run("SEC-F1_no user's file", func(t *testing.T) {
		p := p(t, "", never)
		o := p.options()
		o.NoUser = true
		p.call(t, o, "transfer", "")
		if p.bank.called() > 0 {
			t.Error("the call reached the server")
		}
	})
	t.Run("SEC-F1_Parse", func(t *testing.T) {
		p := p(t, "", "")
		cfg, err := config.Parse("tenon.yaml", []byte(never), p.options())
		if err != nil {
			t.Fatal(err)
		}
		p.ask(t, cfg, "transfer", "")
		if p.bank.called() > 0 {
			t.Error("the call reached the server")
		}
	})
	t.Run("yes is forbidden", func(t *testing.T) {
		p := newScene(t, map[string]string{adminFile: "trust: {forbid: [yes]}\n", projects: "servers: {bank: {url: BANK}}\n"})
		cfg, err := config.Load(t.Context(), p.options())
		if err != nil {
			t.Fatal(err)
		}
		p.write(t, "steps.yaml", "steps: [{calls: [{name: transfer}]}, {text: done}]")
		h, err := host.Open(t.Context(), host.Config{Config: cfg, Home: filepath.Join(p.dir, "home"), Model: "script:" + filepath.Join(p.dir, "steps.yaml")})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		if _, err := h.Start(t.Context(), host.Question{Text: "go", Grant: "somebody"}); err == nil || !strings.Contains(err.Error(), "admin/config.yaml") {
			t.Errorf("begun with every call allowed: %v", err)
		}
		if p.bank.called() > 0 {
			t.Error("the call reached the server")
		}
	})
}

// TestTrustedProjects checks which settings the key trust.projects lets a project loosen.
func TestTrustedProjects(t *testing.T) {
	const never = "policy: {rules: [], defaults: {approval: never}}\n"
	user := func(path, keys string) string {
		return "servers: {bank: {url: BANK}}\npolicy: {defaults: {approval: always}}\ntrust: {projects: [{path: " + path + ", loosen: [" + keys + "]}]}\n"
	}
	for name, tt := range map[string]struct {
		user, project string
		calls         int
		set           func(*testing.T, *config.Options, *scene)
	}{
		"the key":                    {user("~/p", "policy.defaults.approval"), never, 1, nil},
		"a glob":                     {user("~/p", "policy.*"), never, 1, nil},
		"a key above":                {user("~/p", "policy"), never, 1, nil},
		"relative to the file":       {user("../../p", "policy.defaults.approval"), never, 1, nil},
		"the project does not write": {user("~/p", "policy.defaults.approval"), "policy: {rules: [{when: 'false || tool.remote_name == \"x\"', verdict: allow}]}", 0, nil},
		"SEC-F1_another key":         {user("~/p", "limits.*"), never, 0, nil},
		"SEC-F1_another project":     {user("~/q", "policy.*"), never, 0, nil},
		"SEC-F1_a folder below":      {user("~/p/below", "policy.*"), never, 0, nil},
		"SEC-F1_the folder above":    {user("~", "policy.*"), never, 0, nil},
		"SEC-F1_no folder":           {user("~/nowhere", "policy.*"), never, 0, nil},
		"SEC-F1_its own list":        {"servers: {bank: {url: BANK}}\npolicy: {defaults: {approval: always}}\n", never + "trust: {projects: [{path: ., loosen: ['*']}]}", 0, nil},
		"SEC-F1_a link to the file": {user("~/trusted", "policy.*"), never, 0, func(t *testing.T, o *config.Options, p *scene) {
			link(t, filepath.Join(p.dir, projects), filepath.Join(p.dir, "trusted/tenon.yaml"))
			o.Dir = filepath.Join(p.dir, "trusted")
		}},
		"a link to the folder": {user("~/link", "policy.defaults.approval"), never, 1, func(t *testing.T, _ *config.Options, p *scene) {
			link(t, filepath.Join(p.dir, "p"), filepath.Join(p.dir, "link"))
		}},
		"SEC-F1_stdin": {user("~/p", "policy.*"), "name: p", 0, func(_ *testing.T, o *config.Options, _ *scene) {
			o.File, o.Stdin = "-", strings.NewReader(never)
		}},
		"SEC-F1_stdin of the file": {user("~/p", "policy.*"), never, 0, func(t *testing.T, o *config.Options, p *scene) {
			f, err := os.Open(filepath.Join(p.dir, projects))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = f.Close() })
			o.File, o.Stdin = "-", f
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newScene(t, map[string]string{usersFile: tt.user, projects: tt.project, "trusted/x": "", "q/x": "", "p/below/x": ""})
			o := p.options()
			if tt.set != nil {
				tt.set(t, &o, p)
			}
			p.call(t, o, "transfer", "")
			if p.bank.called() != tt.calls {
				t.Errorf("%d calls, want %d", p.bank.called(), tt.calls)
			}
		})
	}
}

func link(t *testing.T, to, at string) {
	t.Helper()
	if err := os.Symlink(to, at); err != nil {
		t.Skip(err)
	}
}

// TestPricesOfLayers checks that a project cannot raise the user's cost limit by setting a lower price for a model.
func TestPricesOfLayers(t *testing.T) {
	const cheap = "models: {m: {provider: openai, model: gpt-4o, price: {input: 0, output: 0}}}\n"
	for name, tt := range map[string]struct {
		user, project string
		free          bool
	}{
		"SEC-F1_a price of 0":         {"limits: {cost: 1}", cheap, false},
		"SEC-F1_a budget":             {"budgets: {day: {cost: 1}}", cheap, false},
		"SEC-F1_a file of prices":     {"limits: {cost: 1}", "prices: prices.json\nmodels: {m: {provider: openai, model: gpt-4o}}\n", false},
		"the user limits nothing":     {"limits: {max_turns: 3}", cheap, true},
		"the user says the price":     {"limits: {cost: 1}\n" + cheap, "name: p", true},
		"the user has no table of it": {"limits: {cost: 1}", "models: {m: {provider: openai-compatible, base_url: 'http://127.0.0.1:1/v1', model: own, price: {input: 0, output: 0}}}\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newScene(t, map[string]string{usersFile: tt.user, projects: tt.project, "p/prices.json": `{"models": {"openai/gpt-4o": {"input": 0, "output": 0}}}`})
			cfg, err := config.Load(t.Context(), p.options())
			if err != nil {
				t.Fatal(err)
			}
			h, err := host.Open(t.Context(), host.Config{Config: cfg, Home: filepath.Join(p.dir, "home")})
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close()
			price, ok, err := h.Models().Price(t.Context(), "m")
			if err != nil || !ok || (price.Input == 0) != tt.free {
				t.Errorf("%+v, %v, %v", price, ok, err)
			}
		})
	}
}
