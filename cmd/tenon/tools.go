package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/table"
)

func newTools(a *app) *cobra.Command {
	cmd := group("tools", "Tools of the servers: list, show, call, search, lint, add, remove", "tool")
	cmd.AddCommand(remotely(newToolsList(a)), remotely(newToolsShow(a)), remotely(newToolsCall(a)), newToolsAdd(a), newToolsRemove(a), newToolsLint(a), newToolsSearch(a), newToolsPins(a))
	return cmd
}

const adhocHelp = "The servers are those of the configuration, or one that is given here: by --url, or by a command behind --.\n" +
	"A command gets PATH, HOME, USER, LANG and TMPDIR of our environment and no other variable."

// listedTool is a tool as tools list prints it.
type listedTool struct {
	tenon.Tool
	Kind     string   `json:"kind"`
	Tokens   int      `json:"tokens,omitempty"`
	Notes    []string `json:"notes,omitempty"`
	Excluded string   `json:"excluded,omitempty"` // why it is not offered
}

func newToolsList(a *app) *cobra.Command {
	s := &adhoc{}
	var excluded, tokens, simple bool
	var from, column string
	var only []string
	out := &tableOut{}
	cmd := &cobra.Command{
		Use:   "list [--excluded | --tokens] [--server SERVER] [--table TABLE] [--out FILE] [--url URL | -- COMMAND ARGS...]",
		Short: "List the tools that an agent would see",
		Long: "Lists tools under the names that a model sees, with the server, what the server says a tool does, and its\n" +
			"description. --excluded lists those that are left out as well, with the reason, and what was changed about the\n" +
			"others. --tokens shows what each tool costs in a model's context (estimated), and the sum. With --quiet nothing\n" +
			"is printed: status 0 says that there are tools, 1 that there are none. --server lists the tools of that server\n" +
			"alone, under the names that they have without the others, and starts no other.\n\n" +
			"--out writes the tools as an Arrow table, one row a tool: what tenon tables, tools call --table and KNIME read. It\n" +
			"names servers and secrets and holds neither passwords nor variables. --table lists the tools of such a table and\n" +
			"contacts nobody.\n\n" + adhocHelp,
		Example: "  tenon tools list\n  tenon tools list --excluded\n  tenon tools list --server files\n  tenon tools list -- npx -y @modelcontextprotocol/server-everything\n" +
			"  tenon tools list --url https://mcp.example.com/mcp --header \"Authorization: Bearer $TOKEN\"\n" +
			"  tenon tools list --out tools.arrow\n  tenon tools list --table tools.arrow",
		Args: args(0, 0, ""),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if _, err := s.split(cmd, args); err != nil {
				return err
			}
			switch {
			case from != "" && (s.given() || out.out != "" || excluded || tokens || simple || len(only) > 0):
				return usage(cmd, "--table lists a table as it is; it goes with --tool-column alone")
			case from != "":
				return a.listTable(cmd.Context(), from, column)
			case column != "":
				return usage(cmd, "--tool-column needs --table")
			case out.out == "" && (out.layout != "" || out.compress != ""):
				return usage(cmd, "--layout and --compress need --out")
			case out.out != "" && (excluded || tokens):
				return usage(cmd, "--out goes with neither --excluded nor --tokens")
			case s.given() && len(only) > 0:
				return usage(cmd, "--server names a server of the configuration; it does not go with one of the command line")
			}
			if a.remote != "" {
				if s.given() || out.out != "" || excluded || simple || len(only) > 0 {
					return usage(cmd, "--remote lists the tools of the other tenon; it goes with --tokens alone")
				}
				return a.listFar(cmd.Context(), tokens)
			}
			if err := table.CheckLayout(table.Layout(cmp.Or(out.layout, string(table.Seed9)))); err != nil {
				return err // before anything is started
			}
			h, snapshot, err := a.openTools(cmd.Context(), opening{adhoc: s, servers: only, connect: true, live: true, set: func(c *config.Config) {
				for name, entry := range c.Servers {
					if simple {
						entry.Schema.Types = catalog.TypesSimple
						c.Servers[name] = entry
					}
				}
			}})
			if err != nil {
				return err
			}
			defer closing(h, &err)
			if out.out != "" {
				return a.writeTools(cmd.Context(), h, snapshot, out)
			}
			switch {
			case a.quiet && len(snapshot.Tools()) == 0:
				return reported{errors.New("there are no tools")}
			case a.quiet:
				return nil
			case excluded:
				return a.listExcluded(snapshot)
			case tokens:
				return a.listTokens(snapshot)
			}
			return printList(a, listed(snapshot, false), []string{"name", "server", "kind", "description"}, func(t listedTool) []string {
				return []string{t.Name, t.Server, kind(t.Annotations), about(t.Description)}
			})
		},
	}
	s.flags(cmd)
	cmd.Flags().BoolVar(&excluded, "excluded", false, "also what is left out and why, and what was changed")
	cmd.Flags().BoolVar(&tokens, "tokens", false, "what each tool costs in tokens, estimated")
	cmd.Flags().BoolVar(&simple, "simple-types", false, "only parameters that are texts and numbers; tools that need others are left out")
	cmd.Flags().StringArrayVar(&only, "server", nil, "only the tools of this `SERVER`; may be repeated")
	cmd.Flags().StringVar(&from, "table", "", "list the tools of this `TABLE`; - is stdin")
	cmd.Flags().StringVar(&column, "tool-column", "", "`COLUMN` of the table that holds the tools (default: the last one that does)")
	out.flags(cmd, true)
	cmd.MarkFlagsMutuallyExclusive("excluded", "tokens")
	return cmd
}

// listed makes the list of what is offered.
func listed(s *catalog.Snapshot, notes bool) []listedTool {
	list := make([]listedTool, 0, len(s.Tools()))
	for _, t := range s.Tools() {
		l := listedTool{Tool: *t, Kind: t.KindName()}
		if notes {
			for _, step := range s.Explain(t.Server, t.Remote) {
				if note := noteOf(step); note != "" {
					l.Notes = append(l.Notes, note)
				}
			}
		}
		list = append(list, l)
	}
	return list
}

// noteOf says in a line what a step changed.
func noteOf(s catalog.Step) string {
	switch {
	case s.Step == "schema.types" && s.Field == "input_schema":
		return "" // what it hides says the same in fewer words
	case s.Field == "input_schema" || s.Field == "rules":
		return s.Step + ": " + s.Field + " " + shorten(s.After, 200)
	}
	return s.Step + ": " + s.Field + " '" + shorten(s.Before, 80) + "' -> '" + shorten(s.After, 80) + "'"
}

func (a *app) listExcluded(s *catalog.Snapshot) error {
	list := listed(s, true)
	for _, w := range s.Withheld() {
		list = append(list, listedTool{Tool: tenon.Tool{Server: w.Server, Remote: w.Remote}, Kind: "mcp", Excluded: tenon.Visible(w.Reason)})
	}
	return printListAs(a, list, []string{"name", "server", "remote name", "what"}, func(t listedTool) []string {
		if t.Excluded != "" {
			return []string{"-", t.Server, t.Remote, "left out: " + t.Excluded}
		}
		return []string{t.Name, t.Server, t.Remote, strings.Join(t.Notes, "; ")}
	}, a.wrapped)
}

func (a *app) listTokens(s *catalog.Snapshot) error {
	list, total := listed(s, false), 0
	for i := range list {
		list[i].Tokens = catalog.Tokens(&list[i].Tool)
		total += list[i].Tokens
	}
	if a.format == formatJSON {
		return a.printJSON(map[string]any{"tools": list, "servers": s.Bills(), "total": total})
	}
	slices.SortStableFunc(list, func(x, y listedTool) int { return y.Tokens - x.Tokens })
	err := printList(a, list, []string{"tokens", "name", "server", "description"}, func(t listedTool) []string {
		return []string{strconv.Itoa(t.Tokens), t.Name, t.Server, about(t.Description)}
	})
	if err == nil && !a.isJSON() {
		for _, b := range s.Bills() {
			a.hint("%s: %s, about %s", b.Server, plural(b.Tools, "tool"), plural(b.Tokens, "token"))
		}
		a.hint("together about %s in each request", plural(total, "token"))
	}
	return err
}

// openTools opens a host and returns what its servers offer, as tools does.
func (a *app) openTools(ctx context.Context, o opening) (h *host.Host, snapshot *catalog.Snapshot, err error) {
	if h, err = a.open(ctx, o); err != nil {
		return nil, nil, err
	}
	if snapshot, err = a.tools(ctx, h, o.adhoc, o.servers...); err != nil {
		closing(h, &err)
	}
	return h, snapshot, err
}

// tools returns what the servers offer. Servers that cannot be reached are told
// of; where there is no tool at all because of that, it is an error. Names, if given,
// are the servers to ask.
func (a *app) tools(ctx context.Context, h *host.Host, s *adhoc, names ...string) (*catalog.Snapshot, error) {
	snapshot, problems, err := h.Tools(ctx, names...)
	if err != nil {
		return nil, err
	}
	if len(snapshot.Tools()) == 0 && len(problems) > 0 {
		a.problems(problems[:len(problems)-1])
		return nil, s.connectError(problems[len(problems)-1].Err)
	}
	a.problems(problems)
	return snapshot, nil
}

// kind says in a word what a server says that a tool does.
func kind(n tenon.Annotations) string {
	switch {
	case n.IsReadOnly():
		return "read-only"
	case n.IsDestructive() && n.Destructive == nil:
		return "" // nothing is said, which counts as destructive
	case n.IsDestructive():
		return "destructive"
	}
	return "changes"
}

// about is the first line of what a tool is said to do. A workflow with tables is described
// to models as a mapping, whose first value that is.
func about(description string) string {
	line := firstLine(description)
	if value, ok := strings.CutPrefix(line, "description: "); ok {
		var text string
		if json.Unmarshal([]byte(value), &text) == nil {
			return firstLine(text)
		}
	}
	return line
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return s
}

func newToolsShow(a *app) *cobra.Command {
	s := &adhoc{}
	var explain bool
	cmd := &cobra.Command{
		Use:   "show NAME [--explain] [--url URL | -- COMMAND ARGS...]",
		Short: "Show one tool with its schemas",
		Long: "Shows a tool's description, what its server says about it, and its input and output schemas. The name is the\n" +
			"one that a model sees, or SERVER.NAME. --explain shows each step from what the server sent to what a model is\n" +
			"told, with the value before and after it; also of a tool that is left out.\n\n" + adhocHelp,
		Example: "  tenon tools show get_weather\n  tenon tools show get_weather --explain\n  tenon tools show echo -o json -- npx -y @modelcontextprotocol/server-everything",
		Args:    args(1, 1, "the tool's name"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if args, err = s.split(cmd, args); err != nil {
				return err
			}
			if a.remote != "" {
				if s.given() {
					return usage(cmd, "a server of the command line does not go with --remote")
				}
				return a.showFar(cmd.Context(), args[0], explain)
			}
			h, snapshot, err := a.openTools(cmd.Context(), opening{adhoc: s, connect: true, live: true})
			if err != nil {
				return err
			}
			defer closing(h, &err)
			t, err := findTool(snapshot, args[0])
			if err != nil {
				if w, ok := findWithheld(snapshot, args[0]); ok && explain {
					return a.explain(snapshot.Explain(w.Server, w.Remote), w.Server, w.Remote, false)
				}
				return err
			}
			switch {
			case explain:
				return a.explain(snapshot.Explain(t.Server, t.Remote), t.Server, t.Remote, true)
			case a.isJSON():
				return a.printJSON(shownTool{Tool: *t, Kind: t.KindName(), Arguments: catalog.Parameters(t), Tokens: catalog.Tokens(t)})
			}
			return a.showTool(t)
		},
	}
	s.flags(cmd)
	cmd.Flags().BoolVar(&explain, "explain", false, "each step of shaping, before and after")
	return cmd
}

// shownTool is a tool as tools show prints it.
type shownTool struct {
	tenon.Tool
	Kind      string              `json:"kind"`
	Arguments []catalog.Parameter `json:"arguments"`
	Tokens    int                 `json:"tokens"`
}

// findWithheld finds a tool that is not offered, by its remote name or as
// SERVER.REMOTE.
func findWithheld(snapshot *catalog.Snapshot, name string) (catalog.Withheld, bool) {
	for _, w := range snapshot.Withheld() {
		if w.Remote == name || w.Server+"."+w.Remote == name {
			return w, true
		}
	}
	return catalog.Withheld{}, false
}

// explain prints the way of a tool, which may be left out.
func (a *app) explain(steps []catalog.Step, server, remote string, offered bool) error {
	if a.isJSON() {
		if steps == nil {
			steps = []catalog.Step{}
		}
		return a.printJSON(map[string]any{"server": server, "remote_name": remote, "offered": offered, "steps": steps})
	}
	if len(steps) == 0 {
		return a.printText(fmt.Sprintf("%s.%s reaches the model as the server sent it", safeLine(server), safeLine(remote)))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", a.outStyle(bold, safeLine(server+"."+remote)))
	for _, step := range steps {
		fmt.Fprintf(&b, "%s  %s\n  - %s\n  + %s\n", step.Step, a.outStyle(dim, step.Field), safeLine(step.Before), safeLine(step.After))
	}
	return a.write([]byte(b.String()))
}

// findTool finds a tool by its exposed name, or as SERVER.REMOTE.
func findTool(snapshot *catalog.Snapshot, name string) (*tenon.Tool, error) {
	if t, ok := snapshot.Lookup(name); ok {
		return t, nil
	}
	for _, t := range snapshot.Tools() {
		if t.Server+"."+t.Remote == name {
			return t, nil
		}
	}
	if w, ok := findWithheld(snapshot, name); ok {
		return nil, tenon.Errorf(tenon.CodeNotFound, "the tool '%s' of server '%s' is left out: %s", w.Remote, w.Server, tenon.Visible(w.Reason))
	}
	return nil, tenon.Errorf(tenon.CodeNotFound, "there is no tool '%s'%s", name, didYouMean(name, snapshot.Names()))
}

func (a *app) showTool(t *tenon.Tool) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s\n", a.outStyle(bold, safeLine(t.Name)), a.outStyle(dim, safeLine(t.Server+"."+t.Remote)))
	if k := kind(t.Annotations); k != "" {
		fmt.Fprintf(&b, "%s\n", k)
	}
	if t.Description != "" {
		fmt.Fprintf(&b, "\n%s\n", safeText(strings.TrimSpace(t.Description)))
	}
	for _, schema := range []struct {
		name string
		raw  json.RawMessage
	}{{"input", t.Input}, {"output", t.Output}} {
		var nice bytes.Buffer
		if len(schema.raw) == 0 || json.Indent(&nice, schema.raw, "", "  ") != nil {
			continue
		}
		fmt.Fprintf(&b, "\n%s\n%s\n", a.outStyle(dim, schema.name), safeText(nice.String()))
	}
	return a.write([]byte(b.String()))
}
