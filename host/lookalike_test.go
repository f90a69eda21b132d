package host_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/view"
)

// cashier is a server that reads its arguments as most Go programs do: it ignores the case of keys, and the last one
// wins.
type cashier struct{ paid atomic.Int64 }

func (b *cashier) Tools(context.Context) ([]tenon.Tool, error) {
	return []tenon.Tool{{Remote: "pay", Input: json.RawMessage(`{"type":"object","properties":{"amount":{"type":"integer"},"of":{"type":"object","properties":{"to":{"type":"string"}}}},"required":["amount"]}`)}}, nil
}

func (b *cashier) Call(_ context.Context, c tenon.Call) (*tenon.Result, error) {
	var args struct{ Amount int64 }
	if err := json.Unmarshal(c.Arguments, &args); err != nil {
		return nil, err
	}
	b.paid.Add(args.Amount)
	return &tenon.Result{Content: []tenon.Content{tenon.Text("paid")}}, nil
}

// TestLookalikesReachNoServer checks that arguments with lookalike keys do not reach a server. A rule would check one
// of the amounts, and the server would read another one.
func TestLookalikesReachNoServer(t *testing.T) {
	rule := policy.Block{Approval: policy.Approval{If: "args.amount > 100"}}
	for _, tt := range []struct{ name, args string }{
		{"SEC-F8_case", `{"amount":1,"Amount":1000}`},
		{"SEC-F8_case, the other way round", `{"Amount":1000,"amount":1,"AMOUNT":1000}`},
		{"SEC-F8_Unicode case", `{"amount":1,"amount\u200b":2,"aMOUNT":1000}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := &cashier{}
			c := &config.Config{Tools: map[string]catalog.Tool{"pay": {Server: "shop", RemoteName: "pay", Policy: rule}}}
			h, _ := budgeted(t, t.TempDir(), c, b, once("pay "+tt.args))
			r, _ := ask(t, h, host.Question{Text: "q"})
			if r.State != tenon.RunCompleted || r.ToolCalls[0].Outcome != view.CallInvalid || b.paid.Load() != 0 {
				t.Errorf("the model: %s, %+v, paid %d", r.State, r.ToolCalls, b.paid.Load())
			}
			if _, _, err := host.CallTool(t.Context(), h, "pay", json.RawMessage(tt.args), nil); tenon.ErrorCode(err) != tenon.CodeInvalid || b.paid.Load() != 0 {
				t.Errorf("a person: error %v, paid %d", err, b.paid.Load())
			}
			if o, err := h.Approvals().Rules().Judge(t.Context(), host.Proposal{Tool: "pay", Arguments: json.RawMessage(tt.args)}); tenon.ErrorCode(err) != tenon.CodeInvalid {
				t.Errorf("judged: %+v, %v", o, err)
			}

			h, _ = budgeted(t, t.TempDir(), c, b, once(`pay {"amount":101}`))
			r, _ = ask(t, h, host.Question{Text: "q"})
			if _, _, err := h.Approvals().Decide(t.Context(), r.Run, r.ToolCalls[0].Step, agent.Ruling{Verdict: tenon.Allow, Arguments: json.RawMessage(tt.args)}); tenon.ErrorCode(err) != tenon.CodeInvalid || b.paid.Load() != 0 {
				t.Errorf("edited: error %v, paid %d", err, b.paid.Load())
			}
		})
	}
}

// fileServer is a server with a tool whose schema names no arguments.
type fileServer struct{ read atomic.Int64 }

func (f *fileServer) Tools(context.Context) ([]tenon.Tool, error) {
	return []tenon.Tool{{Remote: "read", Input: json.RawMessage(`{"type":"object"}`)}}, nil
}

func (f *fileServer) Call(context.Context, tenon.Call) (*tenon.Result, error) {
	f.read.Add(1)
	return &tenon.Result{Content: []tenon.Content{tenon.Text("read")}}, nil
}

// TestLookalikesOfFreeFormTools does the same with a rule about an argument that the schema of the tool does not name.
func TestLookalikesOfFreeFormTools(t *testing.T) {
	for _, tt := range []struct {
		name, args string
		sent       bool
	}{
		{"SEC-G2_beside the key", `{"path":"/srv/x/a","Path":"/etc/passwd"}`, false},
		{"SEC-G2_instead of the key", `{"Path":"/etc/passwd"}`, false},
		{"SEC-G2_trailing space", `{"path":"/srv/x/a","path ":"/etc/passwd"}`, false},
		{"the key itself", `{"path":"/srv/x/a"}`, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := &fileServer{}
			c := &config.Config{Policy: policy.Config{Rules: []policy.Rule{
				{When: `has(args.path) && !under(args.path, "/srv/x")`, Verdict: "deny"}, {When: "true", Verdict: "allow"}}}}
			h, _ := budgeted(t, t.TempDir(), c, f, once("read "+tt.args))
			if r, _ := ask(t, h, host.Question{Text: "q"}); r.State != tenon.RunCompleted {
				t.Fatalf("the run is %s", r.State)
			}
			_, _, err := host.CallTool(t.Context(), h, "read", json.RawMessage(tt.args), nil)
			if n := f.read.Load(); (n == 2) != tt.sent || n == 1 || (err == nil) != tt.sent {
				t.Errorf("sent %d times, error %v", n, err)
			}
		})
	}
}
