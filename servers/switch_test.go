package servers

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenonhq/tenon"
)

// TestSwitch checks that a server that is switched off has no tools and no connection, but lets running calls end.
// After it is switched on, it works again. A restart makes a new connection.
func TestSwitch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var conns []*fakeConn
		s := faked(Config{Restart: RestartNever}, func(context.Context) (connection, error) {
			c := newFake()
			c.tools = func(context.Context) ([]tenon.Tool, error) { return []tenon.Tool{{Remote: "x"}}, nil }
			c.call = func(ctx context.Context, _ tenon.Call) (*tenon.Result, error) {
				time.Sleep(time.Second)
				return &tenon.Result{}, nil
			}
			conns = append(conns, c)
			return c, nil
		})
		call := make(chan error, 1)
		go func() {
			_, err := s.Call(t.Context(), tenon.Call{Tool: "x"})
			call <- err
		}()
		synctest.Wait()
		s.Switch(false)
		s.Switch(false)
		if err := <-call; err != nil {
			t.Errorf("the call under way: %v", err)
		}
		synctest.Wait()
		if conns[0].closed.Load() == 0 {
			t.Error("the connection is still there")
		}
		states(t, s, StateDisabled, 1)
		if tools, err := s.Tools(t.Context()); len(tools) != 0 || err != nil {
			t.Errorf("tools %v: %v", tools, err)
		}
		for name, use := range map[string]func() error{
			"call":    func() error { _, err := s.Call(t.Context(), tenon.Call{Tool: "x"}); return err },
			"list":    func() error { _, err := s.List(t.Context()); return err },
			"restart": func() error { return s.Restart(t.Context()) },
		} {
			if err := use(); tenon.ErrorCode(err) != tenon.CodeInvalid || !strings.Contains(err.Error(), "switch it on") {
				t.Errorf("%s while it is off: %v", name, err)
			}
		}
		s.Switch(true)
		states(t, s, StateCold, 1)
		if tools, err := s.Tools(t.Context()); len(tools) != 1 || err != nil {
			t.Errorf("tools %v: %v", tools, err)
		}
		conns[1].lose(context.Canceled)
		synctest.Wait()
		if _, err := s.List(t.Context()); err == nil {
			t.Error("restart: never, and it was connected again")
		}
		if err := s.Restart(t.Context()); err != nil {
			t.Error(err)
		}
		if err := s.Restart(t.Context()); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if states(t, s, StateReady, 4); conns[2].closed.Load() == 0 {
			t.Error("the connection before the restart is still there")
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}
