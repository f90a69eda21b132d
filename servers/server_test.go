package servers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/testserver"
	"github.com/tenonhq/tenon/transport"
	"go.uber.org/goleak"
)

// role is the environment variable that turns the test binary into the test server.
const role = "TENON_SERVERS_ROLE"

func TestMain(m *testing.M) {
	switch how := os.Getenv(role); how {
	case "":
	case "floods", "drips":
		neverReady(how)
		return
	case "host":
		playHost()
		return
	case "victim":
		playVictim()
		return
	default:
		if err := testserver.Run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// fakeConn is a connection without a server.
type fakeConn struct {
	offering
	tools func(context.Context) ([]tenon.Tool, error)
	call  func(context.Context, tenon.Call) (*tenon.Result, error)
	ended context.Context
	end   context.CancelFunc
	once  sync.Once
	err   error
	// closing delays Close.
	closing time.Duration
	fresh   time.Duration
	closed  atomic.Int32
}

func (f *fakeConn) Tools(ctx context.Context) ([]tenon.Tool, error) {
	if f.tools == nil {
		return nil, nil
	}
	return f.tools(ctx)
}

func (f *fakeConn) Fresh(string) time.Duration { return f.fresh }

func (f *fakeConn) Call(ctx context.Context, c tenon.Call) (*tenon.Result, error) {
	if f.call == nil {
		return &tenon.Result{}, nil
	}
	return f.call(ctx, c)
}

func (f *fakeConn) Done() <-chan struct{}          { return f.ended.Done() }
func (f *fakeConn) AfterEnd(do func()) func() bool { return context.AfterFunc(f.ended, do) }
func (f *fakeConn) Err() error {
	if f.ended.Err() == nil {
		return nil // the connection may be lost at this moment
	}
	return f.err
}

func (*fakeConn) Settle() {}

func (f *fakeConn) Close() error {
	f.lose(errors.New("the connection was closed"))
	time.Sleep(f.closing)
	f.closed.Add(1)
	return nil
}

func (f *fakeConn) lose(err error) { f.once.Do(func() { f.err = err; f.end() }) }

func newFake() *fakeConn {
	f := &fakeConn{}
	f.ended, f.end = context.WithCancel(context.Background())
	return f
}

// faked returns a server that connects with dial.
func faked(cfg Config, dial func(ctx context.Context) (connection, error)) *Server {
	cfg.Command = cmp.Or(cfg.Command, "fake")
	s := New("t", cfg, Options{})
	s.connector = func(ctx context.Context) (*dialed, error) {
		c, err := dial(ctx)
		if err != nil {
			return nil, err
		}
		return &dialed{conn: c, protocol: "2026-07-28", identity: "fake 1", phases: []Phase{{"start", 1}}}, nil
	}
	return s
}

func states(t *testing.T, s *Server, want State, starts int) Status {
	t.Helper()
	st := s.Status()
	if st.State != want || st.Starts != starts {
		t.Errorf("state %s after %d starts, want %s after %d (%v)", st.State, st.Starts, want, starts, st.Error)
	}
	if (st.Error != nil) != (want == StateFailed || want == StateAuth || want == StateBackoff) {
		t.Errorf("state %s with error %v", want, st.Error)
	}
	return st
}

// TestOneConnect checks that concurrent callers share one connect, that a caller that gives up does not end it for the
// others, and that the states follow.
func TestOneConnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dials := 0
		s := faked(Config{}, func(context.Context) (connection, error) {
			dials++
			time.Sleep(time.Second)
			return newFake(), nil
		})
		if st := states(t, s, StateCold, 0); !st.Since.IsZero() || st.Tools != -1 {
			t.Errorf("%+v", st)
		}
		begun := time.Now()
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if _, err := s.Call(t.Context(), tenon.Call{Tool: "x"}); err != nil {
					t.Error(err)
				}
			})
		}
		for timeout, code := range map[time.Duration]tenon.Code{time.Millisecond: tenon.CodeTimeout, 0: tenon.CodeCancelled} {
			wg.Go(func() {
				ctx, cancel := context.WithCancel(t.Context())
				if timeout > 0 {
					ctx, cancel = context.WithTimeout(t.Context(), timeout)
				} else {
					cancel()
				}
				defer cancel()
				if _, err := s.Call(ctx, tenon.Call{Tool: "x"}); tenon.ErrorCode(err) != code || !strings.Contains(err.Error(), "server 't'") {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		states(t, s, StateStarting, 0)
		wg.Wait()
		if st := states(t, s, StateReady, 1); dials != 1 || !st.Since.Equal(begun.Add(time.Second)) || st.Server != "fake 1" || st.Protocol != "2026-07-28" {
			t.Errorf("%d dials, %+v", dials, st)
		}
		_, _ = s.Close(), s.Close()
		states(t, s, StateClosed, 1)
		if _, err := s.Call(t.Context(), tenon.Call{}); tenon.ErrorCode(err) != tenon.CodeUnreachable || err.Error() != "server 't' is closed" {
			t.Error(err)
		}
	})
}

// TestReconnect checks that a lost connection is replaced at the next use, or else in the background after a pause.
func TestReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var conns []*fakeConn
		var down atomic.Bool
		s := faked(Config{}, func(context.Context) (connection, error) {
			if down.Load() {
				return nil, tenon.Errorf(tenon.CodeUnreachable, "still down")
			}
			c := newFake()
			c.closing = 2 * time.Second // a process that needs some time to end
			conns = append(conns, c)
			return c, nil
		})
		defer func() { _ = s.Close() }()
		if _, err := s.Tools(t.Context()); err != nil {
			t.Fatal(err)
		}
		conns[0].lose(errors.New("gone with the wind"))
		if _, err := s.Call(t.Context(), tenon.Call{}); err != nil { // the watcher may not have noticed the loss yet
			t.Error(err)
		}
		states(t, s, StateReady, 2)
		down.Store(true)
		conns[1].lose(errors.New("gone with the wind"))
		synctest.Wait() // nobody waits for the old connection, which is still being closed
		st := states(t, s, StateBackoff, 2)
		if got := st.Error.Error(); got != "server 't' is no longer available (gone with the wind)" {
			t.Error(got)
		}
		if in := time.Until(st.Retry); in < 300*time.Millisecond || in > time.Second {
			t.Errorf("tried again in %s", in)
		}
		time.Sleep(time.Hour)
		st = s.Status()
		if st.State != StateBackoff || st.Starts < 60 || st.Starts > 100 || st.Error == nil || !strings.Contains(st.Error.Message, "still down") {
			t.Errorf("%s after %d starts: %v", st.State, st.Starts, st.Error)
		}
		down.Store(false) // the server works again, without a notification
		time.Sleep(2 * time.Minute)
		if st := s.Status(); st.State != StateReady || len(conns) != 3 || st.Restarts != 2 || !st.Retry.IsZero() {
			t.Errorf("%+v", st)
		}
		if conns[0].closed.Load() == 0 || conns[1].closed.Load() == 0 {
			t.Error("old connections are open")
		}
	})
}

// TestRestart checks the effect of each value of the key restart.
func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			restart, status string
			state           State
			background      bool
			next            bool // the next use connects
		}{
			{RestartNever, "exited with code 3", StateFailed, false, false},
			{RestartNever, "exited with code 0", StateFailed, false, false},
			{RestartOnFailure, "exited with code 3", StateBackoff, true, true},
			{RestartOnFailure, "exited with code 0", StateFailed, false, true},
			{RestartAlways, "exited with code 0", StateBackoff, true, true},
		} {
			var conn *fakeConn
			s := faked(Config{Restart: c.restart}, func(context.Context) (connection, error) { conn = newFake(); return conn, nil })
			if _, err := s.Call(t.Context(), tenon.Call{}); err != nil {
				t.Fatal(err)
			}
			conn.lose(&transport.ExitError{Command: "x", Status: c.status})
			synctest.Wait()
			states(t, s, c.state, 1)
			time.Sleep(time.Minute)
			if back := s.Status().State == StateReady; back != c.background {
				t.Errorf("%s, %s: background %v", c.restart, c.status, back)
			}
			_, err := s.Call(t.Context(), tenon.Call{})
			if (err == nil) != c.next || err != nil && !strings.Contains(err.Error(), "is no longer available ("+c.status+"); servers.t.restart is never") {
				t.Errorf("%s, %s: %v", c.restart, c.status, err)
			}
			_ = s.Close()
		}
	})
}

// TestLostAtOnce loses a connection before the callers that waited for it can use it. They must get the reason of the
// loss.
func TestLostAtOnce(t *testing.T) {
	for range 200 {
		s := faked(Config{Restart: RestartNever}, func(context.Context) (connection, error) {
			c := newFake()
			c.lose(errors.New("it ended at once"))
			return c, nil
		})
		var callers sync.WaitGroup
		for range 4 {
			callers.Go(func() {
				_, err := s.Call(t.Context(), tenon.Call{Tool: "add"})
				if err != nil && (tenon.ErrorCode(err) != tenon.CodeUnreachable || !strings.Contains(err.Error(), "it ended at once")) {
					t.Error(err)
				}
			})
		}
		callers.Wait()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestSwitchedOffAtOnce does the same with a person who switches the server off.
func TestSwitchedOffAtOnce(t *testing.T) {
	for range 200 {
		made := make(chan struct{})
		s := faked(Config{}, func(context.Context) (connection, error) { defer close(made); return newFake(), nil })
		var caller sync.WaitGroup
		caller.Go(func() {
			_, err := s.Call(t.Context(), tenon.Call{Tool: "add"})
			if err != nil && tenon.ErrorCode(err) != tenon.CodeInvalid {
				t.Error(err)
			}
		})
		<-made
		s.Switch(false)
		caller.Wait()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestConnectFails checks the error that is kept after a failed connect, and that each use tries again.
func TestConnectFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempt := -1
		var s *Server
		s = faked(Config{Timeout: time.Second}, func(ctx context.Context) (connection, error) {
			switch attempt++; attempt {
			case 0:
				return nil, &tenon.Error{Code: tenon.CodeAuth, Message: "HTTP 401", Data: json.RawMessage(`1`)}
			case 1:
				s.step(1, "start")
				time.Sleep(400 * time.Millisecond)
				s.step(1, "discover")
				<-ctx.Done()
				time.Sleep(2 * time.Second) // a process that ends slowly
				s.step(1, "initialize")
				return nil, ctx.Err()
			}
			return newFake(), nil // the server works again
		})
		defer func() { _ = s.Close() }()
		_, got := s.Call(t.Context(), tenon.Call{})
		if st := states(t, s, StateAuth, 1); got != error(st.Error) || string(st.Error.Data) != `1` || got.Error() != "could not start MCP server 't': HTTP 401; check servers.t.auth" {
			t.Error(got)
		}
		begun := time.Now()
		_, got = s.Tools(t.Context())
		want := []Phase{{"start", 400}, {"discover", 900}}
		if st := states(t, s, StateFailed, 2); !slices.Equal(st.Phases, want) {
			t.Errorf("%v, want %v", st.Phases, want)
		}
		if tenon.ErrorCode(got) != tenon.CodeTimeout || time.Since(begun) > 2*time.Second ||
			got.Error() != "could not start MCP server 't': it did not answer server/discover within 1s; command: fake; raise servers.t.timeout if it is slow to start" {
			t.Errorf("after %s: %v", time.Since(begun), got)
		}
		begun = time.Now()
		if _, err := s.Tools(t.Context()); tenon.ErrorCode(err) != tenon.CodeTimeout || time.Since(begun) > 0 {
			t.Errorf("a server that hangs holds up who asks for tools: %v after %s", err, time.Since(begun))
		}
		if _, err := s.Call(t.Context(), tenon.Call{}); err != nil {
			t.Error(err)
		}
		states(t, s, StateReady, 3)
	})
}

// TestCloseDuringConnect checks that Close does not wait for the deadline of a connect, and that a connection that is
// ready too late is closed.
func TestCloseDuringConnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, stubborn := range []bool{false, true} {
			c := newFake()
			s := faked(Config{Timeout: time.Hour}, func(ctx context.Context) (connection, error) {
				<-ctx.Done()
				if stubborn {
					return c, nil
				}
				return nil, ctx.Err()
			})
			begun := time.Now()
			got := make(chan error, 1)
			go func() { _, err := s.Tools(t.Context()); got <- err }()
			synctest.Wait()
			_ = s.Close()
			if err := <-got; tenon.ErrorCode(err) != tenon.CodeUnreachable || time.Since(begun) > 0 || stubborn != (c.closed.Load() > 0) {
				t.Errorf("%v after %s", err, time.Since(begun))
			}
			states(t, s, StateClosed, 1)
		}
	})
}

// TestParallelFalse checks that a server with parallel: false gets one call at a time.
func TestParallelFalse(t *testing.T) {
	for _, parallel := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			c := newFake()
			var now, most atomic.Int32
			c.call = func(context.Context, tenon.Call) (*tenon.Result, error) {
				most.Store(max(most.Load(), now.Add(1)))
				time.Sleep(time.Second)
				now.Add(-1)
				return &tenon.Result{}, nil
			}
			s := faked(Config{Parallel: &parallel}, func(context.Context) (connection, error) { return c, nil })
			defer func() { _ = s.Close() }()
			var wg sync.WaitGroup
			for range 5 {
				wg.Go(func() { _, _ = s.Call(t.Context(), tenon.Call{Tool: "x"}) })
			}
			synctest.Wait()
			if !parallel { // a caller that gives up must not keep its place in the queue
				ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
				defer cancel()
				if _, err := s.Call(ctx, tenon.Call{Tool: "x"}); tenon.ErrorCode(err) != tenon.CodeTimeout {
					t.Error(err)
				}
			}
			wg.Wait()
			if want := map[bool]int32{true: 5, false: 1}[parallel]; most.Load() != want {
				t.Errorf("%d calls at a time, want %d", most.Load(), want)
			}
		})
	}
}

// TestToolsChange checks that tools are listed once, and again after they changed. If they change while they are
// listed, the list is not kept.
func TestToolsChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFake()
		lists := 0
		var told atomic.Int32
		c.tools = func(context.Context) ([]tenon.Tool, error) {
			lists++
			n := lists
			time.Sleep(time.Second)
			return []tenon.Tool{{Remote: fmt.Sprint(n)}}, nil
		}
		s := faked(Config{}, func(context.Context) (connection, error) { return c, nil })
		s.opts.Changed = func(string) { told.Add(1) }
		defer func() { _ = s.Close() }()
		get := func(want string) {
			t.Helper()
			if tools, err := s.Tools(t.Context()); err != nil || len(tools) != 1 || tools[0].Remote != want {
				t.Errorf("%v %v, want %s", tools, err, want)
			}
		}
		get("1")
		get("1")
		s.refresh()
		time.AfterFunc(500*time.Millisecond, s.refresh)
		get("2") // old already when it comes
		get("3")
		get("3")
		if st := s.Status(); told.Load() != 2 || len(st.Phases) != 2 || st.Phases[1] != (Phase{"list", 1000}) {
			t.Errorf("told %d times, %+v", told.Load(), st.Phases)
		}
		c.tools = func(context.Context) ([]tenon.Tool, error) {
			return nil, tenon.Errorf(tenon.CodeProtocol, "no array")
		}
		s.refresh()
		if _, err := s.Tools(t.Context()); tenon.ErrorCode(err) != tenon.CodeProtocol || err.Error() != "the list of tools of server 't': no array; the server does not keep to MCP: try another version of it" {
			t.Error(err)
		}
		if st := s.Status(); st.Phases[len(st.Phases)-1].Name != "list" {
			t.Error(st.Phases)
		}
	})
}

// TestLoadToolsFalse checks that a server with load_tools: false is not started to list its tools.
func TestLoadToolsFalse(t *testing.T) {
	no := false
	s := faked(Config{LoadTools: &no}, func(context.Context) (connection, error) { return nil, errors.New("dialed") })
	if tools, err := s.Tools(t.Context()); err != nil || tools != nil {
		t.Error(tools, err)
	}
	states(t, s, StateCold, 0)
	_ = s.Close()
}
