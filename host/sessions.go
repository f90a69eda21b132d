package host

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/store"
)

// Session finds a session: by id, by the unique beginning of one, or counted
// from the last ("-1" is the one that was used last).
func (h *Host) Session(ctx context.Context, ref string) (tenon.Session, error) {
	if n, err := strconv.Atoi(ref); err == nil && n < 0 {
		list, err := h.store.Sessions(ctx, store.SessionFilter{Limit: -n})
		if err != nil {
			return tenon.Session{}, err
		}
		if len(list) < -n {
			return tenon.Session{}, tenon.Errorf(tenon.CodeNotFound, "there is no session %s: the store has %d", ref, len(list))
		}
		return list[-n-1], nil
	}
	s, err := h.store.Session(ctx, ref)
	if tenon.ErrorCode(err) != tenon.CodeNotFound {
		return s, err
	}
	found, err := h.store.Sessions(ctx, store.SessionFilter{Prefix: ref, Limit: 2})
	switch {
	case err != nil:
		return tenon.Session{}, err
	case ref == "" || len(found) == 0:
		return tenon.Session{}, tenon.Errorf(tenon.CodeNotFound, "there is no session '%s'; tenon sessions list shows them", ref)
	case len(found) > 1:
		return tenon.Session{}, tenon.Errorf(tenon.CodeConflict, "'%s' begins the ids of several sessions; give more of it", ref)
	}
	return found[0], nil
}

// maxListed bounds what is read of a list at a time.
const maxListed = 10_000

// Sessions returns the sessions, most recently used first.
func (h *Host) Sessions(ctx context.Context, limit int) ([]tenon.Session, error) {
	return h.store.Sessions(ctx, store.SessionFilter{Limit: limit})
}

// SessionFilter selects sessions. Zero fields select all.
type SessionFilter = store.SessionFilter

// ListSessions returns the sessions that a filter selects, most recently used first.
// Errors: not_found (the session of Before).
func (h *Host) ListSessions(ctx context.Context, f SessionFilter) ([]tenon.Session, error) {
	return h.store.Sessions(ctx, f)
}

// Messages returns a session's conversation up to its head: all that was said, or,
// with seen, what the model sees of it after compactions.
func (h *Host) Messages(ctx context.Context, session string, seen bool) ([]*tenon.Message, error) {
	s, err := h.store.Session(ctx, session)
	if err != nil || s.Head == "" {
		return nil, err
	}
	state, err := h.fold(ctx, s.Head, s.HeadSeq)
	switch {
	case err != nil:
		return nil, err
	case seen:
		return h.veilMessages(state.Messages()), nil
	}
	return h.veilMessages(state.History()), nil
}

// RunRow finds a run: by id, by the unique beginning of one, or counted from
// the last ("-1").
func (h *Host) RunRow(ctx context.Context, ref string) (tenon.Run, error) {
	if strings.HasPrefix(ref, "run_") { // mostly a whole id
		if r, err := h.store.Run(ctx, ref); tenon.ErrorCode(err) != tenon.CodeNotFound {
			return r, err
		}
	}
	// Runs that others called are named in full, or below their caller.
	f := store.RunFilter{Prefix: ref, Top: !strings.Contains(ref, "/"), Limit: 2}
	if n, err := strconv.Atoi(ref); err == nil && n < 0 {
		f = store.RunFilter{Top: true, Limit: -n}
		list, err := h.store.Runs(ctx, f)
		if err != nil {
			return tenon.Run{}, err
		}
		if len(list) < -n {
			return tenon.Run{}, tenon.Errorf(tenon.CodeNotFound, "there is no run %s: the store has %d", ref, len(list))
		}
		return list[-n-1], nil
	}
	list, err := h.store.Runs(ctx, f)
	switch {
	case err != nil:
		return tenon.Run{}, err
	case ref == "" || len(list) == 0:
		return tenon.Run{}, tenon.Errorf(tenon.CodeNotFound, "there is no run '%s'; tenon runs list shows them", ref)
	case len(list) > 1 && list[0].ID != ref && list[1].ID != ref:
		return tenon.Run{}, tenon.Errorf(tenon.CodeConflict, "'%s' begins the ids of several runs; give more of it", ref)
	case len(list) > 1 && list[1].ID == ref:
		return list[1], nil
	}
	return list[0], nil
}

// Runs returns runs, newest first.
func (h *Host) Runs(ctx context.Context, f engine.Filter) ([]tenon.Run, error) {
	return h.engine.List(ctx, f)
}

// Journal returns a run's stored events after the given number.
func (h *Host) Journal(ctx context.Context, run string, after uint64) ([]tenon.Event, error) {
	events, err := h.store.Events(ctx, run, after, 0)
	return h.veil(events), err
}

// Report says what a run came to, or how far it has come.
func (h *Host) Report(ctx context.Context, run string) (agent.Report, error) {
	row, err := h.store.Run(ctx, run)
	if err != nil {
		return agent.Report{}, err
	}
	events, err := h.store.Events(ctx, run, 0, 0)
	if err != nil {
		return agent.Report{}, err
	}
	row.Waiting = h.veilWaiting(row.Waiting)
	return agent.Fold(row, h.veil(events)), nil
}

// Calls returns the audit records of all tool calls of a session, oldest first.
func (h *Host) Calls(ctx context.Context, session string) ([]agent.CallRecord, error) {
	runs, err := h.store.Runs(ctx, store.RunFilter{Session: session, Limit: maxListed})
	if err != nil {
		return nil, err
	}
	calls := []agent.CallRecord{}
	for _, r := range slices.Backward(runs) {
		events, err := h.store.Events(ctx, r.ID, 0, 0)
		if err != nil {
			return nil, err
		}
		calls = append(calls, agent.Calls(h.veil(events))...)
	}
	return calls, nil
}
