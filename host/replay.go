package host

import (
	"context"
	"fmt"
	"slices"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/view"
)

// Replay is the result of folding a run's journal again.
type Replay struct {
	Run      string         `json:"run"`
	Core     string         `json:"core"`
	Events   int            `json:"events"`
	Commands int            `json:"commands"` // commands that the journal says were begun
	State    tenon.RunState `json:"state"`
	Same     bool           `json:"same"`
	Mismatch string         `json:"mismatch,omitempty"` // the first event at which the core differs
}

func (h viewHandle) Replay(ctx context.Context) (Replay, error) {
	row, err := h.host.store.Run(ctx, h.id)
	if err != nil {
		return Replay{}, err
	}
	events, err := h.host.store.Events(ctx, h.id, 0, 0)
	if err != nil {
		return Replay{}, err
	}
	r := Replay{Run: h.id, Core: row.Core, Events: len(events), State: row.State, Same: true}
	spec, err := engine.ReadSpec(h.id, events)
	if err != nil {
		return r, err
	}
	core, err := h.host.newCore(ctx, spec)
	if err != nil {
		return r, err
	}
	for _, e := range events {
		if wanted, begun := demand(e); begun {
			r.Commands++
			if !wants(core.Next(), wanted, e.Step) {
				r.Same, r.Mismatch = false,
					fmt.Sprintf("event %d: %s of step %q was begun, and the core does not ask for it there", e.Seq,
						wanted, e.Step)
				return r, nil
			}
		}
		if err := core.Apply(e); err != nil {
			r.Same, r.Mismatch = false, err.Error()
			return r, nil
		}
	}
	return r, nil
}

// demand returns the kind of command that an event shows to have been requested.
func demand(e tenon.Event) (kind string, ok bool) {
	switch e.Kind {
	case tenon.EventStarted:
		return view.As[tenon.StartedData](e).Kind, true
	case tenon.EventDone:
		return tenon.CommandDone, true
	}
	return "", false
}

func wants(cmds []tenon.Command, kind, step string) bool {
	return slices.ContainsFunc(cmds, func(c tenon.Command) bool { return c.Kind == kind && c.Step == step })
}
