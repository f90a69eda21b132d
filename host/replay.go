package host

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine"
)

// Replay is what came of folding a run's journal again.
type Replay struct {
	Run      string         `json:"run"`
	Core     string         `json:"core"`
	Events   int            `json:"events"`
	Commands int            `json:"commands"` // that the journal says were begun
	State    tenon.RunState `json:"state"`
	Same     bool           `json:"same"`
	Mismatch string         `json:"mismatch,omitempty"` // the first place where the core wanted something else
}

// Replay folds a run's journal again with the core that wrote it and holds the
// two to each other: whatever was begun is what the core asks for at that place,
// and the end is the end that it names. It carries out nothing. Errors:
// not_found, store (the journal cannot be read).
func (h *Host) Replay(ctx context.Context, run string) (Replay, error) {
	row, err := h.store.Run(ctx, run)
	if err != nil {
		return Replay{}, err
	}
	events, err := h.store.Events(ctx, run, 0, 0)
	if err != nil {
		return Replay{}, err
	}
	r := Replay{Run: run, Core: row.Core, Events: len(events), State: row.State, Same: true}
	var spec engine.Spec
	if len(events) == 0 || json.Unmarshal(events[0].Data, &spec) != nil {
		return r, tenon.Errorf(tenon.CodeStore, "run %s: its journal does not begin with its spec", run)
	}
	core, err := h.newCore(ctx, spec)
	if err != nil {
		return r, err
	}
	for _, e := range events {
		if wanted, begun := demand(e); begun {
			r.Commands++
			if !wants(core.Next(), wanted, e.Step) {
				r.Same, r.Mismatch = false, fmt.Sprintf("event %d: %s of step %q was begun, and the core does not ask for it there", e.Seq, wanted, e.Step)
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

// demand says which command an event shows to have been wanted.
func demand(e tenon.Event) (kind string, ok bool) {
	switch e.Kind {
	case tenon.EventStarted:
		var d tenon.StartedData
		_ = json.Unmarshal(e.Data, &d) // without a kind it matches nothing
		return d.Kind, true
	case tenon.EventDone:
		return tenon.CommandDone, true
	}
	return "", false
}

func wants(cmds []tenon.Command, kind, step string) bool {
	for _, c := range cmds {
		if c.Kind == kind && c.Step == step {
			return true
		}
	}
	return false
}
