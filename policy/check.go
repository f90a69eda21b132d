package policy

import (
	"maps"
	"slices"

	"github.com/tenonhq/tenon"
)

// Check validates a block that a program made: it must have no unknown words or negative numbers, and not both forms
// of approval. Package config validates blocks from files and reports their positions. Errors: config.
func (b Block) Check() error {
	for _, w := range []struct {
		key, value string
		words      []string
	}{
		{"approval.mode", b.Approval.Mode, []string{ApprovalNever, ApprovalAlways, ApprovalDestructive}},
		{"retry", b.Retry, []string{RetryAuto, RetryNever, RetryAlways}},
		{"on_large_result", b.OnLargeResult, []string{LargeTruncate, LargeArtifact, LargeError}},
		{"results", b.Results, []string{ResultsReport, ResultsStrict, ResultsOff}},
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
		{"timeout", b.Timeout < 0}, {"timeout_progress", b.TimeoutProgress < 0},
		{"expires", b.Expires < 0}, {"result_bytes", b.ResultBytes < 0},
		{"result_tokens", b.ResultTokens < 0},
		{"max_calls.run", Value(b.MaxCalls.Run) < 0}, {"max_calls.session", Value(b.MaxCalls.Session) < 0},
		{"concurrency", Value(b.Concurrency) < 0},
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

// WithServer returns a copy of the rules with the server's block replaced, or removed if b is nil. Errors: config.
func (r *Rules) WithServer(name string, b *Block) (*Rules, error) {
	next := *r
	next.Servers, next.conditions = maps.Clone(r.Servers), maps.Clone(r.conditions)
	if next.Servers == nil {
		next.Servers = map[string]Block{}
	}
	delete(next.Servers, name)
	if b != nil {
		next.Servers[name] = *b
	}
	if err := next.Compile(); err != nil {
		return nil, err
	}
	return &next, nil
}
