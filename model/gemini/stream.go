package gemini

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/model"
)

// Parse reads one streamed answer (a [model.Parser]). It is complete where the
// body ends behind a finishReason, or behind the word that the prompt was
// blocked.
func Parse(next model.Events, emit func(tenon.Delta) bool) (*tenon.Response, error) {
	a := answer{emit: emit}
	for {
		data, err := next()
		switch {
		case err != nil && a.finish != "":
			return a.response(), nil
		case errors.Is(err, io.EOF):
			return nil, model.CutOff("a finishReason")
		case err != nil:
			return nil, err
		}
		if err := a.chunk(data); err != nil {
			return nil, err
		}
	}
}

// answer is what the chunks have said so far.
type answer struct {
	emit    func(tenon.Delta) bool
	stopped bool // the consumer

	id, model string
	parts     []*part
	open      *part // a call whose arguments come in pieces
	calls     int
	finish    string // finishReason, or why the prompt was blocked
	blocked   bool
	usage     *tenon.Usage
	warnings  []string
}

// part is one part as it grows.
type part struct {
	kind    string // of a tenon.Part
	text    []byte // bodies of JSON strings
	raw     []byte // the part as it came, where it goes back so
	name    string
	id      string
	args    string
	pieces  *partial // of the arguments
	extra   []byte   // the members beside functionCall, each with a comma before it
	unended bool     // the next call began before this one had ended
}

func (a *answer) say(kind, text string) {
	if text != "" && !a.stopped {
		a.stopped = !a.emit(tenon.Delta{Kind: kind, Text: text})
	}
}

// chunk takes one event, which is a whole response object.
func (a *answer) chunk(data []byte) error {
	if !json.Valid(data) {
		return model.NotJSON(data)
	}
	for first := range rawjson.Elements(data) { // some gateways wrap an error so
		data = first
		break
	}
	for k, v := range rawjson.Fields(data) {
		switch string(k) {
		case "candidates":
			for c := range rawjson.Elements(v) {
				if err := a.candidate(c); err != nil {
					return err
				}
			}
		case "promptFeedback":
			if s := rawjson.String(rawjson.Field(v, "blockReason")); s != "" {
				a.finish, a.blocked = s, true
			}
		case "usageMetadata":
			a.count(v)
		case "responseId":
			a.id = rawjson.String(v)
		case "modelVersion":
			a.model = rawjson.String(v)
		case "error":
			if !rawjson.IsNull(v) {
				return model.ErrorObject(0, data)
			}
		}
	}
	if a.stopped {
		return model.ErrStopped
	}
	return nil
}

func (a *answer) candidate(c []byte) error {
	var content []byte
	var message string
	for k, v := range rawjson.Fields(c) {
		switch string(k) {
		case "index":
			if n, ok := rawjson.Int(v); ok && n != 0 {
				return nil // one answer was asked for
			}
		case "content":
			content = v
		case "finishReason":
			if s := rawjson.String(v); s != "" {
				a.finish = s
			}
		case "finishMessage":
			message = rawjson.String(v)
		}
	}
	if message != "" && a.finish != "STOP" {
		a.warn("%s", message)
	}
	for p := range rawjson.Elements(rawjson.Field(content, "parts")) {
		if err := a.part(p); err != nil {
			return err
		}
	}
	return nil
}

// part takes one part: a piece of text or thought, a call or a piece of one, or
// something that only goes back.
func (a *answer) part(raw []byte) error {
	var text, call []byte
	var thought, signed bool
	other := false
	for k, v := range rawjson.Fields(raw) {
		switch string(k) {
		case "text":
			text = v
		case "thought":
			thought = string(v) == "true"
		case "functionCall":
			call = v
		case "thoughtSignature":
			signed = !rawjson.IsNull(v)
		default:
			other = true
		}
	}
	switch {
	case call != nil:
		return a.call(raw, call)
	case text != nil && !other:
		a.say(textKind(thought), rawjson.String(text))
		a.text(raw, rawjson.StringBody(text), thought, signed)
	case !rawjson.IsNull(raw):
		a.parts = append(a.parts, &part{kind: tenon.PartOpaque, raw: bytes.Clone(raw)})
	}
	return nil
}

func textKind(thought bool) string {
	if thought {
		return tenon.DeltaThinking
	}
	return tenon.DeltaText
}

// text joins a piece to the text before it, unless it carries a signature: that
// part goes back as it came.
func (a *answer) text(raw, body []byte, thought, signed bool) {
	kind := tenon.PartText
	if thought {
		kind = tenon.PartThinking
	}
	if signed {
		p := &part{kind: kind, text: bytes.Clone(body), raw: bytes.Clone(raw)}
		if len(body) == 0 {
			p.kind = tenon.PartOpaque
		}
		a.parts = append(a.parts, p)
		return
	}
	if len(body) == 0 {
		return
	}
	if n := len(a.parts); n > 0 && a.parts[n-1].kind == kind && a.parts[n-1].raw == nil {
		a.parts[n-1].text = append(a.parts[n-1].text, body...)
		return
	}
	a.parts = append(a.parts, &part{kind: kind, text: bytes.Clone(body)})
}

// call takes a whole call, or on request of ours never, but seen behind gateways,
// a piece of one: the first names it, an empty one ends it.
func (a *answer) call(raw, call []byte) error {
	var name, id string
	var args, pieces []byte
	more := false
	for k, v := range rawjson.Fields(call) {
		switch string(k) {
		case "name":
			name = rawjson.String(v)
		case "id":
			id = rawjson.String(v)
		case "args":
			args = v
		case "partialArgs":
			pieces = v
		case "willContinue":
			more = string(v) == "true"
		}
	}
	p := a.open
	if name != "" && p != nil {
		p.unended = true
	}
	if name != "" || p == nil {
		p = &part{kind: tenon.PartCall, name: name, id: id}
		for k, v := range rawjson.Fields(raw) {
			if string(k) != "functionCall" {
				p.extra = append(append(append(append(p.extra, `,"`...), k...), `":`...), v...)
			}
		}
		if name == "" && args == nil && pieces == nil {
			return nil // the end of a call that has ended
		}
		a.parts = append(a.parts, p)
		a.calls++
		a.say(tenon.DeltaCall, name)
	}
	if !rawjson.IsNull(args) {
		p.args = string(args)
	}
	for piece := range rawjson.Elements(pieces) {
		if p.pieces == nil {
			p.pieces = &partial{}
		}
		if err := p.pieces.add(piece); err != nil {
			return err
		}
	}
	a.open = p
	if !more {
		a.open = nil
	}
	return nil
}

func (a *answer) count(v []byte) {
	u := &tenon.Usage{}
	said := false
	for k, v := range rawjson.Fields(v) {
		n, ok := rawjson.Int(v)
		if !ok {
			continue
		}
		switch string(k) {
		case "promptTokenCount", "toolUsePromptTokenCount":
			u.Input, said = u.Input+n, true
		case "candidatesTokenCount":
			u.Output, said = u.Output+n, true
		case "thoughtsTokenCount":
			u.Output, u.Reasoning, said = u.Output+n, n, true
		case "cachedContentTokenCount":
			u.CacheRead = n
		}
	}
	if said {
		a.usage = u
	}
}

func (a *answer) warn(format string, args ...any) {
	a.warnings = append(a.warnings, fmt.Sprintf(format, args...))
}

// response puts the answer together after its end.
func (a *answer) response() *tenon.Response {
	msg := &tenon.Message{Role: tenon.RoleAssistant, Parts: []tenon.Part{}}
	cut := a.finish == "MAX_TOKENS"
	calls, nameless := 0, false
	for i, p := range a.parts {
		out := tenon.Part{Type: p.kind, Text: rawjson.DecodeBody(p.text)}
		if p.raw != nil {
			out.Wire, out.Raw = wire, p.raw
		}
		if p.kind == tenon.PartThinking {
			out.Wire = wire
		}
		if p.kind == tenon.PartCall {
			if p.name == "" {
				nameless = true
				a.warn("a tool call without a name is left out")
				continue
			}
			if cut && p == a.open {
				a.warn("the call of %s was cut off and is left out", p.name)
				continue
			}
			out = p.finished(i)
			calls++
		}
		msg.Parts = append(msg.Parts, out)
	}
	r := &tenon.Response{Message: msg, RawStop: a.finish, Model: a.model, ID: a.id, Usage: a.usage}
	if r.Stop, r.Warnings = a.stop(calls), a.warnings; r.Stop == tenon.StopEnd && nameless {
		r.Stop = tenon.StopBadCall
	}
	return r
}

// finished returns the part of a call. Members that came beside it, such as its
// signature, go back with it.
func (p *part) finished(nth int) tenon.Part {
	c := &tenon.ToolCall{ID: p.id, Name: p.name}
	if c.ID == "" {
		c.ID = fmt.Sprintf("%s%s_%d", ownID, strings.TrimPrefix(tenon.NewID("call", time.Now()), "call_"), nth)
	}
	args := p.args
	if p.pieces != nil {
		args = string(p.pieces.json())
	}
	model.SetArguments(c, args)
	if p.unended { // another call began before its arguments had ended: they may be half of what they should be
		c.Arguments, c.Malformed = nil, args+" (the arguments ended early)"
	}
	out := tenon.Part{Type: tenon.PartCall, Call: c}
	if len(p.extra) > 0 && c.Malformed == "" {
		raw := append([]byte(nil), `{"functionCall":{`...)
		raw = appendID(raw, p.id)
		raw = rawjson.AppendString(append(raw, `"name":`...), p.name)
		raw = model.AppendArguments(append(raw, `,"args":`...), c)
		out.Wire, out.Raw = wire, slices.Concat(raw, []byte("}"), p.extra, []byte("}"))
	}
	return out
}

// stop maps the provider's word; STOP ends turns with calls too.
func (a *answer) stop(calls int) tenon.StopReason {
	if a.blocked {
		return tenon.StopContentFilter
	}
	switch a.finish {
	case "MAX_TOKENS":
		return tenon.StopMaxTokens
	case "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY":
		return tenon.StopContentFilter
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS":
		return tenon.StopBadCall
	case "CONTINUATION":
		return tenon.StopPause
	case "OTHER":
		return tenon.StopError
	}
	if calls > 0 {
		return tenon.StopToolUse
	}
	return tenon.StopEnd
}
