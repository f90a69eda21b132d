package react

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model"
)

// wire marks the parts that this package creates: thoughts, and replies that could not be parsed.
const wire = "react"

// failure is the raw part of a reply that could not be parsed.
type failure struct {
	Error string `json:"error"`
	Reply string `json:"reply"` // the beginning of the reply
	Hint  string `json:"hint,omitempty"`
}

// conversation contains the messages of a request, split for a prompt.
type conversation struct {
	before   []*tenon.Message // earlier questions and answers
	question []*tenon.Message // the user messages with the current question
	steps    []map[string]any // the steps after the question
	mark     *tenon.Part      // the opaque part of a script in the last step
}

// offer returns the request in the form that a prompt can express: with only the tools that the tool choice lists, and
// without system messages in the middle of the conversation.
func offer(req *tenon.Request) *tenon.Request {
	req = model.Offer(req)
	isSystem := func(m *tenon.Message) bool { return m.Role == tenon.RoleSystem }
	if !slices.ContainsFunc(req.Messages, isSystem) {
		return req
	}
	out := *req
	out.Messages = slices.Clone(req.Messages)
	for i, m := range out.Messages {
		out.Messages[i] = m.AsUser()
	}
	return &out
}

// split finds the question in the messages: the last user message that is not between steps,
// together with the user messages directly before it.
func split(messages []*tenon.Message) conversation {
	from := 0
	for i := 1; i < len(messages); i++ {
		if messages[i].Role == tenon.RoleUser && isAnswer(messages[i-1]) {
			from = i
		}
	}
	to := from
	for to < len(messages) && messages[to].Role == tenon.RoleUser {
		to++
	}
	c := conversation{before: plain(messages[:from]), question: messages[from:to]}
	c.take(messages[to:])
	return c
}

// isAnswer reports whether a message ended a loop of steps.
func isAnswer(m *tenon.Message) bool {
	_, failed := failureOf(m)
	return m.Role == tenon.RoleAssistant && len(m.Calls()) == 0 && !failed
}

func failureOf(m *tenon.Message) (f failure, ok bool) {
	if m.Role != tenon.RoleAssistant {
		return f, false
	}
	for _, p := range m.Parts {
		if p.Type == tenon.PartOpaque && p.Wire == wire && json.Unmarshal(p.Raw, &f) == nil {
			return f, true
		}
	}
	return f, false
}

// step returns a step as a template value. message is set instead of the other values for a user
// message between steps.
func step(thought, action, arguments, observation, message string) map[string]any {
	return map[string]any{"thought": thought, "action": action, "arguments": arguments,
		"observation": observation, "message": message}
}

// take converts the messages after the question to steps.
func (c *conversation) take(messages []*tenon.Message) {
	open := []map[string]any{} // steps without an observation
	for i, m := range messages {
		switch m.Role {
		case tenon.RoleUser:
			if i > 0 {
				if _, failed := failureOf(messages[i-1]); failed {
					continue // the core's message about the failure; the observation is more specific
				}
			}
			c.steps = append(c.steps, step("", "", "", "", m.Text()))
		case tenon.RoleAssistant:
			open = open[:0]
			c.mark = cmp.Or(markOf(m), c.mark)
			thought := thoughtOf(m)
			for _, call := range m.Calls() {
				s := step(thought, call.Name, argumentsOf(call), "", "")
				open, thought = append(open, s), ""
				c.steps = append(c.steps, s)
			}
			if f, failed := failureOf(m); failed {
				text := "Error: " + parseError + f.Error
				if f.Hint != "" {
					text += "\n" + f.Hint
				}
				c.steps = append(c.steps, step(thought, "", "", text, ""))
			} else if len(m.Calls()) == 0 {
				if text := strings.TrimSpace(thought + "\n" + m.Text()); text != "" { // a cut-off answer, or a pause
					c.steps = append(c.steps, step(oneLine(text), "", "", "", ""))
				}
			}
		case tenon.RoleTool:
			n := 0
			for _, p := range m.Parts {
				if p.Result != nil && n < len(open) {
					open[n]["observation"] = model.ResultText(p.Result)
					n++
				}
			}
		}
	}
}

// parseError is the beginning of the error that the model sees for a reply that could not be
// parsed.
const parseError = "LLM parse error: "

// thoughtOf returns the thought before a call: the thought of a reply, or the text of a message
// with native tool calls.
func thoughtOf(m *tenon.Message) string {
	for _, p := range m.Parts {
		if p.Type == tenon.PartThinking && p.Wire == wire {
			return oneLine(p.Text)
		}
	}
	if len(m.Calls()) > 0 {
		return oneLine(m.Text())
	}
	return ""
}

// argumentsOf returns the arguments of a call as JSON on one line.
func argumentsOf(c *tenon.ToolCall) string {
	return strings.ReplaceAll(string(model.AppendArguments(nil, c)), "\n", " ")
}

// markOf returns the opaque part of a scripted answer, which names the step of the script. No other opaque part is sent
// back: the opaque parts of other wires refer to messages that the prompt replaces.
func markOf(m *tenon.Message) *tenon.Part {
	for i := range m.Parts {
		if p := &m.Parts[i]; p.Type == tenon.PartOpaque && p.Wire == model.WireScript {
			return p
		}
	}
	return nil
}

// plain converts a conversation for a model without tool support: calls and results become text.
func plain(messages []*tenon.Message) []*tenon.Message {
	var list []*tenon.Message
	failed := false
	for _, m := range messages {
		skip := failed && m.Role == tenon.RoleUser
		_, failed = failureOf(m)
		switch {
		case skip:
		case m.Role == tenon.RoleTool:
			var texts []string
			for _, p := range m.Parts {
				if p.Result != nil {
					texts = append(texts, "Observation: "+indent(model.ResultText(p.Result)))
				}
			}
			list = append(list, tenon.UserMessage(strings.Join(texts, "\n")))
		case m.Role == tenon.RoleAssistant:
			if answer := plainAnswer(m); answer != nil {
				list = append(list, answer)
			}
		default:
			list = append(list, m)
		}
	}
	return list
}

// plainAnswer converts calls in a message of the model to text. It returns nil if nothing remains.
func plainAnswer(m *tenon.Message) *tenon.Message {
	calls := m.Calls()
	if len(calls) == 0 && m.Text() != "" {
		return m // unchanged, which keeps its cached wire form
	}
	var lines []string
	if t := thoughtOf(m); t != "" {
		lines = append(lines, "Thought: "+t)
	}
	for _, c := range calls {
		lines = append(lines, "Action: "+c.Name, "Args: "+argumentsOf(c))
	}
	mark := markOf(m)
	if len(lines) == 0 && mark == nil {
		return nil
	}
	text := tenon.Part{Type: tenon.PartText, Text: strings.Join(lines, "\n")}
	n := &tenon.Message{Role: tenon.RoleAssistant, Parts: []tenon.Part{text}}
	if len(lines) == 0 {
		n.Parts = nil
	}
	if mark != nil {
		n.Parts = append(n.Parts, *mark)
	}
	return n
}

// indent indents all lines but the first, so that they cannot imitate a step.
func indent(s string) string { return lineBreaks.Replace(strings.TrimSpace(s)) }

var lineBreaks = strings.NewReplacer("\r\n", "\n  ", "\n", "\n  ", "\r", "\n  ")
