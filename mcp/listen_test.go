package mcp_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/transport"
)

// roundTrip answers requests without a network.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answer(status int, kind string, body io.ReadCloser) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {kind}}, Body: body, ContentLength: -1}
}

// TestQuietSubscription checks that a subscription that ends after a long silence is opened again without a report,
// because a server whose tools do not change is healthy.
func TestQuietSubscription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var health []error
		var subscriptions atomic.Int32
		network := roundTrip(func(r *http.Request) (*http.Response, error) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, err
			}
			m := parse(string(body))
			if m.Method == "server/discover" {
				return answer(200, "application/json", io.NopCloser(strings.NewReader(result(m,
					`{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}}}`)))), nil
			}
			subscriptions.Add(1)
			in, out := io.Pipe()
			context.AfterFunc(r.Context(), func() { _ = in.CloseWithError(r.Context().Err()) })
			go func() {
				_, _ = fmt.Fprintf(out, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\",\"params\":{\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":%s}}}\n\n", m.ID)
			}()
			return answer(200, "text/event-stream", in), nil
		})
		c, err := mcp.Connect(t.Context(), mcp.ClientConfig{
			Dial: func(context.Context) (mcp.Stream, error) {
				return transport.DialHTTP(transport.HTTPConfig{URL: "http://server/mcp", RoundTripper: network})
			},
			Changed: func(string) {},
			Health: func(err error) {
				mu.Lock()
				defer mu.Unlock()
				health = append(health, err)
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(21 * time.Minute) // the limit of silence is 5 minutes
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		for _, err := range health {
			if err != nil {
				t.Error(err)
			}
		}
		if len(health) == 0 || subscriptions.Load() != 5 {
			t.Errorf("%d subscriptions, health %v", subscriptions.Load(), health)
		}
	})
}

// TestForgottenStreamOfNotices uses a server that has forgotten the session. The client asks for its stream of
// notifications less and less often, but at once after a call has begun a new session.
func TestForgottenStreamOfNotices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var old, renewed atomic.Int32 // requests for the stream, by their session
		var begun atomic.Int32
		network := roundTrip(func(r *http.Request) (*http.Response, error) {
			forgotten := r.Header.Get("Mcp-Session-Id") == "a"
			if r.Method == http.MethodGet && forgotten {
				old.Add(1)
				return answer(404, "text/plain", http.NoBody), nil
			} else if r.Method == http.MethodGet {
				renewed.Add(1)
				in, _ := io.Pipe()
				context.AfterFunc(r.Context(), func() { _ = in.CloseWithError(r.Context().Err()) })
				return answer(200, "text/event-stream", in), nil
			}
			var m request
			if r.Method == http.MethodPost {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					return nil, err
				}
				m = parse(string(body))
			}
			switch {
			case m.Method == "initialize":
				resp := answer(200, "application/json", io.NopCloser(strings.NewReader(result(m, hello))))
				resp.Header.Set("Mcp-Session-Id", string('a'-1+begun.Add(1)))
				return resp, nil
			case m.Method == "tools/call" && !forgotten:
				return answer(200, "application/json", io.NopCloser(strings.NewReader(result(m, `{"content":[]}`)))), nil
			case forgotten && m.ID != nil || r.Method == http.MethodDelete:
				return answer(404, "text/plain", http.NoBody), nil
			}
			return answer(202, "", http.NoBody), nil
		})
		c, err := mcp.Connect(t.Context(), mcp.ClientConfig{Protocol: mcp.LatestLegacy, Changed: func(string) {},
			Dial: func(context.Context) (mcp.Stream, error) {
				return transport.DialHTTP(transport.HTTPConfig{URL: "http://server/mcp", RoundTripper: network})
			}})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if n := old.Load(); n < 10 || n > 100 {
			t.Errorf("asked %d times in an hour", n)
		}
		if _, err := c.Call(t.Context(), tenon.Call{Tool: "x"}); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if renewed.Load() != 1 || begun.Load() != 2 {
			t.Errorf("%d sessions, %d streams of the second", begun.Load(), renewed.Load())
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestStaleList checks that a ttlMs of 0 makes a list stale at once, unless the server announces its changes.
func TestStaleList(t *testing.T) {
	for _, x := range []struct {
		name, capability, ttl string
		want                  time.Duration
	}{
		{"RP-11_silent", `{}`, `,"ttlMs":0`, 1},
		{"RP-11_announces", `{"listChanged":true}`, `,"ttlMs":0`, 0},
		{"RP-11_announces_and_expires", `{"listChanged":true}`, `,"ttlMs":5000`, 5 * time.Second},
		{"RP-11_no_hint", `{}`, ``, 0},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := connect(t, mcp.ClientConfig{Protocol: mcp.Modern, DiscoverTimeout: time.Minute,
				Dial: fake(t, func(_ int, line string, send func(string)) bool {
					switch r := parse(line); r.Method {
					case "server/discover":
						send(result(r, `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":`+
							x.capability+`}}`))
					case "tools/list":
						send(result(r, `{"resultType":"complete","tools":[]`+x.ttl+`}`))
					}
					return true
				})})
			if _, err := c.Tools(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := c.Fresh("tools/list"); got != x.want {
				t.Errorf("fresh for %s, want %s", got, x.want)
			}
		})
	}
}
