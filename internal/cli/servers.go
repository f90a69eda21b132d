package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/servers"
)

// serverInfo is a server in the output of servers list and servers test.
type serverInfo struct {
	servers.Status
	Step      string   `json:"step,omitempty"` // the last step of connecting
	ToolNames []string `json:"tool_names,omitempty"`
	// Prompts are the prompts of a tested server, or nil if they were not requested.
	Prompts []host.ServerPrompt `json:"prompts,omitzero"`
	// Unusable are tools whose schemas cannot be used, so that no model is offered them.
	Unusable []catalog.Withheld `json:"unusable_tools,omitempty"`
}

// over returns the transport and notes about it.
func (s serverInfo) over() string {
	switch {
	case s.Deprecated:
		return s.Transport + " (deprecated)"
	case s.Found != "":
		return s.Transport + " (" + s.Found + ")"
	}
	return s.Transport
}

func newServers(a *app) *cobra.Command {
	cmd := group("servers", "MCP servers: add, list, test, enable, disable, restart, logs, login", "server", "mcp")
	cmd.AddCommand(remotely(newServersList(a)), newServersTest(a), newServersAdd(a), newServersAddJSON(a),
		newServersGet(a), newServersRemove(a),
		remotely(newServersEnable(a)), remotely(newServersDisable(a)), remotely(newServersRestart(a)),
		newServersSearch(a),
		newServersLogs(a), newServersLogin(a), newServersLogout(a))
	return cmd
}

func newServersList(a *app) *cobra.Command {
	var connect, static bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the configured servers and their state",
		Long: "Shows the configured servers as they were last seen, and when their tools were listed. It starts\n" +
			"and contacts nothing. With --connect it connects to every enabled server and shows its state; a server\n" +
			"that cannot be reached is then listed with its error, and the command does not fail.",
		Example: "  tenon servers list\n  tenon servers list --connect -o json",
		Args:    args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if a.remote != "" {
				return a.serversFar(cmd.Context())
			}
			h, err := a.open(cmd.Context(), opening{connect: connect, live: connect, looks: !connect})
			if err != nil {
				return err
			}
			defer closing(h, &err)
			list := probe(cmd.Context(), h, serverNames(h), connect)
			for name, entry := range h.Service().Info().Config.Servers {
				if !entry.IsEnabled() {
					list = append(list, serverInfo{Status: servers.Disabled(name, entry)})
				}
			}
			slices.SortStableFunc(list, func(a, b serverInfo) int { return place(h, a.Name) - place(h, b.Name) })
			return a.listServers(list)
		},
	}
	cmd.Flags().BoolVar(&connect, "connect", false, "connect to the servers and show their states now")
	cmd.Flags().BoolVar(&static, "no-connect", false, "connect to nothing (the default)")
	cmd.MarkFlagsMutuallyExclusive("connect", "no-connect")
	return cmd
}

func newServersTest(a *app) *cobra.Command {
	s := &adhoc{}
	cmd := &cobra.Command{
		Use:   "test [NAME] [--url URL | -- COMMAND ARGS...]",
		Short: "Connect to servers and show how long each step took",
		Long: "Connects to the named server, or to all servers, and shows each step of connecting with its\n" +
			"duration, the negotiated protocol revision, the tools and the prompts. Fails if a server cannot be\n" +
			"reached.",
		Example: "  tenon servers test\n  tenon servers test demo\n  tenon servers test -- npx -y " +
			"@modelcontextprotocol/server-everything\n  tenon servers test --url https://mcp.example.com/mcp",
		Args: args(0, 1, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			args, err := s.split(cmd, args)
			if err != nil {
				return err
			}
			return a.testServers(cmd.Context(), s, args)
		},
	}
	s.flags(cmd)
	return cmd
}

func (a *app) testServers(ctx context.Context, s *adhoc, names []string) (err error) {
	h, err := a.open(ctx, opening{adhoc: s, connect: true, live: true})
	if err != nil {
		return err
	}
	defer closing(h, &err)
	all := serverNames(h)
	one := len(names) == 1
	if one && !slices.Contains(all, names[0]) {
		return tenon.Errorf(tenon.CodeNotFound, "there is no server '%s'%s", names[0], didYouMean(names[0], all))
	}
	if !one {
		names = all
	}
	if len(names) == 0 {
		return tenon.Errorf(tenon.CodeNotFound, "there is no server to test: name one with --url, with a command "+
			"behind --, or in tenon.yaml")
	}
	list := probe(ctx, h, names, true)
	if err := a.testPrompts(ctx, h, list); err != nil {
		return err
	}
	switch {
	case a.format == formatJSON && (one || s.given()):
		err = a.printJSON(list[0])
	case a.isJSON():
		err = printList(a, list, nil, nil)
	default:
		for _, info := range list {
			if err = a.printServer(info); err != nil {
				break
			}
		}
	}
	if err != nil {
		return err
	}
	if !a.isJSON() && !s.given() && !one { // it lists the tools of all servers
		a.tellRenamed(ctx, h)
	}
	for _, info := range list {
		if info.Error != nil {
			failed := s.connectError(info.Error)
			shown := a.outTTY && a.errTTY && failed.Error() == info.Error.Error()
			if !a.isJSON() && len(list) == 1 && !shown {
				return failed
			}
			return reported{failed}
		}
	}
	return nil
}

// testPrompts lists the prompts of the servers that were reached. It prints the error of a server that does not return
// them. Such an error does not fail the command.
func (a *app) testPrompts(ctx context.Context, h *host.Host, list []serverInfo) error {
	var names []string
	for _, info := range list {
		if info.Error == nil {
			names = append(names, info.Name)
		}
	}
	if names == nil {
		return nil
	}
	prompts, problems, err := h.Servers().Context().Prompts(ctx, names...)
	for _, p := range problems {
		a.note("%s", p.Err)
	}
	for i := range list {
		if list[i].Error != nil {
			continue
		}
		list[i].Prompts = []host.ServerPrompt{}
		for _, p := range prompts {
			if p.Server == list[i].Name {
				list[i].Prompts = append(list[i].Prompts, p)
			}
		}
	}
	return err
}

// printServer prints one tested server.
func (a *app) printServer(s serverInfo) error {
	mark := a.outStyle(green, "✓")
	if s.Error != nil {
		mark = a.outStyle(red, "✗")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s  %s\n", mark, a.outStyle(bold, safeLine(s.Name)), a.outStyle(dim, safeLine(s.Target)))
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %s %s\n", a.outStyle(dim, fmt.Sprintf("%-9s", name)), safeLine(fmt.Sprintf(format, args...)))
	}
	if s.Server != "" {
		line("server", "%s", s.Server)
	}
	if s.Protocol != "" {
		line("protocol", "%s over %s", s.Protocol, s.over())
	}
	var phases []string
	for _, p := range s.Phases {
		phases = append(phases, p.Name+" "+took(p.Millis))
	}
	if len(phases) > 0 {
		line("phases", "%s", strings.Join(phases, ", "))
	}
	for i, l := range wrap(unoffered(s.Status), a.width()-13) {
		if s.Error == nil && len(s.NotOffered) > 0 {
			line([]string{"unoffered", ""}[min(i, 1)], "%s", l)
		}
	}
	if s.Error != nil {
		for i, l := range wrap(s.Error.Message, a.width()-13) {
			line([]string{"error", ""}[min(i, 1)], "%s", l)
		}
	} else {
		for i, l := range wrap(fmt.Sprintf("%d: %s", len(s.ToolNames), strings.Join(s.ToolNames, ", ")), a.width()-13) {
			line([]string{"tools", ""}[min(i, 1)], "%s", l)
		}
		for _, w := range s.Unusable {
			line("unusable", "%s: %s", w.Remote, w.Reason)
		}
		var names []string
		for _, p := range s.Prompts {
			names = append(names, p.Name)
		}
		for i, l := range wrap(fmt.Sprintf("%d: %s", len(names), strings.Join(names, ", ")), a.width()-13) {
			if names != nil {
				line([]string{"prompts", ""}[min(i, 1)], "%s", l)
			}
		}
	}
	return a.write([]byte(b.String()))
}

// unoffered describes the capabilities that tenon does not offer to a server, and the keys that offer them. MCP has no
// message for tools that a server leaves out, so their number is unknown.
func unoffered(s servers.Status) string {
	var list []string
	for _, u := range s.NotOffered {
		list = append(list, fmt.Sprintf("%s (%s: %s)", u.Capability, u.Key, u.Value))
	}
	return strings.Join(list, ", ") + "; tools that need it may be missing"
}

// place returns the position of a server in the file.
func place(h *host.Host, name string) int {
	names := h.Service().Info().Config.AllServerNames()
	if i := slices.Index(names, name); i >= 0 {
		return i
	}
	return len(names)
}

func newServersLogs(a *app) *cobra.Command {
	var lines int
	cmd := &cobra.Command{
		Use:   "logs NAME",
		Short: "Show the log of a server",
		Long: "Shows the end of a server's log: the stderr of its process, its log messages (notice), when it was\n" +
			"connected (state), and errors (error). The log is kept next to the store for all processes, up to\n" +
			"half a megabyte.",
		Example: "  tenon servers logs github\n  tenon servers logs github -n 0 -o jsonl",
		Args:    args(1, 1, "the name of a server"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			h, err := a.open(cmd.Context(), opening{})
			if err != nil {
				return err
			}
			defer closing(h, &err)
			s := h.Service().Connections()[args[0]]
			if s == nil {
				return tenon.Errorf(tenon.CodeNotFound, "there is no server '%s'%s", args[0],
					didYouMean(args[0], serverNames(h)))
			}
			return printList(a, s.Logs(lines), []string{"time", "kind", "text"}, func(l servers.LogLine) []string {
				return []string{l.Time.Local().Format("2006-01-02 15:04:05.000"), l.Kind, l.Text}
			})
		},
	}
	cmd.Flags().IntVarP(&lines, "lines", "n", 200, "show the last `LINES`; 0: all")
	return cmd
}

func serverNames(h *host.Host) []string {
	var names []string
	for _, name := range h.Service().Info().Config.ServerNames() { // file order
		if h.Service().Connections()[name] != nil {
			names = append(names, name)
		}
	}
	for name := range h.Service().Connections() {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// probe connects to all servers at the same time and returns their states.
func probe(ctx context.Context, h *host.Host, names []string, connect bool) []serverInfo {
	list := make([]serverInfo, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() {
			info := &list[i]
			var err error
			if connect {
				var tools []tenon.Tool
				tools, err = h.Service().Connections()[name].List(ctx)
				for _, t := range tools {
					info.ToolNames = append(info.ToolNames, t.Remote)
					if why := catalog.Unusable(t.Input); why != "" {
						left := catalog.Withheld{Server: name, Remote: t.Remote, Reason: why}
						info.Unusable = append(info.Unusable, left)
					}
				}
			}
			if !connect {
				h.Service().Connections()[name].Recall()
			}
			info.Status = h.Service().Connections()[name].Status()
			if err == nil {
				return
			}
			if info.Error == nil {
				info.Error = &tenon.Error{Code: tenon.ErrorCode(err), Message: err.Error(), Err: err}
			}
			if n := len(info.Phases); n > 0 {
				info.Step = info.Phases[n-1].Name
			}
		})
	}
	wg.Wait()
	return list
}

func count(n int) string {
	if n < 0 {
		return ""
	}
	return strconv.Itoa(n)
}
