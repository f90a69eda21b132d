package bedrock

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/model"
)

// whole converts an answer of Converse, which is one document, to an event.
func whole(document []byte) [][]byte {
	if rawjson.Field(document, "output") == nil {
		return nil
	}
	return [][]byte{slices.Concat([]byte(`{"converse":`), document, []byte("}"))}
}

// Parse reads the events of [Frames]. It is a [model.Parser].
func Parse(next model.Events, emit func(tenon.Delta) bool) (*tenon.Response, error) {
	a := answer{emit: emit}
	for {
		event, err := next()
		switch {
		case errors.Is(err, io.EOF) && a.stopped:
			return a.response(), nil
		case errors.Is(err, io.EOF):
			return nil, model.CutOff("messageStop")
		case err != nil:
			return nil, err
		}
		for name, payload := range rawjson.Fields(event) {
			if err := a.event(string(name), payload); err != nil {
				return nil, err
			}
		}
		if a.quit {
			return nil, model.ErrStopped
		}
	}
}

// answer is the state of an answer while its events are read.
type answer struct {
	emit    func(tenon.Delta) bool
	quit    bool // the consumer stopped
	stopped bool // messageStop was received

	blocks  []*block
	current map[int]*block
	stop    string
	usage   *tenon.Usage
}

// block is a content block under construction.
type block struct {
	kind      string // text, call, reasoning, use, result or other
	id, name  string
	text      strings.Builder // the text, the reasoning or the arguments
	signature string
	redacted  string
	raw       []byte   // a block of another kind, or the start of a result
	content   [][]byte // the content of a result
	cited     [][]byte
	mime      string // of an image in text
	ended     bool
}

func (a *answer) event(name string, payload []byte) error {
	if kind, ok := strings.CutPrefix(name, "!"); ok {
		return exception(kind, payload)
	}
	switch name {
	case "contentBlockStart":
		b := a.at(payload)
		for k, v := range rawjson.Fields(rawjson.Field(payload, "start")) {
			b.start(string(k), v)
			if b.kind == "call" {
				a.send(tenon.DeltaCall, b.name)
			}
		}
	case "contentBlockDelta":
		b := a.at(payload)
		for k, v := range rawjson.Fields(rawjson.Field(payload, "delta")) {
			a.delta(b, string(k), v)
		}
	case "contentBlockStop":
		a.at(payload).ended = true
	case "messageStop":
		a.stopped, a.stop = true, rawjson.String(rawjson.Field(payload, "stopReason"))
	case "metadata":
		a.readUsage(rawjson.Field(payload, "usage"))
	case "converse":
		a.document(payload)
	}
	return nil // the parser needs nothing of messageStart and of unknown events
}

// exception returns the failure for an exception in a stream. Its name begins with a lower-case letter.
func exception(kind string, payload []byte) error {
	kind = cmp.Or(kind, "error")
	message := rawjson.String(rawjson.Field(payload, "message"))
	if original := rawjson.String(rawjson.Field(payload, "originalMessage")); original != "" {
		message += " (" + original + ")"
	}
	body, err := json.Marshal(map[string]any{"error": map[string]string{
		"type": strings.ToUpper(kind[:1]) + kind[1:], "message": message}})
	if err != nil {
		return model.Broken("an exception of the answer cannot be read")
	}
	return model.ErrorObject(0, body)
}

// at returns the block with the index of an event. Some models send no contentBlockStart.
func (a *answer) at(payload []byte) *block {
	n, _ := rawjson.Int(rawjson.Field(payload, "contentBlockIndex"))
	if b := a.current[n]; b != nil {
		return b
	}
	if a.current == nil {
		a.current = map[int]*block{}
	}
	b := &block{}
	a.current[n] = b
	a.blocks = append(a.blocks, b)
	return b
}

func (b *block) start(kind string, v []byte) {
	switch kind {
	case "toolUse":
		b.kind, b.id = "call", rawjson.String(rawjson.Field(v, "toolUseId"))
		b.name = rawjson.String(rawjson.Field(v, "name"))
		if rawjson.String(rawjson.Field(v, "type")) == serverUse {
			b.kind = "use"
		}
	case "toolResult": // of a tool that the service runs
		b.kind, b.raw = "result", bytes.Clone(v)
	case "image":
		b.kind, b.mime = "image", "image/"+rawjson.String(rawjson.Field(v, "format"))
	default:
		b.kind, b.raw = "other", append([]byte(nil), v...)
	}
}

func (a *answer) delta(b *block, kind string, v []byte) {
	switch kind {
	case "text":
		b.kind = "text"
		text := rawjson.String(v)
		b.text.WriteString(text)
		a.send(tenon.DeltaText, text)
	case "toolUse":
		b.kind = cmp.Or(b.kind, "call")
		b.text.WriteString(rawjson.String(rawjson.Field(v, "input")))
	case "toolResult":
		for e := range rawjson.Elements(v) {
			b.content = append(b.content, bytes.Clone(e))
		}
	case "image":
		if f := rawjson.String(rawjson.Field(v, "format")); f != "" {
			b.mime = "image/" + f
		}
		b.kind = "image"
		b.text.WriteString(rawjson.String(rawjson.Field(rawjson.Field(v, "source"), "bytes")))
	case "citation":
		if b.kind == "" { // Nova sends the sources of a text in the block after it
			b = a.lastText(b)
		}
		if len(b.cited) < maxCited {
			b.cited = append(b.cited, bytes.Clone(v))
		}
	case "citationsContent": // in Converse: texts with their citations
		for c := range rawjson.Elements(rawjson.Field(v, "content")) {
			a.delta(b, "text", rawjson.Field(c, "text"))
		}
		for c := range rawjson.Elements(rawjson.Field(v, "citations")) {
			a.delta(b, "citation", c)
		}
	case "reasoningContent":
		b.kind = "reasoning"
		for k, v := range rawjson.Fields(v) {
			switch string(k) {
			case "text":
				text := rawjson.String(v)
				b.text.WriteString(text)
				a.send(tenon.DeltaThinking, text)
			case "signature":
				b.signature += rawjson.String(v)
			case "redactedContent":
				b.redacted += rawjson.String(v)
			}
		}
	}
}

// lastText returns the last block of text, or b if there is none.
func (a *answer) lastText(b *block) *block {
	for _, t := range slices.Backward(a.blocks) {
		if t.kind == "text" {
			return t
		}
	}
	return b
}

func (a *answer) send(kind, text string) {
	if text != "" && !a.quit {
		a.quit = !a.emit(tenon.Delta{Kind: kind, Text: text})
	}
}

// document reads an answer of Converse.
func (a *answer) document(doc []byte) {
	message := rawjson.Field(rawjson.Field(doc, "output"), "message")
	for c := range rawjson.Elements(rawjson.Field(message, "content")) {
		b := &block{ended: true}
		a.blocks = append(a.blocks, b)
		for k, v := range rawjson.Fields(c) {
			switch string(k) {
			case "toolUse":
				b.start("toolUse", v)
				b.text.Write(rawjson.Field(v, "input"))
				if b.kind == "call" {
					a.send(tenon.DeltaCall, b.name)
				}
			case "toolResult":
				b.start("toolResult", v)
			case "reasoningContent":
				b.kind = "reasoning"
				if t := rawjson.Field(v, "reasoningText"); t != nil {
					v = t
				}
				a.delta(b, "reasoningContent", v)
			default:
				a.delta(b, string(k), v)
			}
		}
	}
	a.stopped, a.stop = true, rawjson.String(rawjson.Field(doc, "stopReason"))
	a.readUsage(rawjson.Field(doc, "usage"))
}

func (a *answer) readUsage(object []byte) {
	u := tenon.Usage{}
	known := false
	for k, v := range rawjson.Fields(object) {
		n, ok := rawjson.Int(v)
		if !ok {
			continue
		}
		switch string(k) {
		case "inputTokens":
			u.Input += n
			known = true
		case "outputTokens":
			u.Output = n
			known = true
		case "cacheReadInputTokens":
			u.CacheRead = n
			u.Input += n
		case "cacheWriteInputTokens":
			u.CacheWrite = n
			u.Input += n
		}
	}
	if known {
		a.usage = &u
	}
}

// response builds the answer after its end mark.
func (a *answer) response() *tenon.Response {
	msg := &tenon.Message{Role: tenon.RoleAssistant, Parts: []tenon.Part{}}
	r := &tenon.Response{Message: msg, RawStop: a.stop, Usage: a.usage}
	calls, tried := 0, 0
	var media model.Media
	for i, b := range a.blocks {
		cut := !b.ended || a.stop == "max_tokens" && i == len(a.blocks)-1
		switch b.kind {
		case "text":
			if b.text.Len() > 0 {
				text := b.text.String()
				msg.Parts = append(msg.Parts,
					tenon.Part{Type: tenon.PartText, Text: text, Citations: b.citations(text)})
			}
		case "reasoning":
			msg.Parts = append(msg.Parts, b.reasoning(cut))
		case "image":
			if p := media.Add(b.mime, b.text.String(), "", nil); p != nil {
				msg.Parts = append(msg.Parts, *p)
			}
		case "call":
			tried++
			c := &tenon.ToolCall{ID: b.id, Name: b.name}
			args := b.text.String()
			if b.name == "" || cut && !json.Valid([]byte(args)) {
				r.Warnings = append(r.Warnings, fmt.Sprintf("the call of %s was cut off and is omitted", b.name))
				continue
			}
			model.SetArguments(c, args)
			msg.Parts = append(msg.Parts, tenon.Part{Type: tenon.PartCall, Call: c})
			calls++
		case "use", "result":
			p := b.hosted()
			if cut || p == nil {
				r.Warnings = append(r.Warnings, "a use of a tool of the provider was cut off and is omitted")
				continue
			}
			msg.Parts = append(msg.Parts, *p)
		case "other":
			r.Warnings = append(r.Warnings, "a block of an unknown kind is omitted")
		}
	}
	r.Warnings = append(r.Warnings, media.Warnings...)
	r.Stop = stopReason(a.stop, calls, tried)
	return r
}

// serverUse is the type of a block in which the service uses a tool that it runs itself, such as nova_grounding. tenon
// must not execute it. The block and its result are sent back.
const serverUse = "server_tool_use"

// hosted returns the part of a use of the service's own tool, or of its result. It returns nil if the input is not
// JSON.
func (b *block) hosted() *tenon.Part {
	if b.kind == "result" {
		raw := b.raw
		if rawjson.Field(raw, "content") == nil { // of a stream
			list := slices.Concat([]byte("["), bytes.Join(b.content, []byte(",")), []byte("]"))
			raw = slices.Concat(raw[:len(raw)-1], []byte(`,"content":`), list, []byte("}"))
		}
		raw = slices.Concat([]byte(`{"toolResult":`), raw, []byte("}"))
		return &tenon.Part{Type: tenon.PartOpaque, Wire: wire, Raw: raw}
	}
	input := []byte(b.text.String())
	if !json.Valid(input) {
		return nil
	}
	raw := rawjson.AppendString([]byte(`{"toolUse":{"toolUseId":`), b.id)
	raw = rawjson.AppendString(append(raw, `,"name":`...), b.name)
	raw = slices.Concat(raw, []byte(`,"input":`), input, []byte(`,"type":"`+serverUse+`"}}`))
	return &tenon.Part{Type: tenon.PartOpaque, Text: model.Use(b.name, input), Wire: wire, Raw: raw}
}

// reasoning returns the part of a reasoning block. A complete block is sent back with its signature. A truncated block
// is not sent back.
func (b *block) reasoning(cut bool) tenon.Part {
	p := tenon.Part{Type: tenon.PartThinking, Text: b.text.String(), Wire: wire}
	switch {
	case b.redacted != "":
		p.Raw = append(rawjson.AppendString([]byte(`{"reasoningContent":{"redactedContent":`), b.redacted), "}}"...)
	case b.signature != "":
		raw := rawjson.AppendString([]byte(`{"reasoningContent":{"reasoningText":{"text":`), p.Text)
		raw = rawjson.AppendString(append(raw, `,"signature":`...), b.signature)
		p.Raw = append(raw, "}}}"...)
	case !cut && p.Text != "": // the model signs nothing, so its reasoning is sent back unsigned
		raw := rawjson.AppendString([]byte(`{"reasoningContent":{"reasoningText":{"text":`), p.Text)
		p.Raw = append(raw, "}}}"...)
	}
	return p
}

// stopReason maps the service's stop reason. Calls take precedence over an ordinary end.
func stopReason(raw string, calls, tried int) tenon.StopReason {
	switch raw {
	case "max_tokens":
		return tenon.StopMaxTokens
	case "model_context_window_exceeded":
		return tenon.StopContextFull
	case "guardrail_intervened", "content_filtered":
		return tenon.StopContentFilter
	case "malformed_tool_use", "malformed_model_output":
		return tenon.StopBadCall
	case "end_turn", "stop_sequence", "tool_use":
	default:
		return model.UnknownStop(raw)
	}
	switch {
	case calls == 0 && tried > 0:
		return tenon.StopBadCall
	case calls > 0, raw == "tool_use":
		return tenon.StopToolUse
	}
	return tenon.StopEnd
}
