package textcall

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
)

// Model recognizes calls that a model with native tool calls wrote as text instead. It is immutable.
type Model struct{ inner tenon.Model }

// Wrap adds the recognition to a model.
func Wrap(m tenon.Model) *Model { return &Model{m} }

// Name returns the name of the wrapped model.
func (m *Model) Name() string { return m.inner.Name() }

// Generate sends the request; see [tenon.Model]. If a complete answer contains no calls, and its text ends with calls,
// the response contains these calls and a warning about them. The text has been emitted by then, so a delta resets it.
// If text resembles a call but is not executed, it stays in the answer, and a warning gives the reason.
func (m *Model) Generate(ctx context.Context, req *tenon.Request) iter.Seq2[tenon.Delta, error] {
	tools := callable(req)
	if len(tools) == 0 {
		return m.inner.Generate(ctx, req)
	}
	return func(yield func(tenon.Delta, error) bool) {
		for d, err := range m.inner.Generate(ctx, req) {
			if err == nil && d.Response != nil {
				resp, isRead := read(d.Response, req, tools)
				if isRead && !show(resp.Message, yield) {
					return
				}
				d.Response = resp
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// callable returns the tools that an answer to a request may call.
func callable(req *tenon.Request) []tenon.Tool {
	switch req.ToolChoice {
	case "", "auto", "any":
		return req.Tools
	case "none":
		return nil
	}
	for i := range req.Tools {
		if req.Tools[i].Name == req.ToolChoice {
			return req.Tools[i : i+1]
		}
	}
	return nil
}

// read returns the response with the calls in its text. It reports whether there are any.
func read(from *tenon.Response, req *tenon.Request, tools []tenon.Tool) (*tenon.Response, bool) {
	whole := from.Stop == tenon.StopEnd || from.Stop == tenon.StopToolUse
	if from.Message == nil || !whole || len(from.Message.Calls()) > 0 {
		return from, false
	}
	visible, hidden := Cut(from.Message.Text())
	calls, before, err := Slips(visible, tools)
	before = Mend(before)
	if err == nil && slices.ContainsFunc(calls, Call.isMended) {
		err = &NoCallError{Why: "thinking tags are in the call"}
	}
	switch {
	case errors.Is(err, ErrNone):
		return from, false
	case err == nil && len(req.Output) > 0 && before == "" && strings.HasPrefix(strings.TrimSpace(visible), "{"):
		return from, false // with an output schema, the object may be the answer
	case err == nil && Copied(calls, req.Messages, tools):
		err = &NoCallError{Why: "the same text is in a message or a tool result"}
	case err == nil && Withheld(before):
		err = &NoCallError{Why: "the text before it says that it is not to be run"}
	case err == nil && Suggested(calls, req.Messages, tools):
		err = &NoCallError{Why: "a tool result contains a call of the same tool, with other arguments"}
	case err == nil && req.Serial && len(calls) > 1:
		err = &NoCallError{Why: "the text has several calls, and one is allowed"}
	}
	out := *from
	if err != nil {
		out.Warnings = append(slices.Clip(out.Warnings), "the answer has text like a tool call, which was not "+
			"executed: "+err.Error())
		return &out, false
	}
	out.Message = &tenon.Message{Role: tenon.RoleAssistant, By: from.Message.By}
	out.Message.Parts = parts(from.Message, calls, before, hidden, len(req.Messages))
	out.Stop = tenon.StopToolUse
	for _, c := range calls {
		repairs := slices.Concat([]string{"it was text, not a call of the provider's form"}, c.Repairs)
		out.Warnings = append(slices.Clip(out.Warnings), fmt.Sprintf("the call of '%s' was read from the answer: %s; "+
			"its arguments were read as %s", c.Name, strings.Join(repairs, "; "),
			tenon.Shorten(string(c.Args), maxShown)))
	}
	return &out, true
}

// maxShown bounds the arguments in a warning, in characters.
const maxShown = 200

// parts returns the parts of a message whose text was split. It drops the wire form of the text, which still contains
// the calls.
func parts(m *tenon.Message, calls []Call, before, hidden string, number int) []tenon.Part {
	var out []tenon.Part
	isWritten := false
	for _, p := range m.Parts {
		switch {
		case p.Type != tenon.PartText:
			out = append(out, p)
		case !isWritten:
			isWritten = true
			if hidden != "" {
				out = append(out, tenon.Part{Type: tenon.PartThinking, Text: hidden})
			}
			if before = strings.TrimSpace(before); before != "" {
				out = append(out, tenon.Part{Type: tenon.PartText, Text: before})
			}
		}
	}
	for i, c := range calls {
		id := "text_" + strconv.Itoa(number) + "_" + strconv.Itoa(i)
		call := &tenon.ToolCall{ID: id, Name: c.Name, Arguments: c.Args}
		out = append(out, tenon.Part{Type: tenon.PartCall, Call: call})
	}
	return out
}

// show resets the streamed answer and emits the message.
func show(m *tenon.Message, yield func(tenon.Delta, error) bool) bool {
	if !yield(tenon.Delta{Kind: tenon.DeltaReset, Text: "the answer ends with a tool call"}, nil) {
		return false
	}
	for _, p := range m.Parts {
		d := tenon.Delta{Text: p.Text}
		switch {
		case p.Type == tenon.PartThinking && p.Text != "":
			d.Kind = tenon.DeltaThinking
		case p.Type == tenon.PartText:
			d.Kind = tenon.DeltaText
		case p.Type == tenon.PartCall:
			d.Kind, d.Text = tenon.DeltaCall, p.Call.Name
		default:
			continue
		}
		if !yield(d, nil) {
			return false
		}
	}
	return true
}

var _ tenon.Model = (*Model)(nil)
