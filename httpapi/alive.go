package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenonhq/tenon"
)

// A process that is stopped (SIGSTOP, a frozen container, a debugger) or stuck accepts connections but never answers. A
// timeout of the request would not help, because an answer may take long for good reasons. Instead the client requests
// /healthz while it waits. A working process answers that request at once.

const (
	// aliveAfter is how long a client waits before it requests /healthz, and between two such requests.
	aliveAfter = 2 * time.Second
	// alivePatience is how long an answer to /healthz may take. The process is stuck after aliveTries failures in
	// sequence, so that a busy machine is not mistaken for a stuck process.
	alivePatience = 3 * time.Second
	aliveTries    = 2
)

// pulse checks whether a process answers.
type pulse struct {
	client *http.Client // with separate connections
	url    string
	whose  string
	before bool // also check before each request that has an effect
	// patience replaces alivePatience and aliveAfter in tests.
	patience time.Duration
	pid      atomic.Int64 // of the process at the other end of a unix socket; 0 if unknown
}

// check requests /healthz. If the process is stuck, it returns an error of code timeout. It returns nil for every other
// failure, because the request itself reports it.
func (p *pulse) check(ctx context.Context) error {
	for range aliveTries {
		err := p.ask(ctx)
		if err == nil || ctx.Err() != nil || !isTimeout(err) {
			return nil
		}
		if pid := p.pid.Load(); pid != 0 && isStopped(int(pid)) {
			break
		}
	}
	return p.stuck()
}

func (p *pulse) ask(ctx context.Context) error {
	limited, stop := context.WithTimeout(ctx, cmp.Or(p.patience, alivePatience))
	defer stop()
	req, err := http.NewRequestWithContext(limited, http.MethodGet, p.url, nil)
	if err != nil {
		return err
	}
	res, err := p.client.Do(req)
	if err != nil {
		return err
	}
	return res.Body.Close() // any answer is a sign of life
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &n) && n.Timeout()
}

// stuck returns the error about a process that does not answer.
func (p *pulse) stuck() error {
	pid := p.pid.Load()
	if pid == 0 {
		return tenon.Errorf(tenon.CodeTimeout, "%s accepts connections and does not answer: it is stopped or stuck; "+
			"restart it", p.whose)
	}
	why := "it is stuck"
	remedy := fmt.Sprintf("end it with: kill -9 %d, then start it again: it resumes its runs", pid)
	if isStopped(int(pid)) {
		why = "it is stopped"
		remedy = fmt.Sprintf("continue it with: kill -CONT %d", pid)
	}
	return tenon.Errorf(tenon.CodeTimeout, "%s (process %d) does not answer: %s; %s", p.whose, pid, why, remedy)
}

// watch cancels a request if its process is stuck. The caller must call stop once. stop waits until the watch has
// ended.
func (p *pulse) watch(ctx context.Context, cancel context.CancelCauseFunc) (stop func()) {
	ctx, end := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(cmp.Or(p.patience, aliveAfter)):
			}
			if err := p.check(ctx); err != nil && ctx.Err() == nil {
				cancel(err)
				return
			}
		}
	})
	return sync.OnceFunc(func() { end(); done.Wait() })
}

// watchedBody is the body of an answer that ends when its process is stuck.
type watchedBody struct {
	io.ReadCloser
	ctx  context.Context
	stop func()
}

// Read implements [io.Reader].
func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		if cause := stuckCause(b.ctx); cause != nil {
			err = cause
		}
	}
	return n, err
}

// Close implements [io.Closer].
func (b *watchedBody) Close() error {
	b.stop()
	return b.ReadCloser.Close()
}

// stuckCause returns the error with which the watch cancelled a request. It returns nil if the watch did not cancel it.
func stuckCause(ctx context.Context) error {
	var e *tenon.Error
	if cause := context.Cause(ctx); errors.As(cause, &e) && e.Code == tenon.CodeTimeout {
		return e
	}
	return nil
}

// send sends a request to a process that may be stuck. Before a request that has an effect, a process on the same
// machine must answer /healthz. Otherwise the request could take effect later, when the process continues.
func (c *Client) send(req *http.Request) (*http.Response, error) {
	if c.pulse == nil {
		return c.http.Do(req)
	}
	if c.pulse.before && req.Method != http.MethodGet {
		if err := c.pulse.check(req.Context()); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	end := c.pulse.watch(ctx, cancel)
	stop := func() { end(); cancel(nil) }
	res, err := c.http.Do(req.WithContext(ctx))
	if err != nil {
		if cause := stuckCause(ctx); cause != nil {
			err = cause
		}
		stop()
		return nil, err
	}
	res.Body = &watchedBody{ReadCloser: res.Body, ctx: ctx, stop: stop}
	return res, nil
}

// Watch returns a context that is cancelled if the process at the other end is stuck. It is for work that waits for the
// process without a request. [Stuck] returns the reason of the cancellation. The caller must call stop once.
func (c *Client) Watch(ctx context.Context) (watched context.Context, stop func()) {
	watched, cancel := context.WithCancelCause(ctx)
	end := c.pulse.watch(watched, cancel)
	return watched, func() { end(); cancel(nil) }
}

// Stuck returns the error, of code timeout, with which a context of [Client.Watch] was cancelled. It returns nil if the
// watch did not cancel the context.
func Stuck(watched context.Context) error { return stuckCause(watched) }

// Check returns an error of code timeout if the process at the other end is stuck.
func (c *Client) Check(ctx context.Context) error { return c.pulse.check(ctx) }
