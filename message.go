package tenon

import (
	"encoding/json"
	"slices"
	"sync"
)

// Role is the author of a [Message].
type Role string

// The roles. A message with RoleTool contains the results of all tool calls of one turn, in call order. A message with
// RoleSystem is an instruction within the conversation. It applies from its position on, and contains only text. If a
// model's wire format has no such role, the instruction is sent as a user message between <system> and </system>.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
	RoleSystem    Role = "system"
)

// The kinds of [Part].
const (
	PartText     = "text"
	PartThinking = "thinking"    // reasoning; never sent in another wire format
	PartImage    = "image"       // MimeType and Data; of an assistant: a generated image
	PartFile     = "file"        // a document or audio, MimeType and Data; Text is its name; of an assistant: audio
	PartCall     = "tool_call"   // assistant only
	PartResult   = "tool_result" // tool only
	// PartOpaque is a block of the provider in Wire and Raw. It has no meaning for tenon and is only sent back. If the
	// provider used one of its tools, Text describes this use.
	PartOpaque = "opaque"
)

// Message is one entry of a conversation. A message in a history is immutable: pass pointers and never modify
// it.
type Message struct {
	Role  Role   `json:"role"`
	Parts []Part `json:"parts"`
	// By is the model that created the message: "provider/model", followed by the address if it is not the provider's
	// own. Only messages of models with a wire format have it. The wire form in Parts is sent only to this model.
	By string `json:"by,omitempty"`
	// Partial marks a model's text that was stopped before its end.
	Partial bool `json:"partial,omitempty"`

	mu   sync.Mutex
	memo map[string][]byte
}

// Part is one piece of a [Message].
type Part struct {
	Type     string `json:"type"`
	Text     string `json:"text,omitempty"`
	MimeType string `json:"mime_type,omitempty"`
	Data     string `json:"data,omitempty"` // base64
	// URI replaces the Data of an image or file in a user message. It is an address that the provider reads (https, gs,
	// s3), or "file-id:" followed by the id of a file that the provider stores. A note replaces what a model does not
	// read.
	URI    string      `json:"uri,omitempty"`
	Call   *ToolCall   `json:"call,omitempty"`
	Result *ToolResult `json:"result,omitempty"`
	// Citations are the sources of a text, in the provider's order.
	Citations []Citation `json:"citations,omitempty"`
	// Wire and Raw hold the provider's own form of this part. It is sent back unchanged, and only to the
	// model that created it ([Message.By]). If By is empty, it is sent to models with the same wire format,
	// such as "anthropic" or "openai-chat".
	Wire string          `json:"wire,omitempty"`
	Raw  json.RawMessage `json:"raw,omitempty"`
}

// ToolCall is a model's request to call a tool.
type ToolCall struct {
	ID        string          `json:"id"` // the provider's id; may be empty or repeated, so it identifies nothing
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments,omitempty"` // valid JSON
	// Malformed holds arguments that are not valid JSON; Arguments is then empty. The call is reported to the
	// model and never runs.
	Malformed string `json:"malformed,omitempty"`
	// Connector says that the model's provider makes the call and asks for an approval. It is nil for calls that
	// tenon makes. The result of the call is the answer to the provider: IsError means that the call is not approved.
	Connector *Connector `json:"connector,omitempty"`
}

// Connector is an MCP server that a model's provider calls by itself.
type Connector struct {
	Name string `json:"name"`          // the server's label at the provider: the name of its entry in models.NAME.tools
	URL  string `json:"url,omitempty"` // address of the server, or the provider's id of it; empty if not known
	Tool string `json:"tool"`          // name of the tool at the server
}

// ToolResult is the result of a [ToolCall] as shown to the model.
type ToolResult struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Content []Content `json:"content"`
	IsError bool      `json:"is_error,omitempty"`
	// Found lists the exposed names of the tools that this result made available. The model searched for them. In a
	// [Request], each of them is a deferred tool.
	Found []string `json:"found,omitempty"`
}

// UserMessage returns a user message with one text part.
func UserMessage(text string) *Message {
	return &Message{Role: RoleUser, Parts: []Part{{Type: PartText, Text: text}}}
}

// AssistantMessage returns a message of a model with one text part.
func AssistantMessage(text string) *Message {
	return &Message{Role: RoleAssistant, Parts: []Part{{Type: PartText, Text: text}}}
}

// AsUser returns a message with [RoleSystem] as a user message between marks, for wire formats that do not have this
// role within a conversation. It returns other messages unchanged.
func (m *Message) AsUser() *Message {
	if m.Role != RoleSystem {
		return m
	}
	return UserMessage("<system>\n" + m.Text() + "\n</system>")
}

// Text returns the concatenated text parts of the message.
func (m *Message) Text() string {
	var s string
	for _, p := range m.Parts {
		if p.Type == PartText {
			s += p.Text
		}
	}
	return s
}

// Calls returns the tool calls of the message, in order.
func (m *Message) Calls() []*ToolCall {
	var calls []*ToolCall
	for _, p := range m.Parts {
		if p.Type == PartCall && p.Call != nil {
			calls = append(calls, p.Call)
		}
	}
	return calls
}

// Hosted describes the uses of the provider's tools in the message, in order: the name of the tool, and its input.
func (m *Message) Hosted() []string {
	var list []string
	for _, p := range m.Parts {
		if p.Type == PartOpaque && p.Text != "" {
			list = append(list, p.Text)
		}
	}
	return list
}

// Plain returns the message without wire forms. If the message has none, it returns the message itself. It does not
// modify the message.
func (m *Message) Plain() *Message {
	inWireForm := func(p Part) bool { return p.Type == PartOpaque || p.Wire != "" || len(p.Raw) > 0 }
	if !slices.ContainsFunc(m.Parts, inWireForm) {
		return m
	}
	out := &Message{Role: m.Role, By: m.By, Partial: m.Partial}
	for _, p := range m.Parts {
		p.Wire, p.Raw = "", nil
		if p.Type != PartOpaque {
			out.Parts = append(out.Parts, p)
		}
	}
	return out
}

// Encoded returns the message in a model's wire form. The form is cached for each key (the wire format and
// the options that affect it). Encoding a turn then costs only its new messages instead of the whole history.
func (m *Message) Encoded(key string, encode func(*Message) ([]byte, error)) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if b, ok := m.memo[key]; ok {
		return b, nil
	}
	b, err := encode(m)
	if err != nil {
		return nil, err
	}
	if m.memo == nil {
		m.memo = make(map[string][]byte, 1)
	}
	m.memo[key] = b
	return b, nil
}
