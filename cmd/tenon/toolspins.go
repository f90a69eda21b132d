package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
)

func newToolsPins(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pins [SERVER]",
		Short: "Show which tools are what they were at their first use",
		Long: "Asks servers what they have now and holds it to what was pinned: each tool's definition, and the server's command\n" +
			"or address, as they were when they were first used or last accepted. What has changed is neither offered nor called\n" +
			"until it is accepted (policy.pins: ask). Without SERVER all are shown.",
		Example: "  tenon tools pins\n  tenon tools pins diff filesystem\n  tenon tools pins accept filesystem",
		Args:    args(0, 1, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withPins(cmd.Context(), args, func(_ *host.Host, list []host.PinState) error {
				return printList(a, list, []string{"tool", "state", "pinned", "by"}, func(s host.PinState) []string {
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
		Use:     "diff [SERVER[.TOOL]]",
		Short:   "Show what has changed since it was pinned",
		Long:    "Shows each field of a definition that is not what was pinned, before and after. Hidden characters are shown escaped.",
		Example: "  tenon tools pins diff\n  tenon tools pins diff filesystem.write_file",
		Args:    args(0, 1, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withPins(cmd.Context(), args, func(_ *host.Host, list []host.PinState) error {
				list = slices.DeleteFunc(list, func(s host.PinState) bool { return s.State == host.PinSame })
				if a.isJSON() {
					return a.printJSON(append([]host.PinState{}, list...))
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
		Short: "Accept what a server or one of its tools is now",
		Long: "Pins what a server has now, in place of what was pinned, and shows what is accepted by that. At a terminal it asks\n" +
			"first. With TOOL only that tool is accepted; without, the server with all its tools.",
		Example: "  tenon tools pins accept filesystem\n  tenon tools pins accept filesystem.write_file",
		Args:    args(1, 1, "the server, or SERVER.TOOL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withPins(cmd.Context(), args, func(h *host.Host, list []host.PinState) error {
				server, remote := pinTarget(h, args[0])
				return a.acceptPins(cmd.Context(), h, server, remote, list)
			})
		},
	}
	forget := &cobra.Command{
		Use:     "forget SERVER",
		Short:   "Forget what was pinned of a server",
		Long:    "Drops the pins of a server: its next use is the first one again, and pins what it has then.",
		Example: "  tenon tools pins forget filesystem",
		Args:    args(1, 1, "the server"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			h, err := a.open(cmd.Context(), opening{})
			if err != nil {
				return err
			}
			defer closing(h, &err)
			if err := h.ForgetPins(cmd.Context(), args[0]); err != nil {
				return err
			}
			return a.did(map[string]string{"server": args[0]}, "forgotten: the next use of %s pins it anew", safeLine(args[0]))
		},
	}
	cmd.AddCommand(diff, accept, forget)
	return cmd
}

// pinTarget takes SERVER.TOOL apart; a server's name may have points.
func pinTarget(h *host.Host, name string) (server, remote string) {
	if _, ok := h.Servers()[name]; ok {
		return name, ""
	}
	for s := range h.Servers() {
		if rest, ok := strings.CutPrefix(name, s+"."); ok && len(s) > len(server) {
			server, remote = s, rest
		}
	}
	if server == "" {
		return name, ""
	}
	return server, remote
}

// withPins holds servers to their pins: the one that is named, one tool of it, or all.
func (a *app) withPins(ctx context.Context, args []string, do func(*host.Host, []host.PinState) error) (err error) {
	h, err := a.open(ctx, opening{connect: true, live: true})
	if err != nil {
		return err
	}
	defer closing(h, &err)
	if len(args) == 1 {
		server, remote := pinTarget(h, args[0])
		list, err := h.Pins(ctx, server)
		if err != nil {
			return err
		}
		if remote != "" {
			list = slices.DeleteFunc(list, func(s host.PinState) bool { return s.Remote != remote })
			if len(list) == 0 {
				return tenon.Errorf(tenon.CodeNotFound, "server '%s' has no tool '%s', and none is pinned", server, remote)
			}
		}
		return do(h, list)
	}
	var all []host.PinState
	for _, name := range h.Config().ServerNames() {
		list, err := h.Pins(ctx, name)
		if err != nil {
			a.problems([]host.Problem{{Server: name, Err: err}})
			continue
		}
		all = append(all, list...)
	}
	return do(h, all)
}

// acceptPins shows what would be accepted, asks at a terminal, and accepts it.
func (a *app) acceptPins(ctx context.Context, h *host.Host, server, remote string, list []host.PinState) error {
	list = slices.DeleteFunc(list, func(s host.PinState) bool { return s.State == host.PinSame })
	if len(list) == 0 {
		return a.did([]host.PinState{}, "nothing to accept: %s is what was pinned", safeLine(server))
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
	accepted, err := h.AcceptPins(ctx, server, remote, string(tenon.PrincipalLocal), list)
	if err != nil {
		return err
	}
	return a.did(accepted, "accepted: %s of %s", plural(len(accepted), "change"), safeLine(server))
}

// settlePins shows what has changed of the servers that a question needs, and asks
// whether it is accepted; false where nobody can be asked or somebody said no.
func (a *app) settlePins(ctx context.Context, h *host.Host, problems []host.Problem) (bool, error) {
	if !a.canAsk() {
		return false, nil
	}
	for _, p := range problems {
		if tenon.ErrorCode(p.Err) != tenon.CodeWaiting {
			continue
		}
		list, err := h.Pins(ctx, p.Server)
		if err != nil {
			return false, err
		}
		if err := a.acceptPins(ctx, h, p.Server, "", list); err != nil {
			return false, err
		}
	}
	return true, nil
}

// pinName is a tool as SERVER.TOOL, or the server.
func pinName(s host.PinState) string {
	if s.Remote == "" {
		return safeLine(s.Server)
	}
	return safeLine(s.Server + "." + s.Remote)
}

// pinDiff shows what has changed, every hidden character escaped.
func (a *app) pinDiff(list []host.PinState) string {
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

// plainValue shows JSON, a text without its quotes.
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
