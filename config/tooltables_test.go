package config

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/table"
)

// remoteRow returns a row for a tool of a server.
func remoteRow(name, server string) *table.Tool {
	return &table.Tool{Kind: table.MCP, Name: name, Description: "Row " + name, Remote: name, Server: server, Message: -1,
		Parameters: `{"type":"object","properties":{"a":{"type":"number"}}}`}
}

// tabled writes a table of tools.
func tabled(t *testing.T, path string, tools ...*table.Tool) {
	t.Helper()
	rows := make([]table.Row, len(tools))
	for i, tool := range tools {
		rows[i] = table.Row{ID: fmt.Sprintf("Row%d", i), Tool: tool}
	}
	if err := table.WriteTools(context.Background(), path, rows, table.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// loadTables writes a tenon.yaml and a table t.arrow next to it, and loads them.
func loadTables(t *testing.T, text string, tools ...*table.Tool) (*Config, string, error) {
	t.Helper()
	dir := t.TempDir()
	tabled(t, filepath.Join(dir, "t.arrow"), tools...)
	file := filepath.Join(dir, "tenon.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(context.Background(), Options{File: file, Home: t.TempDir(), LookupEnv: env()})
	return c, dir, err
}

// summary lists the servers and tools of a configuration.
func summary(c *Config) []string {
	var list []string
	for _, name := range c.AllServerNames() {
		s := c.Servers[name]
		line := fmt.Sprintf("server %s %s %s%s", name, s.Transport, s.Command+strings.Join(s.Args, " "), s.URL)
		if secret := c.SecretName("servers." + name + ".auth.secret"); secret != "" {
			line += " secret " + secret
		}
		if c.FromTable("servers." + name) {
			line += fmt.Sprintf(" table trusted=%v loads=%v", s.IsTrusted(), s.LoadsTools())
		}
		list = append(list, line)
	}
	for _, name := range c.ToolNames() {
		e := c.Tools[name]
		line := fmt.Sprintf("tool %s %s.%s %q", name, e.Server, e.RemoteName, e.Description)
		if c.FromTable("tools." + name) {
			line += " table"
		}
		list = append(list, line)
	}
	return list
}

// TestToolTables checks the servers and tools that are made from rows, in addition to the entries of the file.
func TestToolTables(t *testing.T) {
	const tables = "tool_tables: [t.arrow]\n"
	command := table.CommandURI([]string{"npx", "-y", "@x/server-memory"})
	tests := map[string]struct {
		text  string
		tools []*table.Tool
		want  []string
		warns []string
	}{
		"an address is one server": {tables, []*table.Tool{remoteRow("add", "http://localhost:1/mcp"), remoteRow("sub", "http://localhost:1/mcp"), remoteRow("mul", "wss://h.example/x")},
			[]string{"server h.example websocket wss://h.example/x table trusted=false loads=false",
				"server localhost auto http://localhost:1/mcp table trusted=false loads=false",
				`tool add localhost.add "Row add" table`, `tool mul h.example.mul "Row mul" table`, `tool sub localhost.sub "Row sub" table`}, nil},
		"a command": {tables, []*table.Tool{remoteRow("keep", command)},
			[]string{"server memory stdio npx-y @x/server-memory table trusted=false loads=false", `tool keep memory.keep "Row keep" table`}, nil},
		"names that are taken get a part of a digest": {tables + "servers: {localhost: {command: x}, agents_2: {command: x}}\ntools: {add: {server: localhost}}\n",
			[]*table.Tool{remoteRow("add", "http://localhost:1/mcp"), remoteRow("a b", "https://agents/"), remoteRow("a-b", "http://[::1]:4/")},
			[]string{"server localhost stdio x", "server agents_2 stdio x", "server 1 auto http://[::1]:4/ table trusted=false loads=false",
				"server agents-ccb753 auto https://agents/ table trusted=false loads=false", "server localhost-b9f307 auto http://localhost:1/mcp table trusted=false loads=false",
				`tool add localhost.add ""`, `tool a-b 1.a-b "Row a-b" table`, `tool a_b agents-ccb753.a b "Row a b" table`, `tool add_1 localhost-b9f307.add "Row add (server localhost:1/mcp)" table`}, nil},
		"a server of the configuration has its tools itself": {tables + "servers: {s: {command: x}, l: {command: x, load_tools: false}}\n",
			[]*table.Tool{remoteRow("add", table.ServerURI("s")), remoteRow("sub", table.ServerURI("l"))},
			[]string{"server s stdio x", "server l stdio x", `tool sub l.sub "Row sub" table`}, nil},
		"of a server that does not say what it has an entry is completed": {tables + "servers: {l: {command: x, load_tools: false}}\ntools: {plus: {server: l, remote_name: add}, less: {server: l, remote_name: sub, description: mine}}\n",
			[]*table.Tool{remoteRow("add", table.ServerURI("l")), remoteRow("sub", table.ServerURI("l"))},
			[]string{"server l stdio x", `tool plus l.add "Row add"`, `tool less l.sub "mine"`}, nil},
		"a credential is a secret's name": {tables + "secrets: {key: {env: K}}\n",
			[]*table.Tool{{Kind: table.MCP, Name: "add", Remote: "sum", Server: "https://h.example/", Message: -1, Credential: "key"}},
			[]string{"server h.example auto https://h.example/ secret key table trusted=false loads=false", `tool add h.example.sum "" table`}, nil},
		"twice is once": {tables, []*table.Tool{remoteRow("add", "https://h.example/"), remoteRow("add", "https://h.example/"), remoteRow("add", "https://h.example/")},
			[]string{"server h.example auto https://h.example/ table trusted=false loads=false", `tool add h.example.add "Row add" table`},
			[]string{"tenon.yaml:1:15: tool_tables[0]: DIR/t.arrow: row 1, 'Row1': tool 'add' of that server already exists; the row is left out; and 1 more warning about this table"}},
		"one tool under two names has one": {tables, []*table.Tool{{Kind: table.MCP, Name: "plus", Remote: "add", Server: "https://h.example/", Message: -1}, remoteRow("add", "https://h.example/")},
			[]string{"server h.example auto https://h.example/ table trusted=false loads=false", `tool add h.example.add "Row add" table`},
			[]string{"tenon.yaml:1:15: tool_tables[0]: DIR/t.arrow: row 0, 'Row0': tool 'add' of that server is offered as 'add' already, and a tool has one name; the row, which names it 'plus', is left out"}},
		"an entry of the file stands above its row": {tables + "tools: {plus: {server: h.example, remote_name: add, groups: [g], policy: {approval: always}}}\n", []*table.Tool{remoteRow("add", "https://h.example/")},
			[]string{"server h.example auto https://h.example/ table trusted=false loads=false", `tool plus h.example.add "Row add"`}, nil},
		"not encrypted": {tables, []*table.Tool{remoteRow("add", "http://h.example/")},
			[]string{"server h.example auto http://h.example/ table trusted=false loads=false", `tool add h.example.add "Row add" table`},
			[]string{"tenon.yaml:1:15: tool_tables[0]: DIR/t.arrow: row 0, 'Row0': 'url' must use https:// (or http:// for localhost)"}},
		"kinds of tenon's own": {tables + "models: {m: {provider: script, path: t.arrow}}\nagents: {helper: {model: m}}\n",
			[]*table.Tool{{Kind: table.HTTP, Name: "web", Message: -1, Server: table.Request{URL: "https://h.example/${HOME}"}.URI()},
				{Kind: table.Prompt, Name: "ask", Description: "Asks", Message: -1, Server: table.PromptText{Template: "Say it", Model: "m"}.URI()},
				{Kind: table.Agent, Name: "help", Description: "Helps", Message: -1, Server: table.AgentURI("helper")}},
			[]string{`tool ask prompt_tools.ask@019c54657a35 "Asks" table`, `tool help agents.helper "Helps" table`, `tool web http_tools.web@3e1c824b8c40 "" table`}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c, dir, err := loadTables(t, tt.text, tt.tools...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, summary(c)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			var warns []string
			for _, w := range c.Warnings {
				text := w.Error()
				warns = append(warns, strings.ReplaceAll(text[strings.Index(text, "tenon.yaml"):], dir, "DIR"))
			}
			if diff := cmp.Diff(tt.warns, warns); diff != "" {
				t.Errorf("warnings: -want +got:\n%s", diff)
			}
		})
	}
}

// TestToolTablesBadRows checks that rows that cannot be used are left out. The configuration stays valid, and a warning
// names the row and the position in the file.
func TestToolTablesBadRows(t *testing.T) {
	const tables = "version: 1\ntool_tables:\n  - {path: t.arrow}\n"
	local := remoteRow("add", "http://127.0.0.1:1/")
	tests := map[string]struct {
		text string
		tool *table.Tool
		want string
	}{
		"no such server":   {tables, remoteRow("add", table.ServerURI("none")), "row 0, 'Row0': tool 'add' is one of server 'none', which the configuration does not have"},
		"no such secret":   {tables, &table.Tool{Kind: table.MCP, Name: "add", Remote: "add", Server: "https://h.example/", Message: -1, Credential: "key"}, "row 0, 'Row0': no secret 'key'"},
		"no such agent":    {tables, &table.Tool{Kind: table.Agent, Name: "a", Message: -1, Server: table.AgentURI("none")}, "row 0, 'Row0': tool 'a' calls agent 'none'"},
		"no name":          {tables, remoteRow(" ", "https://h.example/"), "the tool has no name (row 0, 'Row0', field 1)"},
		"a scheme":         {tables, remoteRow("add", "ftp://h.example/"), "row 0, 'Row0': the server_uri of tool 'add' begins with 'ftp:'"},
		"no schema":        {tables, &table.Tool{Kind: table.MCP, Name: "add", Remote: "add", Server: "https://h.example/", Message: -1, Parameters: "{"}, "row 0, 'Row0': the parameter schema of tool 'add' is not a JSON object"},
		"a secret":         {tables + "secrets: {key: {env: K}}\n", &table.Tool{Kind: table.HTTP, Name: "web", Message: -1, Server: table.Request{URL: "https://h.example/", Headers: map[string]string{"X": "{{ secrets.key }}"}}.URI()}, "its header X wants the secret 'key'"},
		"a command":        {tables + "policy: {commands: {allow: [npx]}}\n", remoteRow("add", table.CommandURI([]string{"sh", "-c", "true"})), "row 0, 'Row0': tool 'add': Invalid command 'sh'. Supported commands: npx"},
		"not encrypted":    {tables + "policy: {urls: {require_https: error}}\n", remoteRow("add", "http://h.example/"), "row 0, 'Row0': tool 'add': 'url' must use https://"},
		"a private one":    {tables + "policy: {urls: {allow_private: false}}\n", local, "row 0, 'Row0': tool 'add': '127.0.0.1' is a private address or this machine"},
		"a request to one": {tables + "policy: {urls: {allow_private: false}}\n", &table.Tool{Kind: table.HTTP, Name: "web", Message: -1, Server: table.Request{URL: "http://10.0.0.1/"}.URI()}, "'10.0.0.1' is a private address"},
	}
	for name, tt := range tests {
		t.Run("RP-21_"+name, func(t *testing.T) {
			c, dir, err := loadTables(t, tt.text, tt.tool, remoteRow("sound", "https://sound.example/"))
			if err != nil {
				t.Fatal(err)
			}
			text := ""
			for _, w := range c.Warnings {
				text += w.Error() + "\n"
			}
			if !strings.Contains(text, "tenon.yaml:3:5: tool_tables[0]: ") || !strings.Contains(text, tt.want) ||
				!strings.Contains(text, "the row is left out") || strings.Count(text, filepath.Join(dir, "t.arrow")) < 1 {
				t.Errorf("%q is not in: %v", tt.want, text)
			}
			if got := c.ToolNames(); !slices.Equal(got, []string{"sound"}) {
				t.Errorf("tools %v", got)
			}
			if got := c.AllServerNames(); !slices.Equal(got, []string{"sound.example"}) {
				t.Errorf("servers %v", got)
			}
		})
	}
	t.Run("no such column", func(t *testing.T) {
		_, _, err := loadTables(t, "version: 1\ntool_tables:\n  - {path: t.arrow, column: None}\n", local)
		if err == nil || !strings.Contains(err.Error(), "tool_tables[0]: ") ||
			!strings.Contains(err.Error(), "t.arrow has no column 'None'") {
			t.Errorf("%v", err)
		}
	})
	t.Run("a folder", func(t *testing.T) {
		_, _, err := loadTables(t, "tool_tables: [.]\n", local)
		if err == nil || !strings.Contains(err.Error(), "is not a file") {
			t.Errorf("%v", err)
		}
	})
}

// TestToolTablesOfTwo loads several tables. The same address is one server in all of them, paths are relative to the
// folder of the configuration, and the warning about the deprecated type is given once for each file.
func TestToolTablesOfTwo(t *testing.T) {
	dir := t.TempDir()
	legacy, err := os.ReadFile(filepath.Join("..", "internal", "cli", "testdata", "accept", "old.arrow"))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{"old.arrow": legacy, "tenon.yaml": []byte("tool_tables: [a.arrow, b.tooltable, old.arrow, {path: old.arrow, column: Tools}]\n"),
		"deny.yaml": []byte("tables: {legacy: {read: deny}}\ntool_tables: [old.arrow]\n")}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tabled(t, filepath.Join(dir, "a.arrow"), remoteRow("add", "https://h.example/"))
	tabled(t, filepath.Join(dir, "b.tooltable"), remoteRow("add", "https://h.example/"), remoteRow("sub", "https://h.example/"))
	load := func(name string) (*Config, error) {
		return Load(context.Background(), Options{File: filepath.Join(dir, name), Home: t.TempDir(), LookupEnv: env()})
	}
	c, err := load("tenon.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"server h.example auto https://h.example/ table trusted=false loads=false", `tool add h.example.add "Row add" table`, `tool sub h.example.sub "Row sub" table`}
	if diff := cmp.Diff(want, summary(c)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	deprecated := 0
	for _, w := range c.Warnings {
		if strings.Contains(w.Message, "deprecated: WorkflowToolValueFactory") {
			deprecated++
		}
	}
	if deprecated != 1 {
		t.Errorf("told %d times: %v", deprecated, c.Warnings)
	}
	if got := c.Files(); !slices.Contains(got, filepath.Join(dir, "b.tooltable")) {
		t.Errorf("nobody would see that a table changes: %v", got)
	}
	if got := c.TableBrings(1); got != "1 tool of servers" {
		t.Errorf("the second table brings %s", got)
	}
	if got := c.Origin("tools.sub.description"); !strings.HasSuffix(got, "tenon.yaml:1") {
		t.Errorf("origin %s", got)
	}
	if got := c.Origin("tools.sub.groups"); got != "default" {
		t.Errorf("origin of what the row does not say: %s", got)
	}
	if _, err := load("deny.yaml"); err == nil || !strings.Contains(err.Error(), "deny.yaml:2:15: tool_tables[0]: ") || !strings.Contains(err.Error(), "legacy tool format, run tenon tables migrate") {
		t.Errorf("denied: %v", err)
	}
	if _, err := Load(context.Background(), Options{File: filepath.Join(dir, "deny.yaml"), Home: t.TempDir(), LookupEnv: env(), NoTables: true}); err != nil {
		t.Errorf("left unread: %v", err)
	}
}

// TestToolTableDigest checks that the digest changes with each value of a row, and with nothing else.
func TestToolTableDigest(t *testing.T) {
	digest := func(change func(*table.Tool)) string {
		t.Helper()
		tool := remoteRow("add", "https://h.example/")
		change(tool)
		c, _, err := loadTables(t, "secrets: {k: {env: K}}\ntool_tables: [t.arrow]\n", tool)
		if err != nil {
			t.Fatal(err)
		}
		return c.TableDigest(0)
	}
	same := digest(func(*table.Tool) {})
	if again := digest(func(*table.Tool) {}); again != same {
		t.Errorf("the same table has the digests %s and %s", same, again)
	}
	for name, change := range map[string]func(*table.Tool){
		"name":        func(t *table.Tool) { t.Name = "plus" },
		"description": func(t *table.Tool) { t.Description = "Another" },
		"schema":      func(t *table.Tool) { t.Parameters = "{}" },
		"server":      func(t *table.Tool) { t.Server = "https://h.example/x" },
		"tool":        func(t *table.Tool) { t.Remote = "drop" },
		"credential":  func(t *table.Tool) { t.Credential = "k" },
	} {
		t.Run(name, func(t *testing.T) {
			if digest(change) == same {
				t.Error("the digest is the same")
			}
		})
	}
}

// TestToolTablesOfAProgram checks that WithTables reads the tables of a configuration made in Go, and reads them only
// once.
func TestToolTablesOfAProgram(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.arrow")
	tabled(t, path, remoteRow("add", "https://h.example/"))
	made := &Config{ToolTables: []ToolTable{{Path: path}}}
	c, err := made.WithTables(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"server h.example auto https://h.example/ table trusted=false loads=false", `tool add h.example.add "Row add" table`}; !cmp.Equal(want, summary(c)) {
		t.Error(cmp.Diff(want, summary(c)))
	}
	if len(made.Servers) > 0 || len(made.Tools) > 0 {
		t.Error("the caller's configuration was changed")
	}
	if again, err := c.WithTables(t.Context()); again != c || err != nil {
		t.Errorf("they are read again: %v", err)
	}
	made.ToolTables[0].Path += "x"
	if _, err := made.WithTables(t.Context()); tenon.ErrorCode(err) != tenon.CodeConfig || !strings.Contains(err.Error(), "tool_tables[0]: no file") {
		t.Errorf("%v", err)
	}
}

// TestToolTableShown checks that config show prints the values of rows, with the place where their table is named as
// their source.
func TestToolTableShown(t *testing.T) {
	c, _, err := loadTables(t, "tool_tables:\n  - t.arrow\n", remoteRow("add", "https://h.example/"))
	if err != nil {
		t.Fatal(err)
	}
	list, err := c.Show("servers.h.example")
	if err != nil {
		t.Fatal(err)
	}
	b, _ := json.Marshal(list) // texts
	for _, want := range []string{`"servers.h.example.url","value":"\"https://h.example/\""`, `"servers.h.example.trusted","value":"false"`, `"servers.h.example.load_tools","value":"false"`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("%s is not in %s", want, b)
		}
	}
	if list, err = c.Show("tool_tables[0].path"); err != nil || len(list) != 1 || list[0].Value != "t.arrow" {
		t.Errorf("%v %v", list, err)
	}
}

// TestOnlyTable restricts a configuration to the tools of one table. All other tools disappear, and all servers except
// those that workflows and agents of the table need.
func TestOnlyTable(t *testing.T) {
	const text = "tool_tables: [t.arrow]\nservers: {s: {command: x}, l: {command: x, load_tools: false}, o: {command: x}}\n" +
		"tools: {mine: {server: s, remote_name: add}, other: {server: o}}\nmodels: {m: {provider: script, path: t.arrow}}\nagents: {helper: {model: m}}\n"
	tests := map[string]struct {
		tools  []*table.Tool
		want   []string
		hidden []string
	}{
		"servers": {[]*table.Tool{remoteRow("add", table.ServerURI("s")), remoteRow("sub", table.ServerURI("l")), remoteRow("mul", "https://h.example/x")},
			[]string{"server s stdio x", "server l stdio x", "server h.example-b67d2a auto https://h.example/x", `tool mine s.add ""`, `tool mul h.example-b67d2a.mul "Row mul"`, `tool sub l.sub "Row sub"`}, nil},
		"an agent": {[]*table.Tool{{Kind: table.Agent, Name: "help", Message: -1, Server: table.AgentURI("helper")}},
			[]string{"server s stdio x", "server l stdio x", "server o stdio x", "server h.example auto https://h.example/ table trusted=false loads=false",
				`tool mine s.add ""`, `tool other o.other ""`, `tool help agents.helper ""`, `tool far h.example.far "Row far" table`},
			[]string{"h.example", "l", "o", "s"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c, dir, err := loadTables(t, text, remoteRow("far", "https://h.example/"))
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "only.arrow")
			tabled(t, path, tt.tools...)
			hidden, err := c.OnlyTable(t.Context(), path, "", table.Options{}, t.Logf)
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(hidden)
			if diff := cmp.Diff(tt.hidden, hidden); diff != "" {
				t.Errorf("hidden: -want +got:\n%s", diff)
			}
			got := summary(c)
			slices.Sort(got)
			slices.Sort(tt.want)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if len(c.ToolTables) > 0 {
				t.Error("the configuration's own tables are there")
			}
			if got := c.Servers["s"].Include; tt.hidden == nil && !cmp.Equal(got, []string{"add"}) {
				t.Errorf("include %q", got)
			}
		})
	}
}

// TestOnlyTableKeepsEntries restricts a configuration to a table whose rows use names or tools of entries in the file.
// The settings of these entries for their tools still apply.
func TestOnlyTableKeepsEntries(t *testing.T) {
	const text = "servers: {l: {command: x, load_tools: false}, s: {command: x}}\nagents: {helper: {model: m}}\nmodels: {m: {provider: script, path: t.arrow}}\n" +
		"tools: {add: {server: l, policy: {approval: always}}, sum: {server: l, remote_name: plus, policy: {approval: always}}, del: {server: s, policy: {approval: always}}}\n"
	helper := &table.Tool{Kind: table.Agent, Name: "help", Message: -1, Server: table.AgentURI("helper")}
	tests := map[string]struct {
		tools []*table.Tool
		want  []string // the tools, and their settings for approval
	}{
		"the tools themselves": {[]*table.Tool{remoteRow("add", table.ServerURI("l")), remoteRow("plus", table.ServerURI("l"))}, []string{"add l.add always", "sum l.plus always"}},
		"other tools of their names": {[]*table.Tool{remoteRow("add", table.ServerURI("l")), remoteRow("add", "https://h.example/"), remoteRow("sum", "https://h.example/")},
			[]string{"add l.add always", "add_1 h.example.add ", "sum h.example.sum "}},
		"names of what agents have": {[]*table.Tool{helper, remoteRow("del", "https://h.example/")},
			[]string{"add l.add always", "del s.del always", "del_1 h.example.del ", "help agents.helper ", "sum l.plus always"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c, dir, err := loadTables(t, text)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "only.arrow")
			tabled(t, path, tt.tools...)
			if _, err := c.OnlyTable(t.Context(), path, "", table.Options{}, t.Logf); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, name := range c.ToolNames() {
				e := c.Tools[name].WithDefaults(name)
				got = append(got, fmt.Sprintf("%s %s.%s %s", name, e.Server, e.RemoteName, e.Policy.Approval.Mode))
			}
			slices.Sort(got)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
