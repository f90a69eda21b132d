package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/pins"
)

func newToolsPins(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pins [SERVER]",
		Short: "Show which tools have changed since their first use",
		Long: "Compares the servers with their pins, which record the first use or the last acceptance: the\n" +
			"command or address of each server, and the definition of each tool. A change disables its server\n" +
			"until you accept it (policy.pins.changed: ask). A new tool asks before its first use\n" +
			"(policy.pins.new: ask). Without SERVER all servers are shown.",
		Example: "  tenon tools pins\n  tenon tools pins diff filesystem\n  tenon tools pins accept filesystem",
		Args:    args(0, 1, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withPins(cmd.Context(), args, func(_ *host.Host, list []pins.State) error {
				return printList(a, list, []string{"tool", "state", "pinned", "by"}, func(s pins.State) []string {
					state := s.State
					if s.Blocked != "" {
						state += ", not used"
					}
					return []string{pinName(s), state, a.when(s.Created), s.By}
				})
			})
		},
	}
	diff := &cobra.Command{
		Use:   "diff [SERVER[.TOOL]]",
		Short: "Show the differences from the pins",
		Long: "Shows each field of a definition that differs from its pin, before and after the change. Hidden\n" +
			"characters are escaped.",
		Example: "  tenon tools pins diff\n  tenon tools pins diff filesystem.write_file",
		Args:    args(0, 1, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withPins(cmd.Context(), args, func(_ *host.Host, list []pins.State) error {
				list = slices.DeleteFunc(list, func(s pins.State) bool { return s.State == pins.Same })
				if a.isJSON() {
					return a.printJSON(append([]pins.State{}, list...))
				}
				if len(list) == 0 {
					return a.printText("nothing has changed since it was pinned")
				}
				return a.write([]byte(a.pinDiff(list)))
			})
		},
	}
	accept := &cobra.Command{
		Use:   "accept SERVER[.TOOL]",
		Short: "Accept a changed server or tool",
		Long: "Shows the changes of a server and pins its present state. On a terminal it asks first. With TOOL\n" +
			"only that tool is accepted; without TOOL the server and all its tools.",
		Example: "  tenon tools pins accept filesystem\n  tenon tools pins accept filesystem.write_file",
		Args:    args(1, 1, "the server, or SERVER.TOOL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withPins(cmd.Context(), args, func(h *host.Host, list []pins.State) error {
				server, remote := pinTarget(h, args[0])
				return a.acceptPins(cmd.Context(), h, server, remote, list)
			})
		},
	}
	forget := &cobra.Command{
		Use:     "forget SERVER",
		Short:   "Forget the pins of a server",
		Long:    "Deletes the pins of a server. Its next use counts as the first one and pins the server again.",
		Example: "  tenon tools pins forget filesystem",
		Args:    args(1, 1, "the server"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			h, err := a.open(cmd.Context(), opening{})
			if err != nil {
				return err
			}
			defer closing(h, &err)
			if err := h.Tools().Pins().Forget(cmd.Context(), args[0]); err != nil {
				return err
			}
			return a.did(map[string]string{"server": args[0]}, "forgotten: the next use of %s pins it again",
				safeLine(args[0]))
		},
	}
	cmd.AddCommand(diff, accept, forget)
	return cmd
}

// pinTarget splits SERVER.TOOL. A server's name may contain dots.
func pinTarget(h *host.Host, name string) (server, remote string) {
	if _, ok := h.Service().Connections()[name]; ok {
		return name, ""
	}
	for s := range h.Service().Connections() {
		if rest, ok := strings.CutPrefix(name, s+"."); ok && len(s) > len(server) {
			server, remote = s, rest
		}
	}
	if server == "" {
		return name, ""
	}
	return server, remote
}

// withPins compares servers with their pins: all servers, one server, or one tool of it.
func (a *app) withPins(ctx context.Context, args []string, do func(*host.Host, []pins.State) error) (err error) {
	h, err := a.open(ctx, opening{connect: true, live: true})
	if err != nil {
		return err
	}
	defer closing(h, &err)
	if len(args) == 1 {
		server, remote := pinTarget(h, args[0])
		list, err := h.Tools().Pins().List(ctx, server)
		if err != nil {
			return err
		}
		if remote != "" {
			list = slices.DeleteFunc(list, func(s pins.State) bool { return s.Remote != remote })
			if len(list) == 0 {
				return tenon.Errorf(tenon.CodeNotFound, "server '%s' has no tool '%s', and none is pinned", server,
					remote)
			}
		}
		return do(h, list)
	}
	var all []pins.State
	for _, name := range h.Service().Info().Config.ServerNames() {
		list, err := h.Tools().Pins().List(ctx, name)
		if err != nil {
			a.problems([]host.Problem{{Server: name, Err: err}})
			continue
		}
		all = append(all, list...)
	}
	return do(h, all)
}

// acceptPins shows the changes, asks on a terminal, and accepts them.
func (a *app) acceptPins(ctx context.Context, h *host.Host, server, remote string, list []pins.State) error {
	list = slices.DeleteFunc(list, func(s pins.State) bool { return s.State == pins.Same })
	if len(list) == 0 {
		return a.did([]pins.State{}, "nothing to accept: %s is what was pinned", safeLine(server))
	}
	if !a.isJSON() {
		fmt.Fprint(a.err, a.pinDiff(list))
	}
	if a.canAsk() {
		if yes, err := a.yesOrNo(ctx, "Accept it? [y]es / [n]o: "); err != nil || !yes {
			if err == nil {
				err = tenon.Errorf(tenon.CodeDenied, "nothing was accepted")
			}
			return err
		}
	}
	accepted, err := h.Tools().Pins().Accept(ctx, server, remote, string(tenon.PrincipalLocal), list)
	if err != nil {
		return err
	}
	return a.did(accepted, "accepted: %s of %s", plural(len(accepted), "change"), safeLine(server))
}

// settlePins shows the changes of the servers that a question needs, and asks whether to accept them. The run continues
// without a server whose change is not accepted.
func (a *app) settlePins(ctx context.Context, h *host.Host, problems []host.Problem) error {
	for _, p := range problems {
		if tenon.ErrorCode(p.Err) != tenon.CodeWaiting || slices.Contains(a.declined, p.Server) {
			continue
		}
		list, err := h.Tools().Pins().List(ctx, p.Server)
		if err == nil {
			err = a.acceptPins(ctx, h, p.Server, "", list)
		}
		if tenon.ErrorCode(err) == tenon.CodeDenied {
			a.declined, err = append(a.declined, p.Server), nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// pinName returns SERVER.TOOL, or SERVER for a change of the server itself.
func pinName(s pins.State) string {
	if s.Remote == "" {
		return safeLine(s.Server)
	}
	return safeLine(s.Server + "." + s.Remote)
}

// pinDiff returns the changes as text with escaped hidden characters.
func (a *app) pinDiff(list []pins.State) string {
	var b strings.Builder
	for _, s := range list {
		fmt.Fprintf(&b, "%s  %s\n", a.outStyle(bold, pinName(s)), a.outStyle(dim, s.State))
		for _, c := range s.Changes {
			fmt.Fprintf(&b, "  %s\n", a.outStyle(dim, safeLine(c.Path)))
			if len(c.Before) > 0 {
				fmt.Fprintf(&b, "  - %s\n", plainValue(c.Before))
			}
			if len(c.After) > 0 {
				fmt.Fprintf(&b, "  + %s\n", plainValue(c.After))
			}
		}
	}
	return b.String()
}

// plainValue returns JSON as text; a string loses its quotes.
func plainValue(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return safeLine(text)
	}
	var v any
	if json.Unmarshal(raw, &v) == nil {
		if b, err := encodeJSON(json.RawMessage(raw)); err == nil {
			return safeLine(strings.TrimSpace(string(b)))
		}
	}
	return safeLine(string(raw))
}
