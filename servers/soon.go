package servers

import (
	"context"
	"fmt"
	"time"

	"github.com/tenonhq/tenon"
)

// A server that hangs or is slow to start must not hold up a conversation, so a process that people talk to waits only
// [Options.Patience] for tools that no listing has. Then the list is made without them. Runs receive tools that come
// later as changed tools.

// firstList is a request for the tools that several callers wait for, each no longer than until.
type firstList struct {
	until time.Time
	done  chan struct{} // closed when tools and err are set
	tools []tenon.Tool
	err   error
}

// isImpatient reports whether Tools waits no longer than [Options.Patience].
func (s *Server) isImpatient() bool {
	return s.opts.Patience > 0 && s.cfg.Discover == DiscoverCached && !s.cfg.Required && !s.opts.RefreshTools
}

// soon is [Server.List] that ends after the patience of the first caller.
func (s *Server) soon(ctx context.Context) ([]tenon.Tool, error) {
	s.mu.Lock()
	f := s.first
	if f == nil && !s.closed {
		f = &firstList{until: time.Now().Add(s.opts.Patience), done: make(chan struct{})}
		s.first = f
		s.wg.Go(func() {
			f.tools, f.err = s.List(s.ctx)
			s.mu.Lock()
			s.first = nil
			s.mu.Unlock()
			close(f.done)
		})
	}
	s.mu.Unlock()
	if f == nil {
		return s.List(ctx) // which says that it is closed
	}
	late := time.NewTimer(time.Until(f.until))
	defer late.Stop()
	select {
	case <-f.done:
		if f.err != nil {
			return s.without(f.err)
		}
		return f.tools, nil
	case <-ctx.Done():
		return nil, gaveUp(ctx, fmt.Sprintf("the list of tools of server '%s'", s.name), "it was asked for already")
	case <-late.C:
	}
	return s.without(tenon.Errorf(tenon.CodeTimeout, "server '%s' is not ready: it did not list its tools within %s; "+
		"they are offered as soon as it does", s.name, s.opts.Patience))
}

// Recall fills in the status of a server that was not used yet from its last listing: the number of its tools, when
// they were listed, and what the server said about itself. It does not start or contact the server.
func (s *Server) Recall() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil && !s.loaded && !s.closed && s.conn == nil && s.dialed == nil {
		s.loaded = s.load()
	}
}

// without returns the last listing of a server whose tools are not there in time, and why there is none otherwise.
func (s *Server) without(err error) ([]tenon.Tool, error) {
	_ = s.LastListed() // reads it
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept != nil && tenon.ErrorCode(err) == tenon.CodeTimeout {
		return s.kept, nil
	}
	s.missed = true
	return nil, err
}
