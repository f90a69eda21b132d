package tenon

import (
	"encoding/json"
	"slices"
	"sync"
)

// Role says who speaks in a [Message].
type Role string

// The roles. A RoleTool message holds the results of all tool calls of one
// turn, in call order.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// The kinds of [Part].
const (
	PartText     = "text"
	PartThinking = "thinking"    // reasoning, shown dimmed, never sent to another wire
	PartImage    = "image"       // MimeType and Data
	PartFile     = "file"        // user only: a document or a sound, MimeType and Data; Text is its name
	PartCall     = "tool_call"   // assistant only
	PartResult   = "tool_result" // tool only
	PartOpaque   = "opaque"      // a provider's block that only goes back: Wire and Raw
)

// Message is one entry of a conversation. Messages are immutable once they are
// in a history: pass pointers, never change one.
type Message struct {
	Role  Role   `json:"role"`
	Parts []Part `json:"parts"`
	// By names the model that made the message, where one with a wire format did:
	// "provider/model", and where it is served if not at the provider's own address.
	// What its parts hold in that wire's form is of use to this model alone.
	By string `json:"by,omitempty"`

	mu   sync.Mutex
	memo map[string][]byte
}

// Part is one piece of a [Message].
type Part struct {
	Type     string      `json:"type"`
	Text     string      `json:"text,omitempty"`
	MimeType string      `json:"mime_type,omitempty"`
	Data     string      `json:"data,omitempty"` // base64
	Call     *ToolCall   `json:"call,omitempty"`
	Result   *ToolResult `json:"result,omitempty"`
	// Wire and Raw hold a provider's own form of this part, which goes back
	// byte for byte to the model that made it ([Message.By]; where that is not known,
	// to models of the same wire format, such as "anthropic" or "openai-chat")
	// and to no other.
	Wire string          `json:"wire,omitempty"`
	Raw  json.RawMessage `json:"raw,omitempty"`
}

// ToolCall is a model's wish to call a tool.
type ToolCall struct {
	ID        string          `json:"id"` // the provider's; may be empty or repeat, so never an identity
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments,omitempty"` // valid JSON
	// Malformed holds the text of arguments that are not valid JSON; Arguments
	// is empty then. The model is told; the tool never runs.
	Malformed string `json:"malformed,omitempty"`
}

// ToolResult is the answer to a [ToolCall], as the model shall see it.
type ToolResult struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Content []Content `json:"content"`
	IsError bool      `json:"is_error,omitempty"`
	// Found names the tools, by their exposed names, that the model can call from
	// this result on: it looked for them. In a [Request] each of them is one of its
	// deferred tools.
	Found []string `json:"found,omitempty"`
}

// UserMessage returns a user message of one text.
func UserMessage(text string) *Message {
	return &Message{Role: RoleUser, Parts: []Part{{Type: PartText, Text: text}}}
}

// Text returns the message's text parts, joined without separator.
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

// Plain returns the message without the forms of a wire: what a person could have
// written. A message that has none is returned itself; no message is changed.
func (m *Message) Plain() *Message {
	if !slices.ContainsFunc(m.Parts, func(p Part) bool { return p.Type == PartOpaque || p.Wire != "" || len(p.Raw) > 0 }) {
		return m
	}
	out := &Message{Role: m.Role, By: m.By}
	for _, p := range m.Parts {
		if p.Wire, p.Raw = "", nil; p.Type != PartOpaque {
			out.Parts = append(out.Parts, p)
		}
	}
	return out
}

// Encoded returns the message in a model's wire form. The form is made once for
// each key (wire format and the switches that change it) and then remembered,
// so that encoding a turn costs its new messages and not the whole history.
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
