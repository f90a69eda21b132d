package host

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/view"
)

func (h sessionsHandle) Get(ctx context.Context, ref string) (tenon.Session, error) {
	if n, err := strconv.Atoi(ref); err == nil && n < 0 {
		list, err := h.host.store.Sessions(ctx, store.SessionFilter{Limit: -n})
		if err != nil {
			return tenon.Session{}, err
		}
		if len(list) < -n {
			return tenon.Session{}, tenon.Errorf(tenon.CodeNotFound, "there is no session %s: the store has %d", ref,
				len(list))
		}
		return list[-n-1], nil
	}
	s, err := h.host.store.Session(ctx, ref)
	if tenon.ErrorCode(err) != tenon.CodeNotFound {
		return s, err
	}
	found, err := h.host.store.Sessions(ctx, store.SessionFilter{Prefix: ref, Limit: 2})
	switch {
	case err != nil:
		return tenon.Session{}, err
	case ref == "" || len(found) == 0:
		return tenon.Session{}, tenon.Errorf(tenon.CodeNotFound, "there is no session '%s'; tenon sessions list "+
			"shows them", ref)
	case len(found) > 1:
		return tenon.Session{}, tenon.Errorf(tenon.CodeConflict, "'%s' begins the ids of several sessions; give "+
			"more of it", ref)
	}
	return found[0], nil
}

// maxListed bounds one read of a list.
const maxListed = 10_000

// SessionFilter selects sessions. Zero fields select all.
type SessionFilter = store.SessionFilter

func (h sessionsHandle) List(ctx context.Context, f SessionFilter) ([]tenon.Session, error) {
	return h.host.store.Sessions(ctx, f)
}

func (h transcriptsHandle) Context(ctx context.Context, session string, seen bool) ([]*tenon.Message, error) {
	s, err := h.host.store.Session(ctx, session)
	if err != nil || s.Head == "" {
		return nil, err
	}
	state, err := h.host.fold(ctx, s.Head, s.HeadSeq)
	switch {
	case err != nil:
		return nil, err
	case seen:
		return policy.MaskMessages(state.Messages(), h.host.redacts), nil
	}
	return policy.MaskMessages(state.History(), h.host.redacts), nil
}

func (h runsHandle) Get(ctx context.Context, ref string) (tenon.Run, error) {
	if strings.HasPrefix(ref, "run_") { // usually a whole id
		if r, err := h.host.store.Run(ctx, ref); tenon.ErrorCode(err) != tenon.CodeNotFound {
			return r, err
		}
	}
	// A reference to a called run contains its caller's id, so without a slash only top-level runs match.
	f := store.RunFilter{Prefix: ref, Top: !strings.Contains(ref, "/"), Limit: 2}
	if n, err := strconv.Atoi(ref); err == nil && n < 0 {
		f = store.RunFilter{Top: true, Limit: -n}
		list, err := h.host.store.Runs(ctx, f)
		if err != nil {
			return tenon.Run{}, err
		}
		if len(list) < -n {
			return tenon.Run{}, tenon.Errorf(tenon.CodeNotFound, "there is no run %s: the store has %d", ref, len(list))
		}
		return list[-n-1], nil
	}
	list, err := h.host.store.Runs(ctx, f)
	switch {
	case err != nil:
		return tenon.Run{}, err
	case ref == "" || len(list) == 0:
		return tenon.Run{}, tenon.Errorf(tenon.CodeNotFound, "there is no run '%s'; tenon runs list shows them", ref)
	case len(list) > 1 && list[0].ID != ref && list[1].ID != ref:
		return tenon.Run{}, tenon.Errorf(tenon.CodeConflict, "'%s' begins the ids of several runs; give more of it",
			ref)
	case len(list) > 1 && list[1].ID == ref:
		return list[1], nil
	}
	return list[0], nil
}

func (h runsHandle) List(ctx context.Context, f engine.Filter) ([]tenon.Run, error) {
	return h.host.engine.List(ctx, f)
}

func (h viewHandle) Journal(ctx context.Context, after uint64, limit int) ([]tenon.Event, error) {
	events, err := h.host.store.Events(ctx, h.id, after, limit)
	return policy.MaskEvents(events, h.host.redacts), err
}

func (h viewHandle) Owner(context.Context) (o Owner, err error) {
	if o.Working, err = h.host.store.Held(h.id); err != nil {
		return o, err
	}
	o.Served, err = h.host.store.Held(claims + ServeClaim)
	return o, err
}

func (h viewHandle) Report(ctx context.Context) (view.Report, error) {
	row, err := h.host.store.Run(ctx, h.id)
	if err != nil {
		return view.Report{}, err
	}
	events, err := h.host.store.Events(ctx, h.id, 0, 0)
	if err != nil {
		return view.Report{}, err
	}
	row.Waiting = policy.MaskWaiting(row.Waiting, h.host.redacts)
	return view.Of(policy.MaskEvents(events, h.host.redacts)).Report(row), nil
}

func (h transcriptsHandle) Calls(ctx context.Context, session string) ([]view.Call, error) {
	runs, err := h.host.store.Runs(ctx, store.RunFilter{Session: session, Limit: maxListed})
	if err != nil {
		return nil, err
	}
	calls := []view.Call{}
	for _, r := range slices.Backward(runs) {
		events, err := h.host.store.Events(ctx, r.ID, 0, 0)
		if err != nil {
			return nil, err
		}
		calls = append(calls, view.Of(policy.MaskEvents(events, h.host.redacts)).Calls()...)
	}
	return calls, nil
}
