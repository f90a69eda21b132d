package tenon

import (
	"context"
	"encoding/json"
	"slices"
)

// Tool describes one tool. Its identity is (Server, Remote); Name is only what
// the model sees. Rules, pins, cache and audit are keyed by the identity, the
// wire always carries Remote.
type Tool struct {
	Server      string          `json:"server"`
	Remote      string          `json:"remote_name"`
	Name        string          `json:"name"`
	Kind        string          `json:"kind,omitempty"` // KindHTTP and so on; empty: KindMCP
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	Input       json.RawMessage `json:"input_schema,omitempty"`  // JSON Schema, as the server sent it
	Output      json.RawMessage `json:"output_schema,omitempty"` // JSON Schema of structured results
	Annotations Annotations     `json:"annotations"`
	// What the configuration says about the tool; the model sees none of it.
	Rules ToolRules `json:"rules,omitzero"`
	// Raw is the definition byte for byte as it was discovered, with the
	// fields that tenon does not know. Empty for tools that were not discovered.
	Raw json.RawMessage `json:"-"`
}

// The kinds of tools. A kind is who carries out its calls: a [Toolset] of that kind.
const (
	KindMCP      = "mcp"      // a tool of an MCP server
	KindHTTP     = "http"     // an HTTP request
	KindPrompt   = "prompt"   // a template that a model answers
	KindAgent    = "agent"    // another agent
	KindWorkflow = "workflow" // a workflow file
	KindFunction = "function" // a function of a Go program
)

// IsKind reports whether there is such a kind of tools; empty stands for [KindMCP].
func IsKind(kind string) bool {
	return kind == "" || slices.Contains([]string{KindMCP, KindHTTP, KindPrompt, KindAgent, KindWorkflow, KindFunction}, kind)
}

// KindName returns the tool's kind in a word.
func (t *Tool) KindName() string {
	if t.Kind == "" {
		return KindMCP
	}
	return t.Kind
}

// DefaultGroup is the group of a tool, and the one that an agent asks for, where
// the configuration says nothing else.
const DefaultGroup = "default"

// ToolRules are what the configuration adds to a discovered tool. They travel with
// it, so that a run that is resumed has the rules that it began with.
type ToolRules struct {
	// Fixed are arguments that every call gets, a JSON object; the model can
	// neither see nor set them. Hidden names those that no call has.
	Fixed  json.RawMessage `json:"fixed,omitempty"`
	Hidden []string        `json:"hidden,omitempty"`
	// Wrapped says that the server's schema is not one of an object: the model
	// sees it as the one property "input", and the server gets its value.
	Wrapped bool `json:"wrapped,omitempty"`
	// Validate says what becomes of arguments that do not fit: "" or "error"
	// refuses the call, "warn" makes it nevertheless, "off" does not look.
	Validate string `json:"validate,omitempty"`
	// Groups and States say where the tool is visible; nil means the default
	// group, any state.
	Groups []string `json:"groups,omitzero"`
	States []string `json:"states,omitzero"`
	// NextState is the state in which the agent is after a successful call; "": the
	// call does not move it.
	NextState string `json:"next_state,omitempty"`
	// Defer says that a model has to find the tool before it is told of it; false
	// that it is told at once, nil that the size of all tools decides.
	Defer *bool `json:"defer,omitempty"`
	// Options are passed to a model's provider with the tool: provider → JSON object.
	Options map[string]json.RawMessage `json:"provider_options,omitempty"`
}

// Annotations are a server's hints about a tool (MCP 2025-11-25,
// ToolAnnotations). A nil pointer means that the server said nothing. They
// count for approval, retry and cache only if the server is trusted.
type Annotations struct {
	ReadOnly    *bool `json:"read_only,omitempty"`
	Destructive *bool `json:"destructive,omitempty"`
	Idempotent  *bool `json:"idempotent,omitempty"`
	OpenWorld   *bool `json:"open_world,omitempty"`
}

// IsReadOnly reports whether the tool is marked as read-only.
func (a Annotations) IsReadOnly() bool { return a.ReadOnly != nil && *a.ReadOnly }

// IsDestructive reports whether the tool has to be taken for destructive: it
// is unless it is read-only or expressly marked as not destructive, which is
// the protocol's default.
func (a Annotations) IsDestructive() bool {
	return !a.IsReadOnly() && (a.Destructive == nil || *a.Destructive)
}

// IsIdempotent reports whether repeating a call is safe.
func (a Annotations) IsIdempotent() bool {
	return a.IsReadOnly() || a.Idempotent != nil && *a.Idempotent
}

// Call is a request to run a tool.
type Call struct {
	// Tool is the name the receiving [Toolset] knows the tool by: the exposed
	// name for a catalog, the remote name for a server.
	Tool      string
	Arguments json.RawMessage // a JSON object; empty means {}
	// Key is the same on all attempts of one step, so that a server can
	// recognise a repetition: run id + "/" + step id. It is sent in _meta.
	Key string
	// Trace is the trace that the call belongs to (W3C traceparent); empty: none. It is
	// sent in _meta.
	Trace string
	// Input answers what an earlier attempt asked for (MCP 2026-07-28,
	// multi round-trip requests). Nil on a first attempt.
	Input *InputAnswer
	// Progress is called for each progress notice while the call runs, from
	// one goroutine at a time. It must not block. Nil: not interested.
	Progress func(Progress)
	// Ask answers what a server of an older era asks for while the call runs
	// (method "elicitation/create", "sampling/createMessage"; params and result
	// as in the protocol). Nil: such requests are refused.
	Ask func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
}

// Progress is one progress notice of a running call (MCP notifications/progress).
type Progress struct {
	Progress float64 `json:"progress"`
	Total    float64 `json:"total,omitempty"` // 0: not known
	Message  string  `json:"message,omitempty"`
}

// InputRequired is a server's answer that it needs more before it can go on.
type InputRequired struct {
	Requests json.RawMessage `json:"requests,omitempty"` // object: key → {method, params}
	State    string          `json:"state,omitempty"`    // opaque; goes back byte for byte
	// Resume says that the call is at work already and that to make it again with
	// State only asks after it: that is safe at any time, in any process.
	Resume bool `json:"resume,omitempty"`
}

// InputAnswer is the answer to an [InputRequired].
type InputAnswer struct {
	Responses json.RawMessage `json:"responses,omitempty"` // object: the same keys → result
	State     string          `json:"state,omitempty"`
}

// Toolset is anything that offers tools. Implementations are safe for
// concurrent use.
type Toolset interface {
	// Tools returns the tools on offer now, in a stable order. The caller must
	// not change the slice. It may connect to a server; the error then has code
	// unreachable, auth_required, timeout or protocol.
	Tools(ctx context.Context) ([]Tool, error)
	// Call runs one tool. A failure that the tool itself reports is a Result
	// with IsError, not an error. The error has code not_found for a tool that
	// is not on offer, unknown_outcome where the call may have taken effect,
	// else the reason why it was not made.
	Call(ctx context.Context, c Call) (*Result, error)
}
