package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/gateway"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/mcp"
)

// nameRequest asks for a name.
const nameRequest = `{"message":"Your name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}`

// greeter is a tool whose server asks for a name, in the form that its protocol era has.
func greeter(calls *atomic.Int32) mcp.ServerTool {
	return mcp.ServerTool{Definition: json.RawMessage(`{"name":"hello","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`),
		Call: func(ctx context.Context, r *mcp.ToolRequest) (json.RawMessage, error) {
			answer := rawjson.Field(r.Responses, "who")
			switch {
			case r.Modern && answer == nil:
				return json.RawMessage(`{"resultType":"input_required","requestState":"s","inputRequests":{"who":{"method":"elicitation/create","params":` + nameRequest + `}}}`), nil
			case !r.Modern:
				var err error
				if answer, err = r.Ask(ctx, mcp.MethodElicit, json.RawMessage(nameRequest)); err != nil {
					return nil, err
				}
			}
			calls.Add(1)
			name := rawjson.String(rawjson.Field(rawjson.Field(answer, "content"), "name"))
			return json.RawMessage(`{"content":[{"type":"text","text":"` + rawjson.String(rawjson.Field(answer, "action")) + ` ` + name + `"}]}`), nil
		}}
}

// dialog answers the elicitations of a call in either protocol era, and counts them.
type dialog struct {
	answer string
	asked  atomic.Int32
	last   atomic.Value
}

func (d *dialog) ask(_ context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	d.asked.Add(1)
	d.last.Store(method + " " + string(params))
	return json.RawMessage(d.answer), nil
}

// call calls a tool and answers the questions of the server.
func (d *dialog) call(t *testing.T, c *mcp.Client, tool, args string) *tenon.Result {
	t.Helper()
	return callAnswering(t, c, tenon.Call{Tool: tool, Arguments: json.RawMessage(args), Ask: d.ask})
}

// callAnswering calls a tool, and repeats the call of a modern client with the answers of call.Ask.
func callAnswering(t *testing.T, c *mcp.Client, call tenon.Call) *tenon.Result {
	t.Helper()
	for range 4 {
		r, err := c.Call(t.Context(), call)
		if err != nil {
			t.Fatal(err)
		}
		if r.Input == nil {
			return r
		}
		out := map[string]json.RawMessage{}
		for key, q := range rawjson.Members(r.Input.Requests) {
			if out[string(key)], err = call.Ask(t.Context(), rawjson.String(rawjson.Field(q, "method")), rawjson.Field(q, "params")); err != nil {
				t.Fatal(err)
			}
		}
		call.Input = &tenon.InputAnswer{Responses: tenon.EventData(out), State: r.Input.State}
	}
	t.Fatal("the call asks again and again")
	return nil
}

// elicits configures a client that answers forms.
func elicits(cfg *mcp.ClientConfig) { cfg.Answers = mcp.Answers{Form: true} }

// TestGW_16_18_ElicitationPasses checks that a server's question reaches the client that made the call, in the form of
// the client's era, and that the answer reaches the server once. It tries all four combinations of eras.
func TestGW_16_18_ElicitationPasses(t *testing.T) {
	for of, up := range upstreams {
		var calls atomic.Int32
		w := &world{home: filepath.Join(t.TempDir(), "home"), asks: true}
		w.start(t, upstreamConfig(serveUpstream(t, up, greeter(&calls)), ""), gateway.Config{})
		for name, era := range eras {
			for answer, want := range map[string]string{`{"action":"accept","content":{"name":"Ann"}}`: "accept Ann", `{"action":"decline"}`: "decline "} {
				t.Run(name+" client, "+of+" server, "+want, func(t *testing.T) {
					calls.Store(0)
					d := &dialog{answer: answer}
					r := d.call(t, w.client(t, era, ownToken, elicits), "hello", `{}`)
					if r.IsError || r.Text() != want || d.asked.Load() != 1 || calls.Load() != 1 {
						t.Errorf("%q, want %q; asked %d times, called %d times: %v", r.Text(), want, d.asked.Load(), calls.Load(), d.last.Load())
					}
				})
			}
		}
	}
}

// TestGW_27_ApproveClient checks when a client can approve its own calls: only at an endpoint with approve: client, and
// only if it accepts the form with the decision "allow".
func TestGW_27_ApproveClient(t *testing.T) {
	u := serveUpstream(t, mcp.ServerConfig{})
	w := open(t, upstreamConfig(u, "gateway: {park: 200ms, endpoints: {mine: {approve: client}, other: {}}}"), gateway.Config{})
	number := 0
	for name, era := range eras {
		for _, tt := range []struct {
			what, path, answer string
			writes, asked      int32
			says               string
		}{
			{"allowed", "/mine", `{"action":"accept","content":{"decision":"allow"}}`, 1, 1, "written"},
			{"denied", "/mine", `{"action":"accept","content":{"decision":"deny"}}`, 0, 1, "denied"},
			{"declined", "/mine", `{"action":"decline"}`, 0, 1, "denied"},
			{"accepted without a decision", "/mine", `{"action":"accept","content":{}}`, 0, 1, "denied"},
			{"another endpoint", "/other", `{"action":"accept","content":{"decision":"allow"}}`, 0, 0, "tenon approvals allow"},
		} {
			t.Run(name+", "+tt.what, func(t *testing.T) {
				u.writes.Store(0)
				number++ // the number makes the calls different: an equal call would get the result of an earlier one
				d := &dialog{answer: tt.answer}
				there := world{url: w.url + tt.path}
				r := d.call(t, there.client(t, era, ownToken, elicits), "write", fmt.Sprintf(`{"n":%d}`, number))
				if !strings.Contains(r.Text(), tt.says) || u.writes.Load() != tt.writes || d.asked.Load() != tt.asked {
					t.Errorf("%q, want %q; %d writes, asked %d times", r.Text(), tt.says, u.writes.Load(), d.asked.Load())
				}
				for _, a := range w.waitingNow(t) {
					w.decide(t, a.Run, tenon.Deny)
				}
			})
		}
	}
}

// TestGW_18_AnswersWithoutState checks what answers without a requestState do. They are allowed: servers may ask without
// one, and their clients then must not send one (2026-07-28, mrtr). Therefore they answer a server that asks, but never
// the question whether the call may be made, and unknown ones are ignored.
func TestGW_18_AnswersWithoutState(t *testing.T) {
	u := serveUpstream(t, mcp.ServerConfig{})
	w := open(t, upstreamConfig(u, "gateway: {endpoints: {mine: {approve: client}}}"), gateway.Config{})
	c := (&world{url: w.url + "/mine"}).client(t, mcp.Modern, ownToken, elicits)
	yes := json.RawMessage(`{"approval":{"action":"accept","content":{"decision":"allow"}}}`)
	r, err := c.Call(t.Context(), tenon.Call{Tool: "write", Input: &tenon.InputAnswer{Responses: yes}})
	if err != nil || r.Input == nil || u.writes.Load() != 0 {
		t.Errorf("an approval that was not asked for: %+v, %v, %d writes", r, err, u.writes.Load())
	}
	never := json.RawMessage(`{"never":{"action":"accept"}}`)
	r, err = c.Call(t.Context(), tenon.Call{Tool: "echo", Input: &tenon.InputAnswer{Responses: never}})
	if err != nil || r.Text() != "hi" {
		t.Errorf("an unknown answer: %+v, %v", r, err)
	}
}

// TestGW_18_ForgedRequestState checks that an answer is refused if its request state is forged, belongs to another
// call, or was already used.
func TestGW_18_ForgedRequestState(t *testing.T) {
	u := serveUpstream(t, mcp.ServerConfig{})
	w := open(t, upstreamConfig(u, "gateway: {endpoints: {mine: {approve: client}}}"), gateway.Config{})
	own := (&world{url: w.url + "/mine"}).client(t, mcp.Modern, ownToken, elicits)
	anna := (&world{url: w.url + "/mine"}).client(t, mcp.Modern, annaToken, elicits)
	first, err := own.Call(t.Context(), tenon.Call{Tool: "write"})
	if err != nil || first.Input == nil {
		t.Fatalf("%+v, %v", first, err)
	}
	yes := json.RawMessage(`{"approval":{"action":"accept","content":{"decision":"allow"}}}`)
	for who, state := range map[*mcp.Client]string{own: "forged/1.0", anna: first.Input.State} {
		r, err := who.Call(t.Context(), tenon.Call{Tool: "write", Input: &tenon.InputAnswer{Responses: yes, State: state}})
		if err == nil || !strings.Contains(err.Error(), "requestState") {
			t.Errorf("state %s: %+v, %v", state, r, err)
		}
	}
	if u.writes.Load() != 0 {
		t.Fatal("a forged state decided")
	}
	for i, want := range []string{"", "requestState"} { // a replayed answer is refused
		_, err := own.Call(t.Context(), tenon.Call{Tool: "write", Input: &tenon.InputAnswer{Responses: yes, State: first.Input.State}})
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) || u.writes.Load() != 1 {
			t.Fatalf("answer %d: %v, %d writes", i, err, u.writes.Load())
		}
	}
}
