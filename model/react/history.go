package react

import (
	"encoding/json"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model"
)

// wire marks the parts that this package makes: a thought, and a reply that could
// not be read.
const wire = "react"

// failure is the raw part of a reply that could not be read.
type failure struct {
	Error string `json:"error"`
	Reply string `json:"reply"` // its beginning
}

// conversation is a request's messages as a prompt needs them.
type conversation struct {
	before   []*tenon.Message // earlier questions and answers
	question []*tenon.Message // user messages: what is asked now
	steps    []map[string]any // what was done about it
	mark     *tenon.Part      // a script's part of the last step
}

// split finds the question of the messages: the last user message that does not
// stand amid steps, together with those right before it.
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

// isAnswer reports whether a message ended a run of steps.
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

// step is what a template sees of one step. Message is set instead where the user
// said something in between.
func step(thought, action, arguments, observation, message string) map[string]any {
	return map[string]any{"thought": thought, "action": action, "arguments": arguments, "observation": observation, "message": message}
}

// take makes steps of the messages behind a question.
func (c *conversation) take(messages []*tenon.Message) {
	open := []map[string]any{} // that have no observation yet
	for i, m := range messages {
		switch m.Role {
		case tenon.RoleUser:
			if i > 0 {
				if _, failed := failureOf(messages[i-1]); failed {
					continue // the core's word about it; the observation says more
				}
			}
			c.steps = append(c.steps, step("", "", "", "", m.Text()))
		case tenon.RoleAssistant:
			open = open[:0]
			if p := markOf(m); p != nil {
				c.mark = p
			}
			thought := thoughtOf(m)
			for _, call := range m.Calls() {
				s := step(thought, call.Name, argumentsOf(call), "", "")
				open, thought = append(open, s), ""
				c.steps = append(c.steps, s)
			}
			if f, failed := failureOf(m); failed {
				c.steps = append(c.steps, step(thought, "", "", "Error: "+parseError+f.Error, ""))
			} else if len(m.Calls()) == 0 {
				if text := strings.TrimSpace(thought + "\n" + m.Text()); text != "" { // an answer that was cut off, or a pause
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

// parseError begins what a model is told about a reply that cannot be read.
const parseError = "LLM parse error: "

// thoughtOf is what was thought before a call: the thought of a reply, or, of a
// model that calls tools itself, what it said.
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

// argumentsOf is a call's arguments as JSON on one line, as they came.
func argumentsOf(c *tenon.ToolCall) string {
	return strings.ReplaceAll(string(model.AppendArguments(nil, c)), "\n", " ")
}

// markOf returns the part by which a script knows its place. It is the one of all
// opaque parts that goes back: what others keep in theirs belongs to messages that
// they would not recognise.
func markOf(m *tenon.Message) *tenon.Part {
	for i := range m.Parts {
		if p := &m.Parts[i]; p.Type == tenon.PartOpaque && p.Wire == model.WireScript {
			return p
		}
	}
	return nil
}

// plain writes a conversation without calls and results, which the model could not
// take.
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
			if m = plainAnswer(m); m != nil {
				list = append(list, m)
			}
		default:
			list = append(list, m)
		}
	}
	return list
}

// plainAnswer writes a message of a model as text; nil where it says nothing.
func plainAnswer(m *tenon.Message) *tenon.Message {
	calls := m.Calls()
	if len(calls) == 0 && m.Text() != "" {
		return m // as it is, so that its wire form is kept
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
	n := &tenon.Message{Role: tenon.RoleAssistant, Parts: []tenon.Part{{Type: tenon.PartText, Text: strings.Join(lines, "\n")}}}
	if len(lines) == 0 {
		n.Parts = nil
	}
	if mark != nil {
		n.Parts = append(n.Parts, *mark)
	}
	return n
}

// indent keeps all lines but the first from beginning like a step.
func indent(s string) string { return lineBreaks.Replace(strings.TrimSpace(s)) }

var lineBreaks = strings.NewReplacer("\r\n", "\n  ", "\n", "\n  ", "\r", "\n  ")
