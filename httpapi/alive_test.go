package httpapi

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
)

// TestStuck sends requests to a process that accepts connections and answers nothing, as a stopped process does.
func TestStuck(t *testing.T) {
	stuck := func(t *testing.T) *Client {
		t.Helper()
		path := filepath.Join(t.TempDir(), "serve.sock")
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		c := NewClient(path)
		c.pulse.patience = 50 * time.Millisecond
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	for _, tt := range []struct {
		name string
		ask  func(context.Context, *Client) error
	}{
		{"RP-27_read", func(ctx context.Context, c *Client) error { _, err := c.Health(ctx); return err }},
		{"RP-27_write", func(ctx context.Context, c *Client) error {
			_, err := c.Start(ctx, StartRequest{Question: "hi"}, "key")
			return err
		}},
		{"RP-27_follow", func(ctx context.Context, c *Client) error {
			for _, err := range c.Runs().Events(ctx, "run_1", 0) {
				if err != nil {
					return err
				}
			}
			return nil
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.ask(t.Context(), stuck(t))
			if tenon.ErrorCode(err) != tenon.CodeTimeout || !strings.Contains(err.Error(), "does not answer") {
				t.Fatalf("error %v", err)
			}
			if pid := peerOf(nil); pid != 0 {
				t.Errorf("process %d at no connection", pid)
			}
		})
	}
	t.Run("RP-27_slow_answer", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "serve.sock")
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		asked := make(chan struct{}, 100)
		s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/healthz" {
				asked <- struct{}{}
				_, _ = w.Write([]byte("{}"))
				return
			}
			for range 3 {
				<-asked // the answer takes longer than three health checks
			}
			_, _ = w.Write([]byte(`{"run": {"id": "run_1"}}`))
		})}
		done := make(chan struct{})
		go func() { defer close(done); _ = s.Serve(l) }()
		defer func() { _ = s.Close(); <-done }()
		c := NewClient(path)
		defer c.Close()
		c.pulse.patience = 50 * time.Millisecond
		if got, err := c.Start(t.Context(), StartRequest{Question: "hi"}, ""); err != nil || got.Run.ID != "run_1" {
			t.Errorf("%+v, %v", got, err)
		}
	})
}
