package mcp_test

import (
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/patience"
	"github.com/tenonhq/tenon/mcp"
)

// TestRuleTimeoutReplacesRequestTimeout calls a tool that takes longer than the server's request timeout. With a rule's
// longer timeout, the call succeeds. Without a rule, it times out.
func TestRuleTimeoutReplacesRequestTimeout(t *testing.T) {
	const timeout = 300 * time.Millisecond
	for _, x := range []struct {
		name string
		rule time.Duration
		want tenon.Code
	}{
		{"no rule", 0, tenon.CodeTimeout},
		{"a longer rule", time.Minute, ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			dial := fake(t, legacy(func(r request, send func(string)) bool {
				go func() {
					time.Sleep(2 * timeout)
					send(result(r, `{"content":[]}`))
				}()
				return true
			}))
			c := connect(t, mcp.ClientConfig{Dial: dial, Protocol: mcp.LatestLegacy, RequestTimeout: timeout})
			ctx, limit := patience.WithTimeout(t.Context(), x.rule)
			defer limit.Stop()
			_, err := c.Call(ctx, tenon.Call{Tool: "slow", Arguments: []byte(`{}`)})
			if tenon.ErrorCode(err) != x.want {
				t.Errorf("error %v, want code %q", err, x.want)
			}
		})
	}
}
