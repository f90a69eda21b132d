package policy

import (
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
			o := tt.rules.Judge(&tenon.Tool{Server: "s", Remote: "x", Name: "whatever", Annotations: tt.hints})
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
