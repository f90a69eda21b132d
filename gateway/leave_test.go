package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/gateway"
	"github.com/tenonhq/tenon/mcp"
)

// TestGW_27_ResultOfAClientThatLeft checks that the result of an approved call is kept for an equal call if the client
// has disconnected without a cancellation. The client may have left while the call waited or while it was made.
func TestGW_27_ResultOfAClientThatLeft(t *testing.T) {
	for name, waiting := range map[string]bool{"while it waited": true, "while it was under way": false} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int32
			began, end := make(chan struct{}, 2), make(chan struct{})
			slow := blockingTool(&calls, began, end)
			slow.Definition = bytes.Replace(slow.Definition, []byte(`"readOnlyHint":true`), []byte(`"readOnlyHint":false`), 1)
			w := open(t, upstreamConfig(serveUpstream(t, mcp.ServerConfig{}, slow), ""), gateway.Config{})
			session := w.session(t)
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			left := make(chan struct{})
			go func() {
				defer close(left)
				req, _ := http.NewRequestWithContext(ctx, http.MethodPost, w.url, strings.NewReader(slowCall))
				req.Header = session
				if res, err := http.DefaultClient.Do(req); err == nil {
					_, _ = new(bytes.Buffer).ReadFrom(res.Body) // until the client leaves
					_ = res.Body.Close()
				}
			}()
			run := w.waiting(t, 1)[0].Run
			if waiting {
				leave()
				<-left
			}
			w.decide(t, run, tenon.Allow)
			<-began
			if !waiting {
				leave()
				<-left
			}
			close(end)
			until(t, "the end of the run", func() bool { return w.runs(t)[0].State == tenon.RunCompleted })
			_, _, body := w.post(t, ownToken, slowCall, "Mcp-Session-Id", session.Get("Mcp-Session-Id"))
			if !strings.Contains(body, `"vendor"`) || calls.Load() != 1 || len(w.runs(t)) != 1 {
				t.Errorf("the equal call got %s after %d calls in %d runs", body, calls.Load(), len(w.runs(t)))
			}
		})
	}
}

// slowCall is a request in a legacy session that calls the tool of [blockingTool].
const slowCall = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"slow","arguments":{}}}`

// session begins a legacy session, and returns the headers for its requests.
func (w *world) session(t *testing.T) http.Header {
	t.Helper()
	_, got, body := w.post(t, ownToken, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{`+
		`"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
	id := got.Get("Mcp-Session-Id")
	if id == "" {
		t.Fatalf("no session: %s", body)
	}
	return http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
		"Authorization": {"Bearer " + ownToken}, "Mcp-Session-Id": {id}}
}

// TestGW_19_DrainLetsCallsEnd checks a gateway that is being stopped: calls in progress may end, calls that wait for
// approval are answered at once, and new calls are refused.
func TestGW_19_DrainLetsCallsEnd(t *testing.T) {
	for name, era := range eras {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int32
			began, end := make(chan struct{}, 2), make(chan struct{})
			w := open(t, upstreamConfig(serveUpstream(t, mcp.ServerConfig{}, blockingTool(&calls, began, end)), ""),
				gateway.Config{Park: time.Hour})
			answers := map[string]chan string{"slow": make(chan string, 1), "write": make(chan string, 1)}
			call := func(tool string) string {
				r, err := w.client(t, era, ownToken).Call(t.Context(), tenon.Call{Tool: tool,
					Arguments: json.RawMessage(`{}`)})
				if err != nil {
					return err.Error()
				}
				return r.Text()
			}
			for tool, answer := range answers {
				go func() { answer <- call(tool) }()
			}
			<-began
			w.waiting(t, 1)
			drained := make(chan struct{})
			go func() {
				defer close(drained)
				w.gate.Drain(t.Context())
			}()
			if got := <-answers["write"]; !strings.Contains(got, "is stopping") {
				t.Errorf("the parked call: %s", got)
			}
			if got := call("echo"); !strings.Contains(got, "is stopping") {
				t.Errorf("a later call: %s", got)
			}
			close(end)
			if got := <-answers["slow"]; got != "A/b é" {
				t.Errorf("the call under way: %s", got)
			}
			<-drained
		})
	}
}
