package gateway_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/gateway"
	"github.com/tenonhq/tenon/mcp"
)

// stamped is a toolset in which a Go program changes calls and results.
type stamped struct {
	tenon.Toolset
	seen func(c tenon.Call)
}

func (s stamped) Call(ctx context.Context, c tenon.Call) (*tenon.Result, error) {
	s.seen(c)
	if string(c.Arguments) == `{"text":"stop"}` {
		return nil, tenon.Errorf(tenon.CodeDenied, "the wrapper refuses it")
	}
	r, err := s.Toolset.Call(ctx, c)
	if err != nil {
		return nil, err
	}
	changed := *r
	changed.Raw = json.RawMessage(strings.Replace(string(r.Raw), `"text":"hi"`, `"text":"stamped"`, 1))
	return &changed, nil
}

// TestGW_23_Interceptors checks that a Go program that wraps a server's toolset sees the calls of the gateway's
// clients, and that clients get its results and its refusals. This holds for calls that are sent before they are
// stored, and for calls that a budget counts.
func TestGW_23_Interceptors(t *testing.T) {
	for kind, more := range map[string]string{"light": "", "counted": "budgets: {principal: {tool_calls: 100}}"} {
		u := serveUpstream(t, mcp.ServerConfig{})
		var mu sync.Mutex
		var seen []string
		w := &world{home: filepath.Join(t.TempDir(), "home"), wrap: func(server string, inner tenon.Toolset) tenon.Toolset {
			return stamped{inner, func(c tenon.Call) {
				mu.Lock()
				defer mu.Unlock()
				seen = append(seen, server+"/"+c.Tool+" "+string(c.Arguments))
			}}
		}}
		w.start(t, upstreamConfig(u, more), gateway.Config{})
		for name, era := range eras {
			t.Run(kind+" call, "+name+" client", func(t *testing.T) {
				mu.Lock()
				seen = nil
				mu.Unlock()
				c := w.client(t, era, annaToken)
				r, err := c.Call(t.Context(), tenon.Call{Tool: "echo", Arguments: json.RawMessage(`{"text":"a"}`)})
				if err != nil || r.IsError || !strings.Contains(string(r.Raw), `"text":"stamped"`) ||
					!strings.Contains(string(r.Raw), "9007199254740993") {
					t.Errorf("result %+v, %v", r, err)
				}
				r, err = c.Call(t.Context(), tenon.Call{Tool: "echo", Arguments: json.RawMessage(`{"text":"stop"}`)})
				if err != nil || !r.IsError || !strings.Contains(r.Text(), "the wrapper refuses it") {
					t.Errorf("a refusal: %+v, %v", r, err)
				}
				mu.Lock()
				defer mu.Unlock()
				if got, want := strings.Join(seen, ", "), `up/echo {"text":"a"}, up/echo {"text":"stop"}`; got != want {
					t.Errorf("the wrapper sees %s, want %s", got, want)
				}
			})
		}
	}
}

// TestGW_32_ChangedTools checks that a server whose tool has changed since its first use offers no tools to clients and
// gets no calls. After the owner has accepted the change, clients have its tools again.
func TestGW_32_ChangedTools(t *testing.T) {
	for name, era := range eras {
		t.Run(name, func(t *testing.T) {
			u := serveUpstream(t, mcp.ServerConfig{})
			w := open(t, upstreamConfig(u, ""), gateway.Config{})
			c := w.client(t, era, annaToken)
			if r, err := c.Call(t.Context(), tenon.Call{Tool: "echo"}); err != nil || r.IsError {
				t.Fatalf("the first use: %+v, %v", r, err)
			}
			other := echoTool
			other.Definition = json.RawMessage(strings.Replace(string(echoTool.Definition), "says it back", "sends it away", 1))
			var calls atomic.Int32
			other.Call = func(ctx context.Context, r *mcp.ToolRequest) (json.RawMessage, error) {
				calls.Add(1)
				return echoTool.Call(ctx, r)
			}
			until(t, "the changed list", func() bool { // the stream of notifications opens in the background
				if err := u.SetTools([]mcp.ServerTool{other}); err != nil {
					t.Fatal(err)
				}
				tools, err := c.Tools(t.Context())
				return err == nil && len(tools) == 0
			})
			r, err := c.Call(t.Context(), tenon.Call{Tool: "echo"})
			if err == nil && (!r.IsError || !strings.Contains(r.Text(), "changed since it was pinned")) {
				t.Errorf("a call of a changed tool: %+v", r)
			}
			if n := calls.Load(); n != 0 {
				t.Errorf("the changed tool was called %d times", n)
			}
			if _, err := w.host.Tools().Pins().Accept(t.Context(), "up", "", "local", nil); err != nil {
				t.Fatal(err)
			}
			until(t, "the accepted list", func() bool {
				tools, err := c.Tools(t.Context())
				return err == nil && named(tools) == "echo" && strings.Contains(string(tools[0].Raw), "sends it away")
			})
			if r, err := c.Call(t.Context(), tenon.Call{Tool: "echo"}); err != nil || r.IsError {
				t.Errorf("after the consent: %+v, %v", r, err)
			}
		})
	}
}
