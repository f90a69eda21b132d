package cli

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/servers"
	"github.com/tenonhq/tenon/table"
	"github.com/tenonhq/tenon/trust"
)

// tools list --out writes tools as rows of a table. tools list --table and tools call --table read such a table.

// tabled is a tool of a table in the output of tools list.
type tabled struct {
	Row         int64           `json:"row"`
	ID          string          `json:"row_id"`
	Name        string          `json:"name"`
	Kind        string          `json:"kind"`
	Description string          `json:"description"`
	Input       json.RawMessage `json:"input_schema"`
	Server      string          `json:"server_uri,omitempty"`
	Remote      string          `json:"remote_name,omitempty"`
	Credential  string          `json:"credential,omitempty"`
	Inputs      []table.Port    `json:"inputs,omitempty"`
	Outputs     []table.Port    `json:"outputs,omitempty"`
}

// listTable lists the tools of a table. It contacts no server.
func (a *app) listTable(ctx context.Context, path, column string) error {
	return a.readTable(ctx, path, false, func(_ *config.Config, r *table.Reader) error {
		c, err := r.Column(column)
		if err != nil {
			return err
		}
		var list []tabled
		missing, notes := 0, rowNotes{app: a, table: r.Name()}
		for row, err := range r.Tools(ctx, c) {
			if err != nil {
				return err
			}
			if err := row.Flaw(); err != nil {
				notes.add(row, err)
				continue
			}
			t := row.Tool
			if t == nil {
				missing++
				continue
			}
			schema, err := t.Schema()
			if err != nil {
				return err
			}
			list = append(list, tabled{Row: row.Index, ID: row.ID, Name: t.Name,
				Kind: strings.ToLower(t.Kind.String()), Description: t.Description,
				Input: schema, Server: t.Server, Remote: t.Remote, Credential: t.Credential, Inputs: t.Inputs,
				Outputs: t.Outputs})
		}
		if err := notes.end(len(list)); err != nil {
			return err
		}
		err = printList(a, list, []string{"row", "name", "kind", "server", "description"}, func(t tabled) []string {
			return []string{strconv.FormatInt(t.Row, 10), t.Name, t.Kind,
				withCredential(t.Server, t.Credential), about(t.Description)}
		})
		if err == nil && missing > 0 {
			a.note("%s (%d missing skipped)", plural(len(list), "tool"), missing)
		}
		return err
	})
}

// noteSecrets prints the rows of a valid table whose tools send a secret, and the address that gets it. It reads the
// table again, so that a table from stdin has no such notes.
func (a *app) noteSecrets(ctx context.Context, path string) error {
	if path == "-" {
		return nil
	}
	return a.readTable(ctx, path, true, func(_ *config.Config, r *table.Reader) error {
		c, err := r.Column("")
		if err != nil {
			return nil // a table without tools
		}
		rows, kinds := map[string]int{}, []string{}
		for row, err := range r.Tools(ctx, c) {
			switch {
			case err != nil:
				return err
			case row.Tool == nil || row.Tool.Credential == "":
				continue
			}
			to := row.Tool.Server + " gets the secret " + row.Tool.Credential
			if rows[to]++; rows[to] == 1 {
				kinds = append(kinds, to)
			}
		}
		for i, to := range kinds {
			if i == maxRowNotes {
				a.note("%s: %s more", r.Name(), strconv.Itoa(len(kinds)-i))
				break
			}
			a.note("%s: %s (%s)", r.Name(), safeLine(to), plural(rows[to], "row"))
		}
		return nil
	})
}

// withCredential returns an address with the name of the secret that it would get.
func withCredential(address, credential string) string {
	if credential == "" {
		return address
	}
	return address + " (with the secret " + credential + ")"
}

// rowNotes reports the rows of a table that are left out.
type rowNotes struct {
	*app
	table string
	first error
	count int
}

// maxRowNotes bounds the notes about a table's rows.
const maxRowNotes = 20

func (n *rowNotes) add(row table.ToolRow, err error) {
	text := err.Error()
	if !strings.Contains(text, row.Place()) {
		text = row.Place() + ": " + text
	}
	if !strings.HasPrefix(text, n.table) {
		text = n.table + ": " + text
	}
	if n.count == 0 {
		n.first = tenon.Errorf(tenon.ErrorCode(err), "%s", text)
	}
	if n.count++; n.count <= maxRowNotes {
		n.note("%s; the row is left out", safeLine(text))
	}
}

// end reports the number of further rows. If no row of the table can be used, it returns the error of the first one.
func (n *rowNotes) end(used int) error {
	if n.count > maxRowNotes {
		n.note("%s: %s more left out; tenon tables check shows the flaws of all rows", n.table,
			plural(n.count-maxRowNotes, "row"))
	}
	if used == 0 {
		return n.first
	}
	return nil
}

// writeTools writes a table of the tools that servers offer, and of the configuration's tools of other kinds.
func (a *app) writeTools(ctx context.Context, h *host.Host, snapshot *catalog.Snapshot, out *tableOut) error {
	cfg := h.Service().Info().Config
	o, err := out.options(a, cfg)
	if err != nil {
		return err
	}
	tools := snapshot.Tools()
	rows := make([]table.Row, 0, len(tools))
	origins, owners := map[string]origin{}, map[int]string{}
	foreign, renamed := 0, 0
	for _, t := range tools {
		if t.KindName() != tenon.KindMCP {
			row, why, err := kindRow(ctx, h, t)
			if row.Pack != nil && out.out == "-" {
				why = "the files of workflows do not fit a stream; name a file"
			}
			switch {
			case err != nil:
				return err
			case why != "":
				a.note("tool '%s' is left out: %s", t.Name, why)
				continue
			case row.Tool.Kind.IsOwn():
				a.noteUncallable(row.Tool)
				foreign++
			}
			row.ID = "Row" + strconv.Itoa(len(rows))
			rows = append(rows, row)
			continue
		}
		entry, ok := cfg.Servers[t.Server]
		if !ok {
			a.note("tool '%s' is left out: it is not a tool of an MCP server but of %s", t.Name, t.Server)
			continue
		}
		from, known := origins[t.Server]
		if !known {
			if from, err = a.origin(cfg, t.Server, entry.WithDefaults()); err != nil {
				return err
			}
			origins[t.Server] = from
		}
		if from.foreign {
			foreign++
		}
		name := rowName(t, entry.Naming)
		if name != t.Remote {
			renamed++
		}
		owners[len(rows)] = t.Server
		rows = append(rows, table.Row{ID: "Row" + strconv.Itoa(len(rows)), Tool: &table.Tool{Kind: table.MCP,
			Name: name, Description: t.Description,
			Parameters: string(t.Input), Message: -1, Remote: t.Remote, Server: from.address,
			Credential: from.credential}})
	}
	nameServers(rows, owners)
	if renamed > 0 {
		a.hint("%s with a name of the configuration: tenon calls the server's name, which server_uri contains; a "+
			"program that calls the name in field 1 cannot call them", plural(renamed, "tool"))
	}
	if len(rows) == 0 {
		a.note("No tools found on MCP server")
	}
	if foreign > 0 {
		a.hint("%s of servers that start as a command, or of kinds that only tenon has: tenon can call them, "+
			"KNIME cannot", plural(foreign, "tool"))
	}
	if err := table.WriteTools(ctx, out.out, rows, o); err != nil {
		return err
	}
	return a.wrote(out.out, int64(len(rows)))
}

// rowName returns the name of a tool in a table. It is the server's name for the tool, because other programs call it
// by this name, unless the configuration gives the tool another name. Names that tenon only made fit for models, or
// distinct, are made again by each reader.
func rowName(t *tenon.Tool, naming catalog.Naming) string {
	wanted := cmp.Or(t.Rules.Wanted, t.Name)
	var names, remotes catalog.ToolNames
	if wanted == t.Remote || wanted == naming.Fit(t.Remote) || names.Make(wanted) == remotes.Make(t.Remote) {
		return t.Remote
	}
	return wanted
}

// nameServers adds the server to the descriptions of tools that have the same name. servers maps the indexes of rows to
// servers.
func nameServers(rows []table.Row, servers map[int]string) {
	count := map[string]int{}
	for i := range servers {
		count[rows[i].Tool.Name]++
	}
	for i, server := range servers {
		if t := rows[i].Tool; count[t.Name] > 1 {
			t.Description = table.WithServer(t.Description, server)
		}
	}
}

// callTable holds the flags of a call of a table's tool.
type callTable struct {
	path, column, row string
	yes               bool
	ports
}

func (c *callTable) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&c.path, "table", "", "call a tool of this `TABLE`, by its name or by --row")
	f.StringVar(&c.column, "tool-column", "", "`COLUMN` of the table that holds the tools (default: the last one "+
		"that does)")
	f.StringVar(&c.row, "row", "", "`INDEX` of the tool's row, the first is 0")
	f.BoolVar(&c.yes, "yes", false, "agree to the command or secret that the table names for the tool's server "+
		"(this is remembered), and to all questions of a workflow's steps")
	c.ports.flags(f)
}

// pick reads the selected tool, and the workflow if the tool is one.
func (a *app) pick(ctx context.Context, cfg *config.Config, c *callTable, name string) (t *table.Tool,
	w host.Workflow, err error) {
	if err := neverInPlace([]string{c.path}, portFiles(c.out)); err != nil {
		return nil, w, err
	}
	r, err := table.Open(ctx, c.path, a.tableOptions(cfg))
	if err != nil {
		return nil, w, err
	}
	defer closing(r, &err)
	col, err := r.Column(c.column)
	if err != nil {
		return nil, w, err
	}
	if c.row != "" {
		index, err := rowIndex(c.row)
		if err != nil {
			return nil, w, err
		}
		t, err = r.Tool(ctx, col, index)
		if err != nil {
			return nil, w, err
		}
	} else {
		var names, unread []string
		for row, err := range r.Tools(ctx, col) {
			if err != nil {
				return nil, w, err
			}
			if row.Tool == nil {
				if row.Err != nil {
					unread = append(unread, row.Err.Error())
				}
				continue
			}
			if row.Tool.Name == name {
				if t != nil {
					return nil, w, tenon.Errorf(tenon.CodeInvalid, "%s has more than one tool '%s'; give the row: "+
						"tenon tools list --table %s shows it", c.path, name, c.path)
				}
				t = row.Tool
				if err := t.Use(row.Place()); err != nil {
					return nil, w, err
				}
			}
			names = append(names, row.Tool.Name)
		}
		if t == nil {
			return nil, w, tenon.Errorf(tenon.CodeNotFound, "there is no tool '%s' in %s%s", name, c.path,
				didYouMean(name, names)+rowsUnread(unread))
		}
	}
	if t.Kind == table.Workflow {
		w, err = foreignWorkflow(r, t)
	}
	return t, w, err
}

// rowsUnread is the end of an error about a tool that a table with such rows does not have.
func rowsUnread(errs []string) string {
	if len(errs) == 0 {
		return ""
	}
	return "; " + plural(len(errs), "row") + " cannot be read: " + errs[0]
}

// agreeItem asks before tenon starts a command that a table names, or sends a secret to an address that a table names.
// The agreement is remembered for this item and this version of the table.
func (a *app) agreeItem(ctx context.Context, path string, item trust.Item, yes bool) error {
	names, shown := "a command that the table "+path+" names", safeLine(item.Text)
	if item.Kind != itemCommand {
		names = "an address that the table " + path + " names, with a secret of yours"
	}
	p, store := tableProject(path), a.trustStore()
	r, err := store.Lookup(p)
	if err != nil {
		return err
	}
	switch {
	case r != nil && slices.Contains(r.Items, item):
		return nil
	case yes:
	case !a.canAsk():
		return tenon.Errorf(tenon.CodeWaiting, "the tool's server is %s, and nobody has agreed yet to %s; look at it, "+
			"then agree on a terminal, or call it once yourself: tenon tools call --table %s --row N --yes", names,
			shown, path)
	default:
		a.note("the tool's server is %s. It would", safeLine(names))
		a.note("  %s", shown)
		ok, err := a.yesOrNo(ctx, "Agree? [y]es / [n]o: ")
		if err != nil {
			return err
		}
		if !ok {
			return tenon.Errorf(tenon.CodeDenied, "nobody agreed to %s", shown)
		}
	}
	_, err = store.Grant(p, []trust.Item{item}, time.Now())
	return err
}

// tablePrefix is the prefix of the path in a record about a table.
const tablePrefix = "table:"

// tableProject identifies a table by its bytes in the record of agreements. If the bytes are not known, as for a pipe,
// it has no path and nothing is remembered.
func tableProject(path string) trust.Project {
	st, err := os.Stat(path)
	if path == "-" || err != nil || !st.Mode().IsRegular() {
		return trust.Project{}
	}
	f, err := os.Open(path)
	if err != nil {
		return trust.Project{}
	}
	defer f.Close() //nolint:errcheck
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	if err != nil {
		return trust.Project{}
	}
	digest := hex.EncodeToString(sum.Sum(nil))
	return trust.Project{Path: tablePrefix + digest,
		Files: map[string]trust.File{filepath.Base(path): {Digest: digest, Size: n}}}
}

// call calls the tool. It opens only the tool's server.
func (c *callTable) call(ctx context.Context, a *app, o opening, name string, params callArguments) (err error) {
	cfg, err := a.load(ctx, nil)
	if err != nil {
		return err
	}
	if err := a.requireTrust(ctx, cfg); err != nil {
		return err
	}
	a.from = &toolTable{path: c.path, column: c.column}
	t, w, err := a.pick(ctx, cfg, c, name)
	if err != nil {
		return err
	}
	if t.Kind == table.Workflow {
		return c.callWorkflow(ctx, a, o, cfg, w, params)
	}
	if c.given() {
		return tenon.Errorf(tenon.CodeInvalid, "tool '%s' is not a workflow; only workflows accept --in "+
			"and --debug", t.Name)
	}
	if _, err := c.resultFile(); err != nil {
		return err
	}
	if t.Kind.IsOwn() {
		return c.callKind(ctx, a, o, cfg, t, params)
	}
	server, own, err := cfg.TableServer(c.path, t)
	if err != nil {
		return err
	}
	if !own || !hasEntry(cfg, server, t.Remote) {
		if err := fitsRow(t, params); err != nil {
			return plain{err}
		}
	}
	if !own {
		if item, ok := tableItems(cfg)[server]; ok {
			if err := a.agreeItem(ctx, c.path, item, c.yes); err != nil {
				return err
			}
			a.agreed = map[string]bool{c.path + " " + item.Text: true}
		}
	}
	only := map[string]servers.Config{server: cfg.Servers[server]}
	if !own {
		cfg.Tools = nil // the entries are for configured servers
	}
	cfg.Servers = only
	cfg.DropTables() // a workflow in them could have the tool's name
	o.loaded = cfg
	h, err := a.open(ctx, o)
	if err != nil {
		return err
	}
	defer closing(h, &err)
	snapshot, problems, err := h.Tools().Snapshot(ctx, server)
	if err != nil {
		return err
	}
	if len(problems) > 0 && len(snapshot.Tools()) == 0 {
		return plain{problems[0].Err}
	}
	exposed := ""
	for _, o := range snapshot.Tools() {
		if o.Remote == t.Remote {
			exposed = o.Name
		}
	}
	if exposed == "" {
		return tenon.Errorf(tenon.CodeNotFound, "Failed to execute tool: %s: server '%s' has no tool '%s'; its "+
			"tools: %s", t.Name, server, t.Remote, strings.Join(snapshot.Names(), ", "))
	}
	run, err := h.Tools().Start(ctx, host.ToolCall{Name: exposed, Arguments: params.raw, Words: params.words,
		Table: a.from.kept()})
	if err != nil {
		return plain{err}
	}
	return c.follow(ctx, a, h, cfg, t.Name, run.ID)
}

// follow waits for the result of a started call and prints it.
func (c *callTable) follow(ctx context.Context, a *app, h *host.Host, cfg *config.Config, name, run string) error {
	result, err := a.followCall(ctx, h, name, run)
	if err != nil {
		return direct{err}
	}
	return a.showResult(ctx, cfg, name, result, &c.ports)
}

// callWorkflow calls a workflow of the table. Its steps may call tools of configured servers.
func (c *callTable) callWorkflow(ctx context.Context, a *app, o opening, cfg *config.Config, w host.Workflow,
	params callArguments) (err error) {
	name := w.Name
	for n := 1; cfg.Tools[name].Kind == tenon.KindWorkflow || cfg.HasTableWorkflow(name); n++ {
		name = w.Name + "_" + strconv.Itoa(n)
	}
	o.loaded, o.workflows = cfg, map[string]host.Workflow{name: w}
	h, err := a.open(ctx, o)
	if err != nil {
		return err
	}
	defer closing(h, &err)
	snapshot, _, err := h.Tools().Snapshot(ctx, catalog.WorkflowServer)
	if err != nil {
		return err
	}
	for _, t := range snapshot.Tools() {
		if t.Remote == name {
			return a.callWorkflow(ctx, h, w.Workflow, host.ToolCall{Name: t.Name, Arguments: params.raw,
				Words: params.words, Server: catalog.WorkflowServer, Table: a.from.kept()}, &c.ports, c.yes)
		}
	}
	return tenon.Errorf(tenon.CodeInternal, "workflow '%s' is not among the tools", name)
}
