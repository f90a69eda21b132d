package anthropic

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/model"
)

const (
	wire    = model.WireAnthropic
	version = "2023-06-01"
)

// Model is one Claude model, or another one behind the same API.
type Model struct {
	client *model.Client
	cfg    model.Config // with its defaults
	quirks model.Quirks
	tools  model.ToolCache
	past   model.Conversations
	form   model.Form
}

// New returns the model of a config whose provider speaks this wire. Errors
// have code config or auth_required.
func New(cfg model.Config, env model.Env) (*Model, error) {
	cfg.BaseURL = strings.TrimSuffix(strings.TrimRight(cfg.BaseURL, "/"), "/v1")
	c, err := model.NewClient(cfg, wire, env)
	if err != nil {
		return nil, err
	}
	m := newModel(c.Config())
	m.client, m.form.Maker = c, c.Maker()
	return m, nil
}

func newModel(cfg model.Config) *Model {
	m := &Model{cfg: cfg, quirks: cfg.ResolvedQuirks()}
	m.form.Key = fmt.Sprintf("%s images=%t documents=%t references=%t", wire, m.quirks.Images, m.quirks.Documents, m.quirks.ToolSearch)
	m.form.Encode = m.encodeMessage
	return m
}

// Name returns "anthropic/" and the model's name.
func (m *Model) Name() string { return m.client.Name() }

func (m *Model) header() http.Header {
	h := http.Header{"Anthropic-Version": {version}, "Accept": {"text/event-stream"}}
	if k := m.cfg.APIKey; !k.IsZero() {
		h.Set("X-Api-Key", k.Reveal())
	}
	return h
}

// body builds the request: what changes least comes first.
func (m *Model) body(req *tenon.Request) (*model.Body, error) {
	cfg := m.cfg
	h := make([]byte, 0, 512)
	h = append(h, `{"model":`...)
	h = rawjson.AppendString(h, cfg.Model)
	h = append(h, `,"max_tokens":`...)
	h = strconv.AppendInt(h, int64(pick(req.MaxTokens, cfg.MaxTokens)), 10)
	h = append(h, `,"stream":true`...)
	h = model.AppendNumber(h, "temperature", req.Temperature, cfg.Temperature)
	h = model.AppendNumber(h, "top_p", req.TopP, cfg.TopP)
	h = model.AppendExtra(h, cfg.Extra)
	if m.quirks.Cache {
		h = append(h, `,"cache_control":{"type":"ephemeral"}`...)
	}
	if cfg.ToolMode == model.ToolsNone {
		req = &tenon.Request{System: req.System, Messages: req.Messages, Output: req.Output}
	}
	if m.quirks.TakesSchema(req) && model.IsStrict(req.Output) { // another one would be refused
		h = append(h, `,"output_config":{"format":{"type":"json_schema","schema":`...)
		h = append(model.AppendSchema(h, req.Output), "}}"...)
	}
	b := &model.Body{}
	h = appendChoice(h, req)
	if len(req.Tools) > 0 {
		b.Add(append(h, `,"tools":`...))
		found := 0 // of the tools, at the end
		if m.quirks.ToolSearch {
			found = req.Deferred
		}
		b.Add(m.tools.Get(req.Tools, func(tools []tenon.Tool) []byte { return encodeTools(tools, found) }))
		h = nil
	}
	if req.System != "" {
		h = append(h, `,"system":`...)
		h = rawjson.AppendString(h, req.System)
	}
	b.Add(append(h, `,"messages":[`...))
	if err := m.past.Add(b, &m.form, req.Messages, true); err != nil {
		return nil, err
	}
	b.Add([]byte("]}"))
	return b, nil
}

func pick(a, b int) int {
	if a > 0 {
		return a
	}
	return b
}

func appendChoice(dst []byte, req *tenon.Request) []byte {
	if len(req.Tools) == 0 {
		return dst
	}
	switch req.ToolChoice {
	case "":
		return dst
	case "auto", "any", "none":
		return append(dst, `,"tool_choice":{"type":"`+req.ToolChoice+`"}`...)
	}
	dst = append(dst, `,"tool_choice":{"type":"tool","name":`...)
	return append(rawjson.AppendString(dst, req.ToolChoice), '}')
}

// encodeTools writes the tools. The last found ones are not part of the prompt but
// for the results that name them.
func encodeTools(tools []tenon.Tool, found int) []byte {
	dst := []byte{'['}
	for i, t := range tools {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"name":`...)
		dst = rawjson.AppendString(dst, t.Name)
		if t.Description != "" {
			dst = append(dst, `,"description":`...)
			dst = rawjson.AppendString(dst, t.Description)
		}
		dst = append(dst, `,"input_schema":`...)
		dst = model.Schema(dst, t.Input)
		own := []string{"name", "description", "input_schema"}
		if i >= len(tools)-found {
			dst, own = append(dst, `,"defer_loading":true`...), append(own, "defer_loading")
		}
		dst = append(model.AppendOptions(dst, &t, "anthropic", own...), '}')
	}
	return append(dst, ']')
}

// encodeMessage returns the message's wire form with a comma before it, or
// nothing for a message that has no block on this wire.
func (m *Model) encodeMessage(msg *tenon.Message) ([]byte, error) {
	return encodeMessage(msg, sees{images: m.quirks.Images, documents: m.quirks.Documents, references: m.quirks.ToolSearch}), nil
}

// sees is what a model can be shown.
type sees struct {
	images     bool
	documents  bool
	references bool // to tools that it has found
}

func encodeMessage(msg *tenon.Message, can sees) []byte {
	role := "user"
	if msg.Role == tenon.RoleAssistant {
		role = "assistant"
	}
	dst := make([]byte, 0, 256)
	dst = append(dst, `,{"role":"`+role+`","content":[`...)
	empty := len(dst)
	nth := 0 // of the calls, or of the results
	// The results of a turn come first in their message.
	for pass := range 2 {
		for i := range msg.Parts {
			p := &msg.Parts[i]
			if (p.Type == tenon.PartResult) != (pass == 0) {
				continue
			}
			mark := len(dst)
			if mark > empty {
				dst = append(dst, ',')
			}
			before := len(dst)
			if dst = appendPart(dst, p, nth, can); len(dst) == before {
				dst = dst[:mark]
			}
			if p.Type == tenon.PartCall || p.Type == tenon.PartResult {
				nth++
			}
		}
	}
	if len(dst) == empty {
		return nil
	}
	return append(dst, "]}"...)
}

// appendPart appends a part's block, or nothing where it has none here.
func appendPart(dst []byte, p *tenon.Part, index int, can sees) []byte {
	if p.Type == tenon.PartText && strings.TrimSpace(p.Text) == "" {
		return dst // refused by the API, which may have sent it
	}
	if p.Wire == wire && len(p.Raw) > 0 {
		return append(dst, p.Raw...)
	}
	switch p.Type {
	case tenon.PartText:
		return appendText(dst, p.Text)
	case tenon.PartImage, tenon.PartFile:
		c := model.ContentOf(p)
		if out, ok := appendMedia(dst, c, can); ok {
			return out
		}
		return appendText(dst, model.Note(c))
	case tenon.PartCall:
		if p.Call != nil {
			return appendCall(dst, p.Call, index)
		}
	case tenon.PartResult:
		if p.Result != nil {
			return appendResult(dst, p.Result, index, can)
		}
	}
	return dst
}

func appendText(dst []byte, s string) []byte {
	dst = append(dst, `{"type":"text","text":`...)
	return append(rawjson.AppendString(dst, s), '}')
}

func appendImage(dst []byte, mime, data string) []byte {
	dst = append(dst, `{"type":"image","source":{"type":"base64","media_type":"`+mime+`","data":`...)
	return append(rawjson.AppendString(dst, data), "}}"...)
}

// appendMedia appends a block that is no text in the form that it has here, if it has
// one and the model is to see it.
func appendMedia(dst []byte, c tenon.Content, can sees) ([]byte, bool) {
	if mime, data, ok := model.ImageOf(c); ok {
		if !can.images {
			return dst, false
		}
		return appendImage(dst, mime, data), true
	}
	name, data, ok := model.DocumentOf(c)
	if !ok || !can.documents {
		return dst, false
	}
	dst = append(dst, `{"type":"document","title":`...)
	dst = rawjson.AppendString(dst, name)
	dst = append(dst, `,"source":{"type":"base64","media_type":"application/pdf","data":`...)
	return append(rawjson.AppendString(dst, data), "}}"...), true
}

func appendCall(dst []byte, c *tenon.ToolCall, index int) []byte {
	dst = append(dst, `{"type":"tool_use","id":`...)
	dst = rawjson.AppendString(dst, safeID(c.ID, index))
	dst = append(dst, `,"name":`...)
	dst = rawjson.AppendString(dst, c.Name)
	dst = append(dst, `,"input":`...)
	return append(model.AppendArguments(dst, c), '}')
}

// safeID makes an id that this API takes of another provider's, the same for a
// call and its result. Where there is none it is the place among the turn's
// calls, which is the place of the result too.
func safeID(id string, index int) string {
	if id == "" {
		return "call_" + strconv.Itoa(index)
	}
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, id)
}

func appendResult(dst []byte, r *tenon.ToolResult, index int, can sees) []byte {
	dst = append(dst, `{"type":"tool_result","tool_use_id":`...)
	dst = rawjson.AppendString(dst, safeID(r.ID, index))
	if r.IsError {
		dst = append(dst, `,"is_error":true`...)
	}
	dst = append(dst, `,"content":[`...)
	empty := len(dst)
	if can.references && len(r.Found) > 0 { // the definitions stand there in place of our words
		for i, name := range r.Found {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(dst, `{"type":"tool_reference","tool_name":`...)
			dst = append(rawjson.AppendString(dst, name), '}')
		}
		return append(dst, "]}"...)
	}
	for _, c := range r.Content {
		block, media := appendMedia(nil, c, can)
		if !media {
			note := model.Note(c)
			if strings.TrimSpace(note) == "" {
				continue
			}
			block = appendText(nil, note)
		}
		if len(dst) > empty {
			dst = append(dst, ',')
		}
		dst = append(dst, block...)
	}
	if len(dst) == empty {
		dst = appendText(dst, model.EmptyResult)
	}
	return append(dst, "]}"...)
}

// EncodeRequest returns a request in this wire format, as it would be sent for
// the named model with prompt caching off. Package record writes requests of
// models without a wire format of their own in this form.
func EncodeRequest(name string, req *tenon.Request) (json.RawMessage, error) {
	cfg := model.Config{Provider: "anthropic", Model: name, BaseURL: "http://localhost"}
	b, err := newModel(cfg.WithDefaults()).body(req)
	if err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// EncodeMessage returns a message in this wire format; nil where none of its
// parts has a form here.
func EncodeMessage(msg *tenon.Message) json.RawMessage {
	b := encodeMessage(msg, sees{images: true})
	if len(b) == 0 {
		return nil
	}
	return b[1:]
}

var _ tenon.Model = (*Model)(nil)

// EncodedLen builds the body of a request as Generate does and returns its
// length: what encoding a turn costs, for the figures.
func (m *Model) EncodedLen(req *tenon.Request) (int64, error) {
	b, err := m.body(req)
	if err != nil {
		return 0, err
	}
	return b.Len(), nil
}
