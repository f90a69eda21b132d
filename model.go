package tenon

import (
	"context"
	"encoding/json"
	"iter"
)

// Model is one language model behind one wire format. It is immutable: all that
// changes from request to request travels in the [Request].
type Model interface {
	// Name returns "provider/model", for people and records.
	Name() string
	// Generate sends the request and yields what comes back, as it comes: text
	// and thinking deltas, then exactly one Delta with Response set as the last
	// one. An error ends the sequence; without a Response there is no answer,
	// however much text was yielded. After a retry that starts the answer
	// over, a Delta of kind reset comes first. The Response has a Message, and one of the
	// model's own reasons as Stop.
	//
	// Errors are of type *Error: code auth_required, model_error, rate_limited,
	// unreachable, timeout, protocol (an answer that is cut off or malformed),
	// too_large (the context is full), cancelled.
	Generate(ctx context.Context, req *Request) iter.Seq2[Delta, error]
}

// Request is one request to a [Model].
type Request struct {
	System   string
	Messages []*Message
	Tools    []Tool // exposed names, descriptions, input schemas; empty: no tools key at all
	// Finder is the exposed name of the tool with which the model looks for others;
	// empty: there is none. The last Deferred of Tools were found with it: a result
	// in Messages names each of them. A wire that can tell the model of them there
	// leaves what stands before the messages as it was, so that a provider's cache
	// of it stays good.
	Finder     string
	Deferred   int
	ToolChoice string // auto (""), any, none, or a tool's exposed name
	// Output is a JSON Schema that the last answer shall fit. A model whose provider can
	// hold an answer to it says so there; others do not look at it. Empty: any text.
	Output      json.RawMessage
	MaxTokens   int // 0: the model's configured default
	Temperature *float64
	TopP        *float64
}

// The kinds of [Delta].
const (
	DeltaText     = "text"
	DeltaThinking = "thinking"
	DeltaCall     = "call"     // the model began a tool call; Text is the tool's name
	DeltaReset    = "reset"    // drop what came so far: the request is sent again; Text says why
	DeltaResponse = "response" // the whole answer; always last
)

// Delta is one piece of a streamed answer.
type Delta struct {
	Kind     string // of [DeltaText] and so on; where Response is set it says nothing
	Text     string
	Response *Response // the whole answer, in the last piece alone
}

// Response is a whole answer of a model.
type Response struct {
	Message *Message   `json:"message"`
	Stop    StopReason `json:"stop"`
	RawStop string     `json:"raw_stop,omitempty"` // the provider's own word
	Usage   *Usage     `json:"usage,omitempty"`    // nil: the provider did not say
	Cost    *USD       `json:"cost,omitempty"`     // nil: no price is known
	Model   string     `json:"model,omitempty"`    // as the provider names it
	ID      string     `json:"id,omitempty"`       // request or response id, for support
	// Warnings name what was skipped or repaired, such as an incomplete block.
	Warnings []string `json:"warnings,omitempty"`
}

// Usage counts tokens. Input is the whole prompt: what was read from or written
// to a cache is part of it and counted in CacheRead and CacheWrite as well.
type Usage struct {
	Input      int `json:"input_tokens"`
	Output     int `json:"output_tokens"`
	CacheRead  int `json:"cache_read_tokens,omitempty"`
	CacheWrite int `json:"cache_write_tokens,omitempty"`
	Reasoning  int `json:"reasoning_tokens,omitempty"`
}

// Add adds the counts of o.
func (u *Usage) Add(o *Usage) {
	if o == nil {
		return
	}
	u.Input += o.Input
	u.Output += o.Output
	u.CacheRead += o.CacheRead
	u.CacheWrite += o.CacheWrite
	u.Reasoning += o.Reasoning
}

// StopReason says why a model's answer, or a run, ended.
type StopReason string

// The model's reasons, one set for all providers, and then our own limits.
const (
	StopEnd           StopReason = "stop"
	StopToolUse       StopReason = "tool_use"
	StopMaxTokens     StopReason = "max_tokens"
	StopContextFull   StopReason = "context_full"
	StopContentFilter StopReason = "content_filter"
	StopPause         StopReason = "pause"    // the provider wants the turn back as it is
	StopBadCall       StopReason = "bad_call" // the model tried a call that cannot be read
	StopError         StopReason = "error"
	StopCancelled     StopReason = "cancelled"
	StopImported      StopReason = "imported" // it had not ended in the file that it came from

	LimitTurns     StopReason = "limit_turns"
	LimitToolCalls StopReason = "limit_tool_calls"
	LimitTokens    StopReason = "limit_tokens"
	LimitCost      StopReason = "limit_cost"
	LimitTime      StopReason = "limit_time"
)

// IsLimit reports whether the reason is one of our own limits.
func (s StopReason) IsLimit() bool {
	switch s {
	case LimitTurns, LimitToolCalls, LimitTokens, LimitCost, LimitTime:
		return true
	}
	return false
}
