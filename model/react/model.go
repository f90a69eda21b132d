package react

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
)

// Model calls tools through a model that cannot. It is immutable.
type Model struct {
	inner  tenon.Model
	prompt *Prompt
}

// Wrap puts the text loop around a model.
func Wrap(m tenon.Model, p *Prompt) *Model { return &Model{m, p} }

// Name returns the name of the model.
func (m *Model) Name() string { return m.inner.Name() }

// Generate sends the request as a prompt and reads the reply as one step. See
// [tenon.Model]; a prompt that cannot be written is an error of code config.
func (m *Model) Generate(ctx context.Context, req *tenon.Request) iter.Seq2[tenon.Delta, error] {
	asked, err := m.prompt.Request(req)
	if err != nil {
		return func(yield func(tenon.Delta, error) bool) { yield(tenon.Delta{}, err) }
	}
	if len(req.Tools) == 0 && !hasSteps(req.Messages) {
		return m.inner.Generate(ctx, asked) // nothing tells it of steps
	}
	return func(yield func(tenon.Delta, error) bool) {
		r := &reply{last: len(req.Tools) == 0 || req.ToolChoice == "none", number: len(req.Messages)}
		r.begin()
		for d, err := range m.inner.Generate(ctx, asked) {
			switch {
			case err != nil:
				yield(d, err)
				return
			case d.Response != nil:
				r.finish(d.Response)
				if !r.pass(yield) {
					return
				}
				d = tenon.Delta{Kind: tenon.DeltaResponse, Response: r.response(d.Response)}
			case d.Kind == tenon.DeltaText:
				r.feed(d.Text)
				if !r.pass(yield) {
					return
				}
				continue
			case d.Kind == tenon.DeltaThinking:
				r.mused = true
			case d.Kind == tenon.DeltaReset:
				r.begin()
			}
			if !yield(d, nil) {
				return
			}
		}
	}
}

// hasSteps reports whether a model that reads the messages may think that it is to
// answer in steps.
func hasSteps(messages []*tenon.Message) bool {
	for _, m := range messages {
		if _, failed := failureOf(m); failed || len(m.Calls()) > 0 {
			return true
		}
	}
	return false
}

// reply is one answer of the model as it comes.
type reply struct {
	last   bool // no tool can be called any more: whatever is no step is the answer
	number int  // of the message, which makes the id of its call

	parser  *Parser
	text    strings.Builder
	pending []tenon.Delta
	mused   bool // the model has thought on its own before
}

// begin starts the answer over.
func (r *reply) begin() {
	r.text.Reset()
	r.pending, r.mused = nil, false
	r.parser = NewParser(func(kind, text string) {
		if r.mused && kind == tenon.DeltaThinking {
			r.mused = false
			r.pending = append(r.pending, tenon.Delta{Kind: kind, Text: "\n"})
		}
		if kind != tenon.DeltaCall || !r.last {
			r.pending = append(r.pending, tenon.Delta{Kind: kind, Text: text})
		}
	})
}

func (r *reply) feed(text string) {
	r.text.WriteString(text)
	r.parser.Feed(text)
}

// finish takes what the whole answer has and the pieces had not.
func (r *reply) finish(resp *tenon.Response) {
	rest, ok := strings.CutPrefix(resp.Message.Text(), r.text.String())
	if !ok {
		r.begin()
		r.pending = []tenon.Delta{{Kind: tenon.DeltaReset, Text: "the answer is another one"}}
		rest = resp.Message.Text()
	}
	r.feed(rest)
}

// pass hands on what was understood.
func (r *reply) pass(yield func(tenon.Delta, error) bool) bool {
	for _, d := range r.pending {
		if !yield(d, nil) {
			return false
		}
	}
	r.pending = r.pending[:0]
	return true
}

// response makes a step of an answer.
func (r *reply) response(from *tenon.Response) *tenon.Response {
	if len(from.Message.Calls()) > 0 { // it calls tools after all
		return from
	}
	out := *from
	out.Message = &tenon.Message{Role: tenon.RoleAssistant, By: from.Message.By}
	add := func(p tenon.Part) { out.Message.Parts = append(out.Message.Parts, p) }
	for _, p := range from.Message.Parts {
		if p.Type == tenon.PartThinking {
			add(tenon.Part{Type: p.Type, Text: p.Text})
		}
	}
	whole := r.parser.IsComplete()
	step, err := r.parser.End()
	if r.last && !step.Final {
		step, err = Step{Final: true, Answer: cmp.Or(step.Thought, strings.TrimSpace(from.Message.Text()))}, nil
	}
	if step.Thought != "" {
		add(tenon.Part{Type: tenon.PartThinking, Text: step.Thought, Wire: wire})
	}
	cut := from.Stop != tenon.StopEnd && from.Stop != tenon.StopToolUse
	switch {
	case step.Final:
		if step.Answer != "" {
			add(tenon.Part{Type: tenon.PartText, Text: step.Answer})
		}
	case cut && !whole: // what was cut off is not the model's fault
	case err != nil:
		f := failure{Error: err.Error(), Reply: excerpt([]byte(from.Message.Text()))}
		raw, _ := json.Marshal(f) // two texts
		add(tenon.Part{Type: tenon.PartOpaque, Wire: wire, Raw: raw})
		out.Stop, out.RawStop = tenon.StopBadCall, parseError+f.Error
	default:
		add(tenon.Part{Type: tenon.PartCall, Call: &tenon.ToolCall{ID: "react_" + strconv.Itoa(r.number), Name: step.Action, Arguments: step.Args}})
		out.Stop = tenon.StopToolUse
	}
	if p := markOf(from.Message); p != nil {
		add(*p)
	}
	return &out
}

var _ tenon.Model = (*Model)(nil)
