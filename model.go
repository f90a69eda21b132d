package tenon

import (
	"context"
	"encoding/json"
	"iter"
)

// Model is a language model behind one wire format. It is immutable: everything that varies between requests
// is in the [Request].
type Model interface {
	// Name returns "provider/model", for display and records.
	Name() string
	// Generate sends the request and yields the response as it arrives: text and thinking deltas, then as the
	// last one exactly one Delta with Response set. An error ends the sequence; without a Response there is
	// no answer, even if text was yielded. If a retry restarts the response, a Delta of kind reset comes
	// first. The Response has a Message and a Stop reason of the model.
	//
	// Errors are of type *Error: code auth_required, model_error, rate_limited, unreachable, timeout,
	// protocol (the response is truncated or malformed), too_large (the context is full), cancelled.
	Generate(ctx context.Context, req *Request) iter.Seq2[Delta, error]
}

// Request is one request to a [Model].
type Request struct {
	System   string
	Messages []*Message
	Tools    []Tool // exposed names, descriptions, input schemas; empty for no tools key
	// Finder is the exposed name of the tool with which the model searches for tools, or "" if there is none. The
	// last Deferred elements of Tools were found with it, and a result in Messages names each of them. If the wire
	// format can announce tools there, the part of the request before the messages stays unchanged, and so does the
	// provider's cache of it.
	Finder   string
	Deferred int
	// Hosted are the names of the provider's own tools (models.NAME.tools) that the model may use.
	Hosted []string
	// ToolChoice is auto (""), any, none, or names tools; see [ParseChoice].
	ToolChoice string
	// Output is a JSON Schema for the final answer; empty for any text. Models whose provider can enforce a
	// schema pass it on; others ignore it.
	Output json.RawMessage
	Sampling
}

// The kinds of [Delta].
const (
	DeltaText     = "text"
	DeltaThinking = "thinking"
	DeltaCall     = "call"     // a tool call begins; Text is the tool's name
	DeltaReset    = "reset"    // discard the response so far: the request is retried; Text is the reason
	DeltaResponse = "response" // the complete response; always last
)

// Delta is one piece of a streamed response.
type Delta struct {
	Kind     string // DeltaText and so on; ignored if Response is set
	Text     string
	Response *Response // the complete response; set only in the last delta
}

// Response is the complete response of a model.
type Response struct {
	Message *Message   `json:"message"`
	Stop    StopReason `json:"stop"`
	RawStop string     `json:"raw_stop,omitempty"` // the provider's stop reason
	Usage   *Usage     `json:"usage,omitempty"`    // nil if the provider did not report it
	Cost    *USD       `json:"cost,omitempty"`     // nil if no price is known
	Model   string     `json:"model,omitempty"`    // the provider's name of the model
	ID      string     `json:"id,omitempty"`       // request or response id, for support
	// Logprobs has the probability of each token of the text, if the request asked for it and the provider has it.
	Logprobs []TokenProb `json:"logprobs,omitempty"`
	Timing   *Timing     `json:"timing,omitempty"` // nil if the provider does not report it
	// Warnings describe skipped or repaired parts, such as an incomplete block.
	Warnings []string `json:"warnings,omitempty"`
}

// Timing has the time that a local server spent on an answer, in milliseconds.
type Timing struct {
	Load   int64 `json:"load_ms"`   // loading the model
	Prompt int64 `json:"prompt_ms"` // reading the prompt
	Output int64 `json:"output_ms"` // writing the answer
}

// Usage counts tokens. Input is the whole prompt, including tokens read from or written to a cache. CacheRead
// and CacheWrite count the latter again.
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

// StopReason is the reason why a model's response, or a run, ended.
type StopReason string

// The reasons of models, in one set for all providers, followed by tenon's limits.
const (
	StopEnd           StopReason = "stop"
	StopToolUse       StopReason = "tool_use"
	StopMaxTokens     StopReason = "max_tokens"
	StopContextFull   StopReason = "context_full"
	StopContentFilter StopReason = "content_filter"
	StopPause         StopReason = "pause"    // the provider asks to resend the turn unchanged
	StopBadCall       StopReason = "bad_call" // the model produced an unreadable tool call
	StopError         StopReason = "error"
	StopCancelled     StopReason = "cancelled"
	StopImported      StopReason = "imported" // the run was imported before it had ended

	LimitTurns     StopReason = "limit_turns"
	LimitToolCalls StopReason = "limit_tool_calls"
	LimitTokens    StopReason = "limit_tokens"
	LimitCost      StopReason = "limit_cost"
	LimitTime      StopReason = "limit_time"
)

// IsLimit reports whether the reason is one of tenon's limits.
func (s StopReason) IsLimit() bool {
	switch s {
	case LimitTurns, LimitToolCalls, LimitTokens, LimitCost, LimitTime:
		return true
	}
	return false
}
