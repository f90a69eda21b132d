package main

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/servers"
	"github.com/tenonhq/tenon/table"
)

// toolTable is a table whose tools an agent gets in place of those that are
// configured.
type toolTable struct{ path, column string }

func (t *toolTable) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&t.path, "table", "", "offer the tools of this `TABLE`, and no others")
	cmd.Flags().StringVar(&t.column, "tool-column", "", "`COLUMN` of the table that holds the tools (default: the last one that does)")
}

func (t *toolTable) check(cmd *cobra.Command, q *asking, d *detachFlags) error {
	switch {
	case t.path == "" && t.column != "":
		return usage(cmd, "--tool-column needs --table")
	case t.path != "" && q.noTools:
		return usage(cmd, "--table and --no-tools exclude each other")
	case t.path != "" && d.detach:
		return usage(cmd, "--table does not go with --detach: another process opens the servers")
	}
	return nil
}

// apply puts the tools of the table into a configuration; its workflows are returned. Nothing is contacted: a
// server is opened when one of its tools is called.
func (t *toolTable) apply(ctx context.Context, a *app, cfg *config.Config) (flows map[string]host.Workflow, hidden []string, err error) {
	r, err := table.Open(t.path, a.tableOptions(cfg))
	if err != nil {
		return nil, nil, err
	}
	defer closing(r, &err)
	c, err := r.Column(t.column)
	if err != nil {
		return nil, nil, err
	}
	pins := cfg.Policy.Pins
	tools := &tableTools{app: a, from: r, cfg: cfg, path: t.path, names: map[string]bool{}, opened: map[string]string{}, remotes: map[string][]string{}}
	for row, err := range r.Tools(ctx, c) {
		if err != nil {
			return nil, nil, err
		}
		if err := tools.add(ctx, row); err != nil {
			return nil, nil, err
		}
	}
	if len(tools.own) > 0 || len(tools.flows) > 0 || tools.agents {
		cfg.Policy.Pins = pins // a table does not free the configuration's servers of theirs
	}
	return tools.flows, tools.finish(), nil
}

// tableTools collects the tools of a table.
type tableTools struct {
	*app
	from    *table.Reader
	cfg     *config.Config
	path    string
	names   map[string]bool     // as the model sees them
	opened  map[string]string   // address and credential → server
	remotes map[string][]string // server → its tools that the table has
	entries map[string]catalog.Tool
	own     []string // servers of the configuration

	flows  map[string]host.Workflow
	agents bool // it has agents, whose tools those of the configuration are, too

	missing int
}

// maxTableTools bounds what one agent gets; no model takes more.
const maxTableTools = 10_000

func (t *tableTools) add(ctx context.Context, row table.ToolRow) error {
	tool := row.Tool
	switch {
	case tool == nil:
		t.missing++
		return nil
	case len(t.names) >= maxTableTools:
		return tenon.Errorf(tenon.CodeTooLarge, "%s has more than %d tools", t.path, maxTableTools)
	}
	if err := tool.Use(row.Place()); err != nil {
		return err
	}
	if tool.Kind == table.Workflow {
		return t.addWorkflow(row)
	}
	if tool.Kind.IsOwn() {
		return t.addKind(row)
	}
	schema, err := tool.Schema()
	if err != nil {
		return tenon.Errorf(tenon.ErrorCode(err), "%s: %s: %w", t.path, row.Place(), err)
	}
	key := strconv.Quote(tool.Server) + tool.Credential
	server, ok := t.opened[key]
	if !ok {
		if server, err = t.tableServer(ctx, t.cfg, t.path, tool, false); err != nil {
			return tenon.Errorf(tenon.ErrorCode(err), "%s: %s: %w", t.path, row.Place(), err)
		}
		t.opened[key] = server
		if strings.HasPrefix(tool.Server, table.SchemeServer+":") {
			t.own = append(t.own, server)
		}
	}
	if slices.Contains(t.remotes[server], tool.Remote) {
		t.note("%s: %s: tool '%s' of that server is there already; the row is left out", t.path, row.Place(), tool.Remote)
		return nil
	}
	t.remotes[server] = append(t.remotes[server], tool.Remote)
	if slices.Contains(t.own, server) {
		return nil // named and described as it is configured
	}
	if t.entries == nil {
		t.entries = map[string]catalog.Tool{}
	}
	t.entries[t.name(tool.Name)] = catalog.Tool{Server: server, RemoteName: tool.Remote, Description: tool.Description, Schema: schema,
		ArgumentsMode: catalog.ArgumentsReplace}
	return nil
}

// addKind takes a tool of a kind of tenon's own.
func (t *tableTools) addKind(row table.ToolRow) error {
	e, err := rowEntry(t.cfg, row.Tool)
	if err != nil {
		return tenon.Errorf(tenon.ErrorCode(err), "%s: %s: %w", t.path, row.Place(), err)
	}
	e = e.WithDefaults(row.Tool.Name)
	if slices.Contains(t.remotes[e.Server], e.RemoteName) {
		t.note("%s: %s: '%s' is there already; the row is left out", t.path, row.Place(), row.Tool.Name)
		return nil
	}
	t.remotes[e.Server] = append(t.remotes[e.Server], e.RemoteName)
	if t.entries == nil {
		t.entries = map[string]catalog.Tool{}
	}
	t.entries[t.name(row.Tool.Name)] = e
	t.agents = t.agents || e.Kind == tenon.KindAgent
	return nil
}

// addWorkflow takes a workflow tool. One whose file is missing, or that holds another
// program's workflow, is left out and told of.
func (t *tableTools) addWorkflow(row table.ToolRow) error {
	w, err := foreignWorkflow(t.from, row.Tool)
	if err != nil {
		t.note("%s: %s is left out: %s", t.path, row.Place(), err)
		return nil
	}
	if t.flows == nil {
		t.flows = map[string]host.Workflow{}
	}
	t.flows[t.name(row.Tool.Name)] = w
	return nil
}

// maxToolName is what every provider takes.
const maxToolName = 64

// name makes a name that models take; equal ones get a number.
func (t *tableTools) name(s string) string {
	base := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, s)
	if base == "" || base[0] != '_' && (base[0] < 'A' || base[0] > 'Z') && (base[0] < 'a' || base[0] > 'z') {
		base = "_" + base
	}
	base = base[:min(len(base), maxToolName)]
	name := base
	for n := 1; t.names[name]; n++ {
		end := "_" + strconv.Itoa(n)
		name = base[:min(len(base), maxToolName-len(end))] + end
	}
	t.names[name] = true
	return name
}

// finish leaves in the configuration what the table names. The other servers stay for the
// steps of its workflows and for its agents, if it has any, and are returned.
func (t *tableTools) finish() (hidden []string) {
	if t.missing > 0 {
		n := len(t.flows)
		for _, list := range t.remotes {
			n += len(list)
		}
		t.note("%s: %s (%d missing skipped)", t.path, plural(n, "tool"), t.missing)
	}
	kept := map[string]servers.Config{}
	no := false
	for server, remotes := range t.remotes {
		entry, ok := t.cfg.Servers[server]
		if !ok {
			continue // of a kind that has no server
		}
		if slices.Contains(t.own, server) {
			entry.Include = escaped(remotes)
		} else {
			entry.LoadTools = &no
		}
		kept[server] = entry
	}
	if len(t.flows) > 0 || t.agents {
		for server, entry := range t.cfg.Servers {
			if _, ok := kept[server]; !ok {
				kept[server] = entry
				hidden = append(hidden, server)
			}
		}
	}
	entries := maps.Clone(t.cfg.Tools)
	maps.DeleteFunc(entries, func(name string, e catalog.Tool) bool {
		e = e.WithDefaults(name)
		return !slices.Contains(hidden, e.Server) && (!slices.Contains(t.own, e.Server) || !slices.Contains(t.remotes[e.Server], e.RemoteName))
	})
	t.cfg.Servers, t.cfg.Tools = kept, entries
	t.cfg.SetTools(t.entries)
	return hidden
}

// escaped makes globs that match nothing but the names.
func escaped(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(n)
	}
	return out
}
