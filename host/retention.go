package host

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
)

// retainEvery is how often sessions are looked for that are past the retention.
const retainEvery = time.Hour

// DeleteSession deletes a session with its runs and all that only they need; see
// [store.Sessions]. Errors: not_found, conflict (one of its runs is worked on,
// another session goes on from it), store.
func (h *Host) DeleteSession(ctx context.Context, session string) error {
	s, err := h.Session(ctx, session)
	if err != nil {
		return err
	}
	h.results.Forget(s.ID)
	return h.store.DeleteSession(ctx, s.ID)
}

// maxTitle bounds the title of a session, in characters.
const maxTitle = 200

// RenameSession gives a session another title, one line of at most 200
// characters. Errors: not_found, invalid, store.
func (h *Host) RenameSession(ctx context.Context, session, title string) (tenon.Session, error) {
	s, err := h.Session(ctx, session)
	if err != nil {
		return s, err
	}
	title = strings.Join(strings.Fields(strings.ToValidUTF8(title, "\uFFFD")), " ")
	switch n := len([]rune(title)); {
	case n == 0:
		return s, tenon.Errorf(tenon.CodeInvalid, "the title is empty")
	case n > maxTitle:
		return s, tenon.Errorf(tenon.CodeInvalid, "the title has %d characters; at most %d are kept", n, maxTitle)
	}
	s.Title = title
	return s, h.store.PutSession(ctx, s)
}

// Stale returns the sessions that nothing has changed for a time, the newest first:
// the order in which they can be deleted, forks before what they go on from. Those
// with a run that has not ended, whoever called it, are not among them, nor are those
// that a younger session goes on from.
func (h *Host) Stale(ctx context.Context, age time.Duration) ([]tenon.Session, error) {
	if age <= 0 {
		return nil, tenon.Errorf(tenon.CodeInvalid, "the age of sessions must be positive, is %s", age)
	}
	f := store.SessionFilter{UpdatedBefore: h.now().Add(-age), Limit: 1000}
	var old []tenon.Session
	for {
		page, err := h.store.Sessions(ctx, f)
		if err != nil {
			return nil, err
		}
		for _, s := range page {
			if open, err := h.hasOpenRun(ctx, s.ID); err != nil {
				return nil, err
			} else if !open {
				old = append(old, s)
			}
		}
		if len(page) < f.Limit {
			break
		}
		f.Before = page[len(page)-1].ID
	}
	slices.SortStableFunc(old, func(a, b tenon.Session) int { return b.Created.Compare(a.Created) })
	goes := map[string]bool{}
	var list []tenon.Session
	for _, s := range old { // forks come before what they go on from
		forks, err := h.store.Sessions(ctx, store.SessionFilter{Parent: s.ID, Limit: maxListed})
		if err != nil {
			return nil, err
		}
		if goes[s.ID] = !slices.ContainsFunc(forks, func(f tenon.Session) bool { return !goes[f.ID] }); goes[s.ID] {
			list = append(list, s)
		}
	}
	return list, nil
}

func (h *Host) hasOpenRun(ctx context.Context, session string) (bool, error) {
	for _, state := range []tenon.RunState{tenon.RunWorking, tenon.RunInputRequired} {
		runs, err := h.store.Runs(ctx, store.RunFilter{Session: session, State: state, Limit: 1})
		if err != nil || len(runs) > 0 {
			return len(runs) > 0, err
		}
	}
	return false, nil
}

// Prune deletes sessions that were [Host.Stale], in that order, and returns those that
// are gone: what a person was shown, and no more. One that came into use since is left
// as it is.
func (h *Host) Prune(ctx context.Context, list []tenon.Session) ([]tenon.Session, error) {
	var gone []tenon.Session
	for _, s := range list {
		now, serr := h.store.Session(ctx, s.ID)
		if serr == nil && now.Updated.After(s.Updated) {
			continue
		}
		switch err := h.store.DeleteSession(ctx, s.ID); tenon.ErrorCode(err) {
		case "":
			h.results.Forget(s.ID)
			gone = append(gone, s)
		case tenon.CodeConflict, tenon.CodeNotFound: // in use again, or somebody else was faster
		default:
			return gone, err
		}
	}
	return gone, nil
}

// Retain deletes what is past the configuration's store.retention, now and every
// hour until ctx ends. Without one it returns at once. A store needs one process
// that does this, see [Host.Claim].
func (h *Host) Retain(ctx context.Context) {
	age := h.config.Store.Retention
	if age <= 0 {
		return
	}
	for {
		list, err := h.Stale(ctx, age)
		var gone []tenon.Session
		if err == nil {
			gone, err = h.Prune(ctx, list)
		}
		if len(gone) > 0 {
			h.log.Info("sessions past store.retention are deleted", "sessions", len(gone), "retention", age)
		}
		if err != nil && ctx.Err() == nil {
			h.log.Warn("sessions past store.retention cannot be deleted", "error", err)
		}
		select {
		case <-time.After(retainEvery):
		case <-ctx.Done():
			return
		}
	}
}
