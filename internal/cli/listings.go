package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon/host"
)

// Lists of prompts and resources show what servers listed last, so that a server that hangs delays nobody.

// rememberedHelp is a part of the help of these lists.
const rememberedHelp = "Servers that were listed before are not started: --connect asks them again.\n\n"

// connectRemedy says how a verb of these lists asks the servers.
const connectRemedy = "; --connect asks the servers"

func connectFlag(cmd *cobra.Command, connect *bool) {
	cmd.Flags().BoolVar(connect, "connect", false, "ask the servers, instead of showing what they listed last")
}

// offerList is a verb that lists what servers offer beside tools.
type offerList[T any] struct {
	cmd    cobra.Command // Use is the same for all
	known  func(host.KnownContext, context.Context, ...string) (host.Known[T], error)
	header []string
	row    func(T) []string
}

// command returns the verb.
func (l offerList[T]) command(a *app) *cobra.Command {
	s, connect, cmd := &adhoc{}, false, &l.cmd
	cmd.Use, cmd.Args = "list [SERVER] [--url URL | -- COMMAND ARGS...]", args(0, 1, "")
	cmd.Long += rememberedHelp + unlistedHelp + adhocHelp
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.withOffers(cmd, s, args, connect, func(ctx context.Context, h *host.Host, names []string) error {
			k, err := l.known(h.Servers().Context().Known(), ctx, names...)
			a.noteListed(k.Listed, connectRemedy)
			if err == nil {
				err = a.unlisted(len(k.Items), k.Problems, s)
			}
			if err != nil {
				return err
			}
			return printList(a, k.Items, l.header, l.row)
		})
	}
	s.flags(cmd)
	connectFlag(cmd, &connect)
	return cmd
}

// offers opens a host for a verb that uses a prompt or a resource. args may name a server. The servers are asked.
func (a *app) offers(cmd *cobra.Command, s *adhoc, args []string, do func(context.Context, *host.Host,
	[]string) error) error {
	return a.withOffers(cmd, s, args, true, do)
}

// withOffers is offers, but only with connect are servers asked whose lists are known.
func (a *app) withOffers(cmd *cobra.Command, s *adhoc, args []string, connect bool, do func(context.Context,
	*host.Host, []string) error) (err error) {
	names, err := s.split(cmd, args)
	if err != nil {
		return err
	}
	h, err := a.open(cmd.Context(), opening{adhoc: s, connect: true, live: connect})
	if err != nil {
		return err
	}
	defer closing(h, &err)
	return do(cmd.Context(), h, names)
}

// unlistedHelp is a part of the help of all lists of what servers offer: tools, prompts and resources.
const unlistedHelp = "A server that cannot be asked is reported on stderr, and the others are listed with status " +
	"0. If\nnothing is left to list, the verb fails with the server's error, for example with status 4. To check\n" +
	"all servers, use tenon servers test.\n\n"

// unlisted reports servers that could not be asked. If nothing is listed because of them, it returns the last problem
// as an error.
func (a *app) unlisted(listed int, problems []host.Problem, s *adhoc) error {
	if last := len(problems) - 1; listed == 0 && last >= 0 {
		a.problems(problems[:last])
		return s.connectError(problems[last].Err)
	}
	a.problems(problems)
	return nil
}

// noteListed tells a person at a terminal the age of a list. The zero time means that the servers were asked.
func (a *app) noteListed(oldest time.Time, remedy string) {
	if a.errTTY && !a.quiet && !oldest.IsZero() {
		a.note("as listed %s ago%s", round(time.Since(oldest)), remedy)
	}
}
