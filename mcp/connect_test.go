package mcp_test

import (
	"context"
	"testing"
	"time"

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
