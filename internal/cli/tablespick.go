package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/table"
)

func newTablesPick(a *app) *cobra.Command {
	p := &tablePick{app: a}
	cmd := &cobra.Command{
		Use:   "pick TABLE [--where EXPR] [--index N,N-M]... [--kind K]... [--server S]... --out FILE",
		Short: "Write some rows of a table, as they are",
		Long: "Writes the rows that meet all conditions, in their order and with their row ids. A tool column keeps\n" +
			"its type and its layout, and the files of its tools are copied.\n\n" +
			"--where is an expression in the language of policy rules (CEL). Its variables are name, description,\n" +
			"kind (workflow, mcp, http, prompt, agent), remote_name, credential, schema, inputs and outputs of the\n" +
			"row's tool; server with uri, name, host, command and args; tool with the same keys as in a rule;\n" +
			"index, row_id, and row with the plain columns of the row. --server is a glob on the URI, the host or\n" +
			"the name of the server. Repeated values of one flag are alternatives. An index that the table does\n" +
			"not have is an error; a range may end after the last row.\n\n" +
			tablesHelp,
		Example: "  tenon tables pick t.arrow --where 'name.startsWith(\"get_\")' --out u.arrow\n" +
			"  tenon tables pick t.arrow --index 0,3-5 --out u.arrow\n" +
			"  tenon tables pick t.arrow --kind mcp --server api.example.com --out u.arrow\n" +
			"  tenon tables pick sales.arrow --where 'row.amount > 100.0' --out large.arrow",
		Args: args(1, 1, "the table"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case p.to.out == "":
				return usage(cmd, "--out is missing")
			case p.where == "" && len(p.index)+len(p.kinds)+len(p.servers) == 0:
				return usage(cmd, "which rows? Use --where, --index, --kind or --server")
			case p.limit < 0 || p.limit == 0 && cmd.Flags().Changed("limit"):
				return usage(cmd, "--limit is a number of rows above 0")
			}
			return p.run(cmd.Context(), args[0])
		},
	}
	f := cmd.Flags()
	f.StringVar(&p.where, "where", "", "an `EXPR`ession that is true for the rows to write")
	f.StringSliceVar(&p.index, "index", nil, "indexes of rows: `N` or N-M, the first is 0; may be repeated")
	f.StringSliceVar(&p.kinds, "kind", nil, "`KIND` of tools: workflow, mcp, http, prompt, agent, or a number")
	f.StringArrayVar(&p.servers, "server", nil, "`GLOB` on the servers of tools: URI, host or name")
	f.StringVar(&p.column, "tool-column", "", "`COLUMN` with the tools (default: the last such column)")
	f.Int64Var(&p.limit, "limit", 0, "at most `N` rows (default: all)")
	p.to.flags(cmd, true)
	return cmd
}

// tablePick holds the flags of tables pick.
type tablePick struct {
	*app
	where, column         string
	index, kinds, servers []string
	limit                 int64
	to                    tableOut

	ranges    [][2]int64
	condition *policy.Expression
	uses      map[string]bool // variables of the condition
	cells     map[string]bool // keys of row that the condition uses; nil: all
	columns   []pickColumn
	tools     table.Column
	hasTools  bool
	notes     rowNotes
}

// pickColumn is a column that the condition uses, with its key in row.
type pickColumn struct {
	key string
	col table.Column
}

// pickVariables are the variables of --where. Those of the tool are missing in rows without one.
var (
	pickRowVariables  = []string{"index", "row_id", "row"}
	pickToolVariables = []string{"name", "description", "kind", "remote_name", "credential", "schema", "inputs",
		"outputs", "server", "tool"}
)

func (p *tablePick) run(ctx context.Context, path string) error {
	if err := p.compile(); err != nil {
		return err
	}
	return p.readTable(ctx, path, true, func(cfg *config.Config, r *table.Reader) error {
		o, err := p.to.options(p.app, cfg)
		if err != nil {
			return err
		}
		o.Layout = table.Layout(p.to.layout) // "" keeps the layout
		if p.tools, err = r.Column(p.column); err == nil {
			p.hasTools = true
		} else if p.column != "" || p.needsTools() {
			return err
		}
		for key, col := range r.Keys(true) {
			if p.cells == nil || p.cells[key] {
				p.columns = append(p.columns, pickColumn{key, col})
			}
		}
		p.notes = rowNotes{app: p.app, table: r.Name()}
		n, err := table.Pick(ctx, p.to.out, r, table.Selection{Keep: p.keep, Most: p.limit,
			Read: func(rows int64) error { return p.inside(r.Name(), rows) }}, o)
		if err != nil {
			return err
		}
		if p.notes.count > maxRowNotes {
			_ = p.notes.end(1) // the remaining number; never an error
		}
		return p.wrote(p.to.out, n)
	})
}

// compile checks the flags before the table is opened.
func (p *tablePick) compile() error {
	for _, text := range p.index {
		from, to, isRange := strings.Cut(text, "-")
		a, err := strconv.ParseInt(from, 10, 64)
		b := a
		if err == nil && isRange {
			b, err = strconv.ParseInt(to, 10, 64)
		}
		if err != nil || a < 0 || b < a {
			return tenon.Errorf(tenon.CodeInvalid, "--index '%s' is neither an index nor a range such as 3-5; the "+
				"first row is 0", text)
		}
		p.ranges = append(p.ranges, [2]int64{a, b})
	}
	for _, k := range p.kinds {
		if _, err := table.ParseKind(k); err != nil {
			return tenon.Errorf(tenon.CodeInvalid, "--kind: %w", err)
		}
	}
	if p.where == "" {
		return nil
	}
	x, err := policy.NewExpressions(slices.Concat(pickRowVariables, pickToolVariables)...)
	if err != nil {
		return err
	}
	if p.condition, err = x.Condition(p.where); err != nil {
		return tenon.Errorf(tenon.CodeInvalid, "--where: %w", err)
	}
	p.uses, p.cells = map[string]bool{}, map[string]bool{}
	whole := false
	for _, use := range p.condition.Uses() {
		p.uses[use[0]] = true
		switch {
		case use[0] != "row":
		case len(use) == 1:
			whole = true // as in row[KEY] with a computed key
		default:
			p.cells[use[1]] = true
		}
	}
	if whole {
		p.cells = nil
	}
	return nil
}

// cellsOf returns the cells of a row that the condition uses. Most conditions use a few of many columns.
func (p *tablePick) cellsOf(row table.Cells) (map[string]any, error) {
	m := make(map[string]any, len(p.columns)+1)
	m[table.RowID] = row.ID
	for _, c := range p.columns {
		v, ok := row.Plain(c.col)
		if !ok {
			raw, err := row.Value(c.col, true)
			if err == nil {
				v, err = policy.DecodeValue(raw)
			}
			if err != nil {
				return nil, err
			}
		}
		m[c.key] = v
	}
	return m, nil
}

// inside refuses an index that the table does not have. A range may end after the last row.
func (p *tablePick) inside(name string, rows int64) error {
	for i, r := range p.ranges {
		if r[0] < rows {
			continue
		}
		if rows == 0 {
			return tenon.Errorf(tenon.CodeInvalid, "--index %s: %s has no rows", p.index[i], name)
		}
		return tenon.Errorf(tenon.CodeInvalid, "--index %s is outside of the table: %s has %s, with the indexes 0 to "+
			"%d; tenon tables show prints them", p.index[i], name, plural(int(rows), "row"), rows-1)
	}
	return nil
}

// needsTools reports whether a condition is about tools.
func (p *tablePick) needsTools() bool {
	return len(p.kinds)+len(p.servers) > 0 ||
		slices.ContainsFunc(pickToolVariables, func(v string) bool { return p.uses[v] })
}

// keep reports whether a row meets all conditions.
func (p *tablePick) keep(row table.Cells) (bool, error) {
	in := func(r [2]int64) bool { return r[0] <= row.Index && row.Index <= r[1] }
	if len(p.ranges) > 0 && !slices.ContainsFunc(p.ranges, in) {
		return false, nil
	}
	vars := map[string]any{}
	if p.needsTools() {
		t, err := row.Tool(p.tools)
		if err != nil {
			p.notes.add(table.ToolRow{Index: row.Index, ID: row.ID}, err)
			return false, nil
		}
		if t == nil || !p.isKind(t) || !p.isServer(t) {
			return false, nil
		}
		if err := p.describe(vars, t); err != nil {
			return false, err
		}
	}
	if p.condition == nil {
		return true, nil
	}
	if p.uses["row"] {
		cells, err := p.cellsOf(row)
		if err != nil {
			return false, err
		}
		vars["row"] = cells
	}
	vars["index"], vars["row_id"] = row.Index, row.ID
	keep, err := p.condition.Holds(vars)
	if err != nil {
		hint := ""
		if strings.Contains(err.Error(), "no such overload") {
			hint = "; a missing cell is null, and X != null && … leaves it out"
		}
		return false, tenon.Errorf(tenon.CodeInvalid, "--where: row %d ('%s'): %w%s", row.Index,
			tenon.Visible(row.ID), err, hint)
	}
	return keep, nil
}

func (p *tablePick) isKind(t *table.Tool) bool {
	return len(p.kinds) == 0 || slices.ContainsFunc(p.kinds, func(s string) bool {
		k, err := table.ParseKind(s)
		return err == nil && k == t.Kind
	})
}

func (p *tablePick) isServer(t *table.Tool) bool {
	if len(p.servers) == 0 {
		return true
	}
	s, port := serverOf(t), ""
	if u, err := url.Parse(t.Server); err == nil && t.Kind == table.MCP {
		port = u.Host // descriptions name a server by its host and port
	}
	for _, name := range []string{s["uri"].(string), s["host"].(string), port, s["name"].(string)} {
		if name != "" && (catalog.Match(p.servers, name) || slices.Contains(p.servers, name)) {
			return true
		}
	}
	return false
}

// serverOf describes the server of a tool for conditions. Keys that do not apply are empty.
func serverOf(t *table.Tool) map[string]any {
	s := map[string]any{"uri": t.Server, "name": "", "host": "", "command": "", "args": []any{}}
	address, err := t.Address()
	if err != nil || t.Kind != table.MCP {
		return s
	}
	s["name"] = address.Server
	if u, err := url.Parse(address.URL); err == nil {
		s["host"] = u.Hostname()
	}
	if len(address.Command) > 0 {
		list := make([]any, len(address.Command)-1)
		for i, arg := range address.Command[1:] {
			list[i] = arg
		}
		s["command"], s["args"] = address.Command[0], list
	}
	return s
}

// describe sets the variables of a tool that the condition uses.
func (p *tablePick) describe(vars map[string]any, t *table.Tool) error {
	kind, server := strings.ToLower(t.Kind.String()), serverOf(t)
	vars["name"], vars["description"], vars["kind"], vars["server"] = t.Name, t.Description, kind, server
	vars["remote_name"], vars["credential"] = t.Remote, t.Credential
	vars["tool"] = map[string]any{"name": t.Name, "exposed": t.Name, "remote_name": t.Remote, "kind": kind,
		"description": t.Description, "title": "", "server": server["name"], "identity": t.Server,
		"groups": []any{}, "annotations": map[string]any{}}
	for name, value := range map[string]any{"schema": json.RawMessage(t.Parameters), "inputs": t.Inputs,
		"outputs": t.Outputs} {
		if !p.uses[name] {
			continue
		}
		raw, ok := value.(json.RawMessage)
		if ok && !json.Valid(raw) {
			raw = json.RawMessage("{}")
		} else if !ok {
			var err error
			if raw, err = json.Marshal(value); err != nil {
				return fmt.Errorf("tool '%s': %w", t.Name, err)
			}
		}
		var err error
		if vars[name], err = policy.DecodeValue(raw); err != nil {
			return err
		}
	}
	return nil
}
