package openai

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

// ParseResponses reads a streamed answer of the Responses API. It is a [model.Parser]. The answer
// is complete after response.completed or response.incomplete.
func ParseResponses(next model.Events, emit func(tenon.Delta) bool) (*tenon.Response, error) {
	return parseResponses(next, &output{emit: emit})
}

func parseResponses(next model.Events, a *output) (*tenon.Response, error) {
	for {
		data, err := next()
		if errors.Is(err, io.EOF) {
			return nil, model.CutOff("response.completed")
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

// output is the state of an answer while its events are read.
type output struct {
	emit    func(tenon.Delta) bool
	stopped bool   // the consumer stopped
	finder  string // tool that represents tool searches; "": they are ignored
	// connector returns the connector of a label and a tool. It may be nil.
	connector func(label, tool string) *tenon.Connector

	id, model string
	items     map[int]*item // by output_index, because some servers change the id of an item between events
	status    string        // status of the response
	reason    string        // why the response is incomplete
	usage     *tenon.Usage
	cost      *tenon.USD
	refused   bool
	nameless  bool // a call has no name
	media     model.Media
	probs     model.Logprobs
	warnings  []string
}

// item is an output item under construction. Its final event contains the whole item, which replaces the pieces. The
// pieces are for streaming, and for items that are cut off.
type item struct {
	index     int
	kind      string
	name      string // name of the called tool
	text      []byte // JSON string bodies: text, or the summary of a thought
	args      []byte
	raw       json.RawMessage // the item of output_item.done
	announced bool            // DeltaCall was sent
}

func (a *output) send(kind, text string) {
	if text != "" && !a.stopped {
		a.stopped = !a.emit(tenon.Delta{Kind: kind, Text: text})
	}
}

// at returns the item with an output_index and creates it if necessary.
func (a *output) at(index []byte) *item {
	n, _ := rawjson.Int(index)
	it := a.items[n]
	if it == nil {
		if a.items == nil {
			a.items = map[int]*item{}
		}
		it = &item{index: n}
		a.items[n] = it
	}
	return it
}

// event handles one event. It returns true for an end mark.
func (a *output) event(data []byte) (done bool, err error) {
	if !json.Valid(data) {
		return false, model.NotJSON(data)
	}
	var typ string
	var index, delta, object, response, part []byte
	for k, v := range rawjson.Fields(data) {
		switch string(k) {
		case "type":
			typ = string(rawjson.StringBody(v))
		case "output_index":
			index = v
		case "delta", "arguments":
			delta = v
		case "item":
			object = v
		case "response":
			response = v
		case "summary_index":
			part = v
		}
	}
	switch typ {
	case "response.output_text.delta", "response.refusal.delta":
		it := a.at(index)
		it.text = append(it.text, rawjson.StringBody(delta)...)
		a.refused = a.refused || typ == "response.refusal.delta"
		a.send(tenon.DeltaText, rawjson.String(delta))
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		it := a.at(index)
		it.text = append(it.text, rawjson.StringBody(delta)...)
		a.send(tenon.DeltaThinking, rawjson.String(delta))
	case "response.reasoning_summary_part.added":
		if n, _ := rawjson.Int(part); n > 0 {
			it := a.at(index)
			it.text = append(it.text, `\n\n`...)
			a.send(tenon.DeltaThinking, "\n\n")
		}
	case "response.function_call_arguments.delta":
		it := a.at(index)
		it.args = append(it.args, rawjson.StringBody(delta)...)
	case "response.function_call_arguments.done":
		it := a.at(index)
		it.args = append(it.args[:0], rawjson.StringBody(delta)...)
	case "response.output_item.added":
		a.begun(a.at(index), object)
	case "response.output_item.done":
		it := a.at(index)
		a.begun(it, object)
		a.ended(it, object)
	case "response.created", "response.in_progress", "response.queued":
		a.about(response)
	case "response.completed", "response.incomplete":
		a.about(response)
		a.missing(response)
		done = true
	case "response.failed", "response.cancelled":
		return false, failed(response)
	case "error":
		return false, model.ErrorObject(0, data)
	}
	// Unknown events and events of the provider's own tools are ignored.
	if a.stopped {
		err = model.ErrStopped
	}
	return done, err
}

// failed returns the failure in a response object.
func failed(response []byte) *model.Failure {
	reason := rawjson.Field(response, "error")
	if rawjson.IsNull(reason) {
		return &model.Failure{Code: tenon.CodeModel, Retry: true, Message: "the provider aborted the answer"}
	}
	return model.ErrorObject(0, slices.Concat([]byte(`{"error":`), reason, []byte("}")))
}

func (a *output) begun(it *item, object []byte) {
	if it.kind == "" {
		it.kind = rawjson.String(rawjson.Field(object, "type"))
	}
	name := ""
	switch it.kind {
	case "function_call":
		name = rawjson.String(rawjson.Field(object, "name"))
	case approvalItem:
		name = connectorCall(object)
	case searchItem:
		if rawjson.String(rawjson.Field(object, "execution")) == "client" {
			name = a.finder
		}
	}
	if name != "" {
		it.name = name
		if !it.announced {
			it.announced = true
			a.send(tenon.DeltaCall, name)
		}
	}
}

// ended handles a complete item. It emits the text that was not part of any piece.
func (a *output) ended(it *item, object []byte) {
	it.raw = bytes.Clone(object)
	sent := rawjson.DecodeBody(it.text)
	switch it.kind {
	case "message":
		text, refused := messageText(it.raw)
		a.refused = a.refused || refused
		if rest, ok := strings.CutPrefix(text, sent); ok {
			a.send(tenon.DeltaText, rest)
		}
	case "reasoning":
		if rest, ok := strings.CutPrefix(thoughtText(it.raw), sent); ok {
			a.send(tenon.DeltaThinking, rest)
		}
	}
}

// about reads the members of a response object that describe the whole answer.
func (a *output) about(response []byte) {
	for k, v := range rawjson.Fields(response) {
		switch string(k) {
		case "id":
			a.id = rawjson.String(v)
		case "model":
			a.model = rawjson.String(v)
		case "status":
			a.status = rawjson.String(v)
		case "incomplete_details":
			a.reason = rawjson.String(rawjson.Field(v, "reason"))
		case "usage":
			if !rawjson.IsNull(v) {
				a.usage, a.cost = responsesUsage(v), model.ReadCost(v)
			}
		}
	}
}

// missing reads the items of the final response if no event contained items.
func (a *output) missing(response []byte) {
	if len(a.items) > 0 {
		return
	}
	n := 0
	for object := range rawjson.Elements(rawjson.Field(response, "output")) {
		it := a.at(fmt.Append(nil, n))
		a.begun(it, object)
		a.ended(it, object)
		n++
	}
}

func responsesUsage(v []byte) *tenon.Usage {
	u := &tenon.Usage{}
	for k, v := range rawjson.Fields(v) {
		n, _ := rawjson.Int(v)
		switch string(k) {
		case "input_tokens":
			u.Input = n
		case "output_tokens":
			u.Output = n
		case "input_tokens_details":
			u.CacheRead, _ = rawjson.Int(rawjson.Field(v, "cached_tokens"))
			u.CacheWrite, _ = rawjson.Int(rawjson.Field(v, "cache_write_tokens"))
		case "output_tokens_details":
			u.Reasoning, _ = rawjson.Int(rawjson.Field(v, "reasoning_tokens"))
		}
	}
	return u
}

func (a *output) warn(format string, args ...any) {
	a.warnings = append(a.warnings, fmt.Sprintf(format, args...))
}

// response builds the answer after its end mark.
func (a *output) response() *tenon.Response {
	msg := &tenon.Message{Role: tenon.RoleAssistant, Parts: []tenon.Part{}}
	order := make([]*item, 0, len(a.items))
	for _, it := range a.items {
		order = append(order, it)
	}
	slices.SortFunc(order, func(x, y *item) int { return x.index - y.index })
	calls := 0
	for _, it := range order {
		if a.usage != nil && charged(it.raw) {
			a.usage.Searches++
		}
		p := a.part(it)
		if p == nil {
			continue
		}
		if p.Type == tenon.PartCall {
			calls++
		}
		msg.Parts = append(msg.Parts, *p)
	}
	r := &tenon.Response{Message: msg, RawStop: a.status, Model: a.model, ID: a.id,
		Usage: a.usage, Cost: a.cost, Logprobs: probs(&a.probs, &a.warnings)}
	r.Warnings = a.warnings
	if a.status == "incomplete" && a.reason != "" {
		r.RawStop = a.reason
	}
	r.Stop = a.stop(calls)
	return r
}

// charged reports whether an item is a web search that the provider charges. Opening a page and finding a text in it
// are not. Source: ResponseFunctionWebSearch of openai-go.
func charged(item []byte) bool {
	if rawjson.String(rawjson.Field(item, "type")) != "web_search_call" {
		return false
	}
	action := rawjson.String(rawjson.Field(rawjson.Field(item, "action"), "type"))
	return action == "search" || action == ""
}

// part returns an item as a part of the message. It returns nil if the item is omitted.
func (a *output) part(it *item) *tenon.Part {
	whole := len(it.raw) > 0
	switch it.kind {
	case "message":
		if !whole {
			return textPart(rawjson.DecodeBody(it.text))
		}
		text, _ := messageText(it.raw)
		for c := range rawjson.Elements(rawjson.Field(it.raw, "content")) {
			a.probs.Add(rawjson.Field(c, "logprobs"))
		}
		return &tenon.Part{Type: tenon.PartText, Text: text, Citations: a.cited(it.raw, text),
			Wire: model.WireResponses, Raw: it.raw}
	case "reasoning":
		text := rawjson.DecodeBody(it.text)
		p := &tenon.Part{Type: tenon.PartThinking, Text: text, Wire: model.WireResponses, Raw: it.raw}
		if whole {
			p.Text = thoughtText(it.raw)
		}
		return p
	case searchItem:
		if it.name != "" {
			return a.call(it)
		}
	case "function_call":
		return a.call(it)
	case approvalItem:
		if whole {
			return a.approval(it)
		}
	case imageItem:
		if whole {
			return a.image(it.raw)
		}
	case "":
		if len(it.text) > 0 {
			return textPart(rawjson.DecodeBody(it.text))
		}
		return nil
	}
	if !whole {
		a.warn("an item of kind %s was cut off and is omitted", it.kind)
		return nil
	}
	return &tenon.Part{Type: tenon.PartOpaque, Text: use(it.kind, it.raw), Wire: model.WireResponses, Raw: it.raw}
}

func textPart(text string) *tenon.Part {
	if text == "" {
		return nil
	}
	return &tenon.Part{Type: tenon.PartText, Text: text}
}

func (a *output) call(it *item) *tenon.Part {
	var status, id, args string
	for k, v := range rawjson.Fields(it.raw) {
		switch string(k) {
		case "status":
			status = rawjson.String(v)
		case "call_id":
			id = rawjson.String(v)
		case "arguments":
			args = rawjson.String(v)
			if args == "" && len(v) > 0 && v[0] == '{' {
				args = string(v)
			}
		}
	}
	if args == "" {
		args = rawjson.DecodeBody(it.args)
	}
	switch {
	case it.name == "":
		a.nameless = true
		a.warn("a tool call without a name is omitted")
		return nil
	case len(it.raw) == 0, status == "incomplete", a.status == "incomplete" && !json.Valid([]byte(args)):
		a.warn("the call of %s was cut off and is omitted", it.name)
		return nil
	}
	raw := it.raw
	if id == "" {
		id, raw = fmt.Sprintf("%s_%d", tenon.NewID("call", time.Now()), it.index), nil
	}
	c := &tenon.ToolCall{ID: id, Name: it.name}
	search := it.kind == searchItem
	if search {
		c.ID = searchPrefix + id
	}
	model.SetArguments(c, args)
	p := &tenon.Part{Type: tenon.PartCall, Call: c}
	if raw != nil && c.Malformed == "" && (search || rawjson.StringBody(rawjson.Field(raw, "arguments")) != nil) {
		p.Wire, p.Raw = model.WireResponses, raw
	}
	return p
}

// stop maps the status. In a complete answer, calls take precedence over refusals.
func (a *output) stop(calls int) tenon.StopReason {
	if a.status == "incomplete" {
		switch a.reason {
		case "max_output_tokens":
			return tenon.StopMaxTokens
		case "content_filter":
			return tenon.StopContentFilter
		case "steered", "max_messages":
			return tenon.StopPause
		}
		return tenon.StopError // the answer is incomplete for an unknown reason
	}
	switch {
	case calls > 0:
		return tenon.StopToolUse
	case a.refused:
		return tenon.StopContentFilter
	case a.nameless:
		return tenon.StopBadCall
	}
	return tenon.StopEnd
}

// messageText returns the texts and refusals of a message item.
func messageText(raw []byte) (text string, refused bool) {
	for c := range rawjson.Elements(rawjson.Field(raw, "content")) {
		text += rawjson.String(rawjson.Field(c, "text"))
		if r := rawjson.String(rawjson.Field(c, "refusal")); r != "" {
			text, refused = text+r, true
		}
	}
	return text, refused
}

// thoughtText returns the text of a reasoning item: its summary, or the reasoning itself if the
// model shows it.
func thoughtText(raw []byte) string {
	var text string
	for _, list := range []string{"summary", "content"} {
		for c := range rawjson.Elements(rawjson.Field(raw, list)) {
			s := rawjson.String(rawjson.Field(c, "text"))
			if text != "" && s != "" {
				text += "\n\n"
			}
			text += s
		}
		if text != "" {
			return text
		}
	}
	return text
}
