package host

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/record"
	"github.com/tenonhq/tenon/servers"
)

// Lists of prompts and resources can show what servers listed last, so that a server that hangs delays nobody.

// KnownContext lists what servers offer beside tools as they listed it last. Names select servers; without names it is
// about all servers that are not disabled. Of these, a server that did not start in time is a problem at once, instead
// of a wait for its next start; a server that is named is waited for. While traffic is recorded or replayed, all
// servers are asked, because a replay has only the recorded lists.
type KnownContext interface {
	// Prompts returns the last lists of prompts. It asks the servers that are connected or were never listed.
	Prompts(ctx context.Context, names ...string) (Known[ServerPrompt], error)
	// Resources returns the last lists of resources and templates in the way of Prompts.
	Resources(ctx context.Context, names ...string) (Known[ServerResource], error)
	// StoredPrompts returns the last lists of prompts and asks no server, so it does not wait.
	StoredPrompts(ctx context.Context, names ...string) (Known[ServerPrompt], error)
	// StoredResources returns the last lists of resources and templates in the way of StoredPrompts.
	StoredResources(ctx context.Context, names ...string) (Known[ServerResource], error)
}

// Known is a list of what servers offer, in the order of the servers.
type Known[T any] struct {
	Items    []T
	Listed   time.Time // when the oldest of the stored lists was made; zero if no stored list is used
	Unlisted []string  // servers that were not asked and of which no list is known
	Problems []Problem // servers that were asked and returned no list
}

// offerKind is one kind of what servers offer beside tools.
type offerKind[T any] struct {
	ask        func(ctx context.Context, s record.Offers, name string) ([]T, error)
	stored     func(s *servers.Server, name string) ([]T, time.Time, bool)
	remembered func(s *servers.Server, name string) ([]T, time.Time, bool) // false if the server is connected
}

// promptOffers and resourceOffers return the two kinds.
func promptOffers() offerKind[ServerPrompt] {
	in := func(list []mcp.Prompt, name string) []ServerPrompt {
		out := make([]ServerPrompt, len(list))
		for i, p := range list {
			out[i] = ServerPrompt{name, p}
		}
		return out
	}
	return offerKind[ServerPrompt]{
		ask: func(ctx context.Context, s record.Offers, name string) ([]ServerPrompt, error) {
			list, err := s.Prompts(ctx)
			return in(list, name), err
		},
		stored: func(s *servers.Server, name string) ([]ServerPrompt, time.Time, bool) {
			list, at, ok := s.StoredPrompts()
			return in(list, name), at, ok
		},
		remembered: func(s *servers.Server, name string) ([]ServerPrompt, time.Time, bool) {
			list, at, ok := s.RememberedPrompts()
			return in(list, name), at, ok
		}}
}

func resourceOffers() offerKind[ServerResource] {
	in := func(list []mcp.Resource, name string) []ServerResource {
		out := make([]ServerResource, len(list))
		for i, r := range list {
			out[i] = ServerResource{name, r}
		}
		return out
	}
	return offerKind[ServerResource]{
		ask: func(ctx context.Context, s record.Offers, name string) ([]ServerResource, error) {
			list, err := s.Resources(ctx)
			return in(list, name), err
		},
		stored: func(s *servers.Server, name string) ([]ServerResource, time.Time, bool) {
			list, at, ok := s.StoredResources()
			return in(list, name), at, ok
		},
		remembered: func(s *servers.Server, name string) ([]ServerResource, time.Time, bool) {
			list, at, ok := s.RememberedResources()
			return in(list, name), at, ok
		}}
}

func (h contextHandle) Prompts(ctx context.Context, names ...string) ([]ServerPrompt, []Problem, error) {
	k, err := listOffers(ctx, h.host, promptOffers(), fromServers, names)
	return k.Items, k.Problems, err
}

func (h contextHandle) Resources(ctx context.Context, names ...string) ([]ServerResource, []Problem, error) {
	k, err := listOffers(ctx, h.host, resourceOffers(), fromServers, names)
	return k.Items, k.Problems, err
}

// Known implements [ServerContext].
func (h contextHandle) Known() KnownContext { return knownHandle(h) }

type knownHandle struct{ host *Host }

func (h knownHandle) Prompts(ctx context.Context, names ...string) (Known[ServerPrompt], error) {
	return listOffers(ctx, h.host, promptOffers(), fromKnown, names)
}

func (h knownHandle) Resources(ctx context.Context, names ...string) (Known[ServerResource], error) {
	return listOffers(ctx, h.host, resourceOffers(), fromKnown, names)
}

func (h knownHandle) StoredPrompts(ctx context.Context, names ...string) (Known[ServerPrompt], error) {
	return listOffers(ctx, h.host, promptOffers(), fromStored, names)
}

func (h knownHandle) StoredResources(ctx context.Context, names ...string) (Known[ServerResource], error) {
	return listOffers(ctx, h.host, resourceOffers(), fromStored, names)
}

// origin is where a list comes from.
type origin int

const (
	fromServers origin = iota // all servers are asked
	fromKnown                 // servers that are connected or were never listed are asked
	fromStored                // no server is asked
)

// askParallel is the largest number of servers that are asked for a list at the same time.
const askParallel = 8

// listOffers lists what servers offer. Servers that must be asked are asked in parallel.
func listOffers[T any](ctx context.Context, h *Host, kind offerKind[T], from origin, names []string) (k Known[T],
	err error) {
	named := len(names) > 0
	if !named {
		names = h.enabledServers()
	}
	if h.cassette.recorder != nil || h.cassette.playsServers() {
		from = fromServers
	}
	all := make([]*servers.Server, len(names))
	for i, name := range names { // before any of them is asked
		if all[i], err = h.server(name); err != nil {
			return Known[T]{}, err
		}
	}
	lists, errs := make([][]T, len(names)), make([]error, len(names))
	slots := make(chan struct{}, askParallel)
	var wg sync.WaitGroup
	for i, name := range names {
		s := all[i]
		var at time.Time
		ok := false
		switch from {
		case fromKnown:
			if lists[i], at, ok = kind.remembered(s, name); ok || named {
				break
			}
			if errs[i] = s.Late(); errs[i] != nil {
				continue
			}
		case fromStored:
			if lists[i], at, ok = kind.stored(s, name); !ok {
				k.Unlisted = append(k.Unlisted, name)
				continue
			}
		}
		if ok {
			if !at.IsZero() && (k.Listed.IsZero() || at.Before(k.Listed)) {
				k.Listed = at
			}
			continue
		}
		own := h.cassette.offers(name, s)
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if len(names) == 1 {
				lists[i], errs[i] = kind.ask(ctx, own, name)
				return
			}
			limit := s.ListTime() // one server alone has the time limits of its connection
			bounded, stop := context.WithTimeoutCause(ctx, limit, tenon.Errorf(tenon.CodeTimeout,
				"server '%s' did not list what it offers within %v; name it to wait longer", name, limit))
			defer stop()
			lists[i], errs[i] = kind.ask(bounded, own, name)
			if errs[i] != nil && ctx.Err() == nil && bounded.Err() != nil {
				errs[i] = context.Cause(bounded)
			}
		})
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			k.Problems = append(k.Problems, Problem{names[i], err})
		}
	}
	k.Items = slices.Concat(lists...)
	return k, ctx.Err()
}

// enabledServers returns the names of the servers that are not disabled, sorted.
func (h *Host) enabledServers() []string {
	var names []string
	for name, s := range h.connections() {
		if s.Status().State != servers.StateDisabled {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

var _ KnownContext = knownHandle{}
