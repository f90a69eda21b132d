package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/servers"
	"github.com/tenonhq/tenon/table"
)

// Tools as rows: tools list --out makes a table of what servers offer, tools list
// --table and tools call --table read one.

// tabled is a tool of a table as tools list prints it.
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

// listTable lists the tools of a table. Nothing is contacted.
func (a *app) listTable(ctx context.Context, path, column string) error {
	return a.readTable(ctx, path, false, func(_ *config.Config, r *table.Reader) error {
		c, err := r.Column(column)
		if err != nil {
			return err
		}
		var list []tabled
		missing := 0
		for row, err := range r.Tools(ctx, c) {
			if err != nil {
				return err
			}
			t := row.Tool
			if t == nil {
				missing++
				continue
			}
			if err := t.Use(row.Place()); err != nil {
				return err
			}
			schema, err := t.Schema()
			if err != nil {
				return tenon.Errorf(tenon.ErrorCode(err), "%s: %s: %w", r.Name(), row.Place(), err)
			}
			list = append(list, tabled{Row: row.Index, ID: row.ID, Name: t.Name, Kind: strings.ToLower(t.Kind.String()), Description: t.Description,
				Input: schema, Server: t.Server, Remote: t.Remote, Credential: t.Credential, Inputs: t.Inputs, Outputs: t.Outputs})
		}
		err = printList(a, list, []string{"row", "name", "kind", "server", "description"}, func(t tabled) []string {
			return []string{strconv.FormatInt(t.Row, 10), t.Name, t.Kind, t.Server, about(t.Description)}
		})
		if err == nil && missing > 0 {
			a.note("%s (%d missing skipped)", plural(len(list), "tool"), missing)
		}
		return err
	})
}

// writeTools makes a table of what servers offer, and of the tools of other kinds that the
// configuration has.
func (a *app) writeTools(ctx context.Context, h *host.Host, snapshot *catalog.Snapshot, out *tableOut) error {
	cfg := h.Config()
	o, err := out.options(a, cfg)
	if err != nil {
		return err
	}
	tools := snapshot.Tools()
	rows := make([]table.Row, 0, len(tools))
	origins := map[string]origin{}
	foreign := 0
	for _, t := range tools {
		if t.KindName() != tenon.KindMCP {
			row, why, err := kindRow(h, t)
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
				foreign++
			}
			row.ID = "Row" + strconv.Itoa(len(rows))
			rows = append(rows, row)
			continue
		}
		entry, ok := cfg.Servers[t.Server]
		if !ok {
			a.note("tool '%s' is left out: it is not of an MCP server but of %s", t.Name, t.Server)
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
		rows = append(rows, table.Row{ID: "Row" + strconv.Itoa(len(rows)), Tool: &table.Tool{Kind: table.MCP, Name: t.Name, Description: t.Description,
			Parameters: string(t.Input), Message: -1, Remote: t.Remote, Server: from.address, Credential: from.credential}})
	}
	if len(rows) == 0 {
		a.note("No tools found on MCP server")
	}
	if foreign > 0 {
		a.hint("%s of servers that are started as a command, or of kinds of tenon's own: tenon can call them, KNIME cannot", plural(foreign, "tool"))
	}
	if err := table.WriteTools(ctx, out.out, rows, o); err != nil {
		return err
	}
	return a.wrote(out.out, int64(len(rows)))
}

// origin is what a table says of a server, the same for all of its tools.
type origin struct {
	address, credential string
	foreign             bool // KNIME cannot call it
}

func (a *app) origin(cfg *config.Config, server string, entry servers.Config) (o origin, err error) {
	switch {
	case entry.Transport != servers.TransportStdio && fromVariables(cfg.Written("servers."+server+".url"), entry.URL):
		a.note("server '%s' is named as %s: its URL has values of variables in it, which a table must not hold", server, table.ServerURI(server))
		return origin{address: table.ServerURI(server), foreign: true}, nil
	case entry.Transport != servers.TransportStdio:
		o.address = entry.URL
	case cfg.File != "" || cfg.Path != "":
		o.address = table.ServerURI(server)
	default:
		o.address = table.CommandURI(append([]string{entry.Command}, entry.Args...))
	}
	o.foreign = strings.HasPrefix(o.address, table.SchemeServer+":") || strings.HasPrefix(o.address, table.SchemeCommand+":")
	if o.address, err = bare(o.address); err != nil {
		return o, tenon.Errorf(tenon.CodeInvalid, "server '%s': %w", server, err)
	}
	if _, query, ok := strings.Cut(o.address, "?"); ok && query != "" && !o.foreign {
		a.note("server '%s': the table holds its URL with all that stands behind the ?, for everybody who gets the table; a secret in it belongs into a variable", server)
	}
	if entry.Auth.Type != "" && entry.Auth.Type != servers.AuthNone {
		if o.credential = cfg.SecretName("servers." + server + ".auth.secret"); o.credential == "" {
			a.note("server '%s' wants credentials that have no name: a table holds names of secrets alone; put the secret under secrets and name it in servers.%s.auth.secret", server, server)
		}
	}
	return o, nil
}

// fromVariables reports whether an address has values of variables or secrets where tokens
// stand, which is behind its host. Text is how the configuration writes it.
func fromVariables(text, address string) bool {
	behind := text
	if _, after, ok := strings.Cut(text, "://"); ok {
		behind = after
	}
	if i := strings.IndexAny(behind, "/?#"); i >= 0 && strings.Contains(behind[i:], "${") {
		return true
	}
	return strings.Contains(text, "${") && strings.Contains(address, "?")
}

// bare refuses an address with a password in it: tables are passed on.
func bare(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	if _, has := u.User.Password(); has {
		return "", fmt.Errorf("its URL holds a password, which a table must not: use auth with a secret")
	}
	return address, nil
}

// callTable calls the tool of one row.
type callTable struct {
	path, column, row string
	yes               bool
	ports
}

func (c *callTable) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&c.path, "table", "", "call a tool of this `TABLE`, by its name or by --row")
	f.StringVar(&c.column, "tool-column", "", "`COLUMN` of the table that holds the tools (default: the last one that does)")
	f.StringVar(&c.row, "row", "", "`INDEX` of the tool's row, the first is 0")
	f.BoolVar(&c.yes, "yes", false, "agree to the command that the table names as the tool's server, which is remembered, and to all that a workflow's steps ask for")
	c.ports.flags(f)
}

// pick reads the tool that is meant; of a workflow tool the workflow as well.
func (a *app) pick(ctx context.Context, cfg *config.Config, c *callTable, name string) (t *table.Tool, w host.Workflow, err error) {
	r, err := table.Open(c.path, a.tableOptions(cfg))
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
		var names []string
		for row, err := range r.Tools(ctx, col) {
			if err != nil {
				return nil, w, err
			}
			if row.Tool == nil {
				continue
			}
			if row.Tool.Name == name {
				if t != nil {
					return nil, w, tenon.Errorf(tenon.CodeInvalid, "%s has more than one tool '%s'; give the row: tenon tools list --table %s shows it", c.path, name, c.path)
				}
				t = row.Tool
				if err := t.Use(row.Place()); err != nil {
					return nil, w, err
				}
			}
			names = append(names, row.Tool.Name)
		}
		if t == nil {
			return nil, w, tenon.Errorf(tenon.CodeNotFound, "there is no tool '%s' in %s%s", name, c.path, didYouMean(name, names))
		}
	}
	if t.Kind == table.Workflow {
		w, err = foreignWorkflow(r, t)
	}
	return t, w, err
}

// commandWish is the wish of a table to start a command. Its key is the same whatever
// table names the command.
func commandWish(command []string) wish {
	sum := sha256.New()
	for _, p := range append([]string{"table"}, command...) {
		fmt.Fprintf(sum, "%d:%s", len(p), p)
	}
	return wish{key: hex.EncodeToString(sum.Sum(nil)), text: "start " + shellLine(command)}
}

// agreeCommand asks before a command that a table names is started. The agreement is
// remembered for this command, whatever table names it.
func (a *app) agreeCommand(ctx context.Context, path string, command []string, yes bool) error {
	w := commandWish(command)
	text := w.text
	switch {
	case a.readConsent()[w.key]:
		return nil
	case yes:
		return a.writeConsent([]wish{w})
	}
	if !a.canAsk() {
		return tenon.Errorf(tenon.CodeWaiting, "the tool's server is a command that the table %s names, and nobody has agreed yet to %s; look at it, then agree on a terminal, or call it once yourself: tenon tools call --table %s --row N --yes", path, text, path)
	}
	a.note("the tool's server is a command that the table %s names. It would", path)
	a.note("  %s", safeLine(text))
	ok, err := a.yesOrNo(ctx, "Agree? [y]es / [n]o: ")
	switch {
	case err != nil:
		return err
	case !ok:
		return tenon.Errorf(tenon.CodeDenied, "nobody agreed to %s", text)
	}
	return a.writeConsent([]wish{w})
}

// call makes the call. Only the one server is opened.
func (c *callTable) call(ctx context.Context, a *app, o opening, name string, params json.RawMessage) (err error) {
	cfg, err := a.load(ctx, nil)
	if err != nil {
		return err
	}
	t, w, err := a.pick(ctx, cfg, c, name)
	if err != nil {
		return err
	}
	if t.Kind == table.Workflow {
		return c.callWorkflow(ctx, a, o, cfg, w, params)
	}
	if c.given() {
		return tenon.Errorf(tenon.CodeInvalid, "tool '%s' is no workflow: --in and --debug are for those", t.Name)
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
	if entry := cfg.Servers[server]; !own {
		cfg.Policy.Pins = policy.PinsOff // its name is another table's, too
		if entry.InferTransport() == servers.TransportStdio {
			if err := a.agreeCommand(ctx, c.path, append([]string{entry.Command}, entry.Args...), c.yes); err != nil {
				return err
			}
		}
	}
	only := map[string]servers.Config{server: cfg.Servers[server]}
	if !own {
		cfg.Tools = nil // entries are about servers of the configuration
	}
	cfg.Servers = only
	cfg.DropTables() // a workflow of theirs could have the tool's name
	o.loaded = cfg
	h, err := a.open(ctx, o)
	if err != nil {
		return err
	}
	defer closing(h, &err)
	snapshot, problems, err := h.Tools(ctx, server)
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
		return tenon.Errorf(tenon.CodeNotFound, "Failed to execute tool: %s: server '%s' has no tool '%s'; its tools: %s", t.Name, server, t.Remote, strings.Join(snapshot.Names(), ", "))
	}
	run, err := h.StartCall(ctx, exposed, params)
	if err != nil {
		return plain{err}
	}
	return c.follow(ctx, a, h, cfg, t.Name, run.ID)
}

// follow takes a call that has begun to its end and shows what it gave.
func (c *callTable) follow(ctx context.Context, a *app, h *host.Host, cfg *config.Config, name, run string) error {
	result, err := a.followCall(ctx, h, name, run)
	if err != nil {
		return direct{err}
	}
	return a.showResult(ctx, cfg, name, result, &c.ports)
}

// callWorkflow calls a workflow of the table. Its steps may call the tools of servers
// that are configured.
func (c *callTable) callWorkflow(ctx context.Context, a *app, o opening, cfg *config.Config, w host.Workflow, params json.RawMessage) (err error) {
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
	snapshot, _, err := h.Tools(ctx, catalog.WorkflowServer)
	if err != nil {
		return err
	}
	for _, t := range snapshot.Tools() {
		if t.Remote == name {
			return a.callWorkflow(ctx, h, w.Workflow, host.ToolCall{Name: t.Name, Arguments: params, Server: catalog.WorkflowServer}, &c.ports, c.yes)
		}
	}
	return tenon.Errorf(tenon.CodeInternal, "workflow '%s' is not among the tools", name)
}
