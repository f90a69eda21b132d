package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/gateway"
	"github.com/tenonhq/tenon/jsonrpc"
	"github.com/tenonhq/tenon/mcp"
)

// upstreams are the protocol eras that a server can support.
var upstreams = map[string]mcp.ServerConfig{"legacy": {NoModern: true}, "modern": {NoLegacy: true}}

// TestGW_1_2_3_4_ErasOfClientsAndServers checks that clients and servers of both eras work together, in all four
// combinations. Members that tenon does not know stay in definitions and results.
func TestGW_1_2_3_4_ErasOfClientsAndServers(t *testing.T) {
	for of, up := range upstreams {
		w := open(t, upstreamConfig(serveUpstream(t, up), rules), gateway.Config{})
		for name, era := range eras {
			t.Run(name+" client, "+of+" server", func(t *testing.T) {
				c := w.client(t, era, ownToken)
				tools, err := c.Tools(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if got, want := named(tools), "broken echo guarded secret write"; got != want {
					t.Errorf("tools %q, want %q", got, want)
				}
				def := string(tools[1].Raw)
				for _, want := range []string{`"title":"Echo"`, `"vendorHint":7`, `"readOnlyHint":true`, `"icons":[{"src":"https://a.example/i.png"}]`,
					`"_meta":{"ui":{"resourceUri":"ui://a"}}`, `"x-vendor":{"n":1.0}`} {
					if !strings.Contains(def, want) {
						t.Errorf("the definition lacks %s: %s", want, def)
					}
				}
				r, err := c.Call(t.Context(), tenon.Call{Tool: "echo", Arguments: json.RawMessage(`{"text":"hi"}`)})
				if err != nil {
					t.Fatal(err)
				}
				if got := string(r.Raw); strings.Replace(got, `"resultType":"complete",`, "", 1) != echoResult {
					t.Errorf("result %s, want %s", got, echoResult)
				}
				if got := strings.Contains(string(r.Raw), "resultType"); got != (name == "modern") {
					t.Errorf("a %s client got the envelope of the other era: %s", name, r.Raw)
				}
				if r, err := c.Call(t.Context(), tenon.Call{Tool: "broken"}); err != nil || !r.IsError || r.Text() != "it broke" {
					t.Errorf("a tool's own error: %+v, %v", r, err)
				}
				_, err = c.Call(t.Context(), tenon.Call{Tool: "nothing"})
				var rpc *jsonrpc.Error
				if !errors.As(err, &rpc) || rpc.Code != jsonrpc.CodeInvalidParams {
					t.Errorf("an unknown tool: %v", err)
				}
			})
		}
	}
}

// TestGW_7_12_RulesHoldForPrincipals checks that a tool that the rules deny to a principal is neither listed nor
// called, that a rule can deny a call because of its arguments, and that the client gets the reason.
func TestGW_7_12_RulesHoldForPrincipals(t *testing.T) {
	w := open(t, upstreamConfig(serveUpstream(t, mcp.ServerConfig{}), rules), gateway.Config{})
	for name, era := range eras {
		t.Run(name, func(t *testing.T) {
			anna := w.client(t, era, annaToken)
			tools, err := anna.Tools(t.Context())
			if got, want := named(tools), "broken echo guarded write"; err != nil || got != want {
				t.Errorf("anna sees %q, want %q (%v)", got, want, err)
			}
			for call, want := range map[string]string{"secret {}": "only the owner may", `guarded {"path":"/etc"}`: "not that folder",
				"guarded {}": "path"} {
				tool, args, _ := strings.Cut(call, " ")
				r, err := anna.Call(t.Context(), tenon.Call{Tool: tool, Arguments: json.RawMessage(args)})
				if err != nil || !r.IsError || !strings.Contains(r.Text(), want) {
					t.Errorf("%s: %+v, %v; want the reason %q", call, r, err, want)
				}
			}
			if r, err := anna.Call(t.Context(), tenon.Call{Tool: "guarded", Arguments: json.RawMessage(`{"path":"/srv"}`)}); err != nil || r.IsError {
				t.Errorf("an allowed call: %+v, %v", r, err)
			}
			if r, err := w.client(t, era, ownToken).Call(t.Context(), tenon.Call{Tool: "secret"}); err != nil || r.IsError {
				t.Errorf("the owner's call: %+v, %v", r, err)
			}
		})
	}
}

// TestGW_19_Progress checks that progress notifications of a server reach the client in order. The first ones of a call
// may be missed, so the tool sends more until one has arrived.
func TestGW_19_Progress(t *testing.T) {
	for name, era := range eras {
		t.Run(name, func(t *testing.T) {
			arrived := make(chan struct{})
			w := open(t, upstreamConfig(serveUpstream(t, mcp.ServerConfig{}, mcp.ServerTool{
				Definition: json.RawMessage(`{"name":"steps","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`),
				Call: func(ctx context.Context, r *mcp.ToolRequest) (json.RawMessage, error) {
					for n := 1.0; ; n++ {
						r.Progress(n, 1e6, "step")
						select {
						case <-arrived:
							return json.RawMessage(echoResult), nil
						case <-ctx.Done():
							return nil, ctx.Err()
						case <-time.After(10 * time.Millisecond):
						}
					}
				}}), ""), gateway.Config{})
			var mu sync.Mutex
			var got []tenon.Progress
			_, err := w.client(t, era, ownToken).Call(t.Context(), tenon.Call{Tool: "steps", Progress: func(p tenon.Progress) {
				mu.Lock()
				defer mu.Unlock()
				if got = append(got, p); len(got) == 2 {
					close(arrived)
				}
			}})
			mu.Lock()
			defer mu.Unlock()
			if err != nil || len(got) < 2 || got[0].Total != 1e6 || got[0].Message != "step" || got[1].Progress <= got[0].Progress {
				t.Errorf("progress %+v, %v", got, err)
			}
		})
	}
}

// TestGW_27_AskParksTheCall checks that a call that needs approval is made once, after a person has decided, and that
// an equal call joins it instead of becoming a second call.
func TestGW_27_AskParksTheCall(t *testing.T) {
	for name, era := range eras {
		t.Run(name, func(t *testing.T) {
			u := serveUpstream(t, mcp.ServerConfig{})
			w := open(t, upstreamConfig(u, ""), gateway.Config{})
			one, two := w.client(t, era, annaToken), w.client(t, era, annaToken)
			var wg sync.WaitGroup
			// call calls the tool. It returns when the client has received the notice that the call waits.
			call := func(c *mcp.Client) {
				parked := make(chan struct{})
				told := sync.OnceFunc(func() { close(parked) })
				wg.Go(func() {
					defer told()
					r, err := c.Call(t.Context(), tenon.Call{Tool: "write", Arguments: json.RawMessage(`{"n":1}`),
						Progress: func(tenon.Progress) { told() }})
					if err != nil || r.Text() != "written" {
						t.Errorf("after the decision: %+v, %v", r, err)
					}
				})
				<-parked
			}
			call(one)
			call(two)
			waiting := w.waiting(t, 1)
			if u.writes.Load() != 0 || waiting[0].Principal != "anna" {
				t.Fatalf("%d calls before a decision of %+v", u.writes.Load(), waiting)
			}
			w.decide(t, waiting[0].Run, tenon.Allow)
			wg.Wait()
			if n := u.writes.Load(); n != 1 {
				t.Errorf("%d calls upstream, want 1", n)
			}
		})
	}
}

// TestGW_27_ParkedCallIsFetched checks that a client whose wait has timed out gets the result later with an equal call.
// If the call was refused, the error says so. An equal call of another principal is a separate call.
func TestGW_27_ParkedCallIsFetched(t *testing.T) {
	u := serveUpstream(t, mcp.ServerConfig{})
	w := open(t, upstreamConfig(u, ""), gateway.Config{Park: 50 * time.Millisecond})
	anna := w.client(t, mcp.Modern, annaToken)
	write := func(c *mcp.Client, args string) *tenon.Result {
		t.Helper()
		r, err := c.Call(t.Context(), tenon.Call{Tool: "write", Arguments: json.RawMessage(args)})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := write(anna, `{"n":1}`); !r.IsError || !strings.Contains(r.Text(), "call the tool again with the same arguments") {
		t.Fatalf("parked: %+v", r)
	}
	if r := write(w.client(t, mcp.Modern, ownToken), `{"n":1}`); !r.IsError {
		t.Fatalf("another principal's: %+v", r)
	}
	waiting := w.waiting(t, 2)
	for _, a := range waiting {
		if a.Principal == "anna" {
			w.decide(t, a.Run, tenon.Allow)
		}
	}
	until(t, "the call", func() bool { return u.writes.Load() == 1 })
	var r *tenon.Result
	until(t, "the result", func() bool { r = write(anna, `{"n": 1}`); return !r.IsError })
	if r.Text() != "written" || u.writes.Load() != 1 {
		t.Errorf("fetched %+v after %d calls", r, u.writes.Load())
	}
	if r := write(anna, `{"n":1}`); !r.IsError { // the result was already delivered, so this is a new call
		t.Errorf("a new call: %+v", r)
	}
	for _, a := range w.waiting(t, 2) {
		w.decide(t, a.Run, tenon.Deny)
	}
	until(t, "the refusal", func() bool {
		r = write(anna, `{"n":1}`)
		return !strings.Contains(r.Text(), "waits for a person")
	})
	if !r.IsError || !strings.Contains(r.Text(), "denied") || u.writes.Load() != 1 {
		t.Errorf("refused: %+v after %d calls", r, u.writes.Load())
	}
}

// TestGW_19_Cancellation checks that a cancellation by the client ends the run, and with it the call at the server.
func TestGW_19_Cancellation(t *testing.T) {
	for name, era := range eras {
		t.Run(name, func(t *testing.T) {
			began, ended := make(chan struct{}), make(chan struct{})
			u := serveUpstream(t, mcp.ServerConfig{NoLegacy: true}, mcp.ServerTool{
				Definition: json.RawMessage(`{"name":"slow","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`),
				Call: func(ctx context.Context, _ *mcp.ToolRequest) (json.RawMessage, error) {
					close(began)
					<-ctx.Done()
					close(ended)
					return nil, ctx.Err()
				}})
			w := open(t, upstreamConfig(u, ""), gateway.Config{})
			c := w.client(t, era, ownToken)
			ctx, cancel := context.WithCancel(t.Context())
			go func() { <-began; cancel() }()
			if _, err := c.Call(ctx, tenon.Call{Tool: "slow"}); err == nil {
				t.Error("a cancelled call has a result")
			}
			<-ended
		})
	}
}

// TestGW_13_SessionsOfOnePrincipal checks that a session works only for its own principal, that a request id cannot be
// used twice, and that the headers must match the body.
func TestGW_13_SessionsOfOnePrincipal(t *testing.T) {
	w := open(t, upstreamConfig(serveUpstream(t, mcp.ServerConfig{}), ""), gateway.Config{})
	const start = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
	status, header, _ := w.post(t, ownToken, start)
	session := header.Get("Mcp-Session-Id")
	if status != http.StatusOK || session == "" {
		t.Fatalf("initialize: %d, session %q", status, session)
	}
	const list, modern = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo",` +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	for name, tt := range map[string]struct {
		token, body string
		header      []string
		status      int
	}{
		"its own":               {ownToken, list, []string{"Mcp-Session-Id", session}, 200},
		"another principal":     {annaToken, list, []string{"Mcp-Session-Id", session}, 404},
		"a made-up session":     {ownToken, list, []string{"Mcp-Session-Id", "mcp_0"}, 404},
		"no session":            {ownToken, list, nil, 200}, // for clients that do not send it back
		"no token":              {"", list, []string{"Mcp-Session-Id", session}, 401},
		"a foreign origin":      {ownToken, list, []string{"Mcp-Session-Id", session, "Origin", "https://evil.example"}, 403},
		"no JSON":               {ownToken, "{", []string{"Mcp-Session-Id", session}, 400},
		"a modern call":         {ownToken, modern, []string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "echo"}, 200},
		"another name":          {ownToken, modern, []string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "write"}, 400},
		"no name in the header": {ownToken, modern, []string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call"}, 400},
		"another method":        {ownToken, modern, []string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/list", "Mcp-Name", "echo"}, 400},
		"another version":       {ownToken, modern, []string{"MCP-Protocol-Version", "2099-01-01", "Mcp-Method", "tools/call", "Mcp-Name", "echo"}, 400},
	} {
		t.Run(name, func(t *testing.T) {
			if status, _, body := w.post(t, tt.token, tt.body, tt.header...); status != tt.status {
				t.Errorf("status %d, want %d: %s", status, tt.status, body)
			}
		})
	}
}

// TestGW_25_CallsAreAudited checks that the journal contains each call with its principal and its decision.
func TestGW_25_CallsAreAudited(t *testing.T) {
	w := open(t, upstreamConfig(serveUpstream(t, mcp.ServerConfig{}), rules), gateway.Config{})
	anna := w.client(t, mcp.Modern, annaToken)
	for _, tool := range []string{"echo", "secret"} {
		if _, err := anna.Call(t.Context(), tenon.Call{Tool: tool}); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "the audit", func() bool { return len(w.runs(t)) == 2 })
	verdicts := map[string]tenon.Verdict{}
	for _, r := range w.runs(t) {
		if r.Principal != "anna" {
			t.Errorf("run %s is %s's", r.ID, r.Principal)
		}
		events, err := w.host.Runs().Open(r.ID).Journal(t.Context(), 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			var d agent.Decision
			if e.Kind == agent.EventDecided && json.Unmarshal(e.Data, &d) == nil {
				verdicts[d.Remote] = d.Verdict
			}
		}
	}
	if len(verdicts) != 2 || verdicts["echo"] != tenon.Allow || verdicts["secret"] != tenon.Deny {
		t.Errorf("decisions %v", verdicts)
	}
}
