package forward

import (
	"context"
	"net/http"
	"time"

	"github.com/tenonhq/tenon"
)

// owner is a process to which requests are under way.
type owner struct {
	users int
	gone  context.Context // ends when the process is gone; the cause is errGone
	end   context.CancelCauseFunc
}

// until returns the context of a request to an owner. It ends when the client has gone, when the owner is gone, or when
// the forwarder is closed. When this process begins to stop, only streams end, and answers may still arrive. Errors:
// cancelled (this process ends).
func (f *Forwarder) until(r *http.Request, id string) (ctx context.Context, stop func(), err error) {
	o, err := f.look(id)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(r.Context()))
	left := context.AfterFunc(r.Context(), func() {
		if r.Method == http.MethodGet || !isClosing(r.Context()) {
			cancel(context.Cause(r.Context()))
		}
	})
	lost := context.AfterFunc(o.gone, func() { cancel(errGone) })
	closed := context.AfterFunc(f.closed, func() { cancel(context.Cause(f.closed)) })
	return ctx, func() {
		left()
		lost()
		closed()
		cancel(nil)
		f.leave(id, o)
		f.calls.Done()
	}, nil
}

// look counts a request, and begins to look at its owner or joins the requests for which that is done.
func (f *Forwarder) look(id string) (*owner, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ending {
		return nil, &tenon.Error{Code: tenon.CodeCancelled, Err: tenon.ErrClosing,
			Message: "tenon is stopping; send the request again"}
	}
	f.calls.Add(1)
	o := f.owners[id]
	if o == nil {
		o = &owner{}
		o.gone, o.end = context.WithCancelCause(context.Background())
		f.owners[id] = o
		f.owned.Go(func() { f.watch(id, o) })
	}
	o.users++
	return o, nil
}

func (f *Forwarder) leave(id string, o *owner) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if o.users--; o.users == 0 {
		o.end(nil)
		if f.owners[id] == o {
			delete(f.owners, id)
		}
	}
}

// watch asks the store whether an owner is alive, while requests to it are under way. If the store does not answer, the
// requests go on: the owner answers or not. One look at an expired row does not count, because the database may have
// been away for longer than a lease: the owner is gone after two looks a third of a lease apart, with no failed one and
// none that found it alive in between.
func (f *Forwarder) watch(id string, o *owner) {
	ticker := time.NewTicker(f.cfg.Poll)
	defer ticker.Stop()
	var missed time.Time // the first of the looks that did not find the owner; zero if the last one found it or failed
	for {
		select {
		case <-ticker.C:
		case <-o.gone.Done():
			return
		}
		ctx, stop := context.WithTimeout(o.gone, f.cfg.Poll)
		began := time.Now()
		_, alive, err := f.cfg.Peers.Peer(ctx, id)
		stop()
		switch {
		case err != nil || alive:
			missed = time.Time{}
		case missed.IsZero():
			missed = time.Now()
		case began.Sub(missed) >= f.cfg.Lease/3:
			f.mu.Lock()
			if f.owners[id] == o {
				delete(f.owners, id)
			}
			f.mu.Unlock()
			o.end(errGone)
			return
		}
	}
}
