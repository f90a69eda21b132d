package tenon

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
)

// Tool describes one tool. (Server, Remote) is unique within a host; Name is the name that the model sees. Rules,
// pins, the cache and the journal identify a tool by its server's identity and by Remote, its name in the protocol.
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
	// Rules are the configured settings of the tool. The model does not see them.
	Rules ToolRules `json:"rules,omitzero"`
	// Raw is the discovered definition, byte for byte, with fields that tenon does not know. Empty for tools that
	// were not discovered.
	Raw json.RawMessage `json:"-"`
}

// The kinds of tools. The kind of a tool determines which [Toolset] executes its calls.
const (
	KindMCP      = "mcp"      // a tool of an MCP server
	KindHTTP     = "http"     // an HTTP request
	KindPrompt   = "prompt"   // a template that a model answers
	KindAgent    = "agent"    // another agent
	KindWorkflow = "workflow" // a workflow file
	KindFunction = "function" // a function of a Go program
)

// IsKind reports whether a kind of tool exists. "" is [KindMCP].
func IsKind(kind string) bool {
	return kind == "" || slices.Contains([]string{KindMCP, KindHTTP, KindPrompt, KindAgent, KindWorkflow,
		KindFunction}, kind)
}

// KindName returns the tool's kind, [KindMCP] for "".
func (t *Tool) KindName() string {
	return cmp.Or(t.Kind, KindMCP)
}

// DefaultGroup is the default group of a tool, and the default of the groups that an agent sees.
const DefaultGroup = "default"

// SameTools reports whether two lists share their array. Nothing has changed in this case.
func SameTools(a, b []Tool) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

// ToolRules are the settings that the configuration adds to a discovered tool. They are stored with the tool, so that a
// resumed run keeps the rules with which it began.
type ToolRules struct {
	// Fixed contains arguments that are added to every call, as a JSON object. The model can neither see nor set them.
	// Hidden contains the names of parameters that no call may have.
	Fixed  json.RawMessage `json:"fixed,omitempty"`
	Hidden []string        `json:"hidden,omitempty"`
	// Floors contains schemas from more trusted layers. The arguments of a call, without the fixed arguments, must
	// match all of them.
	Floors []json.RawMessage `json:"floors,omitempty"`
	// Wrapped means that the server's schema is not an object schema. The model then sees an object with the single
	// property "input". Its value is sent to the server.
	Wrapped bool `json:"wrapped,omitempty"`
	// Validate handles arguments that do not fit the schema: "" or "error" refuses the call, "warn" sends it, "off"
	// does not check.
	Validate string `json:"validate,omitempty"`
	// Formats makes the keyword "format" of the tool's schemas an assertion instead of an annotation.
	Formats bool `json:"formats,omitempty"`
	// Groups and States determine where the tool is visible. If nil, it is visible in the default group and in every
	// state.
	Groups []string `json:"groups,omitzero"`
	States []string `json:"states,omitzero"`
	// NextState is the agent's state after a successful call. If empty, the state does not change.
	NextState string `json:"next_state,omitempty"`
	// Defer determines whether the model must search for the tool before it can see it. If nil, this depends on the
	// size of all tools.
	Defer *bool `json:"defer,omitempty"`
	// Wanted is the exposed name that the tool would have without a name clash. It is empty if there is no clash.
	Wanted string `json:"wanted_name,omitempty"`
	// Target is the digest of the command or address of the tool's server. It is set if only a table or the command
	// line names the server, because another process may use the same name for another server.
	Target string `json:"target,omitempty"`
	// New is the digest of the tool's definition if its server added the tool after it was pinned. The first use of
	// such a tool needs approval, independent of the rules.
	New string `json:"new,omitempty"`
	// Options are passed to a model's provider with the tool: provider → JSON object.
	Options map[string]json.RawMessage `json:"provider_options,omitempty"`
	// Original is the tool before the configuration changed it. It is nil if nothing was changed. A layer that did not
	// make a change judges the original tool.
	Original *OriginalTool `json:"original,omitempty"`
}

// OriginalTool holds the texts and annotations of a tool before transforms and entries of the configuration replaced
// them. It has no annotations if the server is not trusted.
type OriginalTool struct {
	Title       string      `json:"title,omitempty"`
	Description string      `json:"description,omitempty"`
	Annotations Annotations `json:"annotations"`
}

// Original returns the tool with its original texts and annotations.
func (t *Tool) Original() Tool {
	out := *t
	if o := t.Rules.Original; o != nil {
		out.Title, out.Description, out.Annotations = o.Title, o.Description, o.Annotations
	}
	return out
}

// Annotations are a server's hints about a tool (MCP 2025-11-25, ToolAnnotations). A nil field means that the server
// gave no hint. The hints affect approval, retry and cache only if the server is trusted.
type Annotations struct {
	Title       string `json:"title,omitempty"` // title to show if the tool itself has none
	ReadOnly    *bool  `json:"read_only,omitempty"`
	Destructive *bool  `json:"destructive,omitempty"`
	Idempotent  *bool  `json:"idempotent,omitempty"`
	OpenWorld   *bool  `json:"open_world,omitempty"`
}

// IsReadOnly reports whether the tool is marked as read-only.
func (a Annotations) IsReadOnly() bool { return a.ReadOnly != nil && *a.ReadOnly }

// IsDestructive reports whether the tool must be treated as destructive. As in the protocol, this is the default,
// unless the tool is read-only or is marked as not destructive.
func (a Annotations) IsDestructive() bool {
	return !a.IsReadOnly() && (a.Destructive == nil || *a.Destructive)
}

// IsIdempotent reports whether repeating a call is safe.
func (a Annotations) IsIdempotent() bool {
	return a.IsReadOnly() || a.Idempotent != nil && *a.Idempotent
}

// Call is a request to run a tool.
type Call struct {
	// Tool is the name by which the receiving [Toolset] knows the tool. This is the exposed name for a catalog, and the
	// remote name for a server.
	Tool      string
	Arguments json.RawMessage // a JSON object; empty means {}
	// Key is the same for all attempts of one step, so that a server can detect a repetition: run id + "/" + step id.
	// It is sent in _meta.
	Key string
	// Trace is the trace to which the call belongs (W3C traceparent). It is sent in _meta. If empty, there is none.
	Trace string
	// Input answers the requests for input of an earlier attempt (MCP 2026-07-28, multi round-trip requests). It is nil
	// for a first attempt.
	Input *InputAnswer
	// Progress is called for each progress notification while the call runs, from one goroutine at a time. It must
	// not block. nil ignores notifications.
	Progress func(Progress)
	// Ask answers requests of servers of an older protocol era while the call runs: method "elicitation/create" or
	// "sampling/createMessage", params and result as in the protocol. If nil, such requests are refused.
	Ask func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
}

// Progress is one progress notice of a running call (MCP notifications/progress).
type Progress struct {
	Progress float64 `json:"progress"`
	Total    float64 `json:"total,omitempty"` // 0 if it is not known
	Message  string  `json:"message,omitempty"`
}

// InputRequired is a server's answer that it needs input before it can continue.
type InputRequired struct {
	Requests json.RawMessage `json:"requests,omitempty"` // object: key → {method, params}
	State    string          `json:"state,omitempty"`    // opaque; sent back byte for byte
	// Resume means that the server is working on the call. A call with State then only asks for the outcome. This is
	// safe at any time and in any process.
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
	// Tools returns the offered tools in a stable order. The caller must not change the slice. Tools may connect to a
	// server; the error then has code unreachable, auth_required, timeout or protocol.
	Tools(ctx context.Context) ([]Tool, error)
	// Call runs one tool. A failure that the tool itself reports is a Result with IsError, not an error. Errors:
	// not_found for a tool that is not offered, unknown_outcome if the call may have taken effect, otherwise the reason
	// why the call was not made.
	Call(ctx context.Context, c Call) (*Result, error)
}
