package servers

import (
	"context"
	"fmt"
	"time"

	"github.com/tenonhq/tenon"
)

// A server that hangs or starts slowly must not delay a conversation. So a process with which people talk waits only
// [Options.Patience] for the tools of a server that was never listed. After that, the list of tools is made without
// them. If they arrive later, running runs receive them as changed tools.

// firstList is a request for the tools for which several callers wait, but not beyond until.
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

// soon is [Server.List], but returns when the patience of the first caller has passed.
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
		return s.List(ctx) // returns the error that the server is closed
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
// they were listed, and the server's name and version. It does not start or contact the server.
func (s *Server) Recall() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil && !s.loaded && !s.closed && s.conn == nil && s.dialed == nil {
		s.loaded = s.load()
	}
}

// without returns the last listing of a server whose tools did not arrive in time, or an error if there is no
// listing.
func (s *Server) without(err error) ([]tenon.Tool, error) {
	_ = s.LastListed() // loads the listing
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept != nil && tenon.ErrorCode(err) == tenon.CodeTimeout {
		return s.kept, nil
	}
	s.missed = true
	return nil, err
}
