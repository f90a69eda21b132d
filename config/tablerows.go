package config

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"slices"
	"strconv"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/table"
)

// maxTableTools bounds what tables bring; no model takes more.
const maxTableTools = 10_000

// tableTools makes entries of the rows of tables: a server for each address with its
// credential, a tool for each row. What the configuration says itself stands above them.
type tableTools struct {
	c    *Config
	note func(format string, args ...any) // told of what a person should know
	at   *node                            // where a file names the tables; nil: in place of what it says

	// Of the table that is read.
	from *table.Reader
	path string // as messages name it
	sum  hash.Hash
	took map[table.Kind]int // tools

	names   ToolNames
	opened  map[string]string          // address and credential → server
	remotes map[string]map[string]bool // server → its tools that are there already
	said    map[[2]string]string       // server and remote name → entry of the file
	own     []string                   // servers of the configuration that rows name
	entries map[string]catalog.Tool
	flows   map[string]TableWorkflow
	agents  bool // there are agents, whose tools those of the configuration are, too
	rows    int  // that brought something
	missing int
}

func newTableTools(c *Config, note func(format string, args ...any)) *tableTools {
	return &tableTools{c: c, note: note, opened: map[string]string{}, remotes: map[string]map[string]bool{}, said: map[[2]string]string{},
		entries: map[string]catalog.Tool{}, flows: map[string]TableWorkflow{}}
}

// beside keeps clear of the tools that the configuration has.
func (t *tableTools) beside() {
	for name, e := range t.c.Tools {
		t.names.Take(name)
		if e = e.WithDefaults(name); e.Kind != tenon.KindWorkflow && e.Server != "" {
			t.is(e.Server, e.RemoteName)
			t.said[[2]string{e.Server, e.RemoteName}] = name
		}
	}
}

// is says that a tool is there.
func (t *tableTools) is(server, remote string) {
	if t.remotes[server] == nil {
		t.remotes[server] = map[string]bool{}
	}
	t.remotes[server][remote] = true
}

// take reads the tools of a table.
func (t *tableTools) take(ctx context.Context, path, column string, o table.Options) (err error) {
	r, err := table.Open(path, o)
	if err != nil {
		return err
	}
	defer func() {
		if e := r.Close(); err == nil {
			err = e
		}
	}()
	c, err := r.Column(column)
	if err != nil {
		return err
	}
	t.from, t.path, t.sum, t.took = r, path, sha256.New(), map[table.Kind]int{}
	for row, err := range r.Tools(ctx, c) {
		if err != nil {
			return err
		}
		if err := t.add(row); err != nil {
			return err
		}
	}
	return nil
}

// digest tells versions of the table's tools apart.
func (t *tableTools) digest() string { return hex.EncodeToString(t.sum.Sum(nil)) }

// know puts what a row says into the digest.
func (t *tableTools) know(tool *table.Tool) {
	ports, _ := json.Marshal([]any{tool.Inputs, tool.Outputs, tool.Message}) // texts and a number
	for _, part := range []string{tool.Kind.String(), tool.Name, tool.Description, tool.Parameters, string(ports), tool.Keys, tool.Server, tool.Remote, tool.Credential} {
		fmt.Fprintf(t.sum, "%d:%s", len(part), part)
	}
}

func (t *tableTools) add(row table.ToolRow) error {
	tool := row.Tool
	if tool == nil {
		t.missing++
		return nil
	}
	if t.rows >= maxTableTools {
		return tenon.Errorf(tenon.CodeTooLarge, "%s has more than %d tools", t.path, maxTableTools)
	}
	t.know(tool)
	err := tool.Use(row.Place())
	switch {
	case err != nil:
		return tenon.Errorf(tenon.ErrorCode(err), "%s: %w", t.path, err)
	case tool.Kind == table.Workflow:
		return t.addWorkflow(row)
	case tool.Kind.IsOwn():
		err = t.addKind(row)
	default:
		err = t.addRemote(row)
	}
	if err != nil {
		return tenon.Errorf(tenon.ErrorCode(err), "%s: %s: %w", t.path, row.Place(), err)
	}
	return nil
}

// taken counts a tool that was taken.
func (t *tableTools) taken(row table.ToolRow) {
	t.took[row.Tool.Kind]++
	t.rows++
}

// put adds a tool under a name that models take.
func (t *tableTools) put(row table.ToolRow, e catalog.Tool) {
	name := t.names.Make(row.Tool.Name)
	e.Loose = true
	t.entries[name] = e
	t.place("tools." + name)
	t.taken(row)
}

// place says where the entry at a path comes from, if a file says it.
func (t *tableTools) place(path string) {
	if t.at == nil {
		return
	}
	if t.c.rows == nil {
		t.c.rows = map[string]*node{}
	}
	t.c.rows[path] = t.at
}

// addRemote takes a tool of an MCP server.
func (t *tableTools) addRemote(row table.ToolRow) error {
	tool := row.Tool
	schema, err := tool.Schema()
	if err != nil {
		return err
	}
	key := strconv.Quote(tool.Server) + tool.Credential
	server, known := t.opened[key]
	if !known {
		if server, err = t.server(row); err != nil {
			return err
		}
		t.opened[key] = server
	}
	discovered := slices.Contains(t.own, server) && t.c.Servers[server].LoadsTools()
	e := catalog.Tool{Server: server, RemoteName: tool.Remote, Description: tool.Description, Schema: schema, ArgumentsMode: catalog.ArgumentsReplace}
	if name, ok := t.said[[2]string{server, tool.Remote}]; ok {
		if !discovered {
			t.complete(name, e)
		}
		delete(t.said, [2]string{server, tool.Remote})
		t.is(server, tool.Remote)
		t.taken(row)
		return nil
	}
	if t.remotes[server][tool.Remote] {
		t.note("%s: %s: tool '%s' of that server is there already; the row is left out", t.path, row.Place(), tool.Remote)
		return nil
	}
	t.is(server, tool.Remote)
	if discovered { // named and described as it is configured
		t.taken(row)
		return nil
	}
	t.put(row, e)
	return nil
}

// complete fills in what an entry of the file does not say of its tool.
func (t *tableTools) complete(name string, row catalog.Tool) {
	e := t.c.Tools[name]
	e.Description = cmp.Or(e.Description, row.Description)
	if len(e.Schema) == 0 && len(e.Arguments) == 0 {
		e.Schema, e.ArgumentsMode = row.Schema, row.ArgumentsMode
	}
	t.c.Tools[name] = e
}

// addKind takes a tool of a kind of tenon's own.
func (t *tableTools) addKind(row table.ToolRow) error {
	e, err := t.c.RowTool(row.Tool)
	if err != nil {
		return err
	}
	e = e.WithDefaults(row.Tool.Name)
	if t.remotes[e.Server][e.RemoteName] {
		t.note("%s: %s: '%s' is there already; the row is left out", t.path, row.Place(), row.Tool.Name)
		return nil
	}
	t.is(e.Server, e.RemoteName)
	t.put(row, e)
	t.agents = t.agents || e.Kind == tenon.KindAgent
	return nil
}

// addWorkflow takes a workflow tool. One whose file is missing, or that holds another
// program's workflow, is left out and told of.
func (t *tableTools) addWorkflow(row table.ToolRow) error {
	w, err := RowWorkflow(t.from, row.Tool)
	fmt.Fprintf(t.sum, "%d:%s", len(w.raw), w.raw)
	if err != nil {
		t.note("%s: %s is left out: %s", t.path, row.Place(), err)
		return nil
	}
	w.raw = nil
	t.flows[t.names.Make(row.Tool.Name)] = w
	t.taken(row)
	return nil
}

// counted is a number of things.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
