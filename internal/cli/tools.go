package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/table"
)

func newTools(a *app) *cobra.Command {
	cmd := group("tools", "Tools of the servers: list, show, call, search, lint, add, remove", "tool")
	cmd.AddCommand(remotely(newToolsList(a)), remotely(newToolsShow(a)), remotely(newToolsCall(a)), newToolsAdd(a),
		newToolsRemove(a), newToolsLint(a), newToolsSearch(a), newToolsPins(a))
	return cmd
}

const adhocHelp = "The servers are the configured ones, or one that is given here: by --url, or by a command " +
	"behind --.\n" +
	"A command gets only PATH, HOME, USER, LANG and TMPDIR from the environment."

// listedTool is a tool in the output of tools list.
type listedTool struct {
	tenon.Tool
	Kind     string   `json:"kind"`
	Tokens   int      `json:"tokens,omitempty"`
	Notes    []string `json:"notes,omitempty"`
	Excluded string   `json:"excluded,omitempty"` // why it is not offered
}

// toolsList are the flags of tenon tools list.
type toolsList struct {
	adhoc *adhoc
	out   *tableOut

	excluded, tokens, simple, static, connect bool

	from, column string // --table and --tool-column
	only         []string
}

func newToolsList(a *app) *cobra.Command {
	l := &toolsList{adhoc: &adhoc{}, out: &tableOut{}}
	cmd := &cobra.Command{
		Use: "list [--excluded | --tokens] [--server SERVER] [--table TABLE] [--out FILE] [--url URL | -- COMMAND " +
			"ARGS...]",
		Short: "List the tools that an agent would see",
		Long: "Lists tools under the names that a model sees, with the server, the hints of the server (such as\n" +
			"read-only) and the description. --excluded also lists tools that are left out, with the reason,\n" +
			"and changes to the others. --tokens shows the estimated cost of each tool in a model's context,\n" +
			"and the sum. With --quiet nothing is printed: status 0 means that there are tools, 1 that there\n" +
			"are none. --server lists only the tools of one server, under the names that they have without the\n" +
			"other servers, and starts only that server.\n\n" +
			"Servers that were listed before are not started: --connect asks them again. One that was never listed\n" +
			"is waited for up to its limit, which servers.NAME.timeout sets; Ctrl-C ends the wait.\n\n" + unlistedHelp +
			"--out writes the tools as an Arrow table with one row for each tool, for tenon tables, tools call\n" +
			"--table and KNIME. The table names servers and secrets, and holds neither passwords nor variables.\n" +
			"--table lists the tools of such a table and contacts no server.\n\n" +
			adhocHelp,
		Example: "  tenon tools list\n  tenon tools list --excluded\n  tenon tools list --server files\n  tenon " +
			"tools list -- npx -y @modelcontextprotocol/server-everything\n" +
			"  tenon tools list --url https://mcp.example.com/mcp --header \"Authorization: Bearer $TOKEN\"\n" +
			"  tenon tools list --out tools.arrow\n  tenon tools list --table tools.arrow",
		Args: args(0, 0, ""),
		RunE: func(cmd *cobra.Command, args []string) error { return l.run(a, cmd, args) },
	}
	l.adhoc.flags(cmd)
	cmd.Flags().BoolVar(&l.excluded, "excluded", false, "also list tools that are left out and why, and changes")
	cmd.Flags().BoolVar(&l.tokens, "tokens", false, "show the estimated tokens of each tool")
	cmd.Flags().BoolVar(&l.static, "no-connect", false, "list only tools that the configuration describes; "+
		"start nothing")
	cmd.Flags().BoolVar(&l.connect, "connect", false, "ask the servers, instead of showing what they listed last")
	cmd.Flags().BoolVar(&l.simple, "simple-types", false, "only parameters that are texts and numbers; tools "+
		"that require others are left out")
	cmd.Flags().StringArrayVar(&l.only, "server", nil, "only the tools of this `SERVER`; may be repeated")
	cmd.Flags().StringVar(&l.from, "table", "", "list the tools of this `TABLE`; - is stdin")
	cmd.Flags().StringVar(&l.column, "tool-column", "", "`COLUMN` of the table that holds the tools (default: the "+
		"last one that does)")
	l.out.flags(cmd, true)
	cmd.MarkFlagsMutuallyExclusive("excluded", "tokens")
	cmd.MarkFlagsMutuallyExclusive("no-connect", "connect")
	cmd.MarkFlagsMutuallyExclusive("no-connect", "out")
	cmd.MarkFlagsMutuallyExclusive("no-connect", "table")
	return cmd
}

// check returns an error if flags contradict each other.
func (l *toolsList) check(cmd *cobra.Command) error {
	switch {
	case l.from != "" && (l.adhoc.given() || l.out.out != "" || l.excluded || l.tokens || l.simple || len(l.only) > 0):
		return usage(cmd, "--table lists a table as it is; only --tool-column can be combined with it")
	case l.from != "":
		return nil
	case l.column != "":
		return usage(cmd, "--tool-column needs --table")
	case l.out.out == "" && (l.out.layout != "" || l.out.compress != ""):
		return usage(cmd, "--layout and --compress need --out")
	case l.out.out != "" && (l.excluded || l.tokens):
		return usage(cmd, "--out cannot be combined with --excluded or --tokens")
	case l.adhoc.given() && len(l.only) > 0:
		return usage(cmd, "--server names a configured server; it cannot be combined with a server on "+
			"the command line")
	}
	return nil
}

func (l *toolsList) run(a *app, cmd *cobra.Command, args []string) (err error) {
	if _, err := l.adhoc.split(cmd, args); err != nil {
		return err
	}
	if err := l.check(cmd); err != nil {
		return err
	}
	if l.from != "" {
		return a.listTable(cmd.Context(), l.from, l.column)
	}
	if a.remote != "" {
		if l.adhoc.given() || l.out.out != "" || l.excluded || l.simple || len(l.only) > 0 {
			return usage(cmd, "--remote lists the tools of the other tenon; only --tokens can be "+
				"combined with it")
		}
		return a.listFar(cmd.Context(), l.tokens)
	}
	if err := table.CheckLayout(table.Layout(cmp.Or(l.out.layout, string(table.Seed9)))); err != nil {
		return err // before any server starts
	}
	if l.static {
		return a.listStatic(cmd.Context(), l.only)
	}
	var unbound []listedTool
	asks := l.connect || l.out.out != "" // a table is used later
	h, snapshot, err := a.openTools(cmd.Context(), opening{adhoc: l.adhoc, servers: l.only, connect: true, live: asks,
		withheld: l.excluded, set: func(c *config.Config) {
			unbound = withoutServer(c, l.only)
			for name, entry := range c.Servers {
				if l.simple {
					entry.Schema.Types = catalog.TypesSimple
					c.Servers[name] = entry
				}
			}
		}})
	if err != nil {
		return err
	}
	defer closing(h, &err)
	a.noteAge(h)
	if l.simple && !l.excluded {
		a.noteNotSimple(snapshot)
	}
	if l.out.out != "" {
		return a.writeTools(cmd.Context(), h, snapshot, l.out)
	}
	return l.print(a, h, snapshot, unbound)
}

// print lists the tools of a snapshot. unbound are configured tools without a server.
func (l *toolsList) print(a *app, h *host.Host, snapshot *catalog.Snapshot, unbound []listedTool) error {
	switch {
	case a.quiet && len(snapshot.Tools()) == 0:
		return reported{errors.New("there are no tools")}
	case a.quiet:
		return nil
	case l.excluded:
		return a.listExcluded(snapshot, unbound)
	case l.tokens:
		return a.listTokens(snapshot)
	}
	if len(h.Service().Info().Config.Servers) == 0 {
		const remedy = "tenon servers add NAME … adds a server, tenon init writes a first configuration"
		switch {
		case a.outTTY:
			defer a.emptyHint(len(snapshot.Tools()), remedy)
		case len(snapshot.Tools()) == 0 && !a.isJSON(): // the output is empty, and the reason is not in it
			a.note("no server is configured, so there are no tools; %s", remedy)
		}
	}
	return printList(a, listed(snapshot, false), []string{"name", "server", "kind", "description"},
		func(t listedTool) []string {
			return []string{t.Name, t.Server, kind(t.Annotations), about(t.Description)}
		})
}

// noteAge tells a person at a terminal how old the lists of tools are.
func (a *app) noteAge(h *host.Host) {
	var oldest time.Time
	for _, s := range h.Service().Connections() {
		if at := s.Status().Cached; !at.IsZero() && (oldest.IsZero() || at.Before(oldest)) {
			oldest = at
		}
	}
	a.noteListed(oldest, connectRemedy)
}

// noteNotSimple names the tools that --simple-types leaves out. Other tools are left out by the configuration, whose
// author knows it.
func (a *app) noteNotSimple(s *catalog.Snapshot) {
	for _, w := range s.Withheld() {
		if strings.HasPrefix(w.Reason, "schema.types ") && !a.quiet {
			a.note("tool '%s' of server '%s' is left out: %s", w.Remote, w.Server, w.Reason)
		}
	}
}

// listed returns the list of the offered tools.
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

// noteOf describes in a line what a step changed.
func noteOf(s catalog.Step) string {
	switch {
	case s.Step == "schema.types" && s.Field == "input_schema":
		return "" // the hidden fields show it in fewer words
	case s.Field == "input_schema" || s.Field == "rules":
		return s.Step + ": " + s.Field + " " + shorten(s.After, 200)
	case s.Before == s.After: // the configuration says what the server says
		return ""
	case shorten(s.Before, 80) == shorten(s.After, 80):
		return s.Step + ": " + s.Field + " changed after its first 80 characters"
	}
	return s.Step + ": " + s.Field + " '" + shorten(s.Before, 80) + "' -> '" + shorten(s.After, 80) + "'"
}

// withoutServer returns the entries of the configuration that are disabled and name no server, so that no snapshot has
// them. If servers are selected, there are none.
func withoutServer(c *config.Config, servers []string) []listedTool {
	var list []listedTool
	for _, name := range slices.Sorted(maps.Keys(c.Tools)) {
		t := c.Tools[name].WithDefaults(name)
		if len(servers) == 0 && t.Server == "" && !t.IsEnabled() {
			list = append(list, listedTool{Tool: tenon.Tool{Remote: t.RemoteName}, Kind: "mcp",
				Excluded: "tools." + name + ".enabled is false, and the tool has no server"})
		}
	}
	return list
}

func (a *app) listExcluded(s *catalog.Snapshot, unbound []listedTool) error {
	list := listed(s, true)
	for _, w := range s.Withheld() {
		list = append(list, listedTool{Tool: tenon.Tool{Server: w.Server, Remote: w.Remote}, Kind: "mcp",
			Excluded: tenon.Visible(w.Reason)})
	}
	list = append(list, unbound...)
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

// listStatic lists the tools that need no server: tools that the configuration describes, and tools of tenon's built-in
// kinds. It starts nothing, whether or not the project is trusted.
func (a *app) listStatic(ctx context.Context, only []string) (err error) {
	h, err := a.open(ctx, opening{looks: true, static: true})
	if err != nil {
		return err
	}
	defer closing(h, &err)
	snapshot, problems, err := h.Tools().Snapshot(ctx, only...)
	if err != nil {
		return err
	}
	if len(problems) > 0 {
		a.hint("%s not asked for tools", map[bool]string{true: "1 server was",
			false: plural(len(problems), "server") + " were"}[len(problems) == 1])
	}
	return printList(a, listed(snapshot, false), []string{"name", "server", "kind", "description"},
		func(t listedTool) []string {
			return []string{t.Name, t.Server, kind(t.Annotations), about(t.Description)}
		})
}

// openTools opens a host and returns the tools of its servers, as tools does.
func (a *app) openTools(ctx context.Context, o opening) (h *host.Host, snapshot *catalog.Snapshot, err error) {
	if h, err = a.open(ctx, o); err != nil {
		return nil, nil, err
	}
	var problems []host.Problem
	if snapshot, problems, err = h.Tools().Snapshot(ctx, o.servers...); err == nil {
		if o.withheld && len(snapshot.Withheld()) > 0 {
			a.problems(problems)
		} else {
			err = a.unlisted(len(snapshot.Tools()), problems, o.adhoc)
		}
	}
	if err != nil {
		closing(h, &err)
	}
	return h, snapshot, err
}

// tools returns the tools of the servers; names, if given, selects servers. It prints the errors of servers that cannot
// be reached. If there are no tools because of them, it returns an error.
func (a *app) tools(ctx context.Context, h *host.Host, s *adhoc, names ...string) (*catalog.Snapshot, error) {
	snapshot, problems, err := h.Tools().Snapshot(ctx, names...)
	if err != nil {
		return nil, err
	}
	return snapshot, a.unlisted(len(snapshot.Tools()), problems, s)
}

// kind returns one word for the hints of a server about a tool.
func kind(n tenon.Annotations) string {
	switch {
	case n.IsReadOnly():
		return "read-only"
	case n.IsDestructive() && n.Destructive == nil:
		return "" // no hint; the tool counts as destructive
	case n.IsDestructive():
		return "destructive"
	}
	return "changes"
}

// about returns the first line of a description. The description of a workflow with tables is a YAML mapping; its first
// value is used.
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
	var explain, connect bool
	cmd := &cobra.Command{
		Use:   "show NAME [--explain] [--connect] [--url URL | -- COMMAND ARGS...]",
		Short: "Show one tool with its schemas",
		Long: "Shows a tool's description, the hints of its server, and its input and output schemas. NAME is the\n" +
			"name that a model sees, or SERVER.NAME. --explain shows each step from the server's definition to\n" +
			"the one that a model gets, with the value before and after it; also for a tool that is left out.\n\n" +
			"Servers that were listed before are not started: --connect asks them again.\n\n" + adhocHelp,
		Example: "  tenon tools show get_weather\n  tenon tools show get_weather --explain\n  tenon tools show echo " +
			"-o json -- npx -y @modelcontextprotocol/server-everything",
		Args: args(1, 1, "the tool's name"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if args, err = s.split(cmd, args); err != nil {
				return err
			}
			if a.remote != "" {
				if s.given() {
					return usage(cmd, "a server on the command line cannot be combined with --remote")
				}
				return a.showFar(cmd.Context(), args[0], explain)
			}
			h, snapshot, err := a.openTools(cmd.Context(), opening{adhoc: s, connect: true, live: connect})
			if err != nil {
				return err
			}
			defer closing(h, &err)
			a.noteAge(h)
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
				return a.printJSON(shownTool{Tool: *t, Kind: t.KindName(), Arguments: catalog.Parameters(t),
					Tokens: catalog.Tokens(t), Unchecked: snapshot.Unchecked(t)})
			}
			return a.showTool(t, snapshot.Unchecked(t))
		},
	}
	s.flags(cmd)
	cmd.Flags().BoolVar(&explain, "explain", false, "show the value before and after each step")
	connectFlag(cmd, &connect)
	return cmd
}

// shownTool is a tool in the output of tools show.
type shownTool struct {
	tenon.Tool
	Kind      string              `json:"kind"`
	Arguments []catalog.Parameter `json:"arguments"`
	Tokens    int                 `json:"tokens"`
	Unchecked []catalog.Unchecked `json:"unchecked,omitempty"`
}

// findWithheld finds a tool that is left out, by its remote name or by SERVER.REMOTE.
func findWithheld(snapshot *catalog.Snapshot, name string) (catalog.Withheld, bool) {
	for _, w := range snapshot.Withheld() {
		if w.Remote == name || w.Server+"."+w.Remote == name {
			return w, true
		}
	}
	return catalog.Withheld{}, false
}

// explain prints the steps that shaped a tool. The tool may be left out.
func (a *app) explain(steps []catalog.Step, server, remote string, offered bool) error {
	if a.isJSON() {
		if steps == nil {
			steps = []catalog.Step{}
		}
		return a.printJSON(map[string]any{"server": server, "remote_name": remote, "offered": offered, "steps": steps})
	}
	if len(steps) == 0 {
		return a.printText(fmt.Sprintf("%s.%s reaches the model as the server sent it", safeLine(server),
			safeLine(remote)))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", a.outStyle(bold, safeLine(server+"."+remote)))
	for _, step := range steps {
		fmt.Fprintf(&b, "%s  %s\n  - %s\n  + %s\n", step.Step, a.outStyle(dim, step.Field), safeLine(step.Before),
			safeLine(step.After))
	}
	return a.write([]byte(b.String()))
}

// findTool finds a tool by its exposed name or by SERVER.REMOTE.
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
		return nil, tenon.Errorf(tenon.CodeNotFound, "the tool '%s' of server '%s' is left out: %s", w.Remote,
			w.Server, tenon.Visible(w.Reason))
	}
	return nil, tenon.Errorf(tenon.CodeNotFound, "there is no tool '%s'%s", name, didYouMean(name, snapshot.Names()))
}

func (a *app) showTool(t *tenon.Tool, unchecked []catalog.Unchecked) error {
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
	for i, u := range unchecked {
		if i == 0 {
			fmt.Fprintf(&b, "\n%s\n", a.outStyle(dim, "not checked"))
		}
		fmt.Fprintf(&b, "%s %s: %s\n", u.Field, safeLine(cmp.Or(u.Pointer, "/")), safeLine(u.Reason))
	}
	return a.write([]byte(b.String()))
}
