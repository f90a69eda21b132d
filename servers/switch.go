package servers

import (
	"context"
	"time"

	"github.com/tenonhq/tenon"
)

// switchGrace is how long running calls may take to end when their server is switched off or restarted.
const switchGrace = 2 * time.Second

// Switch disables or enables the server. A disabled server has no tools and no connection; its calls end with an
// error of code invalid. Running calls get a moment to end. Switch waits neither for them nor for a connection.
func (s *Server) Switch(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.off == !on {
		return
	}
	s.off = !on
	s.part()
	s.dropOverlays(false)
	if on {
		s.set(StateCold, nil)
		s.note("state", "enabled")
		return
	}
	s.set(StateDisabled, nil)
	s.note("state", "disabled")
}

// Restart closes an existing connection and makes a new one, whatever restart is configured. Errors: invalid (the
// server is switched off), and the errors of [Server.List].
func (s *Server) Restart(ctx context.Context) error {
	s.mu.Lock()
	if err := s.isOff(); err != nil {
		s.mu.Unlock()
		return err
	}
	if !s.closed {
		s.part()
		s.dropOverlays(false)
		s.set(StateCold, nil)
		s.note("state", "restarted by hand")
	}
	s.mu.Unlock()
	return s.use(ctx, "server '"+s.name+"'", func(c *link) error {
		if !s.cfg.LoadsTools() {
			return nil
		}
		_, err := s.list(ctx, c)
		return err
	})
}

// part detaches the current connection and closes it in the background. The caller holds the lock.
func (s *Server) part() {
	c := s.conn
	s.conn, s.over, s.dialer = nil, nil, nil
	s.tools, s.listed, s.lost = nil, false, false
	if c == nil {
		return
	}
	s.wg.Go(func() {
		done := make(chan struct{})
		s.wg.Go(func() { c.users.Wait(); close(done) })
		t := time.NewTimer(switchGrace)
		defer t.Stop()
		select {
		case <-done:
		case <-t.C:
		case <-s.ctx.Done():
		}
		_ = c.Close() // its users get the error from the connection
	})
}

// isOff returns the error of a disabled server, or nil. The caller holds the lock.
func (s *Server) isOff() error {
	if !s.off {
		return nil
	}
	return tenon.Errorf(tenon.CodeInvalid, "server '%s' is switched off; switch it on with: tenon servers enable %s",
		s.name, s.name)
}
