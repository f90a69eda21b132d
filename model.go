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
	// Generate sends the request and yields the response as it arrives. It yields deltas of text and thinking, and
	// finally exactly one Delta with Response set. An error ends the sequence. If no Response was yielded, there is no
	// answer, even if text was yielded. If a retry restarts the response, a Delta of kind reset is yielded first. The
	// Response has a Message and one of the models' stop reasons.
	//
	// Errors are of type *Error with code auth_required, model_error, rate_limited, unreachable, timeout, protocol (the
	// response is truncated or malformed), too_large (the context is full), or cancelled.
	Generate(ctx context.Context, req *Request) iter.Seq2[Delta, error]
}

// Request is one request to a [Model].
type Request struct {
	System   string
	Messages []*Message
	Tools    []Tool // exposed names, descriptions, input schemas; if empty, no tools are sent
	// Finder is the exposed name of the tool with which the model searches for tools, or "" if there is none. The last
	// Deferred elements of Tools are tools that were found with it. A result in Messages names each of them. Some wire
	// formats can define tools in such results. The part of the request before the messages then stays the same, so the
	// provider's cache of that part remains valid.
	Finder   string
	Deferred int
	// Hosted lists the provider's own tools that the model may use (models.NAME.tools).
	Hosted []string
	// ToolChoice is auto (""), any, none, or names tools; see [ParseChoice].
	ToolChoice string
	// Output is a JSON Schema for the final answer. If empty, any text is valid. Adapters send it to providers that can
	// enforce a schema. For other providers it has no effect.
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
	// Logprobs contains the probability of each token of the text, if the request asked for it and the provider reports
	// it.
	Logprobs []TokenProb `json:"logprobs,omitempty"`
	Timing   *Timing     `json:"timing,omitempty"` // nil if the provider does not report it
	// Warnings describe parts that were skipped or repaired, such as an incomplete block.
	Warnings []string `json:"warnings,omitempty"`
}

// Timing contains the time that a local server needed for an answer, in milliseconds.
type Timing struct {
	Load   int64 `json:"load_ms"`   // loading the model
	Prompt int64 `json:"prompt_ms"` // reading the prompt
	Output int64 `json:"output_ms"` // writing the answer
}

// Usage counts tokens. Input counts the whole prompt, including tokens that were read from a cache or written to it.
// CacheRead and CacheWrite count these tokens separately.
type Usage struct {
	Input      int `json:"input_tokens"`
	Output     int `json:"output_tokens"`
	CacheRead  int `json:"cache_read_tokens,omitempty"`
	CacheWrite int `json:"cache_write_tokens,omitempty"`
	Reasoning  int `json:"reasoning_tokens,omitempty"`
	// Searches counts the web searches of the provider's own tool, as far as the provider reports them.
	Searches int `json:"searches,omitempty"`
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
	u.Searches += o.Searches
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
