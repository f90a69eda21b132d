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
	"github.com/tenonhq/tenon/transport"
)

// link is a connection and those who use it.
type link struct {
	connection
	users sync.WaitGroup
}

// The pauses before a connection is tried again: the first, doubled each time, at
// most the last, each a quarter more or less, so that many servers that went down
// together do not come back together.
const (
	firstRetry = 500 * time.Millisecond
	lastRetry  = time.Minute
)

// pauseBefore is the pause before the nth retry, from 0.
func pauseBefore(n int) time.Duration {
	d := min(firstRetry<<min(n, 10), lastRetry)
	return d*3/4 + rand.N(d/2)
}

// retryLater begins to try again in the background, as the configuration has it;
// the caller holds the lock.
func (s *Server) retryLater() {
	if s.retrying || s.closed || s.cfg.Restart == RestartNever || s.cfg.Lifecycle == LifecyclePerCall {
		return
	}
	s.retrying = true
	pause := pauseBefore(0)
	s.status.Retry = time.Now().Add(pause)
	s.wg.Go(func() { s.retry(pause) })
}

// retry tries until there is a connection, or until only a person can help.
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

// begin starts an attempt to connect unless one is under way; the caller holds the
// lock.
func (s *Server) begin() <-chan struct{} {
	if s.dialed == nil {
		s.dialed = make(chan struct{})
		s.status.Phases = nil
		err := s.status.Error
		s.set(StateStarting, nil)
		if s.retrying {
			s.status.Error = err // the last one, until it is known better
		}
		s.wg.Go(s.dialOnce)
	}
	return s.dialed
}

// bury forgets a connection that has ended.
func (s *Server) bury(c *link) {
	s.mu.Lock()
	s.forget(c, c.Err())
	s.mu.Unlock()
	_ = c.Close() // what is left of it; its end is known already
}

// suspect takes a connection for lost that has no life of its own, as with HTTP,
// after a request could not reach the server. Others that use it may finish. The
// caller holds the lock.
func (s *Server) suspect(c *link, err error) {
	if s.conn != c || s.closed || s.cfg.Transport == TransportStdio {
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
		_ = c.Close() // there is nobody to be told
	})
}

// forget records that a connection was lost, and why; the caller holds the lock.
func (s *Server) forget(c *link, cause error) {
	if s.conn != c {
		return
	}
	s.conn = nil
	lost := tenon.Errorf(tenon.CodeUnreachable, "the connection was lost: %w", cause)
	err := &tenon.Error{Code: tenon.CodeUnreachable, Message: fmt.Sprintf("server '%s' %s", s.name, gone(lost)), Err: lost}
	s.dialer = err // for those who wait for the connection, and come after its end
	s.log.Warn("lost MCP server", "error", err)
	s.note("error", err.Message)
	var exit *transport.ExitError
	ended := errors.As(cause, &exit) && strings.HasSuffix(exit.Status, "code 0") && s.cfg.Restart != RestartAlways
	switch {
	case s.cfg.Restart == RestartNever:
		s.over = err
		s.set(StateFailed, err)
	case ended: // it went well, so the next use starts it
		s.set(StateFailed, err)
	default:
		s.set(StateBackoff, err)
		s.retryLater()
	}
}

// health is told by the connection that what it gets besides answers broke, or
// came back.
func (s *Server) health(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.conn == nil:
	case err == nil && s.status.State == StateDegraded:
		s.set(StateReady, nil)
	case err != nil && s.status.State == StateReady:
		s.set(StateDegraded, &tenon.Error{Code: tenon.CodeUnreachable, Err: err,
			Message: fmt.Sprintf("server '%s' answers, but does not tell of changes: %s", s.name, clean(err.Error()))})
	}
}

// use gives a connection to f, which is the one that is kept, or with per_call
// one for this alone. What is what the caller wants, for errors.
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

// once connects for one use.
func (s *Server) once(ctx context.Context, what string, f func(c *link) error) error {
	own := New(s.name, s.cfg, s.opts)
	own.journal, own.frames, own.single = s.journal, s.frames, true
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
	// Close ends it as it ends the server.
	stop := context.AfterFunc(s.ctx, func() { _ = own.Close() })
	defer stop()
	c, err := own.connect(ctx, what)
	if err == nil {
		err = f(c)
		c.users.Done()
	}
	st := own.Status()
	_ = own.Close() // a server that ends badly has nothing more to tell
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
