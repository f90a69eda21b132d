package httpapi_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/httpapi"
)

// bell is a door that signals when a call has begun.
type bell struct {
	door
	called chan struct{}
}

func (b *bell) Call(ctx context.Context, c tenon.Call) (*tenon.Result, error) {
	b.called <- struct{}{}
	return b.door.Call(ctx, c)
}

// TestCallWhileStopping checks a tool call that a client waits for while tenon stops. The client gets a status with
// which no client repeats the request. The call may end within the grace period.
func TestCallWhileStopping(t *testing.T) {
	const path = "/api/v1/tools/pass/call"
	d := &bell{door{open: make(chan struct{})}, make(chan struct{}, 1)}
	h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), Toolsets: map[string]tenon.Toolset{"house": d}})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	base, leave := context.WithCancelCause(context.Background())
	s := &http.Server{Handler: httpapi.Handler(h), BaseContext: func(net.Listener) context.Context { return base }}
	served := make(chan struct{})
	go func() { defer close(served); _ = s.Serve(l) }()
	defer func() { _ = s.Close(); <-served }()
	type answer struct {
		status int
		body   string
		err    error
	}
	answered := make(chan answer, 1)
	go func() {
		c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		res, err := c.Post("http://"+l.Addr().String()+path, "application/json", strings.NewReader(`{}`))
		if err != nil {
			answered <- answer{err: err}
			return
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		answered <- answer{res.StatusCode, string(b), err}
	}()
	select {
	case <-d.called:
	case a := <-answered:
		t.Fatalf("HTTP %d %q, %v", a.status, a.body, a.err)
	}
	list, err := h.Runs().List(t.Context(), engine.Filter{})
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	run := list[0]
	leave(httpapi.ErrStopping)
	a := <-answered
	if a.err != nil || a.status != http.StatusFailedDependency || !strings.Contains(a.body, "stopping") {
		t.Errorf("HTTP %d %q, %v", a.status, a.body, a.err)
	}
	close(d.open)
	end, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	h.Service().Drain(end)
	if run, err = h.Runs().Get(t.Context(), run.ID); err != nil || run.State != tenon.RunCompleted {
		t.Errorf("the call is %s (%s), %v", run.State, run.Stop, err)
	}
}

// TestReadWhileStopping checks that a read that fails because tenon stops is not answered with status 200.
func TestReadWhileStopping(t *testing.T) {
	h, _, _ := serve(t)
	for cause, want := range map[error]int{httpapi.ErrStopping: http.StatusServiceUnavailable, context.Canceled: 0} { // a client that has gone gets no answer
		ctx, leave := context.WithCancelCause(t.Context())
		leave(cause)
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://tenon/api/v1/runs", nil)
		if err != nil {
			t.Fatal(err)
		}
		w := &recorder{header: http.Header{}}
		if httpapi.Handler(h).ServeHTTP(w, req); w.status != want {
			t.Errorf("%v: HTTP %d %q", cause, w.status, w.body.String())
		}
	}
}

// TestNotModified checks that a response that the client already has is not sent again. This also holds if a proxy has
// compressed it and changed tenon's entity tag into a weak one.
func TestNotModified(t *testing.T) {
	h, _, _ := serve(t)
	handler := httpapi.Handler(h)
	_, head, _ := request(t, handler, "GET", "/api/v1/me", "", "")
	tag := head.Get("ETag")
	for held, want := range map[string]int{tag: 304, "W/" + tag: 304, `"other", W/` + tag: 304, "*": 304, `"other"`: 200, "W/": 200} {
		if status, _, _ := request(t, handler, "GET", "/api/v1/me", "", "", "If-None-Match", held); status != want {
			t.Errorf("If-None-Match: %s: HTTP %d, want %d", held, status, want)
		}
	}
}
