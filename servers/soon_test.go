package servers

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenonhq/tenon"
)

// TestUX6Patience uses a server without a kept list of tools. Requests wait for it only for the time of Patience,
// counted from the first request. Once its tools arrive, Changed is called, and Notify, so that clients list them.
func TestUX6Patience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		changed := make(chan string, 4)
		s := faked(Config{Timeout: time.Hour}, func(ctx context.Context) (connection, error) {
			select {
			case <-answer:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			c := newFake()
			c.tools = func(context.Context) ([]tenon.Tool, error) {
				return []tenon.Tool{{Remote: "late", Raw: []byte(`{"name":"late"}`)}}, nil
			}
			return c, nil
		})
		defer s.Close()
		s.opts.Patience, s.opts.Changed = 3*time.Second, func(name string) { changed <- name }
		told := make(chan Notification, 4)
		s.opts.Notify = func(n Notification) { told <- n }
		start := time.Now()
		if tools, err := s.Tools(t.Context()); tools != nil || tenon.ErrorCode(err) != tenon.CodeTimeout {
			t.Fatalf("%v, %v", tools, err)
		}
		if waited := time.Since(start); waited != 3*time.Second {
			t.Errorf("the first request waited %s", waited)
		}
		if _, err := s.Tools(t.Context()); err == nil || time.Since(start) != 3*time.Second {
			t.Errorf("the second waited until %s: %v", time.Since(start), err)
		}
		close(answer)
		synctest.Wait()
		select {
		case name := <-changed:
			if name != s.name {
				t.Error(name)
			}
		default:
			t.Error("nobody was told of the tools that came")
		}
		listed := false
		for len(told) > 0 {
			n := <-told
			listed = listed || n.List == "tools" && len(n.Added) == 1 && n.Added[0] == "late"
		}
		if !listed {
			t.Error("Notify was not called for the late tools")
		}
		if tools, err := s.Tools(t.Context()); err != nil || len(tools) != 1 {
			t.Errorf("%v, %v", tools, err)
		}
	})
}

// TestUX6Identity checks that a kept list of tools is used only for the server that sent it. The same entry with
// another script, another secret or another user's key lists the tools again.
func TestUX6Identity(t *testing.T) {
	cache := t.TempDir()
	seal := func(key byte) func(parts ...[]byte) []byte {
		return func(parts ...[]byte) []byte {
			mac := []byte{key}
			for _, p := range parts {
				mac = append(append(mac, p...), 0)
			}
			return mac
		}
	}
	calls := 0
	open := func(identity string, key byte) *Server {
		s := faked(Config{}, func(context.Context) (connection, error) {
			calls++
			c := newFake()
			c.tools = func(context.Context) ([]tenon.Tool, error) {
				return []tenon.Tool{{Remote: "a", Raw: []byte(`{"name":"a"}`)}}, nil
			}
			return c, nil
		})
		s.opts.Cache, s.opts.Identity, s.opts.Seal = cache, identity, seal(key)
		return s
	}
	for i, step := range []struct {
		identity string
		key      byte
		calls    int
	}{{"one", 1, 1}, {"one", 1, 1}, {"two", 1, 2}, {"two", 1, 2}, {"two", 2, 3}, {"one", 2, 4}} {
		s := open(step.identity, step.key)
		if tools, err := s.Tools(t.Context()); err != nil || len(tools) != 1 {
			t.Errorf("step %d: %v, %v", i, tools, err)
		}
		_ = s.Close()
		if calls != step.calls {
			t.Errorf("step %d: %d connects, want %d", i, calls, step.calls)
		}
	}
}
