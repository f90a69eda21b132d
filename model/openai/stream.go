package openai

import (
	"bytes"
	"cmp"
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

// ParseChat reads a streamed chat completion. It is a [model.Parser]. The answer is complete after
// [DONE], or if the body ends after a finish_reason.
func ParseChat(next model.Events, emit func(tenon.Delta) bool) (*tenon.Response, error) {
	a := answer{emit: emit}
	for {
		data, err := next()
		switch {
		case err != nil && (a.finish != "" || a.whole && a.hasContent()):
			return a.response(), nil // some servers close the connection without [DONE]
		case errors.Is(err, io.EOF):
			return nil, model.CutOff("a finish_reason or [DONE]")
		case err != nil:
			return nil, err
		}
		if bytes.Equal(bytes.TrimSpace(data), done) {
			// Some servers send no finish_reason (Snowflake Cortex), but the usage of a complete answer.
			if a.finish == "" && (a.usage == nil && !a.whole || !a.hasContent()) {
				return nil, model.CutOff("a finish_reason")
			}
			return a.response(), nil
		}
		if err := a.chunk(data); err != nil {
			var f *model.Failure
			if errors.As(err, &f) && f.Kind == model.KindBadCall {
				return a.badCall(f), nil
			}
			return nil, err
		}
	}
}

// hasContent reports whether the answer has a text or a call.
func (a *answer) hasContent() bool { return len(a.text) > 0 || len(a.calls) > 0 }

// badCall returns the answer for a call that the provider could not read, with the text before it.
func (a *answer) badCall(f *model.Failure) *tenon.Response {
	a.calls = nil
	r := a.response()
	r.Stop, r.RawStop = tenon.StopBadCall, f.CallError()
	return r
}

var done = []byte("[DONE]")

// answer is the state of an answer while its chunks are read.
type answer struct {
	emit    func(tenon.Delta) bool
	stopped bool // the consumer stopped

	id, model string
	text      []byte // JSON string bodies, still escaped
	refusal   []byte
	// reasoning contains the string bodies of reasoningMembers.
	reasoning [2][]byte
	thinking  bytes.Buffer // decoded text of the parts of the content that are reasoning
	part      string       // type of these parts: thinking (Mistral) or reasoning (Databricks)
	signature []byte       // string body of their signature
	details   details
	calls     []*call
	byIndex   map[int]*call
	finish    string
	badFinish bool   // the provider could not read a call that the model wrote
	failure   []byte // the error object of the choice
	whole     bool   // the answer was one document
	usage     *tenon.Usage
	cost      *tenon.USD // the cost that the server reports (OpenRouter, Avian)
	warnings  []string
	// annotations are OpenAI's annotations of the text. sources and results are lists of sources for the whole answer.
	// Only the last list counts, because some servers send the list again with each chunk.
	annotations      [][]byte
	sources, results []byte
	media            model.Media
	audio            []byte // base64, in pieces
	audioID          string
	audioEnds        int    // Unix time until which the provider knows audioID; 0 if it is unknown
	spoken           []byte // the string bodies of the audio's transcript
	probs            model.Logprobs
}

var reasoningMembers = [2]string{model.ReasoningContent, model.Reasoning}

// call is a tool call under construction.
type call struct {
	id, name string
	args     []byte // JSON string bodies
	object   []byte // arguments that are not a string
}

func (a *answer) send(kind, text string) {
	if text != "" && !a.stopped {
		a.stopped = !a.emit(tenon.Delta{Kind: kind, Text: text})
	}
}

// chunk handles one event.
func (a *answer) chunk(data []byte) error {
	if !json.Valid(data) {
		return model.NotJSON(data)
	}
	var failure []byte
	for k, v := range rawjson.Fields(data) {
		switch string(k) {
		case "choices":
			for c := range rawjson.Elements(v) {
				a.choice(c)
			}
		case "id":
			if a.id == "" {
				a.id = rawjson.String(v)
			}
		case "model":
			if a.model == "" {
				a.model = rawjson.String(v)
			}
		case "usage":
			if !rawjson.IsNull(v) {
				a.usage = readUsage(v)
				a.cost = model.ReadCost(v)
			}
		case "x_groq": // Groq, to requests that do not ask for usage
			if text := rawjson.String(rawjson.Field(v, "error")); text != "" {
				return model.ErrorObject(0, append(rawjson.AppendString([]byte(`{"error":{"message":`), text), "}}"...))
			}
			if u := rawjson.Field(v, "usage"); len(u) > 0 && a.usage == nil {
				a.usage = readUsage(u)
			}
		case "citations": // Perplexity, xAI
			a.sources = append(a.sources[:0], v...)
		case "search_results": // Perplexity, with titles
			a.results = append(a.results[:0], v...)
		case "error":
			if !rawjson.IsNull(v) && string(v) != `""` {
				failure = v
			}
		case "object": // an error object of Mistral or vLLM: {"object":"error","message":…}
			if string(v) == `"error"` {
				failure = v
			}
		}
	}
	if a.failure != nil && !a.badFinish {
		return model.ErrorObject(0, a.failure)
	}
	if failure != nil {
		return model.ErrorObject(0, data)
	}
	if a.stopped {
		return model.ErrStopped
	}
	return nil
}

func (a *answer) choice(c []byte) {
	var delta, message []byte
	for k, v := range rawjson.Fields(c) {
		switch string(k) {
		case "index":
			if n, ok := rawjson.Int(v); ok && n != 0 {
				return // the request asks for only one choice
			}
		case "delta":
			delta = v
		case "message":
			message = v
		case "logprobs":
			if !rawjson.IsNull(v) {
				a.probs.Add(rawjson.Field(v, "content"))
				a.probs.Add(rawjson.Field(v, "refusal"))
			}
		case "finish_reason":
			a.finish = cmp.Or(rawjson.String(v), a.finish)
		case "native_finish_reason": // OpenRouter: the provider's own reason
			switch s := rawjson.String(v); s {
			case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL": // Gemini
				a.badFinish, a.finish = true, s
			}
		case "error": // OpenRouter
			if len(v) > 0 && v[0] == '{' {
				a.failure = append(append([]byte(`{"error":`), v...), '}')
			}
		case "usage": // Moonshot
			if u := readUsage(v); u != nil && a.usage == nil {
				a.usage = u
			}
		}
	}
	a.delta(delta)
	// Perplexity sends the message so far with each piece, and an empty piece with a whole message.
	if message != nil && (delta == nil || !a.hasContent()) {
		a.whole = true
		a.delta(message)
	}
}

func (a *answer) delta(d []byte) {
	var shown bool // the same reasoning may occur in two members; emit it once
	for k, v := range rawjson.Fields(d) {
		if rawjson.IsNull(v) {
			continue
		}
		switch string(k) {
		case "content":
			a.content(v)
		case "refusal":
			a.refusal = append(a.refusal, rawjson.StringBody(v)...)
			a.send(tenon.DeltaText, rawjson.String(v))
		case model.ReasoningContent, model.Reasoning:
			i := 0
			if string(k) == model.Reasoning {
				i = 1
			}
			a.reasoning[i] = append(a.reasoning[i], rawjson.StringBody(v)...)
			if s := rawjson.String(v); s != "" && !shown {
				shown = true
				a.send(tenon.DeltaThinking, s)
			}
		case model.ReasoningDetails:
			for e := range rawjson.Elements(v) {
				a.details.add(e)
			}
		case "tool_calls":
			for c := range rawjson.Elements(v) {
				a.call(c)
			}
		case "function_call": // the predecessor of tool_calls
			if !isPlaceholder(v) {
				a.piece(0, "", v)
			}
		case "images": // OpenRouter
			for x := range rawjson.Elements(v) {
				a.media.DataURL(rawjson.String(rawjson.Field(rawjson.Field(x, "image_url"), "url")), wire,
					[]byte(rawImage))
			}
		case "audio":
			a.speech(v)
		case "annotations":
			for x := range rawjson.Elements(v) {
				if len(a.annotations) < maxAnnotations {
					a.annotations = append(a.annotations, bytes.Clone(x))
				}
			}
		case "context": // Azure, with data sources
			if list := rawjson.Field(v, "citations"); len(list) > 0 {
				a.sources = append(a.sources[:0], list...)
			}
		}
	}
}

func orEmpty(v []byte) []byte {
	if len(v) == 0 || v[0] != '"' {
		return []byte(`""`)
	}
	return v
}

// isPlaceholder reports whether a function has neither a name nor arguments. Snowflake Cortex sends such functions with
// every answer.
func isPlaceholder(function []byte) bool {
	for _, v := range rawjson.Fields(function) {
		if !rawjson.IsNull(v) && string(v) != `""` {
			return false
		}
	}
	return true
}

func (a *answer) call(c []byte) {
	index, id := -1, ""
	var function []byte
	for k, v := range rawjson.Fields(c) {
		switch string(k) {
		case "index":
			if n, ok := rawjson.Int(v); ok {
				index = n
			}
		case "id":
			id = rawjson.String(v)
		case "function":
			function = v
		}
	}
	a.piece(index, id, function)
}

// piece adds a piece to the call with the index, or begins a call. Some servers omit the index, start at 1, or use one
// index for several complete calls. So a new id together with a name begins a new call, even if the index is in use.
func (a *answer) piece(index int, id string, function []byte) {
	var name string
	var args []byte
	for k, v := range rawjson.Fields(function) {
		switch string(k) {
		case "name":
			name = rawjson.String(v)
		case "arguments":
			args = v
		}
	}
	if a.byIndex == nil {
		a.byIndex = map[int]*call{}
	}
	c := a.byIndex[index]
	if c == nil && index < 0 && id == "" && len(a.calls) > 0 {
		c = a.calls[len(a.calls)-1]
	}
	if c == nil || id != "" && c.id != "" && id != c.id && name != "" {
		c = &call{}
		a.calls = append(a.calls, c)
		a.byIndex[index] = c
	}
	c.id = cmp.Or(c.id, id)
	if name != "" && name != c.name {
		if c.name == "" {
			a.send(tenon.DeltaCall, name)
		}
		c.name += name
	}
	if body := rawjson.StringBody(args); body != nil {
		c.args = append(c.args, body...)
	} else if !rawjson.IsNull(args) { // some servers send an object; other values are rejected later
		c.object = append(c.object[:0], args...)
	}
}

func (c *call) arguments() string {
	if s := rawjson.DecodeBody(c.args); s != "" || c.object == nil {
		return s
	}
	return string(c.object)
}

func (a *answer) warn(format string, args ...any) {
	a.warnings = append(a.warnings, fmt.Sprintf(format, args...))
}

// response builds the answer after its end.
func (a *answer) response() *tenon.Response {
	msg := &tenon.Message{Role: tenon.RoleAssistant, Parts: []tenon.Part{}}
	if p := a.thought(); p != nil {
		msg.Parts = append(msg.Parts, *p)
	}
	text := rawjson.DecodeBody(a.text)
	if text == "" {
		text = rawjson.DecodeBody(a.spoken)
	}
	if refusal := rawjson.DecodeBody(a.refusal); refusal != "" {
		text += refusal
	}
	if text != "" {
		msg.Parts = append(msg.Parts, tenon.Part{Type: tenon.PartText, Text: text, Citations: a.cited(text)})
	}
	msg.Parts = append(msg.Parts, a.generated()...)
	calls := 0
	if a.badFinish {
		a.calls = nil
	}
	for i, c := range a.calls {
		if p := a.finished(c, i); p != nil {
			msg.Parts = append(msg.Parts, *p)
			calls++
		}
	}
	r := &tenon.Response{Message: msg, RawStop: cmp.Or(a.finish, model.NoFinish), Model: a.model, ID: a.id,
		Usage: a.usage, Cost: a.cost}
	r.Stop = stopReason(a.finish, calls, len(a.calls), len(a.refusal) > 0)
	if a.badFinish {
		r.Stop = tenon.StopBadCall
	}
	r.Logprobs = probs(&a.probs, &a.warnings)
	r.Warnings = a.warnings
	return r
}

// probs returns the probabilities of an answer.
func probs(l *model.Logprobs, warnings *[]string) []tenon.TokenProb {
	list, warning := l.Take()
	if warning != "" {
		*warnings = append(*warnings, warning)
	}
	return list
}

// finished returns the part of a call, or nil if the call must not be executed.
func (a *answer) finished(c *call, nth int) *tenon.Part {
	args := c.arguments()
	switch {
	case c.name == "":
		a.warn("a tool call without a name is omitted")
		return nil
	case a.finish == "" && !a.whole && (args == "" || !json.Valid([]byte(args))):
		a.warn("the stream ended without a finish_reason, and the call of %s is not complete; it is omitted", c.name)
		return nil
	case a.finish == "length" && (args == "" || !json.Valid([]byte(args))):
		a.warn("the call of %s was cut off and is omitted", c.name)
		return nil
	}
	if c.id == "" {
		c.id = fmt.Sprintf("%s_%d", tenon.NewID("call", time.Now()), nth)
	}
	out := &tenon.ToolCall{ID: c.id, Name: c.name}
	model.SetArguments(out, args)
	return &tenon.Part{Type: tenon.PartCall, Call: out}
}

// thought returns the reasoning with its original members as Raw, or nil.
func (a *answer) thought() *tenon.Part {
	var raw []byte
	var text string
	member := func(name string, val []byte) {
		sep := byte(',')
		if raw == nil {
			sep = '{'
		}
		raw = append(append(append(append(raw, sep, '"'), name...), `":`...), val...)
	}
	for i, body := range a.reasoning {
		if len(body) == 0 {
			continue
		}
		if text == "" {
			text = rawjson.DecodeBody(body)
		}
		val := append(append([]byte{'"'}, body...), '"')
		member(reasoningMembers[i], val)
	}
	if d := a.details.raw(); d != nil {
		member(model.ReasoningDetails, d)
	}
	if a.part != "" {
		member(model.ReasoningParts, a.reasonedPart())
	}
	if text == "" {
		text = a.thinking.String()
	}
	if text == "" && raw == nil {
		return nil
	}
	p := &tenon.Part{Type: tenon.PartThinking, Text: text, Wire: wire}
	if raw != nil {
		p.Raw = append(raw, '}')
	}
	return p
}

// stopReason maps the finish_reason. Some servers end a turn with calls with the reason "stop", so calls take
// precedence over most reasons.
func stopReason(raw string, calls, tried int, refused bool) tenon.StopReason {
	switch {
	case raw == "length", raw == "max_tokens", raw == "model_length":
		return tenon.StopMaxTokens
	case raw == "model_context_window_exceeded": // Z.ai
		return tenon.StopContextFull
	case raw == "content_filter", refused && calls == 0:
		return tenon.StopContentFilter
	case !isEnd(raw):
		return model.UnknownStop(raw)
	case calls > 0:
		return tenon.StopToolUse
	case tried > 0: // no call has a name
		return tenon.StopBadCall
	case announces(raw):
		return tenon.StopToolUse
	}
	return tenon.StopEnd
}

// announces reports whether a finish_reason says that the answer has calls. The list of calls can still be empty, for
// example in vLLM with the tool choice required (vllm issue 53255).
func announces(raw string) bool {
	switch strings.ToLower(raw) {
	case "tool_calls", "tool_call", "function_call", "tool_use":
		return true
	}
	return false
}

// isEnd reports whether a finish_reason means that the model ended its turn. Sources: OpenAI; Text Generation Inference
// and Together (eos, eos_token, stop_sequence); Cohere (COMPLETE, TOOL_CALL); gateways in front of Anthropic.
func isEnd(raw string) bool {
	switch strings.ToLower(raw) {
	case "", "stop", "tool_calls", "tool_call", "function_call", "tool_use", "eos", "eos_token", "stop_sequence",
		"end_turn", "end", "complete", "completed", "done", "finish_reason_stop":
		return true
	}
	return false
}
