package servers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/transport"
)

// Options are what a server needs beside its configuration.
type Options struct {
	LookupEnv func(string) (string, bool) // where inherit_env reads; nil: nothing is inherited
	Version   string                      // ours, told to the server
	// Resolve returns the configuration with its secrets, which are read when the
	// server is started and not before. Nil: it has none.
	Resolve func(ctx context.Context) (Config, error)
	Logger  *slog.Logger // nil: nothing is logged
	// Changed is called, on a goroutine of the connection, after a server told
	// that its tools have changed. It must not block. Nil: nobody is told.
	Changed func(server string)
}

// Server is one configured MCP server. It connects at its first use, and again
// at the first use after the connection was lost. It is safe for concurrent
// use.
type Server struct {
	name string
	cfg  Config
	opts Options
	log  *slog.Logger
	slot chan struct{} // holds the one call of a server that takes one at a time; nil: any number

	mu     sync.Mutex
	status Status
	conn   connection // nil while there is none
	dialed chan struct{}
	dialer error // how the last connect ended
	tools  []tenon.Tool
	listed bool
	// changes counts how often the server said that its tools changed, so that a
	// list that was under way then is not kept.
	changes int
	closed  bool
	// protocol is the revision that was found, so that it is asked for once.
	protocol string
	found    string           // the transport that auto found, "" for none yet
	process  *transport.Stdio // that of the connect under way, for its last words
	stepped  time.Time        // when the step of connecting that is under way began
	ctx      context.Context  // ends with Close
	cancel   context.CancelFunc
	wg       sync.WaitGroup // connects under way, watchers, and what ends old connections
	// connector is dial, but for tests.
	connector func(context.Context) (*dialed, error)
}

// connection is what a server needs of an MCP client.
type connection interface {
	tenon.Toolset
	Done() <-chan struct{} // closed when the connection is lost
	Err() error            // why
	Close() error
}

// New returns the server of one entry of the configuration. It starts nothing.
func New(name string, cfg Config, opts Options) *Server {
	s := &Server{name: name, cfg: cfg.WithDefaults(), opts: opts, log: opts.Logger}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.log = s.log.With("server", name)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.connector = s.dial
	if !s.cfg.IsParallel() {
		s.slot = make(chan struct{}, 1)
	}
	s.status = Status{Name: name, Title: s.cfg.Title, Transport: s.cfg.Transport, Target: s.target(), State: StateCold, Tools: -1,
		Deprecated: s.cfg.Transport == TransportSSE}
	return s
}

// target is what a person knows the server by, without the credentials of a URL.
func (s *Server) target() string {
	if s.cfg.Transport == TransportStdio {
		return transport.MaskURLs(strings.Join(append([]string{s.cfg.Command}, s.cfg.Args...), " "))
	}
	return transport.MaskURL(s.cfg.URL)
}

// Status returns what is known about the server now.
func (s *Server) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

// Tools returns the server's tools, connecting if need be. They are asked for
// once for each connection, and again after the server said that they changed.
func (s *Server) Tools(ctx context.Context) ([]tenon.Tool, error) {
	if !s.cfg.LoadsTools() {
		return nil, nil
	}
	c, err := s.connect(ctx, fmt.Sprintf("the list of tools of server '%s'", s.name))
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	tools, listed, changes := s.tools, s.listed, s.changes
	s.mu.Unlock()
	if listed {
		return tools, nil
	}
	start := time.Now()
	tools, err = c.Tools(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == c {
		// A copy, because a status that was given out holds the old one.
		s.status.Phases = append(slices.DeleteFunc(slices.Clone(s.status.Phases), func(p Phase) bool { return p.Name == phaseList }),
			Phase{phaseList, time.Since(start).Milliseconds()})
	}
	if err != nil {
		return nil, s.explain("", err)
	}
	if s.conn == c && s.changes == changes {
		s.tools, s.listed = tools, true
		s.status.Tools = len(tools)
	}
	return tools, nil
}

// Call runs a tool by its remote name. See [tenon.Toolset].
func (s *Server) Call(ctx context.Context, c tenon.Call) (*tenon.Result, error) {
	if s.slot != nil {
		select {
		case s.slot <- struct{}{}:
			defer func() { <-s.slot }()
		case <-ctx.Done():
			return nil, gaveUp(ctx, fmt.Sprintf("the call of tool '%s' of server '%s'", c.Tool, s.name), "it waited for the call before it")
		}
	}
	conn, err := s.connect(ctx, fmt.Sprintf("tool '%s' of server '%s'", c.Tool, s.name))
	if err != nil {
		return nil, err
	}
	r, err := conn.Call(ctx, c)
	if err != nil {
		return nil, s.explain(c.Tool, err)
	}
	return r, nil
}

// connect returns the connection, making one if there is none. Any number of
// callers share one attempt, which has its own deadline and goes on when a
// caller gives up; what is what the caller wants.
func (s *Server) connect(ctx context.Context, what string) (connection, error) {
	s.mu.Lock()
	switch {
	case s.closed:
		s.mu.Unlock()
		return nil, tenon.Errorf(tenon.CodeUnreachable, "server '%s' is closed", s.name)
	case s.conn != nil:
		select {
		case <-s.conn.Done():
			s.forget(s.conn) // the watcher is not here yet
		default:
			defer s.mu.Unlock()
			return s.conn, nil
		}
	}
	if s.dialed == nil {
		s.dialed = make(chan struct{})
		s.status.Phases = nil
		s.set(StateStarting, nil)
		s.wg.Go(s.dialOnce)
	}
	dialed := s.dialed
	s.mu.Unlock()
	select {
	case <-dialed:
	case <-ctx.Done():
		return nil, gaveUp(ctx, what, "the server was starting")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		return nil, s.dialer
	}
	return s.conn, nil
}

// The phases that are not steps of package mcp's connect.
const phaseList = "list"

// teardown is how long past its deadline a connect may take to end what it has
// begun before whoever waits is told. What is left goes on behind it.
const teardown = 300 * time.Millisecond

// dialOnce makes one attempt to connect and records how it went.
func (s *Server) dialOnce() {
	ctx, cancel := context.WithTimeout(s.ctx, s.cfg.Timeout)
	defer cancel()
	start := time.Now()
	type outcome struct {
		d   *dialed
		err error
	}
	done := make(chan outcome, 1)
	s.wg.Go(func() {
		d, err := s.connector(ctx)
		done <- outcome{d, err}
	})
	var o outcome
	late := time.NewTimer(s.cfg.Timeout + teardown)
	defer late.Stop()
	select {
	case o = <-done:
	case <-late.C:
		o.err = &tenon.Error{Code: tenon.CodeTimeout, Message: "it did not answer in time", Err: context.DeadlineExceeded}
		s.wg.Go(func() {
			if o := <-done; o.d != nil {
				_ = o.d.conn.Close() // nobody waits for it any more
			}
		})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { close(s.dialed); s.dialed, s.process = nil, nil }()
	s.status.Starts++
	switch {
	case s.closed:
		s.dialer = tenon.Errorf(tenon.CodeUnreachable, "server '%s' is closed", s.name)
		if o.d != nil {
			s.wg.Go(func() { _ = o.d.conn.Close() }) // nobody is left to be told
		}
		return
	case o.err != nil:
		var at *mcp.ConnectError
		if errors.As(o.err, &at) {
			s.status.Phases = phases(at.Steps)
		} else if len(s.status.Phases) == 0 { // it did not come to connecting, as with a secret that is missing
			s.status.Phases = []Phase{{mcp.StepStart, time.Since(start).Milliseconds()}}
		} else {
			s.endStep()
		}
		s.dialer = s.connectError(s.status.Phases[len(s.status.Phases)-1].Name, o.err)
		state := StateFailed
		if tenon.ErrorCode(o.err) == tenon.CodeAuth {
			state = StateAuth
		}
		s.set(state, s.dialer)
		s.log.Debug("cannot connect to MCP server", "error", s.dialer) // whoever asked is told
		return
	}
	s.conn, s.dialer = o.d.conn, nil
	s.tools, s.listed = nil, false
	s.status.Protocol, s.status.Server, s.status.Phases = o.d.protocol, o.d.identity, o.d.phases
	s.set(StateReady, nil)
	s.log.Info("Connected to MCP server: "+s.name, "protocol", o.d.protocol)
	s.wg.Go(func() { s.watch(o.d.conn) })
}

// watch waits for the end of a connection and forgets it then, so that the next
// use makes a new one.
func (s *Server) watch(c connection) {
	<-c.Done()
	s.mu.Lock()
	s.forget(c)
	s.mu.Unlock()
	_ = c.Close() // what is left of it; its end is known already
}

// forget records that a connection was lost; the caller holds the lock.
func (s *Server) forget(c connection) {
	if s.conn != c {
		return
	}
	s.conn = nil
	lost := tenon.Errorf(tenon.CodeUnreachable, "the connection was lost: %w", c.Err())
	err := &tenon.Error{Code: tenon.CodeUnreachable, Message: fmt.Sprintf("server '%s' %s", s.name, gone(lost)), Err: lost}
	s.set(StateFailed, err)
	s.log.Warn("lost MCP server", "error", err)
}

// refresh forgets the tools after the server said that they changed.
func (s *Server) refresh() {
	s.mu.Lock()
	s.listed = false
	s.changes++
	s.mu.Unlock()
	if s.opts.Changed != nil {
		s.opts.Changed(s.name)
	}
}

// set changes the state; the caller holds the lock.
func (s *Server) set(state State, err error) {
	s.status.State, s.status.Since, s.status.Error = state, time.Now(), nil
	var e *tenon.Error
	if errors.As(err, &e) {
		s.status.Error = e
	}
}

// Close ends the connection, and the server's process with all that it started.
// Calls that are under way end, and none is taken any more.
func (s *Server) Close() error {
	s.cancel()
	s.mu.Lock()
	c := s.conn
	s.conn = nil
	if !s.closed {
		s.closed = true
		s.set(StateClosed, nil)
	}
	s.mu.Unlock()
	var err error
	if c != nil {
		err = c.Close()
	}
	s.wg.Wait()
	return err
}

var _ tenon.Toolset = (*Server)(nil)
