package host

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
)

// retainEvery is the interval between searches for sessions past the retention.
const retainEvery = time.Hour

func (h sessionsHandle) Delete(ctx context.Context, session string) error {
	s, err := h.host.Sessions().Get(ctx, session)
	if err != nil {
		return err
	}
	h.host.executor.Forget(s.ID)
	return h.host.store.DeleteSession(ctx, s.ID)
}

// maxTitle bounds the title of a session, in characters.
const maxTitle = 200

func (h sessionsHandle) Rename(ctx context.Context, session, title string) (tenon.Session, error) {
	s, err := h.host.Sessions().Get(ctx, session)
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
	return s, h.host.store.PutSession(ctx, s)
}

func (h storageHandle) Stale(ctx context.Context, age time.Duration) ([]tenon.Session, error) {
	if age <= 0 {
		return nil, tenon.Errorf(tenon.CodeInvalid, "the age of sessions must be positive, is %s", age)
	}
	f := store.SessionFilter{UpdatedBefore: h.host.now().Add(-age), Ended: true, Limit: 1000}
	var old []tenon.Session
	for {
		page, err := h.host.store.Sessions(ctx, f)
		if err != nil {
			return nil, err
		}
		old = append(old, page...)
		if len(page) < f.Limit {
			break
		}
		f.Before = page[len(page)-1].ID
	}
	slices.SortStableFunc(old, func(a, b tenon.Session) int { return b.Created.Compare(a.Created) })
	goes := map[string]bool{}
	var list []tenon.Session
	for _, s := range old { // newest first, so a fork comes before the session that it continues
		forks, err := h.host.store.Sessions(ctx, store.SessionFilter{Parent: s.ID, Limit: maxListed})
		if err != nil {
			return nil, err
		}
		if goes[s.ID] = !slices.ContainsFunc(forks, func(f tenon.Session) bool { return !goes[f.ID] }); goes[s.ID] {
			list = append(list, s)
		}
	}
	return list, nil
}

func (h storageHandle) Prune(ctx context.Context, list []tenon.Session, progress func(deleted int)) (
	[]tenon.Session, error) {
	gone, err := h.host.store.DeleteSessions(ctx, list, progress)
	for _, s := range gone {
		h.host.executor.Forget(s.ID)
	}
	return gone, err
}

func (h storageHandle) Retain(ctx context.Context) {
	age := h.host.config.Store.Retention
	if age <= 0 {
		return
	}
	for {
		list, err := h.host.Service().Storage().Stale(ctx, age)
		var gone []tenon.Session
		if err == nil {
			gone, err = h.host.Service().Storage().Prune(ctx, list, nil)
		}
		if len(gone) > 0 {
			h.host.log.Info("sessions past store.retention are deleted", "sessions", len(gone), "retention", age)
		}
		if err != nil && ctx.Err() == nil {
			h.host.log.Warn("sessions past store.retention cannot be deleted", "error", err)
		}
		select {
		case <-time.After(retainEvery):
		case <-ctx.Done():
			return
		}
	}
}

func (h stateHandle) Probe(ctx context.Context) error { return h.host.store.Probe(ctx) }

func (h stateHandle) Usage() store.Usage { return h.host.store.Usage() }
