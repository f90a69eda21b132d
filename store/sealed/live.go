package sealed

import (
	"context"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
)

// Live events are stored in a table of the database for a short time. An event that may contain a named value is
// encrypted, as in the journal. An event that cannot be encrypted or decrypted is dropped, because followers do not
// depend on live events.

// boundLive returns the name to which a live event is bound.
func boundLive(e tenon.Event) string { return "live\x00" + e.Run + "\x00" + e.Kind + "\x00" + e.Step }

// FollowLive implements [store.Live]. If the embedded store does not implement [store.Live], FollowLive only waits
// until ctx ends.
func (w *Store) FollowLive(ctx context.Context, run string, each func(tenon.Event)) {
	if l, ok := w.Store.(store.Live); ok {
		l.FollowLive(ctx, run, func(e tenon.Event) {
			data, err := w.open(e.Data, boundLive(e))
			if err == nil {
				e.Data = data
				each(e)
			}
		})
		return
	}
	<-ctx.Done()
}

// Followed implements [store.Live].
func (w *Store) Followed(ctx context.Context) ([]store.LiveFollower, error) {
	if l, ok := w.Store.(store.Live); ok {
		return l.Followed(ctx)
	}
	return nil, nil
}

// Wake implements [store.Live]. If the embedded store does not implement [store.Live], other processes cannot follow,
// and Wake returns nil.
func (w *Store) Wake() <-chan struct{} {
	if l, ok := w.Store.(store.Live); ok {
		return l.Wake()
	}
	return nil
}

// PublishLive implements [store.Live].
func (w *Store) PublishLive(ctx context.Context, list []store.LiveEvents) error {
	l, ok := w.Store.(store.Live)
	if !ok {
		return nil
	}
	for i := range list {
		var kept []tenon.Event
		for _, e := range list[i].Events {
			data, err := w.seal(e.Data, boundLive(e))
			if err == nil {
				e.Data = data
				kept = append(kept, e)
			}
		}
		list[i].Events = kept
	}
	return l.PublishLive(ctx, list)
}

var _ store.Live = (*Store)(nil)
