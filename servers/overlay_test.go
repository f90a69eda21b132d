package servers

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenonhq/tenon"
)

func withEnv(ctx context.Context, v string) context.Context {
	return WithOverlay(ctx, Overlay{Env: map[string]string{"WHO": v}})
}

// TestOverlayOfAProcess checks that each caller's variables reach a separate process. The process is kept for the
// caller's next call. It ends when the server is switched off or closed.
func TestOverlayOfAProcess(t *testing.T) {
	cfg := process("--stdio")
	cfg.Env["WHO"] = "the configuration"
	s := started(t, cfg, Options{})
	who := func(ctx context.Context) string {
		r, err := s.Call(ctx, tenon.Call{Tool: "echo_env", Arguments: []byte(`{"name":"WHO"}`)})
		if err != nil {
			t.Error(err)
			return ""
		}
		return r.Text()
	}
	for range 2 {
		for ctx, want := range map[context.Context]string{t.Context(): "the configuration", withEnv(t.Context(), "ann"): "ann", withEnv(t.Context(), "bob"): "bob"} {
			if got := who(ctx); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		}
	}
	if n := len(children(t)); n != 3 {
		t.Errorf("%d processes, want 3", n)
	}
	s.Switch(false)
	if _, err := s.Call(withEnv(t.Context(), "ann"), tenon.Call{Tool: "add"}); tenon.ErrorCode(err) != tenon.CodeInvalid {
		t.Error(err)
	}
	s.Switch(true)
	if got := who(withEnv(t.Context(), "ann")); got != "ann" {
		t.Error(got)
	}
	if _, err := s.Call(WithOverlay(t.Context(), Overlay{Auth: Auth{Type: AuthOAuth}}), tenon.Call{Tool: "add"}); tenon.ErrorCode(err) != tenon.CodeInvalid {
		t.Error(err)
	}
	_ = s.Close()
	if _, err := s.Call(withEnv(t.Context(), "ann"), tenon.Call{Tool: "add"}); tenon.ErrorCode(err) != tenon.CodeUnreachable {
		t.Error(err)
	}
	if pids := children(t); len(pids) > 0 {
		t.Errorf("processes %v are left", pids)
	}
}

// TestManyOverlays checks the bound of connections. A new connection replaces the one that was idle longest, and never
// one that is in use. The server is closed and started again in the middle.
func TestManyOverlays(t *testing.T) {
	var mu sync.Mutex
	open, most := 0, 0
	gate := make(chan struct{})
	s := New("t", Config{Command: "fake"}, Options{})
	defer func() { _ = s.Close() }()
	call := func(v string, wait bool) error {
		own, done, err := s.forCaller(withEnv(t.Context(), v))
		if err != nil {
			return err
		}
		defer done()
		mu.Lock()
		open++
		most = max(most, open)
		mu.Unlock()
		if own.cfg.Env["WHO"] != v {
			t.Errorf("%s has the server of %s", v, own.cfg.Env["WHO"])
		}
		if wait {
			<-gate
		}
		mu.Lock()
		open--
		mu.Unlock()
		return nil
	}
	for n := range 3 * maxOverlays {
		if err := call(fmt.Sprint("one after another ", n), false); err != nil {
			t.Fatal(err)
		}
	}
	if n := connections(s); n != maxOverlays {
		t.Errorf("%d are kept", n)
	}
	var wg sync.WaitGroup
	for n := range maxOverlays {
		wg.Go(func() {
			if err := call(fmt.Sprint("at once ", n), true); err != nil {
				t.Error(err)
			}
		})
	}
	for {
		mu.Lock()
		all := open == maxOverlays
		mu.Unlock()
		if all {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if err := call("one more", false); tenon.ErrorCode(err) != tenon.CodeRateLimited {
		t.Error(err)
	}
	if _, _, err := s.forCaller(WithOverlay(t.Context(), Overlay{Owner: "ann", Env: map[string]string{"WHO": "x"}})); tenon.ErrorCode(err) != tenon.CodeRateLimited {
		t.Error(err)
	}
	s.dropOverlays(false)
	if err := call("after a restart", false); err != nil {
		t.Error(err)
	}
	_ = s.Close()
	close(gate)
	wg.Wait()
	if n := connections(s) + len(s.overlaid.leaving); n != 0 {
		t.Errorf("%d are left", n)
	}
}

// TestOverlaysOfOwners checks that one owner does not get all connections, that two owners never share one, and that an
// idle connection ends.
func TestOverlaysOfOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New("t", Config{Command: "fake"}, Options{})
		defer func() { _ = s.Close() }()
		take := func(owner, v string) (*Server, func(), error) {
			return s.forCaller(WithOverlay(t.Context(), Overlay{Owner: owner, Env: map[string]string{"WHO": v}}))
		}
		var leave []func()
		for n := range maxOwned {
			_, done, err := take("ann", fmt.Sprint(n))
			if err != nil {
				t.Fatal(err)
			}
			leave = append(leave, done)
		}
		if _, _, err := take("ann", "one more"); tenon.ErrorCode(err) != tenon.CodeRateLimited {
			t.Errorf("one more: %v", err)
		}
		anns, done, err := take("ann", "0")
		if err != nil {
			t.Fatal(err)
		}
		leave = append(leave, done)
		bobs, done, err := take("bob", "0")
		if err != nil || bobs == anns {
			t.Fatalf("bob has the connection of ann, or none: %v", err)
		}
		leave = append(leave, done)
		time.Sleep(2 * overlayIdle)
		if n := connections(s); n != maxOwned+1 {
			t.Errorf("%d connections are there, %d are in use", n, maxOwned+1)
		}
		for _, done := range leave {
			done()
		}
		time.Sleep(overlayIdle / 2)
		_, done, err = take("ann", "0")
		if err != nil {
			t.Fatal(err)
		}
		done()
		time.Sleep(overlayIdle * 3 / 4)
		if n := connections(s); n != 1 {
			t.Errorf("%d connections are left, one was used", n)
		}
		time.Sleep(overlayIdle)
		if n := connections(s); n != 0 {
			t.Errorf("%d connections are left", n)
		}
	})
}

// connections returns the number of callers' connections, under the lock because timers may close some.
func connections(s *Server) int {
	s.overlaid.mu.Lock()
	defer s.overlaid.mu.Unlock()
	return len(s.overlaid.m)
}

// TestLaidOver checks that the caller's values replace the entry's, whatever the case of a header's name.
func TestLaidOver(t *testing.T) {
	base := Config{Auth: Auth{Type: AuthBearer, Secret: tenon.NewSecret("service")}, Headers: map[string]string{"authorization": "Basic x", "x-USER": "nobody", "X-Team": "blue"}}
	got := base.over(Overlay{Auth: Auth{Type: AuthBearer, Secret: tenon.NewSecret("ann")}, Headers: map[string]string{"X-User": "ann"}})
	if h := got.Headers; len(h) != 2 || h["X-User"] != "ann" || h["X-Team"] != "blue" || got.Auth.Secret.Reveal() != "ann" {
		t.Errorf("%v %v", h, got.Auth.Secret.Reveal())
	}
	if len(base.Headers) != 3 {
		t.Error("the entry was changed")
	}
	// An API key without a header name uses the default header, also if the entry sets this header.
	base.Headers = map[string]string{"x-api-key": "the entry's"}
	got = base.over(Overlay{Auth: Auth{Type: AuthAPIKey, Secret: tenon.NewSecret("ann's key")}})
	if h := New("t", got, Options{}).headers(got); len(h) != 1 || h["X-Api-Key"] != "ann's key" {
		t.Errorf("the server is sent %v", h)
	}
}
