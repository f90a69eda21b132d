package cli

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/servers"
)

// Lists of prompts and resources show what servers listed last, so that a server that hangs delays nobody.

// rememberedHelp is a part of the help of these lists.
const rememberedHelp = "Servers that were listed before are not started: --connect asks them again.\n\n"

// connectRemedy says how a verb of these lists asks the servers.
const connectRemedy = "; --connect asks the servers"

func connectFlag(cmd *cobra.Command, connect *bool) {
	cmd.Flags().BoolVar(connect, "connect", false, "ask the servers, instead of showing what they listed last")
}

// promptsOf lists the prompts of servers, and tells a person at a terminal how old the lists are. remedy follows the
// age, or is "".
func (a *app) promptsOf(ctx context.Context, h *host.Host, remedy string, names ...string) ([]host.ServerPrompt,
	[]host.Problem, error) {
	if a.recording {
		return h.Servers().Context().Prompts(ctx, names...) // a replay has only the recorded lists
	}
	list, oldest, problems, err := knownPrompts(ctx, h, names...)
	a.noteListed(oldest, remedy)
	return list, problems, err
}

// resourcesOf lists the resources of servers in the way of promptsOf.
func (a *app) resourcesOf(ctx context.Context, h *host.Host, remedy string, names ...string) ([]host.ServerResource,
	[]host.Problem, error) {
	if a.recording {
		return h.Servers().Context().Resources(ctx, names...)
	}
	list, oldest, problems, err := knownResources(ctx, h, names...)
	a.noteListed(oldest, remedy)
	return list, problems, err
}

// noteListed tells a person at a terminal the age of a list. The zero time means that the servers were asked.
func (a *app) noteListed(oldest time.Time, remedy string) {
	if a.errTTY && !a.quiet && !oldest.IsZero() {
		a.note("as listed %s ago%s", round(time.Since(oldest)), remedy)
	}
}

// knownPrompts returns the prompts that servers listed last and the time of the oldest list. It asks the servers that
// are connected or were never listed. Without names, it is about all servers.
func knownPrompts(ctx context.Context, h *host.Host, names ...string) ([]host.ServerPrompt, time.Time, []host.Problem,
	error) {
	return listedOf(h, names, (*servers.Server).RememberedPrompts,
		func(server string, p host.Prompt) host.ServerPrompt {
			return host.ServerPrompt{Server: server, Prompt: p}
		},
		func(p host.ServerPrompt) string { return p.Server },
		func(names []string) ([]host.ServerPrompt, []host.Problem, error) {
			return h.Servers().Context().Prompts(ctx, names...)
		})
}

// knownResources returns the resources and templates of servers in the way of knownPrompts.
func knownResources(ctx context.Context, h *host.Host, names ...string) ([]host.ServerResource, time.Time,
	[]host.Problem, error) {
	return listedOf(h, names, (*servers.Server).RememberedResources,
		func(server string, r host.Resource) host.ServerResource {
			return host.ServerResource{Server: server, Resource: r}
		},
		func(r host.ServerResource) string { return r.Server },
		func(names []string) ([]host.ServerResource, []host.Problem, error) {
			return h.Servers().Context().Resources(ctx, names...)
		})
}

// listedOf returns the kept lists of servers. For a server without a kept list, it calls ask.
func listedOf[T, L any](h *host.Host, names []string, recall func(*servers.Server) ([]T, time.Time, bool),
	in func(server string, item T) L, of func(L) string,
	ask func(names []string) ([]L, []host.Problem, error)) (list []L, oldest time.Time, problems []host.Problem,
	err error) {
	all := h.Service().Connections()
	if len(names) == 0 {
		for name := range all {
			names = append(names, name)
		}
		slices.Sort(names)
	}
	var rest []string
	for _, name := range names {
		s := all[name]
		var items []T
		var at time.Time
		ok := false
		if s != nil && !h.Service().Info().Replays {
			items, at, ok = recall(s)
		}
		if !ok {
			rest = append(rest, name) // ask returns the error for an unknown name
			continue
		}
		for _, item := range items {
			list = append(list, in(name, item))
		}
		if oldest.IsZero() || at.Before(oldest) {
			oldest = at
		}
	}
	if len(rest) == 0 {
		return list, oldest, nil, nil
	}
	asked, problems, err := ask(rest)
	list = append(list, asked...)
	slices.SortStableFunc(list, func(x, y L) int { return cmp.Compare(of(x), of(y)) })
	return list, oldest, problems, err
}
