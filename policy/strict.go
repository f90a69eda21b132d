package policy

import (
	"cmp"
	"slices"
)

// Stricter returns a block with the stricter of both values for each key. If only one block sets a key, its value is
// used. Approval is not combined: see [Layers.Judge].
func (b Block) Stricter(o Block) Block {
	out := b.Within(o)
	out.Timeout = least(b.Timeout, o.Timeout)
	out.TimeoutProgress = least(b.TimeoutProgress, o.TimeoutProgress)
	out.ResultBytes = least(b.ResultBytes, o.ResultBytes)
	out.ResultTokens = least(b.ResultTokens, o.ResultTokens)
	out.Cache.TTL = leastOf(b.Cache.TTL, o.Cache.TTL)
	out.Cache.Force = cmp.Or(out.Cache.Force, b.Cache.Force, o.Cache.Force)
	return out
}

// Within returns the block with those values of o that are stricter. A feature that b disables, such as a cache,
// stays disabled.
func (b Block) Within(o Block) Block {
	b.Approval = Approval{}
	b.Timeout = least(b.Timeout, o.Timeout)
	b.TimeoutProgress = least(b.TimeoutProgress, o.TimeoutProgress)
	b.Retry = stricterWord(b.Retry, o.Retry, RetryNever, RetryAuto, RetryAlways)
	b.MaxCalls.Run = leastLimit(b.MaxCalls.Run, o.MaxCalls.Run)
	b.MaxCalls.Session = leastLimit(b.MaxCalls.Session, o.MaxCalls.Session)
	b.Rate = slowest(b.Rate, o.Rate)
	b.Concurrency = leastLimit(b.Concurrency, o.Concurrency)
	b.ResultBytes = least(b.ResultBytes, o.ResultBytes)
	b.ResultTokens = least(b.ResultTokens, o.ResultTokens)
	b.OnLargeResult = stricterWord(b.OnLargeResult, o.OnLargeResult, LargeError, LargeTruncate, LargeArtifact)
	b.Results = stricterWord(b.Results, o.Results, ResultsStrict, ResultsReport, ResultsOff)
	if b.Cache.TTL != nil {
		b.Cache.TTL = leastOf(b.Cache.TTL, o.Cache.TTL)
	}
	b.Cache.Scope = stricterWord(b.Cache.Scope, o.Cache.Scope, ScopeRun, ScopeSession, ScopeProject)
	if b.Cache.Force != nil && o.Cache.Force != nil && !*o.Cache.Force {
		b.Cache.Force = o.Cache.Force
	}
	b.Redact = slices.Compact(slices.Sorted(slices.Values(slices.Concat(b.Redact, o.Redact))))
	if o.Cost != nil && Value(o.Cost) > Value(b.Cost) || b.Cost == nil {
		b.Cost = o.Cost
	}
	b.Expires = least(b.Expires, o.Expires)
	return b
}

// least returns the smaller of two values; 0 means that a value is not set.
func least[T cmp.Ordered](a, b T) T {
	var zero T
	if a == zero || b == zero {
		return max(a, b)
	}
	return min(a, b)
}

// leastOf returns the smaller of two values; nil means that a value is not set.
func leastOf[T cmp.Ordered](a, b *T) *T {
	if a == nil || b != nil && *b < *a {
		return b
	}
	return a
}

// leastLimit returns the smaller of two limits; nil means that a limit is not set, and 0 that there is no limit.
func leastLimit(a, b *int) *int {
	switch {
	case a == nil:
		return b
	case b == nil || *b == 0:
		return a
	case *a == 0 || *b < *a:
		return b
	}
	return a
}

// stricterWord returns the word that comes first in the order; "" means that a word is not set.
func stricterWord(a, b string, order ...string) string {
	if a == "" || b == "" {
		return cmp.Or(a, b)
	}
	if slices.Index(order, b) < slices.Index(order, a) {
		return b
	}
	return a
}

// slowest returns the rate with fewer calls in the same time; "" means that a rate is not set.
func slowest(a, b string) string {
	if a == "" || b == "" {
		return cmp.Or(a, b)
	}
	calls, per, errA := ParseRate(a)
	other, otherPer, errB := ParseRate(b)
	switch {
	case errA != nil || errB != nil:
		return a // both were checked when the file was read
	case other == 0:
		return a
	case calls == 0 || float64(other)/otherPer.Seconds() < float64(calls)/per.Seconds():
		return b
	}
	return a
}
