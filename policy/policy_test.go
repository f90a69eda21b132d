package policy

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
)

func TestJudge(t *testing.T) {
	yes, no := true, false
	readOnly := tenon.Annotations{ReadOnly: &yes}
	tests := []struct {
		name       string
		rules      Rules
		hints      tenon.Annotations
		verdict    tenon.Verdict
		idempotent bool
	}{
		{"no annotation counts as destructive", Rules{}, tenon.Annotations{}, tenon.Ask, false},
		{"read-only runs", Rules{}, readOnly, tenon.Allow, true},
		{"not destructive still asks", Rules{}, tenon.Annotations{Destructive: &no}, tenon.Ask, false},
		{"idempotent may be repeated but asks", Rules{}, tenon.Annotations{Idempotent: &yes}, tenon.Ask, true},
		{"always", Rules{Defaults: Block{Approval: Approval{Mode: ApprovalAlways}}}, readOnly, tenon.Ask, true},
		{"never", Rules{Defaults: Block{Approval: Approval{Mode: ApprovalNever}}}, tenon.Annotations{}, tenon.Allow, false},
		{"the server's block stands above the defaults", Rules{Defaults: Block{Approval: Approval{Mode: ApprovalNever}}, Servers: map[string]Block{"s": {Approval: Approval{Mode: ApprovalAlways}}}}, readOnly, tenon.Ask, true},
		{"the tool's block stands above the server's", Rules{Servers: map[string]Block{"s": {Approval: Approval{Mode: ApprovalAlways}}}, Tools: map[ID]Block{{"s", "x"}: {Approval: Approval{Mode: ApprovalNever}}}}, tenon.Annotations{}, tenon.Allow, false},
		{"another tool's block says nothing", Rules{Tools: map[ID]Block{{"s", "y"}: {Approval: Approval{Mode: ApprovalNever}}}}, tenon.Annotations{}, tenon.Ask, false},
		{"retry always", Rules{Defaults: Block{Retry: RetryAlways}}, tenon.Annotations{}, tenon.Ask, true},
		{"retry never", Rules{Defaults: Block{Retry: RetryNever}}, readOnly, tenon.Allow, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := tt.rules.Judge(&Facts{Tool: &tenon.Tool{Server: "s", Remote: "x", Name: "whatever", Annotations: tt.hints}})
			if o.Verdict != tt.verdict || o.Idempotent != tt.idempotent {
				t.Errorf("%+v, want %s, idempotent %v", o, tt.verdict, tt.idempotent)
			}
			if (o.Verdict == tenon.Ask) != (o.Reason != "") {
				t.Errorf("verdict %s with reason %q", o.Verdict, o.Reason)
			}
		})
	}
}

func TestDigest(t *testing.T) {
	a := Rules{Tools: map[ID]Block{{"s", "x"}: {Timeout: time.Second}, {"s", "y"}: {}}}
	b := Rules{Tools: map[ID]Block{{"s", "y"}: {}, {"s", "x"}: {Timeout: time.Second}}}
	if a.Digest() != b.Digest() {
		t.Error("equal rules differ")
	}
	b.Tools[ID{"s", "x"}] = Block{Timeout: 2 * time.Second}
	if a.Digest() == b.Digest() {
		t.Error("different rules are equal")
	}
}

func TestRules(t *testing.T) {
	var r Rules
	err := r.Add(
		Rule{When: `tool.server == "bank" && has(args.amount) && args.amount > 1000.0`, Verdict: "deny", Reason: "too much"},
		Rule{When: `tool.remote_name == "pay" && args.to == "me"`, Verdict: "ask"},
		Rule{When: `agent == "clerk"`, Verdict: "allow"},
	)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, agent, args string
		verdict           tenon.Verdict
		reason            string
	}{
		{"the first rule", "clerk", `{"amount": 5000, "to": "me"}`, tenon.Deny, "too much"},
		{"the second one", "clerk", `{"to": "me"}`, tenon.Ask, `policy rule 2: tool.remote_name == "pay" && args.to == "me"`},
		{"a rule that allows", "clerk", `{"to": "you"}`, tenon.Allow, ""},
		{"none: the block", "lead", `{"to": "you"}`, tenon.Ask, "the tool is not marked as read-only"},
		{"one that cannot be decided", "clerk", `{}`, tenon.Ask, "policy rule 2: the condition"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := r.Judge(&Facts{Tool: &tenon.Tool{Server: "bank", Remote: "pay"}, Agent: tt.agent, Arguments: json.RawMessage(tt.args)})
			if o.Verdict != tt.verdict || !strings.HasPrefix(o.Reason, tt.reason) {
				t.Errorf("%s %q, want %s %q", o.Verdict, o.Reason, tt.verdict, tt.reason)
			}
		})
	}
	for _, bad := range []Rule{{When: "1 +", Verdict: "ask"}, {When: "1", Verdict: "ask"}, {When: "true", Verdict: "perhaps"}} {
		if err := new(Rules).Add(bad); tenon.ErrorCode(err) != tenon.CodeConfig {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	var other Rules
	if other.Digest() == r.Digest() {
		t.Error("rules are not part of the digest")
	}
}

// TestBlocks checks that the most specific block wins, separately for each value. A configured zero counts as a value.
func TestBlocks(t *testing.T) {
	id := ID{"s", "x"}
	r := Rules{
		Defaults:   Block{Rate: "1/s", MaxCalls: CallLimit{Run: new(9), Session: new(9)}, Redact: []string{"d"}, Cost: new(1.0), ResultTokens: 1},
		Servers:    map[string]Block{"s": {Rate: "2/s", Concurrency: new(2), Cache: Cache{TTL: new(time.Minute)}, ResultTokens: 2}},
		Groups:     map[string]Block{"g": {Rate: "3/s", Concurrency: new(3), ResultTokens: 3}, tenon.DefaultGroup: {Rate: "none"}},
		Agents:     map[string]Block{"a": {Rate: "4/s", Cache: Cache{Scope: ScopeSession}, Redact: []string{}, ResultTokens: 4}},
		Tools:      map[ID]Block{id: {MaxCalls: CallLimit{Run: new(0)}, Cost: new(0.0), ResultTokens: 5}},
		ToolGroups: map[ID][]string{id: {"g"}},
	}
	if err := r.Compile(); err != nil {
		t.Fatal(err)
	}
	b := r.For(id, "a")
	if b.Rate != "4/s" || *b.Concurrency != 3 || *b.MaxCalls.Run != 0 || *b.MaxCalls.Session != 9 || len(b.Redact) != 0 || *b.Cost != 0 ||
		*b.Cache.TTL != time.Minute || b.Cache.Scope != ScopeSession || b.ResultTokens != 5 || b.Retry != RetryAuto {
		t.Errorf("agent a: %+v", b)
	}
	if b := r.For(id, ""); b.Rate != "3/s" || b.Cache.Scope != ScopeRun || b.Redact[0] != "d" {
		t.Errorf("no agent: %+v", b)
	}
	if b := r.For(ID{"s", "y"}, ""); b.Rate != RateNone || *b.Concurrency != 2 || b.ResultTokens != 2 {
		t.Errorf("another tool: %+v", b)
	}
}

// TestApprovalIf checks that a call asks if the condition of its block is true or cannot be decided.
func TestApprovalIf(t *testing.T) {
	r := Rules{Servers: map[string]Block{"s": {Approval: Approval{If: "args.n > 3"}}}}
	if err := r.Compile(); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]tenon.Verdict{`{"n":3}`: tenon.Allow, `{"n":4}`: tenon.Ask, `{}`: tenon.Ask, `{"n":"x"}`: tenon.Ask} {
		o := r.Judge(&Facts{Tool: &tenon.Tool{Server: "s", Remote: "x"}, Arguments: json.RawMessage(args)})
		if o.Verdict != want || (want == tenon.Ask) != strings.HasPrefix(o.Reason, "approval.if: ") {
			t.Errorf("%s: %+v, want %s", args, o, want)
		}
	}
	bad := Rules{Tools: map[ID]Block{{"s", "x"}: {Approval: Approval{If: "args.n >"}}}}
	if err := bad.Compile(); tenon.ErrorCode(err) != tenon.CodeConfig {
		t.Errorf("a broken condition: %v", err)
	}
}

func FuzzParseRate(f *testing.F) {
	for _, s := range []string{"10/m", "none", "", "0/s", "1/d", "-1/s", "1001/h", "1 / s", "/s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, per, err := ParseRate(s)
		if (err == nil) != (n > 0 && n <= maxRate && per > 0 || n == 0 && per == 0 && (s == "" || s == RateNone)) {
			t.Errorf("%q: %d per %s, %v", s, n, per, err)
		}
	})
}

// TestSameCallTells checks that calls with different arguments have different keys, even if decoding would make the
// arguments equal.
func TestSameCallTells(t *testing.T) {
	key := func(args string) string {
		k, err := (&SameCall{Scope: ScopeRun, Owner: "r", Server: "s", Remote: "t", Arguments: json.RawMessage(args)}).Key()
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	if key(`{"q":"\ud800"}`) == key(`{"q":"\ud801"}`) {
		t.Error("two halves of characters are one call")
	}
	if key(`{"b":1, "a":"\u00e9"}`) != key(`{"a":"é","b":1}`) {
		t.Error("equal calls are two")
	}
}
