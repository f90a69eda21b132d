package gemini

import (
	"bytes"
	"cmp"
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

// Parse reads a streamed answer. It is a [model.Parser]. The answer is complete if the body ends
// after a finishReason or a blockReason.
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

// answer is the state of an answer while its chunks are read.
type answer struct {
	emit    func(tenon.Delta) bool
	stopped bool // the consumer stopped

	id, model string
	parts     []*part
	open      *part // the call whose arguments are incomplete
	calls     int
	finish    string // the finishReason, or the blockReason of the prompt
	blocked   bool
	usage     *tenon.Usage
	warnings  []string
	grounding []byte // the last groundingMetadata with sources
	cited     []byte // the last citationMetadata
	queries   map[string]bool
	media     model.Media
	probs     model.Logprobs
}

// part is a part under construction.
type part struct {
	kind    string // the type of the tenon.Part
	text    []byte // JSON string bodies
	raw     []byte // the part as received, if it must be sent back unchanged
	name    string
	id      string
	args    string
	pieces  *partial // pieces of the arguments
	extra   []byte   // the members next to functionCall, each with a leading comma
	unended bool     // the next call began before this one was complete
	media   *tenon.Part
}

func (a *answer) send(kind, text string) {
	if text != "" && !a.stopped {
		a.stopped = !a.emit(tenon.Delta{Kind: kind, Text: text})
	}
}

// chunk handles one event: a complete response object.
func (a *answer) chunk(data []byte) error {
	if !json.Valid(data) {
		return model.NotJSON(data)
	}
	for first := range rawjson.Elements(data) { // some gateways wrap an error in a list
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
				return nil // the request asks for one candidate
			}
		case "content":
			content = v
		case "finishReason":
			a.finish = cmp.Or(rawjson.String(v), a.finish)
		case "finishMessage":
			message = rawjson.String(v)
		case "groundingMetadata":
			if rawjson.Field(v, "groundingChunks") != nil {
				a.grounding = append(a.grounding[:0], v...)
			}
			a.searched(v)
		case "citationMetadata":
			a.cited = append(a.cited[:0], v...)
		case "logprobsResult":
			a.probs.AddResult(v)
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

// part handles one part: a piece of text or thought, a call or a piece of one, or content that is
// only sent back.
func (a *answer) part(raw []byte) error {
	var text, call, inline []byte
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
		case "inlineData":
			inline = v
		default:
			other = true
		}
	}
	switch {
	case call != nil:
		return a.call(raw, call)
	case text != nil && !other:
		a.send(textKind(thought), rawjson.String(text))
		a.text(raw, rawjson.StringBody(text), thought, signed)
	case inline != nil && !thought: // a draft of an image in a thought is only sent back
		a.inline(raw, inline)
	case !rawjson.IsNull(raw):
		a.parts = append(a.parts, &part{kind: tenon.PartOpaque, raw: bytes.Clone(raw)})
	}
	return nil
}

// inline handles a generated image or audio. It is sent back with its signature.
func (a *answer) inline(raw, data []byte) {
	mime := rawjson.String(rawjson.Field(data, "mimeType"))
	p := a.media.Add(mime, rawjson.String(rawjson.Field(data, "data")), wire,
		model.SetMember(nil, raw, []byte(`""`), "inlineData", "data"))
	if p == nil { // the part is sent back in any case
		a.parts = append(a.parts, &part{kind: tenon.PartOpaque, raw: bytes.Clone(raw)})
		return
	}
	a.parts = append(a.parts, &part{kind: p.Type, media: p})
}

func textKind(thought bool) string {
	if thought {
		return tenon.DeltaThinking
	}
	return tenon.DeltaText
}

// text appends a piece to the preceding text. A piece with a signature stays separate, because it
// is sent back unchanged.
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

// call handles a call or a piece of one. Pieces occur only behind gateways, because requests do not
// ask for them. The first piece has the name, and an empty piece ends the call.
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
			return nil // ends a call that is already complete
		}
		a.parts = append(a.parts, p)
		a.calls++
		a.send(tenon.DeltaCall, name)
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
	known := false
	for k, v := range rawjson.Fields(v) {
		n, ok := rawjson.Int(v)
		if !ok {
			continue
		}
		switch string(k) {
		case "promptTokenCount", "toolUsePromptTokenCount":
			u.Input, known = u.Input+n, true
		case "candidatesTokenCount":
			u.Output, known = u.Output+n, true
		case "thoughtsTokenCount":
			u.Output, u.Reasoning, known = u.Output+n, n, true
		case "cachedContentTokenCount":
			u.CacheRead = n
		}
	}
	if known {
		a.usage = u
	}
}

func (a *answer) warn(format string, args ...any) {
	a.warnings = append(a.warnings, fmt.Sprintf(format, args...))
}

// response builds the answer after its end.
func (a *answer) response() *tenon.Response {
	msg := &tenon.Message{Role: tenon.RoleAssistant, Parts: []tenon.Part{}}
	cut := a.finish == "MAX_TOKENS"
	calls, nameless := 0, false
	for i, p := range a.parts {
		if p.media != nil {
			msg.Parts = append(msg.Parts, *p.media)
			continue
		}
		out := tenon.Part{Type: p.kind, Text: rawjson.DecodeBody(p.text)}
		if p.raw != nil {
			out.Wire, out.Raw = wire, p.raw
			if code := rawjson.Field(p.raw, "executableCode"); code != nil {
				out.Text = model.Use("code_execution", rawjson.Field(code, "code"))
			}
		}
		if p.kind == tenon.PartThinking {
			out.Wire = wire
		}
		if p.kind == tenon.PartCall {
			if p.name == "" {
				nameless = true
				a.warn("a tool call without a name is omitted")
				continue
			}
			p.unended = p.unended || p == a.open || p.pieces != nil && p.pieces.root.isOpen()
			if cut && p.unended {
				a.warn("the call of %s was cut off and is omitted", p.name)
				continue
			}
			out = p.finished(i)
			calls++
		}
		msg.Parts = append(msg.Parts, out)
	}
	a.cite(msg.Parts)
	if a.usage != nil {
		a.usage.Searches = a.searches()
	}
	r := &tenon.Response{Message: msg, RawStop: a.finish, Model: a.model, ID: a.id, Usage: a.usage}
	list, warning := a.probs.Take()
	if warning != "" {
		a.warn("%s", warning)
	}
	r.Logprobs = list
	r.Stop, r.Warnings = a.stop(calls), append(a.warnings, a.media.Warnings...)
	if r.Stop == tenon.StopEnd && nameless {
		r.Stop = tenon.StopBadCall
	}
	return r
}

// finished returns the part of a complete call. Members next to the call, such as its signature,
// are sent back with it.
func (p *part) finished(nth int) tenon.Part {
	c := &tenon.ToolCall{ID: p.id, Name: p.name}
	if c.ID == "" {
		id := strings.TrimPrefix(tenon.NewID("call", time.Now()), "call_")
		c.ID = fmt.Sprintf("%s%s_%d", ownID, id, nth)
	}
	args := p.args
	if p.pieces != nil {
		args = string(p.pieces.json())
	}
	model.SetArguments(c, args)
	if p.unended { // the next call or the end of the answer came before the arguments were complete
		c.Arguments, c.Malformed = nil, strings.TrimSpace(args)+" (the arguments ended early)"
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

// stop maps the finishReason. STOP also ends turns with calls.
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
	case "", "STOP", "FINISH_REASON_UNSPECIFIED": // the last is the default of the enumeration, as if it was missing
	default:
		return model.UnknownStop(a.finish)
	}
	if calls > 0 {
		return tenon.StopToolUse
	}
	return tenon.StopEnd
}

// whole converts an answer that was not streamed, or a list of chunks, to the events of a stream.
func whole(document []byte) [][]byte {
	var list [][]byte
	for e := range rawjson.Elements(document) {
		list = append(list, e)
	}
	if list == nil {
		return [][]byte{document}
	}
	return list
}
