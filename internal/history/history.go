package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Check returns all violations in a request body as one error, or nil. The path of the request's URL
// determines the wire format: /messages, /chat/completions, /responses or :streamGenerateContent.
func Check(path string, body []byte) error {
	c := &checker{}
	path, _, _ = strings.Cut(path, "?")
	switch {
	case strings.HasSuffix(path, "/messages"):
		c.read(body, c.anthropic)
	case strings.HasSuffix(path, "/chat/completions"):
		c.read(body, c.chat)
	case strings.HasSuffix(path, "/responses"):
		c.read(body, c.responses)
	case strings.HasSuffix(path, ":streamGenerateContent"), strings.HasSuffix(path, ":generateContent"):
		c.read(body, func(r *request) { c.gemini(path, r) })
	default:
		c.bad("unknown wire format of %s", path)
	}
	return errors.Join(c.errs...)
}

type checker struct{ errs []error }

func (c *checker) bad(format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf(format, args...))
}

// request holds the relevant members of all four formats.
type request struct {
	Model     string
	MaxTokens int `json:"max_tokens"`
	Store     *bool
	Messages  []message
	Input     []item
	Contents  []content
	Tools     []json.RawMessage
}

type message struct {
	Role      string
	Content   json.RawMessage
	ToolCalls []struct {
		ID, Type string
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
	ToolCallID string `json:"tool_call_id"`
}

func (c *checker) read(body []byte, check func(*request)) {
	var r request
	if err := json.Unmarshal(body, &r); err != nil {
		c.bad("the body is not a request: %w", err)
		return
	}
	check(&r)
}

// isObject reports whether a text is a JSON object.
func isObject(s string) bool {
	var m map[string]json.RawMessage
	return json.Unmarshal([]byte(s), &m) == nil && m != nil
}

var (
	name = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$`)
	id   = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
)

func (c *checker) named(where, s string) {
	if !name.MatchString(s) {
		c.bad("%s: %q is not a tool name", where, s)
	}
}

// pending holds the calls of a turn that wait for their results.
type pending struct {
	c     *checker
	where string
	ids   []string
	open  map[string]bool
}

func (c *checker) calls(where string) *pending {
	return &pending{c: c, where: where, open: map[string]bool{}}
}

func (p *pending) call(id string) {
	switch {
	case id == "":
		p.c.bad("%s: a call has no id", p.where)
	case p.open[id]:
		p.c.bad("%s: two calls have the id %s", p.where, id)
	}
	p.ids = append(p.ids, id)
	p.open[id] = true
}

func (p *pending) result(where, id string) {
	if !p.open[id] {
		p.c.bad("%s: the result of %q has no call, or is a duplicate", where, id)
	}
	p.open[id] = false
}

func (p *pending) end() {
	for _, id := range p.ids {
		if p.open[id] {
			p.c.bad("%s: the call %s has no result", p.where, id)
		}
	}
	p.ids, p.open = nil, map[string]bool{}
}

// chat checks a Chat Completions request: the results directly follow the message with their calls, one
// message each.
func (c *checker) chat(r *request) {
	if len(r.Messages) == 0 {
		c.bad("there are no messages")
	}
	open := c.calls("")
	for i, m := range r.Messages {
		where := fmt.Sprintf("messages[%d]", i)
		if m.Role != "tool" {
			open.end()
			open = c.calls(where)
		}
		empty := len(m.Content) == 0 || string(m.Content) == "null" || string(m.Content) == `""` ||
			string(m.Content) == "[]"
		switch m.Role {
		case "system", "user", "developer":
			if empty {
				c.bad("%s: no content", where)
			}
		case "assistant":
			if empty && len(m.ToolCalls) == 0 {
				c.bad("%s: neither text nor calls", where)
			}
			for _, t := range m.ToolCalls {
				open.call(t.ID)
				c.named(where, t.Function.Name)
				if t.Type != "function" {
					c.bad("%s: a call of type %q", where, t.Type)
				}
				if !isObject(t.Function.Arguments) {
					c.bad("%s: the arguments of %s are not a JSON object: %s", where, t.ID, t.Function.Arguments)
				}
			}
		case "tool":
			open.result(where, m.ToolCallID)
			if len(m.Content) == 0 || m.Content[0] != '"' && m.Content[0] != '[' {
				c.bad("%s: a result without content", where)
			}
		default:
			c.bad("%s: role %q", where, m.Role)
		}
	}
	open.end()
}

type item struct {
	Type, Role, Name string
	ID               string
	CallID           string `json:"call_id"`
	Arguments        string
	Output           json.RawMessage
	Content          json.RawMessage
	Encrypted        *string `json:"encrypted_content"`
}

// responses checks a Responses request that stores nothing at the provider. Each call has one result after
// it. Each reasoning item is encrypted and followed by its output.
func (c *checker) responses(r *request) {
	if len(r.Input) == 0 {
		c.bad("there is no input")
	}
	if r.Store == nil || *r.Store {
		c.bad("store is not false")
	}
	open := c.calls("input")
	for i, it := range r.Input {
		where := fmt.Sprintf("input[%d]", i)
		switch it.Type {
		case "", "message":
			if it.Role != "user" && it.Role != "assistant" && it.Role != "system" && it.Role != "developer" {
				c.bad("%s: role %q", where, it.Role)
			}
			if len(it.Content) == 0 || string(it.Content) == `""` {
				c.bad("%s: no content", where)
			}
		case "reasoning":
			if it.Encrypted == nil {
				c.bad("%s: a reasoning item without encrypted_content cannot be continued", where)
			}
			if i+1 == len(r.Input) || it.ID == "" || r.Input[i+1].Role == "user" ||
				strings.HasSuffix(r.Input[i+1].Type, "_output") {
				c.bad("%s: the reasoning item is not followed by its output", where)
			}
		case "function_call":
			open.call(it.CallID)
			c.named(where, it.Name)
			if !isObject(it.Arguments) {
				c.bad("%s: the arguments are not a JSON object: %s", where, it.Arguments)
			}
		case "function_call_output":
			open.result(where, it.CallID)
			if len(it.Output) == 0 {
				c.bad("%s: a result without output", where)
			}
		}
	}
	open.end()
}
