package gateway_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/gateway"
	"github.com/tenonhq/tenon/mcp"
)

// hiddenText has characters that are not seen, and a code as an escape would write it.
const hiddenText = "a\u202eb\u200b\\u{200b}\r\n"

// hiddenTool answers with hiddenText and a secret member.
var hiddenTool = mcp.ServerTool{
	Definition: json.RawMessage(`{"name":"hidden","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`),
	Call: func(context.Context, *mcp.ToolRequest) (json.RawMessage, error) {
		text, err := json.Marshal(hiddenText)
		return json.RawMessage(`{"content":[{"type":"text","text":` + string(text) + `}],"pin":"1234"}`), err
	}}

// TestHiddenCharacters checks that clients get hidden characters of results as codes, or as the server sent them if the
// configuration says so. The journal has codes in both cases, and members that a rule names stay masked.
func TestHiddenCharacters(t *testing.T) {
	const masks = "policy: {defaults: {redact: [pin]}}\n"
	for _, tt := range []struct {
		name, more, want string
		asks             bool
	}{
		{"RP-18_default", masks, tenon.Visible(hiddenText), false},
		{"RP-18_keep", masks + "gateway: {hidden_characters: keep}\n", hiddenText, false},
		{"RP-18_keep_approved", "policy: {defaults: {redact: [pin], approval: always}}\ngateway: {hidden_characters: keep}\n", hiddenText, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := open(t, upstreamConfig(serveUpstream(t, upstreams["modern"], hiddenTool), "")+tt.more, gateway.Config{})
			c := w.client(t, eras["modern"], ownToken)
			var r *tenon.Result
			var err error
			var call sync.WaitGroup
			call.Go(func() { r, err = c.Call(t.Context(), tenon.Call{Tool: "hidden"}) })
			if tt.asks {
				for _, a := range w.waiting(t, 1) {
					w.decide(t, a.Run, tenon.Allow)
				}
			}
			call.Wait()
			if err != nil {
				t.Fatal(err)
			}
			if got := r.Text(); got != tt.want || strings.Contains(string(r.Raw), "1234") {
				t.Errorf("the client got %q in %s, want %q", got, r.Raw, tt.want)
			}
			for _, run := range w.runs(t) {
				_, events := w.kinds(t, run.ID)
				for _, e := range events {
					if strings.ContainsAny(string(e.Data), "\u202e\u200b") || strings.Contains(string(e.Data), `\u202e`) {
						t.Errorf("the journal has hidden characters: %s", e.Data)
					}
				}
			}
		})
	}
}
