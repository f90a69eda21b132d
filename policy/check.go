package policy

import (
	"maps"
	"slices"

	"github.com/tenonhq/tenon"
)

// Check finds what cannot hold in a block that no file says, but a program: a word that is
// none of those which are possible, a number below zero, two ways to ask. What a file
// says is checked where it is read, with its place. Errors: config.
func (b Block) Check() error {
	for _, w := range []struct {
		key, value string
		words      []string
	}{
		{"approval.mode", b.Approval.Mode, []string{ApprovalNever, ApprovalAlways, ApprovalDestructive}},
		{"retry", b.Retry, []string{RetryAuto, RetryNever, RetryAlways}},
		{"on_large_result", b.OnLargeResult, []string{LargeTruncate, LargeArtifact, LargeError}},
		{"cache.scope", b.Cache.Scope, []string{ScopeRun, ScopeSession, ScopeProject}},
	} {
		if w.value != "" && !slices.Contains(w.words, w.value) {
			return tenon.Errorf(tenon.CodeConfig, "%s: '%s' is none of %v", w.key, w.value, w.words)
		}
	}
	for _, n := range []struct {
		key   string
		below bool
	}{
		{"timeout", b.Timeout < 0}, {"expires", b.Expires < 0}, {"result_bytes", b.ResultBytes < 0}, {"result_tokens", b.ResultTokens < 0},
		{"max_calls.run", Value(b.MaxCalls.Run) < 0}, {"max_calls.session", Value(b.MaxCalls.Session) < 0}, {"concurrency", Value(b.Concurrency) < 0},
		{"cache.ttl", Value(b.Cache.TTL) < 0}, {"cost", Value(b.Cost) < 0},
	} {
		if n.below {
			return tenon.Errorf(tenon.CodeConfig, "%s: it cannot be below zero", n.key)
		}
	}
	if b.Approval.Mode != "" && b.Approval.If != "" {
		return tenon.Errorf(tenon.CodeConfig, "approval: 'mode' and 'if' together: a call cannot ask by both")
	}
	if _, _, err := ParseRate(b.Rate); err != nil {
		return tenon.Errorf(tenon.CodeConfig, "rate: %w", err)
	}
	return nil
}

// WithServer returns the rules with another block for a server; nil takes that of the
// server away. The rules themselves do not change. Errors: config.
func (r *Rules) WithServer(name string, b *Block) (*Rules, error) {
	next := *r
	next.Servers, next.conditions = maps.Clone(r.Servers), maps.Clone(r.conditions)
	if next.Servers == nil {
		next.Servers = map[string]Block{}
	}
	if delete(next.Servers, name); b != nil {
		next.Servers[name] = *b
	}
	if err := next.Compile(); err != nil {
		return nil, err
	}
	return &next, nil
}
