package gateway_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/gateway"
	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/transport"
)

// moving is a network that sends every request to the latest world. The socket of tenon serve behaves like this: after
// a restart, another process listens on it.
type moving struct{ to atomic.Pointer[string] }

func (m *moving) RoundTrip(req *http.Request) (*http.Response, error) {
	to := m.to.Load()
	if to == nil {
		return nil, tenon.Errorf(tenon.CodeUnreachable, "nobody listens")
	}
	u, err := url.Parse(*to)
	if err != nil {
		return nil, err
	}
	req = req.Clone(req.Context())
	req.URL.Host, req.Host = u.Host, u.Host
	req.Header.Set("Authorization", "Bearer "+ownToken)
	return http.DefaultTransport.RoundTrip(req)
}

// relayed connects a client to a relay over pipes.
func relayed(t *testing.T, network http.RoundTripper, era string, restart time.Duration) *mcp.Client {
	t.Helper()
	here, there := io.Pipe()
	back, forth := io.Pipe()
	lines := transport.NewLines(here, forth, 0)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := gateway.Relay(ctx, lines, gateway.RelayConfig{URL: "http://tenon/mcp", Network: network, Restart: restart}); err != nil {
			t.Error(err)
		}
		_ = lines.Close()
	}()
	c, err := mcp.Connect(t.Context(), mcp.ClientConfig{Protocol: era, Dial: func(context.Context) (mcp.Stream, error) {
		return pipes{transport.NewLines(back, there, 0), func() { _ = there.Close(); _ = back.Close() }}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close()
		cancel()
		<-done
	})
	return c
}

// pipes is a stream. Closing it ends its reader and its writer.
type pipes struct {
	*transport.Lines
	end func()
}

func (p pipes) Close() error {
	p.end()
	return p.Lines.Close()
}

// TestGW_1_ClientStaysConnected checks that a client of the relay stays connected when tenon serve is restarted. The
// relay opens a session at the new process, and sends a message again if the old process did not receive it.
func TestGW_1_ClientStaysConnected(t *testing.T) {
	for name, era := range eras {
		t.Run(name, func(t *testing.T) {
			u := serveUpstream(t, mcp.ServerConfig{})
			w := &world{home: t.TempDir()}
			stop := w.start(t, upstreamConfig(u, ""), gateway.Config{})
			network := &moving{}
			network.to.Store(&w.url)
			c := relayed(t, network, era, 30*time.Second)
			call := func() error {
				r, err := c.Call(t.Context(), tenon.Call{Tool: "echo", Arguments: json.RawMessage(`{"text":"hi"}`)})
				if err == nil && r.Text() != "hi" {
					t.Errorf("result %s", r.Raw)
				}
				return err
			}
			if err := call(); err != nil {
				t.Fatal(err)
			}
			stop()
			network.to.Store(nil)
			answered := make(chan error, 1)
			go func() { answered <- call() }()
			next := &world{home: w.home}
			next.start(t, upstreamConfig(u, ""), gateway.Config{})
			network.to.Store(&next.url)
			if err := <-answered; err != nil {
				t.Errorf("a call during the restart: %v", err)
			}
			if err := call(); err != nil {
				t.Errorf("a call after the restart: %v", err)
			}
		})
	}
}

// TestGW_19_UnknownIsNotRepeated checks that the relay does not send a call again if tenon serve may have received it
// before it ended.
func TestGW_19_UnknownIsNotRepeated(t *testing.T) {
	for name, era := range eras {
		t.Run(name, func(t *testing.T) {
			began := make(chan struct{}, 2)
			u := serveUpstream(t, mcp.ServerConfig{}, mcp.ServerTool{
				Definition: json.RawMessage(`{"name":"slow","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`),
				Call: func(ctx context.Context, _ *mcp.ToolRequest) (json.RawMessage, error) {
					began <- struct{}{}
					<-ctx.Done()
					return nil, ctx.Err()
				}})
			w := &world{home: t.TempDir()}
			stop := w.start(t, upstreamConfig(u, ""), gateway.Config{})
			network := &moving{}
			network.to.Store(&w.url)
			c := relayed(t, network, era, 100*time.Millisecond)
			answered := make(chan string, 1)
			go func() {
				r, err := c.Call(t.Context(), tenon.Call{Tool: "slow"})
				if err != nil {
					answered <- err.Error()
					return
				}
				answered <- r.Text()
			}()
			<-began
			stop()
			network.to.Store(nil)
			if got := <-answered; !strings.Contains(got, "unknown") && !strings.Contains(got, "stopping") {
				t.Errorf("the answer is %q", got)
			}
			if len(began) > 0 {
				t.Error("the call was made again")
			}
		})
	}
}
