package anthropic

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/model"
)

// Generate sends the request and yields the answer; see [tenon.Model].
func (m *Model) Generate(ctx context.Context, req *tenon.Request) iter.Seq2[tenon.Delta, error] {
	body, err := m.body(req)
	if err != nil {
		return func(yield func(tenon.Delta, error) bool) { yield(tenon.Delta{}, err) }
	}
	x := model.Exchange{Path: "/v1/messages", Header: m.header(), Body: body, Parse: Parse, Whole: whole, Key: setKey}
	if betas := m.cfg.Betas(req); len(betas) > 0 {
		x.Header.Set("Anthropic-Beta", strings.Join(betas, ","))
	}
	if m.vertex {
		x.Header.Del("Anthropic-Version")
		if x.Base, x.Path, err = m.client.Vertex(ctx, "anthropic", "streamRawPredict"); err != nil {
			return func(yield func(tenon.Delta, error) bool) { yield(tenon.Delta{}, err) }
		}
	}
	return m.client.Generate(ctx, x)
}

// Parse reads a streamed answer. It is a [model.Parser].
func Parse(next model.Events, emit func(tenon.Delta) bool) (*tenon.Response, error) {
	a := answer{emit: emit}
	for {
		data, err := next()
		if errors.Is(err, io.EOF) {
			return nil, model.CutOff("message_stop")
		}
		if err != nil {
			return nil, err
		}
		done, err := a.event(data)
		if err != nil {
			return nil, err
		}
		if done {
			return a.response(), nil
		}
	}
}

// whole converts a message that was not streamed to the events of a stream.
func whole(message []byte) [][]byte {
	if rawjson.Field(message, "content") == nil {
		return nil
	}
	return [][]byte{slices.Concat([]byte(`{"type":"message_start","message":`), message, []byte("}")),
		[]byte(`{"type":"message_stop"}`)}
}

// answer is the state of an answer while its events are read.
type answer struct {
	emit    func(tenon.Delta) bool
	emitted bool
	stopped bool // the consumer stopped

	begun    bool
	id       string
	model    string
	blocks   []*block
	current  map[int]*block
	stop     string
	details  []byte // stop_details
	usage    usage
	warnings []string
}

// usage contains the last value of each count.
type usage struct {
	known                                          bool // the provider sent counts
	input, output, cacheRead, cacheWrite, thinking int
	searches                                       int
	cost                                           *tenon.USD
}

// event handles one event. It returns true for the end mark.
func (a *answer) event(data []byte) (done bool, err error) {
	if !json.Valid(data) {
		return false, model.NotJSON(data)
	}
	var typ string
	var index, delta, content, message, use []byte
	for k, v := range rawjson.Fields(data) {
		switch string(k) {
		case "type":
			typ = string(rawjson.StringBody(v))
		case "index":
			index = v
		case "delta":
			delta = v
		case "content_block":
			content = v
		case "message":
			message = v
		case "usage":
			use = v
		}
	}
	switch typ {
	case "content_block_delta":
		err = a.delta(index, delta)
	case "content_block_start":
		n, _ := rawjson.Int(index)
		err = a.start(n, content)
	case "content_block_stop":
		if n, ok := rawjson.Int(index); ok && a.current[n] != nil {
			a.current[n].ended = true
		}
	case "message_start":
		err = a.begin(message)
	case "message_delta":
		a.usage.read(use)
		a.ending(delta)
	case "message_stop":
		return true, nil
	case "error":
		f := model.ErrorObject(0, data)
		return false, f
	}
	// Ping events and unknown events are ignored.
	if a.stopped {
		err = model.ErrStopped
	}
	return false, err
}

func (a *answer) send(kind, text string) {
	if text == "" || a.stopped {
		return
	}
	a.emitted = true
	a.stopped = !a.emit(tenon.Delta{Kind: kind, Text: text})
}

// begin handles message_start. A proxy may send it twice. If the id is the same, the second is
// ignored; otherwise the answer starts over.
func (a *answer) begin(message []byte) error {
	id := rawjson.String(rawjson.Field(message, "id"))
	if a.begun {
		if id == a.id {
			return nil
		}
		emit, emitted := a.emit, a.emitted
		*a = answer{emit: emit}
		if emitted && !emit(tenon.Delta{Kind: tenon.DeltaReset, Text: "the provider started the answer over"}) {
			return model.ErrStopped
		}
	}
	a.begun, a.id, a.current = true, id, map[int]*block{}
	for k, v := range rawjson.Fields(message) {
		switch string(k) {
		case "model":
			a.model = rawjson.String(v)
		case "usage":
			a.usage.read(v)
		case "content": // complete blocks, in programmatic tool calling
			for b := range rawjson.Elements(v) {
				if err := a.start(-1-len(a.blocks), b); err != nil {
					return err
				}
				a.blocks[len(a.blocks)-1].ended = true
			}
		}
	}
	a.ending(message)
	return nil
}

// ending reads stop_reason and stop_details of a message or a message_delta.
func (a *answer) ending(object []byte) {
	for k, v := range rawjson.Fields(object) {
		switch string(k) {
		case "stop_reason":
			a.stop = cmp.Or(rawjson.String(v), a.stop)
		case "stop_details":
			if !rawjson.IsNull(v) {
				a.details = append([]byte(nil), v...)
			}
		}
	}
}

func (u *usage) read(object []byte) {
	if cost := model.ReadCost(object); cost != nil { // OpenRouter
		u.cost = cost
	}
	for k, v := range rawjson.Fields(object) {
		n, ok := rawjson.Int(v)
		if string(k) == "output_tokens_details" {
			for k, v := range rawjson.Fields(v) {
				if t, ok := rawjson.Int(v); ok && (string(k) == "thinking_tokens" || string(k) == "reasoning_tokens") {
					u.thinking = t
				}
			}
		}
		if string(k) == "server_tool_use" {
			if t, ok := rawjson.Int(rawjson.Field(v, "web_search_requests")); ok {
				u.searches = t
			}
		}
		if !ok {
			continue
		}
		switch string(k) {
		case "input_tokens":
			u.known, u.input = true, n
		case "output_tokens":
			u.known, u.output = true, n
		case "cache_read_input_tokens":
			u.cacheRead = n
		case "cache_creation_input_tokens":
			u.cacheWrite = n
		}
	}
}

func (a *answer) start(index int, content []byte) error {
	b := newBlock(content)
	if b == nil {
		return model.Broken("a block of the answer has no type")
	}
	if a.current == nil {
		a.current = map[int]*block{}
	}
	a.blocks = append(a.blocks, b)
	a.current[index] = b
	switch b.kind {
	case "text":
		a.send(tenon.DeltaText, rawjson.String(rawjson.Field(content, "text")))
	case "thinking":
		a.send(tenon.DeltaThinking, rawjson.String(rawjson.Field(content, "thinking")))
	case "tool_use":
		a.send(tenon.DeltaCall, rawjson.String(rawjson.Field(content, "name")))
	}
	return nil
}

func (a *answer) delta(index, delta []byte) error {
	n, _ := rawjson.Int(index)
	b := a.current[n]
	if b == nil {
		return model.Broken("a piece of block %d came before the block", n)
	}
	typ := string(rawjson.StringBody(rawjson.Field(delta, "type"))) // not always the first member
	for k, v := range rawjson.Fields(delta) {
		if string(k) == "type" {
			continue
		}
		b.add(typ, string(k), v)
		switch typ {
		case "text_delta":
			if string(k) == "text" {
				a.send(tenon.DeltaText, rawjson.String(v))
			}
		case "thinking_delta":
			if string(k) == "thinking" {
				a.send(tenon.DeltaThinking, rawjson.String(v))
			}
		}
	}
	return nil
}

func (a *answer) warn(format string, args ...any) {
	a.warnings = append(a.warnings, fmt.Sprintf(format, args...))
}

// response builds the answer after its end mark.
func (a *answer) response() *tenon.Response {
	msg := &tenon.Message{Role: tenon.RoleAssistant, Parts: []tenon.Part{}}
	calls, tried := 0, 0
	for i, b := range a.blocks {
		if b.kind == "tool_use" {
			tried++
		}
		cut := !b.ended || a.stop == "max_tokens" && i == len(a.blocks)-1
		p, warning := b.part(cut)
		if warning != "" {
			a.warn("%s", warning)
		}
		if p == nil {
			continue
		}
		if p.Type == tenon.PartCall {
			calls++
		}
		msg.Parts = append(msg.Parts, *p)
	}
	r := &tenon.Response{Message: msg, RawStop: a.stop, Model: a.model, ID: a.id}
	r.Stop = stopReason(a.stop, calls, tried)
	if a.details != nil {
		if s := rawjson.String(rawjson.Field(a.details, "explanation")); s != "" {
			a.warn("the model refused: %s", s)
		}
	}
	r.Warnings = a.warnings
	if u := a.usage; u.known {
		r.Usage = &tenon.Usage{Input: u.input + u.cacheRead + u.cacheWrite, Output: u.output,
			CacheRead: u.cacheRead, CacheWrite: u.cacheWrite, Reasoning: u.thinking,
			Searches: u.searches}
		r.Cost = u.cost
	}
	return r
}

// stopReason maps the provider's stop reason. Calls take precedence over an ordinary end.
func stopReason(raw string, calls, tried int) tenon.StopReason {
	switch raw {
	case "max_tokens":
		return tenon.StopMaxTokens
	case "model_context_window_exceeded":
		return tenon.StopContextFull
	case "refusal":
		return tenon.StopContentFilter
	case "pause_turn":
		return tenon.StopPause
	case "", "end_turn", "stop_sequence", "tool_use":
	default:
		return model.UnknownStop(raw)
	}
	switch {
	case calls == 0 && tried > 0: // no call has a name and an id
		return tenon.StopBadCall
	case calls > 0, raw == "tool_use":
		return tenon.StopToolUse
	}
	return tenon.StopEnd
}
