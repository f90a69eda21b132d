package servers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
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
	closed bool
	// protocol is the revision that was found, so that it is asked for once.
	protocol string
	wg       sync.WaitGroup // connects under way and watchers
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
	if !s.cfg.IsParallel() {
		s.slot = make(chan struct{}, 1)
	}
	s.status = Status{Name: name, Title: s.cfg.Title, Transport: s.cfg.Transport, Target: s.target(), State: StateCold, Tools: -1}
	return s
}

// target is what a person knows the server by.
func (s *Server) target() string {
	if s.cfg.Transport == TransportStdio {
		return strings.Join(append([]string{s.cfg.Command}, s.cfg.Args...), " ")
	}
	return s.cfg.URL
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
	c, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	tools, listed := s.tools, s.listed
	s.mu.Unlock()
	if listed {
		return tools, nil
	}
	start := time.Now()
	tools, err = c.Tools(ctx)
	if err != nil {
		return nil, s.explain("list the tools of", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == c {
		s.tools, s.listed = tools, true
		s.status.Tools = len(tools)
		s.status.Phases = append(s.status.Phases, Phase{"list", time.Since(start).Milliseconds()})
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
			return nil, tenon.Errorf(tenon.CodeCancelled, "the call of tool '%s' was cancelled while it waited for its turn at server '%s'", c.Tool, s.name)
		}
	}
	conn, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	r, err := conn.Call(ctx, c)
	if err != nil {
		return nil, s.explain("call tool '"+c.Tool+"' of", err)
	}
	return r, nil
}

// connect returns the connection, making one if there is none. Any number of
// callers share one attempt, which has its own deadline and goes on when a
// caller gives up.
func (s *Server) connect(ctx context.Context) (connection, error) {
	s.mu.Lock()
	switch {
	case s.closed:
		s.mu.Unlock()
		return nil, tenon.Errorf(tenon.CodeUnreachable, "server '%s' is closed", s.name)
	case s.conn != nil:
		defer s.mu.Unlock()
		return s.conn, nil
	}
	if s.dialed == nil {
		s.dialed = make(chan struct{})
		s.set(StateStarting, nil)
		s.wg.Go(s.dialOnce)
	}
	dialed := s.dialed
	s.mu.Unlock()
	select {
	case <-dialed:
	case <-ctx.Done():
		return nil, tenon.Errorf(tenon.CodeCancelled, "gave up waiting for server '%s' to start: %w", s.name, context.Cause(ctx))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		return nil, s.dialer
	}
	return s.conn, nil
}

// dialOnce makes one attempt to connect and records how it went.
func (s *Server) dialOnce() {
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.Timeout)
	defer cancel()
	d, err := s.dial(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { close(s.dialed); s.dialed = nil }()
	s.status.Starts++
	if err != nil {
		s.dialer = s.connectError(err)
		state := StateFailed
		if tenon.ErrorCode(err) == tenon.CodeAuth {
			state = StateAuth
		}
		s.set(state, s.dialer)
		s.log.Debug("cannot connect to MCP server", "error", s.dialer) // whoever asked is told
		return
	}
	if s.closed {
		s.dialer = tenon.Errorf(tenon.CodeUnreachable, "server '%s' is closed", s.name)
		s.wg.Go(func() { _ = d.conn.Close() }) // nobody is left to be told
		return
	}
	s.conn, s.dialer = d.conn, nil
	s.tools, s.listed = nil, false
	s.status.Protocol, s.status.Server, s.status.Phases = d.protocol, d.identity, d.phases
	s.set(StateReady, nil)
	s.log.Info("Connected to MCP server: "+s.name, "protocol", d.protocol)
	s.wg.Go(func() { s.watch(d.conn) })
}

// watch waits for the end of a connection and forgets it then, so that the next
// use makes a new one.
func (s *Server) watch(c connection) {
	<-c.Done()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != c {
		return
	}
	s.conn = nil
	if s.closed {
		return
	}
	err := tenon.Errorf(tenon.CodeUnreachable, "the connection to server '%s' was lost: %w", s.name, c.Err())
	s.set(StateFailed, err)
	s.log.Warn("lost MCP server", "error", err)
	_ = c.Close() // what is left of it; its end is known already
}

// refresh forgets the tools after the server said that they changed.
func (s *Server) refresh() {
	s.mu.Lock()
	s.listed = false
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

// connectError says which server could not be reached and why.
func (s *Server) connectError(err error) error {
	code := tenon.ErrorCode(err)
	if code == tenon.CodeInternal || code == tenon.CodeCancelled {
		code = tenon.CodeUnreachable
	}
	text := err.Error()
	if errors.Is(err, context.DeadlineExceeded) {
		text = fmt.Sprintf("it did not answer within %s; raise servers.%s.timeout if it is slow to start (%v)", s.cfg.Timeout, s.name, err)
	}
	if s.cfg.Transport == TransportStdio {
		return tenon.Errorf(code, "could not start MCP server '%s': %s", s.name, text)
	}
	return tenon.Errorf(code, "Failed to connect to MCP server '%s' at %s: %s", s.name, s.cfg.URL, text)
}

// explain puts the server's name in front of an error that does not have it.
func (s *Server) explain(what string, err error) error {
	if strings.Contains(err.Error(), "'"+s.name+"'") {
		return err
	}
	return tenon.Errorf(tenon.ErrorCode(err), "%s server '%s': %w", what, s.name, err)
}

// Close ends the connection, and the server's process with all that it started.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	c := s.conn
	s.conn = nil
	s.set(StateClosed, nil)
	s.mu.Unlock()
	var err error
	if c != nil {
		err = c.Close()
	}
	s.wg.Wait()
	return err
}

var _ tenon.Toolset = (*Server)(nil)
