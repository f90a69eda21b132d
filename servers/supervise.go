package servers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/deepstack"
	"github.com/tenonhq/tenon/transport"
)

// link is a connection that counts its users.
type link struct {
	connection
	users sync.WaitGroup
}

// The first and the longest pause before a reconnect. Each pause is twice the previous one, changed randomly by up to a
// quarter, so that servers that went down together do not reconnect together.
const (
	firstRetry = 500 * time.Millisecond
	lastRetry  = time.Minute
)

// pauseBefore returns the pause before retry n, counted from 0.
func pauseBefore(n int) time.Duration {
	d := min(firstRetry<<min(n, 10), lastRetry)
	return d*3/4 + rand.N(d/2)
}

// retryLater starts to reconnect in the background if the configuration allows it. The caller holds the lock.
func (s *Server) retryLater() {
	if s.retrying || s.closed || s.cfg.Restart == RestartNever || s.cfg.Lifecycle == LifecyclePerCall {
		return
	}
	s.retrying = true
	pause := pauseBefore(0)
	s.status.Retry = time.Now().Add(pause)
	s.wg.Go(func() { s.retry(pause) })
}

// retry reconnects until there is a connection, or an error that only a person can fix.
func (s *Server) retry(pause time.Duration) {
	stop := func() {
		s.retrying, s.status.Retry = false, time.Time{}
		s.mu.Unlock()
	}
	for n := 1; ; n++ {
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-s.ctx.Done():
			t.Stop()
		}
		s.mu.Lock()
		if s.closed || s.off || s.conn != nil || s.ctx.Err() != nil {
			stop()
			return
		}
		dialed := s.begin()
		s.mu.Unlock()
		<-dialed
		s.mu.Lock()
		if s.closed || s.off || s.conn != nil || s.status.State == StateAuth {
			stop()
			return
		}
		pause = pauseBefore(n)
		s.status.Retry = time.Now().Add(pause)
		s.mu.Unlock()
	}
}

// begin starts an attempt to connect, unless one is running. The caller holds the lock.
func (s *Server) begin() <-chan struct{} {
	if s.dialed == nil {
		s.dialed = make(chan struct{})
		s.status.Phases = nil
		err := s.status.Error
		s.set(StateStarting, nil)
		if s.retrying {
			s.status.Error = err // the last error, until the next attempt ends
		}
		s.wg.Go(s.dialOnce)
	}
	return s.dialed
}

// bury removes a connection that has ended.
func (s *Server) bury(c *link) {
	s.mu.Lock()
	s.forget(c, c.Err())
	s.mu.Unlock()
	_ = c.Close() // frees its resources; the reason of its end is already known
}

// suspect treats a connection that is not to a local process as lost after a request could not reach the server. It
// does not if the cause is in this process. Other users may finish their requests. The caller holds the lock.
func (s *Server) suspect(c *link, err error) {
	if s.conn != c || s.closed || s.cfg.Transport == TransportStdio || noFiles(err) {
		return
	}
	s.forget(c, err)
	if m, ok := c.connection.(*member); ok {
		m.leave()
	}
	s.wg.Go(func() {
		done := make(chan struct{})
		s.wg.Go(func() { c.users.Wait(); close(done) })
		select {
		case <-done:
		case <-s.ctx.Done():
		}
		_ = c.Close() // no caller is left to receive the error
	})
}

// forget records that a connection was lost, with the cause. The caller holds the lock.
func (s *Server) forget(c *link, cause error) {
	if s.conn != c {
		return
	}
	s.conn = nil
	lost := tenon.Errorf(tenon.CodeUnreachable, "the connection was lost: %w", cause)
	err := &tenon.Error{Code: tenon.CodeUnreachable, Err: lost,
		Message: fmt.Sprintf("server '%s' %s", s.name, gone(lost)) + s.silence(lost)}
	s.dialer = err // the error for callers that wait for the connection after its end
	s.log.Warn("lost MCP server", "error", err)
	s.note("error", err.Message)
	s.notify(Notification{Err: err})
	var exit *transport.ExitError
	ended := errors.As(cause, &exit) && strings.HasSuffix(exit.Status, "code 0") && s.cfg.Restart != RestartAlways
	switch {
	case s.cfg.Restart == RestartNever:
		s.over = err
		s.set(StateFailed, err)
	case ended: // no error, so the next use connects again
		s.set(StateFailed, err)
	default:
		s.set(StateBackoff, err)
		s.retryLater()
	}
}

// health is called by the connection when its stream of notifications breaks or is open again.
func (s *Server) health(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.conn == nil:
	case err == nil && s.status.State == StateDegraded:
		s.set(StateReady, nil)
	case err != nil && s.status.State == StateReady:
		s.set(StateDegraded, &tenon.Error{Code: tenon.CodeUnreachable, Err: err,
			Message: fmt.Sprintf("server '%s' answers, but does not report changes: %s", s.name, clean(err.Error())) +
				s.silence(err)})
	}
}

// use calls f with the kept connection, or, with per_call, with a separate connection. what describes the caller's
// purpose, for errors.
func (s *Server) use(ctx context.Context, what string, f func(c *link) error) error {
	if s.cfg.Lifecycle == LifecyclePerCall {
		return s.once(ctx, what, f)
	}
	c, err := s.connect(ctx, what)
	if err != nil {
		return err
	}
	defer c.users.Done()
	return f(c)
}

// once makes a separate connection for one use and closes it.
func (s *Server) once(ctx context.Context, what string, f func(c *link) error) error {
	own := New(s.name, s.cfg, s.opts)
	own.journal, own.frames, own.flood, own.single, own.roots = s.journal, s.frames, s.flood, true, s.roots
	own.cfg.Lifecycle, own.cfg.Restart = LifecycleLazy, RestartNever
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return tenon.Errorf(tenon.CodeUnreachable, "server '%s' is closed", s.name)
	}
	if err := s.isOff(); err != nil {
		s.mu.Unlock()
		return err
	}
	own.protocol, own.found = s.protocol, s.found
	s.set(StateStarting, nil)
	s.singles.Add(1)
	s.mu.Unlock()
	defer s.singles.Done()
	// If the server is closed meanwhile, close this connection, too.
	stop := context.AfterFunc(s.ctx, func() { _ = own.Close() })
	defer stop()
	c, err := own.connect(ctx, what)
	if err == nil {
		err = f(c)
		c.users.Done()
	}
	st := own.Status()
	_ = own.Close() // the call has its result, so an error at the end does not matter
	s.mu.Lock()
	defer s.mu.Unlock()
	s.protocol, s.found = own.protocol, own.found
	s.status.Starts += st.Starts
	s.status.Protocol, s.status.Server, s.status.Phases, s.status.Found = st.Protocol, st.Server, st.Phases, st.Found
	if st.State == StateReady || st.State == StateDegraded {
		s.set(StateCold, nil) // until the next call
	} else {
		s.set(st.State, nil)
		s.status.Error = st.Error
	}
	return err
}

// dialInTime dials within the server's timeout. A connection that is made later is closed.
func (s *Server) dialInTime() (*dialed, error) {
	ctx, cancel := context.WithTimeout(s.ctx, s.cfg.Timeout)
	defer cancel()
	type outcome struct {
		d   *dialed
		err error
	}
	slow := s.watchStart() // started before the dial, because a process can write its first line at once
	s.slow.Store(slow)
	defer func() { s.slow.Store(nil); slow.stop() }()
	done := make(chan outcome, 1)
	s.wg.Go(func() {
		deepstack.Work()
		d, err := s.connector(ctx)
		done <- outcome{d, err}
	})
	var o outcome
	late := time.NewTimer(s.cfg.Timeout + teardown)
	defer late.Stop()
	select {
	case o = <-done:
	case <-late.C:
		o.err = &tenon.Error{Code: tenon.CodeTimeout, Message: "it did not answer in time",
			Err: context.DeadlineExceeded}
		s.wg.Go(func() {
			if o := <-done; o.d != nil {
				_ = o.d.conn.Close() // nobody waits for it any more
			}
		})
	}
	return o.d, o.err
}
