package host

import (
	"context"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
)

// loginWait is how long the address of a sign-in may take to be known.
const loginWait = 30 * time.Second

// logins are the sign-ins that surfaces began, one for each server at most. The zero
// value is ready.
type logins struct {
	mu     sync.Mutex
	cancel map[string]context.CancelFunc
	wg     sync.WaitGroup
	closed bool
}

// BeginLogin begins a sign-in to a server and returns the address that a person visits
// in a browser on this machine. The sign-in goes on behind it, up to ten minutes; then
// the server is connected anew. Errors: not_found, invalid (there is no sign-in),
// conflict (one is under way), timeout, and why none can begin.
func (h *Host) BeginLogin(ctx context.Context, name string) (url string, err error) {
	s, err := h.server(name)
	if err != nil {
		return "", err
	}
	type address struct {
		url string
		err error
	}
	got := make(chan address, 2) // the address, and how it ended
	if err := h.logins.begin(name, func(ctx context.Context) {
		_, err := s.Login(ctx, func(url string) { got <- address{url: url} })
		if err == nil {
			h.log.Info("signed in to MCP server "+name, "server", name)
			err = s.Restart(ctx)
		}
		if err != nil {
			h.log.Warn("the sign-in to MCP server "+name+" came to nothing", "server", name, "error", err)
		}
		select {
		case got <- address{err: err}:
		default: // nobody waits for it
		}
	}); err != nil {
		return "", err
	}
	t := time.NewTimer(loginWait)
	defer t.Stop()
	select {
	case a := <-got:
		return a.url, a.err
	case <-t.C:
		return "", tenon.Errorf(tenon.CodeTimeout, "server '%s' did not say within %s where to sign in", name, loginWait)
	case <-ctx.Done():
		return "", tenon.Errorf(tenon.CodeCancelled, "%w", context.Cause(ctx))
	}
}

// begin runs a sign-in until it ends or the host is closed.
func (l *logins) begin(server string, do func(context.Context)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return tenon.Errorf(tenon.CodeCancelled, "tenon is stopping")
	case l.cancel[server] != nil:
		return tenon.Errorf(tenon.CodeConflict, "a sign-in to server '%s' is under way; finish it in the browser, or wait until it ends", server)
	case l.cancel == nil:
		l.cancel = map[string]context.CancelFunc{}
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel[server] = cancel
	l.wg.Go(func() {
		do(ctx)
		cancel()
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.cancel, server)
	})
	return nil
}

// close ends them all and waits.
func (l *logins) close() {
	l.mu.Lock()
	l.closed = true
	for _, cancel := range l.cancel {
		cancel()
	}
	l.mu.Unlock()
	l.wg.Wait()
}
