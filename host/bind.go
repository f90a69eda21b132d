package host

import (
	"context"
	"errors"
	"sync"

	"github.com/tenonhq/tenon"
)

// maxBound bounds the runs that are bound to contexts at a time.
const maxBound = 4096

// bindings cancel runs when the contexts end that they are bound to; see [Question.BindContext].
type bindings struct {
	mu      sync.Mutex
	working sync.WaitGroup // bindings that may still cancel their run
	of      map[string]*binding
	closed  bool
}

// binding is the context of one run.
type binding struct {
	cancel func()        // cancels the run, once; concurrent callers wait
	stop   func() bool   // of context.AfterFunc
	failed chan struct{} // closed if the run was not cancelled although the context has ended
}

// room refuses another binding if there are too many. Errors: limit.
func (b *bindings) room(wanted bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if wanted && len(b.of) >= maxBound {
		return tenon.Errorf(tenon.CodeLimit, "%d runs are bound to contexts, and more are not possible at a time; end "+
			"some of the contexts, or ask without BindContext", maxBound)
	}
	return nil
}

// bind cancels a run when a context ends. It returns nil if the run is bound to another context.
func (h *Host) bind(ctx context.Context, run string) *binding {
	b := &binding{failed: make(chan struct{})}
	b.cancel = sync.OnceFunc(func() { h.cancelBound(ctx, run, b) })
	if !h.bound.add(ctx, run, b) {
		return nil
	}
	row, err := h.store.Run(context.WithoutCancel(ctx), run)
	if err == nil && row.State.Ended() { // it ended before it was bound
		h.bound.drop(run)
	}
	return b
}

// cancelBound cancels a run whose context has ended. A context that ends because the process closes leaves the run as
// it is.
func (h *Host) cancelBound(ctx context.Context, run string, b *binding) {
	cause := context.Cause(ctx)
	if errors.Is(cause, tenon.ErrClosing) {
		close(b.failed)
		return
	}
	err := h.Runs().Cancel(context.WithoutCancel(ctx), run, "the context of the caller ended: "+cause.Error())
	if err != nil {
		h.log.Error("a run cannot be cancelled although its context has ended", "run", run, "error", err)
		close(b.failed)
	}
}

// add registers a binding, unless the run has one, ctx never ends, or the host is closed.
func (b *bindings) add(ctx context.Context, run string, one *binding) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, bound := b.of[run]; bound || b.closed || ctx.Done() == nil {
		return false
	}
	if b.of == nil {
		b.of = map[string]*binding{}
	}
	b.of[run] = one
	b.working.Add(1)
	one.stop = context.AfterFunc(ctx, func() {
		defer b.working.Done()
		one.cancel()
		b.drop(run)
	})
	return true
}

// drop ends the binding of a run.
func (b *bindings) drop(run string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	one := b.of[run]
	delete(b.of, run)
	if one != nil && one.stop() {
		b.working.Done()
	}
}

// close ends all bindings and waits until the ones at work have cancelled their run.
func (b *bindings) close() {
	b.mu.Lock()
	b.closed = true
	for run, one := range b.of {
		delete(b.of, run)
		if one.stop() {
			b.working.Done()
		}
	}
	b.mu.Unlock()
	b.working.Wait()
}
