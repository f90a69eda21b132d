package config

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config/tree"
	"github.com/tenonhq/tenon/table"
	"github.com/tenonhq/tenon/workflow"
)

// maxTableTools is the maximum number of tools from tables. No model accepts more.
const maxTableTools = 10_000

// tableTools converts rows of tables to entries: a server for each address with its credential, and a tool for each
// row. The configuration's own entries override them.
type tableTools struct {
	c    *Config
	note func(format string, args ...any) // prints a warning for the user
	at   *tree.Node                       // where a file names the tables; nil if they replace the tools

	// About the table that is being read.
	from *table.Reader
	path string // its name in messages
	sum  hash.Hash
	took map[table.Kind]int // number of added tools

	names   catalog.ToolNames
	shared  map[string]bool              // names shared by servers with different targets, in the current table
	twins   map[string]bool              // names that tools of several servers have, in the current table
	opened  map[string]string            // target and credential → server
	remotes map[string]map[string]string // server → its known tools → the name that each is offered under
	said    map[[2]string]string         // server and remote name → entry of the file
	own     []string                     // configured servers that rows name
	entries map[string]catalog.Tool
	flows   map[string]TableWorkflow
	agents  bool // there are agents, and they use the configured tools
	rows    int  // rows that were used
	missing int
}

func newTableTools(c *Config, note func(format string, args ...any)) *tableTools {
	return &tableTools{c: c, note: note, opened: map[string]string{}, remotes: map[string]map[string]string{},
		said:    map[[2]string]string{},
		entries: map[string]catalog.Tool{}, flows: map[string]TableWorkflow{}}
}

// beside reserves the names of the configured tools.
func (t *tableTools) beside() {
	for name, e := range t.c.Tools {
		t.names.Take(name)
		if e = e.WithDefaults(name); e.Kind != tenon.KindWorkflow && e.Server != "" {
			t.is(e.Server, e.RemoteName, name)
			t.said[[2]string{e.Server, e.RemoteName}] = name
		}
	}
}

// is records that a server has a tool.
func (t *tableTools) is(server, remote, name string) {
	if t.remotes[server] == nil {
		t.remotes[server] = map[string]string{}
	}
	t.remotes[server][remote] = name
}

// has reports whether a tool of a server is known.
func (t *tableTools) has(server, remote string) bool {
	_, ok := t.remotes[server][remote]
	return ok
}

// again says why a row of a known tool is left out. A tool has one name: rules, grants and counts are about the tool,
// and a model that saw it twice would choose between equals.
func (t *tableTools) again(server string, tool *table.Tool) string {
	if as := t.remotes[server][tool.Remote]; as != tool.Name {
		return fmt.Sprintf("tool '%s' of that server is offered as '%s' already, and a tool has one name; the row, "+
			"which names it '%s', is left out", tool.Remote, as, tool.Name)
	}
	return fmt.Sprintf("tool '%s' of that server already exists; the row is left out", tool.Remote)
}

// take adds the tools of a table.
func (t *tableTools) take(ctx context.Context, path, column string, o table.Options) (err error) {
	r, err := table.Open(ctx, path, o)
	if err != nil {
		return err
	}
	defer func() {
		closed := r.Close()
		if err == nil {
			err = closed
		}
	}()
	c, err := r.Column(column)
	if err != nil {
		return err
	}
	t.from, t.path, t.sum, t.took = r, path, sha256.New(), map[table.Kind]int{}
	return t.takeRows(ctx, r, c)
}

// numberedNote is a note with the number of its row.
type numberedNote struct {
	row  int64
	text string
}

// maxRowNotes is the maximum number of notes about the rows of a table.
const maxRowNotes = 20

// takeRows adds the rows of a column, sorted by their content, so that names and digests do not depend on the order
// of the rows. A row that cannot be used is left out with a note. Notes are printed in the order of the rows. If the
// table replaces the configured tools and none of its rows can be used, the error is the first row's error, or invalid.
func (t *tableTools) takeRows(ctx context.Context, r *table.Reader, c table.Column) error {
	var rows []table.ToolRow
	var notes []numberedNote
	at, told, before := int64(0), t.note, t.rows
	t.note = func(format string, args ...any) {
		notes = append(notes, numberedNote{at, fmt.Sprintf(format, args...)})
	}
	defer func() { t.note = told }()
	var bad error // error of the first unusable row
	first := int64(math.MaxInt64)
	leaveOut := func(index int64, err error) {
		t.note("%s; the row is left out", err)
		if index < first {
			first, bad = index, err
		}
	}
	for row, err := range r.Tools(ctx, c) {
		at = row.Index
		switch {
		case err != nil:
			return err
		case row.Err != nil:
			leaveOut(row.Index, row.Err)
		case row.Tool == nil:
			t.missing++
		case len(rows)+t.rows >= maxTableTools:
			return tenon.Errorf(tenon.CodeTooLarge, "%s has more than %d tools", t.path, maxTableTools)
		default:
			rows = append(rows, row)
		}
	}
	t.shared = OrderRows(rows)
	t.twins = twins(rows)
	for _, row := range rows {
		at = row.Index
		err := t.add(row)
		switch {
		case err != nil && !isOfRow(err):
			return err
		case err != nil:
			leaveOut(row.Index, err)
		}
	}
	slices.SortStableFunc(notes, func(a, b numberedNote) int { return cmp.Compare(a.row, b.row) })
	if bad != nil && t.rows == before && t.at == nil {
		return bad
	}
	for i, n := range notes {
		if i == maxRowNotes && len(notes) > maxRowNotes+1 && t.at == nil {
			told("%s: there are %d more warnings; tenon tables check shows the flaws of all rows", t.path,
				len(notes)-i)
			break
		}
		told("%s", n.text)
	}
	if t.rows == before && t.at == nil {
		return tenon.Errorf(tenon.CodeInvalid, "%s: %s, so that there is no tool to offer", t.path,
			t.unused(len(notes)))
	}
	return nil
}

// unused says why a table has no row that can be used.
func (t *tableTools) unused(left int) string {
	switch {
	case left > 0:
		return "no row can be used"
	case t.missing > 0:
		return "no row has a tool (" + strconv.Itoa(t.missing) + " missing)"
	}
	return "it has no rows"
}

// label returns the name of a server for people and models. The name of a server that only a table names may contain
// a digest, so label returns its address instead.
func (t *tableTools) label(server string, address table.Address) string {
	u, err := url.Parse(address.URL)
	if err != nil || u.Host == "" || slices.Contains(t.own, server) || strings.ContainsAny(u.Host+u.Path, "()") {
		return server
	}
	return strings.TrimSuffix(u.Host+u.Path, "/")
}

// isOfRow reports whether an error concerns only one row, so that the other rows can be used.
func isOfRow(err error) bool {
	switch tenon.ErrorCode(err) {
	case tenon.CodeInvalid, tenon.CodeDenied, tenon.CodeNotFound, tenon.CodeConfig, tenon.CodeConflict,
		tenon.CodeTooLarge:
		return true
	}
	return false
}

// twins returns the names that several of the rows' MCP tools have.
func twins(rows []table.ToolRow) map[string]bool {
	seen, twins := map[string]string{}, map[string]bool{}
	for _, row := range rows {
		t := row.Tool
		if t.Kind != table.MCP {
			continue
		}
		key := t.Server + "\x00" + t.Credential
		other, ok := seen[t.Name]
		if ok && other != key {
			twins[t.Name] = true
		}
		seen[t.Name] = key
	}
	return twins
}

// digest returns a digest of the tools of the table.
func (t *tableTools) digest() string { return hex.EncodeToString(t.sum.Sum(nil)) }

// OrderRows sorts rows by their content only. Of several rows for one tool, the row with the tool's own name comes
// first. It returns the names that several servers with different targets would have; see [ServerName].
func OrderRows(rows []table.ToolRow) (shared map[string]bool) {
	slices.SortStableFunc(rows, func(a, b table.ToolRow) int {
		x, y := a.Tool, b.Tool
		return cmp.Or(cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Server, y.Server),
			cmp.Compare(x.Credential, y.Credential), cmp.Compare(x.Remote, y.Remote),
			compareTrue(x.Name == x.Remote, y.Name == y.Remote), slices.Compare(parts(x), parts(y)))
	})
	return sharedNames(rows)
}

// compareTrue sorts true before false.
func compareTrue(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// parts returns the content of a row, which distinguishes it from other rows.
func parts(tool *table.Tool) []string {
	ports, _ := json.Marshal([]any{tool.Inputs, tool.Outputs, tool.Message}) // strings and a number
	return []string{tool.Kind.String(), tool.Name, tool.Description, tool.Parameters, string(ports), tool.Keys,
		tool.Server, tool.Remote, tool.Credential}
}

// know adds the content of a row to the digest.
func (t *tableTools) know(tool *table.Tool) {
	for _, part := range parts(tool) {
		fmt.Fprintf(t.sum, "%d:%s", len(part), part)
	}
}

func (t *tableTools) add(row table.ToolRow) error {
	tool := row.Tool
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

// taken counts an added tool.
func (t *tableTools) taken(row table.ToolRow) {
	t.took[row.Tool.Kind]++
	t.rows++
}

// put adds a tool under a name that models accept.
func (t *tableTools) put(row table.ToolRow, e catalog.Tool) {
	name := t.names.Make(row.Tool.Name)
	var alone catalog.ToolNames
	if row.Tool.Kind == table.MCP && name != alone.Make(row.Tool.Name) {
		address, _ := row.Tool.Address()                                            // it was parsed before
		e.Description = table.WithServer(e.Description, t.label(e.Server, address)) // another tool has the name
	}
	e.Loose = true
	t.entries[name] = e
	t.place("tools." + name)
	t.taken(row)
}

// place records the origin of the entry at a path, if a file names the table.
func (t *tableTools) place(path string) {
	if t.at == nil {
		return
	}
	if t.c.rows == nil {
		t.c.rows = map[string]*tree.Node{}
	}
	t.c.rows[path] = t.at
}

// addRemote adds a tool of an MCP server.
func (t *tableTools) addRemote(row table.ToolRow) error {
	tool := row.Tool
	schema, err := tool.Schema()
	if err != nil {
		return err
	}
	address, err := tool.Address()
	if err != nil {
		return err
	}
	if _, left := t.c.RowServer(tool, address); left != "" {
		t.note("%s: %s: %s; the row is left out", t.path, row.Place(), left)
		return nil
	}
	server, err := t.server(row)
	if err != nil {
		return err
	}
	discovered := slices.Contains(t.own, server) && t.c.Servers[server].LoadsTools()
	e := catalog.Tool{Server: server, RemoteName: tool.Remote, Description: tool.Description, Schema: schema,
		ArgumentsMode: catalog.ArgumentsReplace}
	if name, ok := t.said[[2]string{server, tool.Remote}]; ok {
		if !discovered {
			t.complete(name, e)
		}
		delete(t.said, [2]string{server, tool.Remote})
		t.is(server, tool.Remote, name)
		t.taken(row)
		return nil
	}
	if t.has(server, tool.Remote) {
		t.note("%s: %s: %s", t.path, row.Place(), t.again(server, tool))
		return nil
	}
	name := tool.Name
	if discovered {
		name = tool.Remote
	}
	t.is(server, tool.Remote, name)
	if t.twins[tool.Name] {
		e.Description = table.WithServer(e.Description, t.label(server, address))
	}
	if discovered { // the configuration names and describes the tool
		t.taken(row)
		return nil
	}
	t.put(row, e)
	return nil
}

// complete fills in values of a tool that its entry in the file does not set.
func (t *tableTools) complete(name string, row catalog.Tool) {
	e := t.c.Tools[name]
	e.Description = cmp.Or(e.Description, row.Description)
	if !e.DescribesArguments() {
		e.Schema, e.ArgumentsMode = row.Schema, row.ArgumentsMode
	}
	t.c.Tools[name] = e
}

// addKind adds a tool of kind http, prompt or agent.
func (t *tableTools) addKind(row table.ToolRow) error {
	e, err := t.c.RowTool(row.Tool)
	if err != nil {
		return err
	}
	e = e.WithDefaults(row.Tool.Name)
	if t.has(e.Server, e.RemoteName) {
		t.note("%s: %s: '%s' already exists; the row is left out", t.path, row.Place(), row.Tool.Name)
		return nil
	}
	t.is(e.Server, e.RemoteName, row.Tool.Name)
	t.put(row, e)
	t.agents = t.agents || e.Kind == tenon.KindAgent
	return nil
}

// addWorkflow adds a workflow tool. If its file is missing or contains another program's workflow, addWorkflow prints
// a note and leaves the row out.
func (t *tableTools) addWorkflow(row table.ToolRow) error {
	w, err := RowWorkflow(t.from, row.Tool)
	if e := addPack(t.sum, w.raw); e != nil {
		return e
	}
	if err != nil {
		t.note("%s: %s is left out: %s", t.path, row.Place(), err)
		return nil
	}
	if step, agent := t.c.unknownAgent(w.Workflow); agent != "" {
		t.note("%s: %s is left out: step '%s' asks agent '%s', which the configuration does not have; agents: %s",
			t.path, row.Place(), tenon.Visible(step), tenon.Visible(agent),
			cmp.Or(strings.Join(slices.Sorted(maps.Keys(t.c.Agents)), ", "), "none"))
		return nil
	}
	w.raw = nil
	t.flows[t.names.Make(row.Tool.Name)] = w
	t.taken(row)
	return nil
}

// unknownAgent returns the first step of a workflow whose agent is not configured, or empty texts.
func (c *Config) unknownAgent(w *workflow.Workflow) (step, agent string) {
	for _, s := range w.Steps {
		if _, ok := c.Agents[s.Agent]; !ok && s.Agent != "" && (s.Agent != "default" || len(c.Agents) > 0) {
			return s.ID, s.Agent
		}
	}
	return "", ""
}

// addPack adds the size and the bytes of a pack to a digest. A pack that cannot be read counts as empty.
func addPack(sum io.Writer, pack *io.SectionReader) error {
	if pack == nil {
		_, err := io.WriteString(sum, "0:")
		return err
	}
	fmt.Fprintf(sum, "%d:", pack.Size())
	if _, err := io.Copy(sum, io.NewSectionReader(pack, 0, pack.Size())); err != nil {
		return tenon.Errorf(tenon.CodeStore, "the packed workflow of a table cannot be read: %w", err)
	}
	return nil
}

// counted returns a number with its noun.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
