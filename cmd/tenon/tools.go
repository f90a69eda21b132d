package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/host"
)

func newTools(a *app) *cobra.Command {
	cmd := group("tools", "Tools of the servers: list, show, call", "tool")
	cmd.AddCommand(newToolsList(a), newToolsShow(a), newToolsCall(a))
	return cmd
}

const adhocHelp = "The servers are those of the configuration, or one that is given here: by --url, or by a command behind --.\n" +
	"A command gets PATH, HOME, USER, LANG and TMPDIR of our environment and no other variable."

func newToolsList(a *app) *cobra.Command {
	s := &adhoc{}
	cmd := &cobra.Command{
		Use:   "list [--url URL | -- COMMAND ARGS...]",
		Short: "List the tools that an agent would see",
		Long:  "Lists tools under the names that a model sees, with the server, what the server says a tool does, and its\ndescription.\n\n" + adhocHelp,
		Example: "  tenon tools list\n  tenon tools list -- npx -y @modelcontextprotocol/server-everything\n" +
			"  tenon tools list --url https://mcp.example.com/mcp --header \"Authorization: Bearer $TOKEN\"",
		Args: args(0, 0, ""),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if _, err := s.split(cmd, args); err != nil {
				return err
			}
			h, err := a.open(cmd.Context(), opening{adhoc: s, connect: true})
			if err != nil {
				return err
			}
			defer closing(h, &err)
			snapshot, err := a.tools(cmd.Context(), h, s)
			if err != nil {
				return err
			}
			return printList(a, snapshot.Tools(), []string{"name", "server", "kind", "description"}, func(t tenon.Tool) []string {
				return []string{t.Name, t.Server, kind(t.Annotations), firstLine(t.Description)}
			})
		},
	}
	s.flags(cmd)
	return cmd
}

// tools returns what the servers offer. Servers that cannot be reached are told
// of; where there is no tool at all because of that, it is an error.
func (a *app) tools(ctx context.Context, h *host.Host, s *adhoc) (*catalog.Snapshot, error) {
	snapshot, problems, err := h.Tools(ctx)
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

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return s
}

func newToolsShow(a *app) *cobra.Command {
	s := &adhoc{}
	cmd := &cobra.Command{
		Use:     "show NAME [--url URL | -- COMMAND ARGS...]",
		Short:   "Show one tool with its schemas",
		Long:    "Shows a tool's description, what its server says about it, and its input and output schemas.\n\n" + adhocHelp,
		Example: "  tenon tools show get_weather\n  tenon tools show echo -o json -- npx -y @modelcontextprotocol/server-everything",
		Args:    args(1, 1, "the tool's name"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if args, err = s.split(cmd, args); err != nil {
				return err
			}
			h, err := a.open(cmd.Context(), opening{adhoc: s, connect: true})
			if err != nil {
				return err
			}
			defer closing(h, &err)
			snapshot, err := a.tools(cmd.Context(), h, s)
			if err != nil {
				return err
			}
			t, err := findTool(snapshot, args[0])
			if err != nil {
				return err
			}
			if a.isJSON() {
				return a.printJSON(t)
			}
			return a.showTool(t)
		},
	}
	s.flags(cmd)
	return cmd
}

// findTool finds a tool by its exposed name, or as SERVER.REMOTE.
func findTool(snapshot *catalog.Snapshot, name string) (*tenon.Tool, error) {
	if t, ok := snapshot.Lookup(name); ok {
		return t, nil
	}
	for _, t := range snapshot.Tools() {
		if t.Server+"."+t.Remote == name {
			return &t, nil
		}
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
