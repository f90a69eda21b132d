package anthropic

import (
	"cmp"
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
	// vertexVersion replaces the version and the model at Vertex AI.
	vertexVersion = "vertex-2023-10-16"
)

// Model is a Claude model, or another model with the same API.
type Model struct {
	client *model.Client
	cfg    model.Config // with its defaults
	quirks model.Quirks
	vertex bool // served by Vertex AI
	tools  model.ToolCache
	past   model.Conversations
	form   model.Form
}

// New returns the model for a config whose provider uses this wire. Errors have code config or
// auth_required.
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
	m := &Model{cfg: cfg, quirks: cfg.ResolvedQuirks(), vertex: cfg.Provider == "vertex"}
	m.form.Key = fmt.Sprintf("%s images=%t documents=%t references=%t",
		wire, m.quirks.Images, m.quirks.Documents, m.quirks.ToolSearch) + m.quirks.RemoteKey()
	m.form.Encode = m.encodeMessage
	return m
}

// setKey sets the headers with a key.
func setKey(h http.Header, key string) { h.Set("X-Api-Key", key) }

// Name returns "anthropic/" and the model's name.
func (m *Model) Name() string { return m.client.Name() }

func (m *Model) header() http.Header {
	h := http.Header{"Anthropic-Version": {version}, "Accept": {"text/event-stream"}}
	return h
}

// body builds the request. Members that change least come first.
func (m *Model) body(req *tenon.Request) (*model.Body, error) {
	cfg := m.cfg
	req = model.Offer(cfg.Fill(req))
	h := make([]byte, 0, 512)
	if m.vertex {
		h = append(h, `{"anthropic_version":"`+vertexVersion+`"`...)
	} else {
		h = rawjson.AppendString(append(h, `{"model":`...), cfg.Model)
	}
	h = append(h, `,"max_tokens":`...)
	h = strconv.AppendInt(h, int64(pick(req.MaxTokens, cfg.MaxTokens)), 10)
	h = append(h, `,"stream":true`...)
	h = model.AppendNumber(h, "temperature", req.Temperature, cfg.Temperature)
	h = model.AppendNumber(h, "top_p", req.TopP, cfg.TopP)
	asked := req.Sampling
	h = model.AppendSampling(h, wire, &asked)
	if m.quirks.Cache && !m.vertex {
		h = append(h, model.CacheMark...)
	}
	marks := m.quirks.Cache && m.vertex // Vertex AI has no mark at the top of the request
	if cfg.ToolMode == model.ToolsNone {
		req = &tenon.Request{System: req.System, Messages: req.Messages, Output: req.Output}
	}
	h = m.appendOutput(h, req, asked.Effort)
	b := &model.Body{}
	h = cfg.AddSettings(cfg.AppendServers(appendChoice(h, req), req), wire, req, &asked)
	hosted := cfg.AppendHosted(nil, req)
	if len(req.Tools) == 0 && len(hosted) > 0 {
		h = append(append(append(h, `,"tools":[`...), hosted[1:]...), ']')
	}
	if len(req.Tools) > 0 {
		b.Add(append(h, `,"tools":`...))
		found := 0 // number of found tools, at the end of the list
		if m.quirks.ToolSearch {
			found = req.Deferred
		}
		list := m.tools.Get(req.Tools, func(tools []tenon.Tool) []byte { return encodeTools(tools, found) })
		list = list[:len(list)-1]
		// The mark of a system prompt covers the tools.
		if marks && req.System == "" && !hasMark(&req.Tools[len(req.Tools)-1]) {
			b.Add(list[:len(list)-1])
			b.Add([]byte(model.CacheMark + "}"))
		} else {
			b.Add(list)
		}
		h = append(hosted, ']')
	}
	if req.System != "" {
		h = append(h, `,"system":`...)
		if marks {
			h = rawjson.AppendString(append(h, `[{"type":"text","text":`...), req.System)
			h = append(h, model.CacheMark+"}]"...)
		} else {
			h = rawjson.AppendString(h, req.System)
		}
	}
	b.Add(append(h, `,"messages":[`...))
	form := m.form
	if marks {
		form.Mark, form.Marks = markLast, min(turnMarks, model.MaxCacheMarks-1-ownMarks(req.Tools))
	}
	if err := m.past.Add(b, &form, req.Messages, true); err != nil {
		return nil, err
	}
	b.Add([]byte("]}"))
	return b, nil
}

// turnMarks is the number of messages with a mark: the end of this turn, and the end of the turn before, where the
// prefix ends that the previous request has written to the cache.
const turnMarks = 2

// markLast marks the last block of a message. Every block of a user's message may have a mark.
func markLast(_ *tenon.Message, form []byte) [][]byte { return model.MarkEnd(form, "}]}") }

// ownMarks returns the number of tools that the configuration marks for the cache.
func ownMarks(tools []tenon.Tool) int {
	n := 0
	for i := range tools {
		if hasMark(&tools[i]) {
			n++
		}
	}
	return n
}

func hasMark(t *tenon.Tool) bool {
	return len(t.Rules.Options) > 0 && model.HasOption(t, "anthropic", "cache_control")
}

// appendOutput appends the settings of the answer: its schema and its effort.
func (m *Model) appendOutput(dst []byte, req *tenon.Request, effort string) []byte {
	schema := m.quirks.TakesSchema(req) && model.IsStrict(req.Output) // the API refuses other schemas
	takes := m.cfg.TakesEffort(effort)
	if !schema && !takes {
		return dst
	}
	dst = append(dst, `,"output_config":{`...)
	if takes {
		dst = append(dst, `"effort":"`+effort+`"`...)
	}
	if schema {
		if takes {
			dst = append(dst, ',')
		}
		dst = append(dst, `"format":{"type":"json_schema","schema":`...)
		dst = append(model.AppendSchema(dst, req.Output), '}')
	}
	return append(dst, '}')
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
	choice, end := req.ToolChoice, "}"
	if req.Serial && choice != "none" {
		choice, end = cmp.Or(choice, "auto"), `,"disable_parallel_tool_use":true}`
	}
	switch choice {
	case "":
		return dst
	case "auto", "any", "none":
		return append(dst, `,"tool_choice":{"type":"`+choice+`"`+end...)
	}
	dst = append(dst, `,"tool_choice":{"type":"tool","name":`...)
	return append(rawjson.AppendString(dst, choice), end...)
}

// encodeTools encodes the tools. The last found tools are deferred: they enter the prompt only
// through the results that name them.
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

// encodeMessage returns the message's wire form with a leading comma, or nothing if no part has a
// form on this wire.
func (m *Model) encodeMessage(msg *tenon.Message) ([]byte, error) {
	can := support{images: m.quirks.Images, documents: m.quirks.Documents, references: m.quirks.ToolSearch,
		remote: m.cfg.Remote}
	return encodeMessage(msg, can), nil
}

// support is the content that a model accepts.
type support struct {
	images     bool
	documents  bool
	references bool // to found tools
	remote     func(tenon.Content) (model.Remote, bool)
}

func encodeMessage(msg *tenon.Message, can support) []byte {
	msg = msg.AsUser()
	role := "user"
	if msg.Role == tenon.RoleAssistant {
		role = "assistant"
	}
	dst := make([]byte, 0, 256)
	dst = append(dst, `,{"role":"`+role+`","content":[`...)
	empty := len(dst)
	nth := 0 // index among the calls or among the results
	// The API requires the results of a turn at the beginning of the message.
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
			if role == "assistant" && p.Data != "" { // no answer on this wire contains media
				dst = appendText(dst, model.Generated(p))
			} else {
				dst = appendPart(dst, p, nth, can)
			}
			if len(dst) == before {
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

// appendPart appends the block of a part, or nothing if the part has no form on this wire.
func appendPart(dst []byte, p *tenon.Part, index int, can support) []byte {
	if p.Type == tenon.PartText && strings.TrimSpace(p.Text) == "" {
		return dst // the API refuses blank text blocks, although its answers may contain them
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

// appendMedia appends a block that is not text. It returns false if the wire has no form for the
// block or the model does not accept it.
func appendMedia(dst []byte, c tenon.Content, can support) ([]byte, bool) {
	if c.Remote != "" {
		r, ok := can.remote(c)
		if !ok {
			return dst, false
		}
		return appendRemote(dst, r), true
	}
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

// appendRemote appends an image or document that the API reads from an address of the web or from its files.
func appendRemote(dst []byte, r model.Remote) []byte {
	dst = append(dst, `{"type":"`+r.Kind+`","source":{"type":`...)
	if r.ID != "" {
		return append(rawjson.AppendString(append(dst, `"file","file_id":`...), r.ID), "}}"...)
	}
	return append(rawjson.AppendString(append(dst, `"url","url":`...), r.URL), "}}"...)
}

func appendCall(dst []byte, c *tenon.ToolCall, index int) []byte {
	dst = append(dst, `{"type":"tool_use","id":`...)
	dst = rawjson.AppendString(dst, safeID(c.ID, index))
	dst = append(dst, `,"name":`...)
	dst = rawjson.AppendString(dst, c.Name)
	dst = append(dst, `,"input":`...)
	return append(model.AppendArguments(dst, c), '}')
}

// safeID converts the call id of another provider to an id that this API accepts. The id of a call
// and of its result stay equal. A missing id is replaced by the index of the call in its turn,
// which is also the index of the result.
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

func appendResult(dst []byte, r *tenon.ToolResult, index int, can support) []byte {
	dst = append(dst, `{"type":"tool_result","tool_use_id":`...)
	dst = rawjson.AppendString(dst, safeID(r.ID, index))
	if r.IsError {
		dst = append(dst, `,"is_error":true`...)
	}
	dst = append(dst, `,"content":[`...)
	empty := len(dst)
	if can.references && len(r.Found) > 0 { // the references replace the text of the result
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

// EncodeRequest returns a request in this wire format, as for the named model without prompt caching. Package record
// uses it to write requests of models that have no wire format.
func EncodeRequest(name string, req *tenon.Request) (json.RawMessage, error) {
	cfg := model.Config{Provider: "anthropic", Model: name, BaseURL: "http://localhost"}
	b, err := newModel(cfg.WithDefaults()).body(req)
	if err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// EncodeMessage returns a message in this wire format, or nil if none of its parts has a form on
// it.
func EncodeMessage(msg *tenon.Message) json.RawMessage {
	b := encodeMessage(msg, support{images: true, remote: model.Config{Provider: "anthropic"}.Remote})
	if len(b) == 0 {
		return nil
	}
	return b[1:]
}

var _ tenon.Model = (*Model)(nil)

// EncodedLen returns the length of the body that Generate would send. It measures the cost of
// encoding a turn, for the figures.
func (m *Model) EncodedLen(req *tenon.Request) (int64, error) {
	b, err := m.body(req)
	if err != nil {
		return 0, err
	}
	return b.Len(), nil
}
