package mcp_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tenonhq/tenon/jsonrpc"
	"github.com/tenonhq/tenon/mcp"
)

// TestSlowToStart holds that the time for one request does not bound connecting, which has
// a time of its own.
func TestSlowToStart(t *testing.T) {
	slow := mcp.ServerConfig{Name: "x", Version: "1", Observe: func(_ context.Context, method string, _ []byte) error {
		if method == "initialize" || method == "server/discover" {
			time.Sleep(100 * time.Millisecond)
		}
		return nil
	}}
	for name, dial := range ends(t, slow) {
		for _, protocol := range []string{mcp.LatestLegacy, mcp.Modern} {
			t.Run(name+"/"+protocol, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				c, err := mcp.Connect(ctx, mcp.ClientConfig{Dial: dial, Protocol: protocol, RequestTimeout: time.Millisecond})
				if err != nil {
					t.Fatal(err)
				}
				_ = c.Close()
			})
		}
	}
}

// TestModernServerThatIsSlow holds that a server which was too slow to tell its era is not
// lost where it then says that it does not know initialize.
func TestModernServerThatIsSlow(t *testing.T) {
	s, err := mcp.NewServer(mcp.ServerConfig{Name: "x", Version: "1", NoLegacy: true})
	if err != nil {
		t.Fatal(err)
	}
	dial := fake(t, func(conn int, line string, send func(string)) bool {
		r := parse(line)
		if conn == 1 || r.ID == nil {
			return true // it starts, and starts …
		}
		result, err := s.Handle(context.Background(), &jsonrpc.Request{ID: r.ID, Method: r.Method, Params: r.Params}, "", func(string, []byte) {})
		var e *jsonrpc.Error
		if errors.As(err, &e) {
			send(string(jsonrpc.AppendError(nil, r.ID, e)))
			return true
		}
		send(string(jsonrpc.AppendResult(nil, r.ID, result)))
		return true
	})
	c := connect(t, mcp.ClientConfig{Dial: dial})
	if info := c.Info(); info.Protocol != mcp.Modern {
		t.Errorf("%+v", info)
	}
}
