package host

import (
	"context"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
)

// loginWait bounds the time until the address of a sign-in is known.
const loginWait = 30 * time.Second

// logins are the sign-ins that surfaces began, at most one for each server. The zero value is ready.
type logins struct {
	mu     sync.Mutex
	cancel map[string]context.CancelFunc
	wg     sync.WaitGroup
	closed bool
}

func (h serversHandle) Login(ctx context.Context, name string) (url string, err error) {
	s, err := h.host.reached(name)
	if err != nil {
		return "", err
	}
	type address struct {
		url string
		err error
	}
	got := make(chan address, 2) // the address, then the outcome
	if err := h.host.logins.begin(name, func(ctx context.Context) {
		_, err := s.Login(ctx, func(url string) { got <- address{url: url} })
		if err == nil {
			h.host.log.Info("signed in to MCP server "+name, "server", name)
			err = s.Restart(ctx)
		}
		if err != nil {
			h.host.log.Warn("the sign-in to MCP server "+name+" failed", "server", name, "error", err)
		}
		select {
		case got <- address{err: err}:
		default: // the caller no longer waits
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
		return "", tenon.Errorf(tenon.CodeTimeout, "server '%s' did not say within %s where to sign in", name,
			loginWait)
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
		return tenon.Errorf(tenon.CodeConflict, "a sign-in to server '%s' is under way; finish it in the browser, "+
			"or wait until it ends", server)
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

// close ends all sign-ins and waits for them.
func (l *logins) close() {
	l.mu.Lock()
	l.closed = true
	for _, cancel := range l.cancel {
		cancel()
	}
	l.mu.Unlock()
	l.wg.Wait()
}
