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
		{"always", Rules{Defaults: Block{Approval: ApprovalAlways}}, readOnly, tenon.Ask, true},
		{"never", Rules{Defaults: Block{Approval: ApprovalNever}}, tenon.Annotations{}, tenon.Allow, false},
		{"the server's block stands above the defaults", Rules{Defaults: Block{Approval: ApprovalNever}, Servers: map[string]Block{"s": {Approval: ApprovalAlways}}}, readOnly, tenon.Ask, true},
		{"the tool's block stands above the server's", Rules{Servers: map[string]Block{"s": {Approval: ApprovalAlways}}, Tools: map[ID]Block{{"s", "x"}: {Approval: ApprovalNever}}}, tenon.Annotations{}, tenon.Allow, false},
		{"another tool's block says nothing", Rules{Tools: map[ID]Block{{"s", "y"}: {Approval: ApprovalNever}}}, tenon.Annotations{}, tenon.Ask, false},
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
