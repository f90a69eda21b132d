package textcall

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
)

// Call is a call that was read from a text, or an answer in the form of a call.
type Call struct {
	Name    string          // exposed name of the tool
	Args    json.RawMessage // a JSON object with values that the model wrote
	Thought string          // the thought in the object, if any
	IsFinal bool            // the object is a final answer, in Answer
	Answer  string
	Repairs []string // each correction of the spelling
	Text    string   // the call as it was written, set by [Slips]
}

// isMended reports whether thinking was removed from the call.
func (c Call) isMended() bool { return IsMended(c.Name) || IsMended(string(c.Args)) }

// NoCallError is the error for a text that resembles a call and cannot be understood.
type NoCallError struct {
	Why     string
	Nearest string // the tool with the name most similar to the text's, or ""
}

// Error returns the reason.
func (e *NoCallError) Error() string { return e.Why }

// ErrNone is the error for a text in which nothing resembles a call.
var ErrNone = errors.New("the text has no call")

// The members of an object that is a call, in lower case. Sources: LangChain's structured chat (action, action_input),
// the chat templates of Hermes, Qwen and Mistral (name, arguments), Llama 3 (name, parameters), OpenAI's wire
// (function, tool_calls, function_call), Command R (tool_name, parameters), smolagents (name, arguments; action).
var (
	nameKeys = []string{"action", "name", "tool", "tool_name", "function", "function_name", "toolname"}
	argsKeys = []string{"action_input", "args", "arguments", "input", "parameters", "params", "tool_input",
		"tool_args"}
	thoughtKeys = []string{"thought", "thoughts", "reasoning"}
	answerKeys  = []string{"final_answer", "final answer", "finalanswer"}
	idKeys      = []string{"type", "id", "call_id", "tool_call_id"}
	outerKeys   = []string{"function", "function_call", "tool_call", "tool_calls"}
)

// Shape reads a call from a JSON object in one of the usual shapes. The error is [ErrNone] if the object does not
// resemble a call, and a *[NoCallError] if it does but cannot be read.
func Shape(object json.RawMessage, tools []tenon.Tool) (Call, error) { return shape(object, tools, 0) }

func shape(object json.RawMessage, tools []tenon.Tool, depth int) (Call, error) {
	var name, args, outer []byte
	var c Call
	for k, v := range rawjson.Fields(object) {
		key := strings.ToLower(string(k))
		isText := len(v) > 0 && v[0] == '"'
		switch {
		case slices.Contains(outerKeys, key) && !isText && outer == nil && depth < 2:
			outer = v
		case slices.Contains(nameKeys, key) && isText && name == nil:
			name = v
		case slices.Contains(argsKeys, key) && args == nil:
			args = v
		case slices.Contains(thoughtKeys, key) && isText:
			c.Thought = rawjson.String(v)
		case slices.Contains(answerKeys, key) && isText && !c.IsFinal:
			c.IsFinal, c.Answer = true, rawjson.String(v)
		case slices.Contains(idKeys, key) && isText:
		case name == nil && args == nil && outer == nil && !c.IsFinal && c.Thought == "":
			return Call{}, ErrNone
		default:
			return Call{}, &NoCallError{Why: "the object has a member that a call does not have: " + quoted(string(k))}
		}
	}
	switch {
	case outer != nil && (name != nil || args != nil || c.IsFinal):
		return Call{}, &NoCallError{Why: "the object has two calls"}
	case outer != nil:
		inner, err := one(outer)
		if err != nil {
			return Call{}, err
		}
		in, err := shape(inner, tools, depth+1)
		in.Thought = cmp.Or(in.Thought, c.Thought)
		return in, err
	case c.IsFinal && (name != nil || args != nil):
		return Call{}, &NoCallError{Why: "the object has a call and a final answer"}
	case c.IsFinal:
		return c, nil
	case name == nil && args == nil:
		return Call{}, ErrNone
	case name == nil:
		return Call{}, &NoCallError{Why: "the object has arguments and no name of a tool"}
	}
	word := rawjson.String(name)
	if key := strings.NewReplacer("_", " ").Replace(strings.ToLower(word)); key == "final answer" && args != nil {
		c.IsFinal, c.Answer = true, string(args)
		if args[0] == '"' {
			c.Answer = rawjson.String(args)
		}
		return c, nil
	}
	if args == nil && len(tools) > 0 {
		if _, _, ok := Name(word, tools); !ok {
			return Call{}, ErrNone // an object with a name is more often data than a call
		}
	}
	err := c.complete(word, args, tools)
	return c, err
}

// one returns the element of a list with one element. It returns any other value itself.
func one(value []byte) (json.RawMessage, error) {
	if value[0] != '[' {
		return value, nil
	}
	var list []json.RawMessage
	for e := range rawjson.Elements(value) {
		list = append(list, e)
	}
	switch len(list) {
	case 0:
		return nil, ErrNone
	case 1:
		return list[0], nil
	}
	return nil, &NoCallError{Why: "the text has several calls; write one at a time"}
}

// complete sets the name and the arguments of a call. args is a JSON value, a string that contains an object, or nil.
func (c *Call) complete(word string, args []byte, tools []tenon.Tool) error {
	name, repair, ok := Name(word, tools)
	if !ok {
		return Unknown(word, tools)
	}
	c.Name = name
	if repair != "" {
		c.Repairs = append(c.Repairs, repair)
	}
	if len(args) > 0 && args[0] == '"' {
		text := strings.TrimSpace(rawjson.String(args))
		object, n, repairs, err := Object(text)
		switch {
		case text == "":
			args = nil
		case err != nil || n != len(text):
			return &NoCallError{Why: "the arguments of " + quoted(name) + " are a text, not an object"}
		default:
			args, c.Repairs = object, append(c.Repairs, repairs...)
		}
	}
	switch {
	case len(args) == 0 || string(args) == "null":
		if !takesNothing(name, tools) {
			return &NoCallError{Why: "the call of " + quoted(name) + " has no arguments; write {} for none"}
		}
		c.Args = json.RawMessage("{}")
	case args[0] != '{':
		return &NoCallError{Why: "the arguments of " + quoted(name) + " are not an object"}
	default:
		c.Args = args
	}
	return nil
}

// Unknown returns the error for a name that is not the name of a tool.
func Unknown(name string, tools []tenon.Tool) *NoCallError {
	e := &NoCallError{Why: "there is no tool " + quoted(Bare(name)), Nearest: Nearest(name, tools)}
	if Bare(name) == "" {
		e.Why = "the call has no name of a tool"
	}
	return e
}
