package host

import (
	"context"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/view"
	"github.com/tenonhq/tenon/workflow"
)

// newCore makes the core of a run. See [engine.NewCore].
func (h *Host) newCore(ctx context.Context, spec engine.Spec) (tenon.Core, error) {
	switch spec.Run.Core {
	case agent.Version:
	case agent.DirectVersion:
		s, err := view.SpecOf[agent.DirectSpec](spec)
		if err != nil {
			return nil, err
		}
		return agent.NewDirect(s), nil
	case workflow.Version:
		return h.flows.Core(ctx, spec)
	default:
		return nil, tenon.Errorf(tenon.CodeStore, "run %s was written by %q, which this version of tenon does not "+
			"know; use the version that wrote it, or a newer one", spec.Run.ID, spec.Run.Core)
	}
	s, err := view.SpecOf[agent.Spec](spec)
	if err != nil {
		return nil, err
	}
	if spec.Run.Parent == "" {
		return agent.New(s, nil), nil
	}
	parent, err := h.fold(ctx, spec.Run.Parent, spec.Run.ParentSeq)
	if err != nil {
		return nil, err
	}
	from, err := h.store.Run(ctx, spec.Run.Parent)
	if err != nil {
		return nil, err
	}
	foreign, err := h.leavesImport(ctx, spec.Run, from)
	switch {
	case foreign:
		parent = parent.Foreign()
	case from.Session != spec.Run.Session || from.Principal != spec.Run.Principal:
		parent = parent.Forked()
	}
	return agent.New(s, parent), err
}

// leavesImport reports whether a run that was begun here continues a run that was imported from a file.
func (h *Host) leavesImport(ctx context.Context, run, parent tenon.Run) (bool, error) {
	if parent.Imported == nil {
		return false, nil
	}
	own, err := h.store.Run(ctx, run.ID)
	if tenon.ErrorCode(err) == tenon.CodeNotFound { // the run is about to begin
		return true, nil
	}
	return own.Imported == nil, err
}

// state folds a run's whole journal.
func (h *Host) state(ctx context.Context, run string) (*agent.State, error) {
	return h.fold(ctx, run, 0)
}

// fold reads a run's journal up to an event; 0 means all of it.
func (h *Host) fold(ctx context.Context, run string, upTo uint64) (*agent.State, error) {
	events, err := h.store.Events(ctx, run, 0, int(upTo))
	if err != nil {
		return nil, err
	}
	spec, err := engine.ReadSpec(run, events)
	if err != nil {
		return nil, err
	}
	core, err := h.newCore(ctx, spec)
	if err != nil {
		return nil, err
	}
	for _, e := range events {
		if err := core.Apply(e); err != nil {
			return nil, err
		}
	}
	s, ok := core.(*agent.State)
	if !ok {
		return nil, tenon.Errorf(tenon.CodeInvalid, "run %s has no conversation: it is a tool call or a workflow", run)
	}
	return s, nil
}

// runTools returns the tools with which a run works now: the snapshot of an agent, of a single call or of a workflow.
func (h *Host) runTools(ctx context.Context, run string) (*catalog.Snapshot, error) {
	row, err := h.store.Run(ctx, run)
	if err != nil {
		return nil, err
	}
	digest := ""
	switch row.Core {
	case agent.DirectVersion:
		events, err := h.store.Events(ctx, run, 0, 1)
		if err != nil {
			return nil, err
		}
		_, spec, err := view.FirstSpec[agent.DirectSpec](run, events)
		if err != nil {
			return nil, err
		}
		digest = spec.Tools
	case workflow.Version:
		spec, err := h.flows.Spec(ctx, run)
		if err != nil {
			return nil, err
		}
		digest = spec.Tools
	default:
		state, err := h.state(ctx, run)
		if err != nil {
			return nil, err
		}
		digest = state.Spec().Tools
	}
	return h.snapshot(ctx, digest)
}
