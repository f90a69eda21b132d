package ollama

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/model"
)

// Parse reads the lines of an answer. It is a [model.Parser].
func Parse(next model.Events, emit func(tenon.Delta) bool) (*tenon.Response, error) {
	return parse(next, emit, 0)
}

// parse reads the lines of an answer. most is the limit of the answer's tokens, or 0 if it is unknown. The answer is
// complete after the line with "done".
func parse(next model.Events, emit func(tenon.Delta) bool, most int) (*tenon.Response, error) {
	a := answer{emit: emit, most: most}
	for {
		line, err := next()
		switch {
		case errors.Is(err, io.EOF):
			return nil, model.CutOff(`the line with "done"`)
		case err != nil:
			return nil, err
		}
		if err := a.line(line); err != nil {
			var f *model.Failure
			if errors.As(err, &f) && f.Kind == model.KindBadCall {
				a.calls = nil
				r := a.response()
				r.Stop, r.RawStop = tenon.StopBadCall, f.CallError()
				return r, nil
			}
			return nil, err
		}
		if a.done {
			return a.response(), nil
		}
	}
}

// answer is the state of an answer while its lines are read.
type answer struct {
	emit    func(tenon.Delta) bool
	most    int
	stopped bool // the consumer stopped
	done    bool

	model, reason  string
	text, thinking strings.Builder
	calls          []*tenon.ToolCall
	tried          int // calls, including omitted ones
	usage          tenon.Usage
	counted        bool
	timing         tenon.Timing
	probs          model.Logprobs
	warnings       []string
}

func (a *answer) send(kind, text string) {
	if text != "" && !a.stopped {
		a.stopped = !a.emit(tenon.Delta{Kind: kind, Text: text})
	}
}

// line handles one line.
func (a *answer) line(data []byte) error {
	if !json.Valid(data) {
		return model.NotJSON(data)
	}
	for k, v := range rawjson.Fields(data) {
		switch string(k) {
		case "error":
			if !rawjson.IsNull(v) {
				return model.ErrorObject(0, data)
			}
		case "model":
			a.model = rawjson.String(v)
		case "message":
			a.message(v)
		case "logprobs":
			a.probs.Add(v)
		case "done":
			a.done = string(v) == "true"
		case "done_reason":
			a.reason = rawjson.String(v)
		default:
			a.metric(string(k), v)
		}
	}
	if a.stopped {
		return model.ErrStopped
	}
	return nil
}

// metric reads a count of tokens, or a duration in nanoseconds.
func (a *answer) metric(name string, v []byte) {
	n, ok := rawjson.Int(v)
	if !ok || n < 0 {
		return
	}
	switch name {
	case "prompt_eval_count":
		a.usage.Input, a.counted = n, true
	case "eval_count":
		a.usage.Output, a.counted = n, true
	case "load_duration":
		a.timing.Load = time.Duration(n).Milliseconds()
	case "prompt_eval_duration":
		a.timing.Prompt = time.Duration(n).Milliseconds()
	case "eval_duration":
		a.timing.Output = time.Duration(n).Milliseconds()
	}
}

func (a *answer) message(m []byte) {
	for k, v := range rawjson.Fields(m) {
		switch string(k) {
		case "content":
			text := rawjson.String(v)
			a.text.WriteString(text)
			a.send(tenon.DeltaText, text)
		case "thinking":
			text := rawjson.String(v)
			a.thinking.WriteString(text)
			a.send(tenon.DeltaThinking, text)
		case "tool_calls":
			for c := range rawjson.Elements(v) {
				a.call(c)
			}
		}
	}
}

// call adds a call, which is always whole. Servers before version 0.12 send no ids.
func (a *answer) call(c []byte) {
	a.tried++
	function := rawjson.Field(c, "function")
	out := &tenon.ToolCall{ID: rawjson.String(rawjson.Field(c, "id")),
		Name: rawjson.String(rawjson.Field(function, "name"))}
	if out.Name == "" {
		a.warnings = append(a.warnings, "a tool call without a name is omitted")
		return
	}
	if out.ID == "" {
		out.ID = fmt.Sprintf("%s_%d", tenon.NewID("call", time.Now()), len(a.calls))
	}
	args := rawjson.Field(function, "arguments")
	if rawjson.StringBody(args) != nil { // a text, sent by servers that imitate the API
		model.SetArguments(out, rawjson.String(args))
	} else {
		model.SetArguments(out, string(args))
	}
	a.calls = append(a.calls, out)
	a.send(tenon.DeltaCall, out.Name)
}

// response builds the answer after its end.
func (a *answer) response() *tenon.Response {
	msg := &tenon.Message{Role: tenon.RoleAssistant, Parts: []tenon.Part{}}
	if a.thinking.Len() > 0 {
		text := a.thinking.String()
		msg.Parts = append(msg.Parts, tenon.Part{Type: tenon.PartThinking, Text: text, Wire: wire,
			Raw: rawjson.AppendString(nil, text)})
	}
	if a.text.Len() > 0 {
		msg.Parts = append(msg.Parts, tenon.Part{Type: tenon.PartText, Text: a.text.String()})
	}
	for _, c := range a.calls {
		msg.Parts = append(msg.Parts, tenon.Part{Type: tenon.PartCall, Call: c})
	}
	r := &tenon.Response{Message: model.DistinctCalls(msg), Model: a.model, RawStop: a.reason, Stop: a.stop()}
	if a.counted {
		r.Usage = &a.usage
	}
	if a.timing != (tenon.Timing{}) {
		r.Timing = &a.timing
	}
	list, warning := a.probs.Take()
	if warning != "" {
		a.warnings = append(a.warnings, warning)
	}
	r.Logprobs, r.Warnings = list, a.warnings
	return r
}

// stop maps the done_reason. If an answer was cut off before its limit, the context is full.
func (a *answer) stop() tenon.StopReason {
	switch a.reason {
	case "length":
		if a.most > 0 && a.counted && a.usage.Output > 0 && a.usage.Output < a.most {
			return tenon.StopContextFull
		}
		return tenon.StopMaxTokens
	case "", "stop":
	default:
		return model.UnknownStop(a.reason)
	}
	switch {
	case len(a.calls) > 0:
		return tenon.StopToolUse
	case a.tried > 0:
		return tenon.StopBadCall
	}
	return tenon.StopEnd
}
