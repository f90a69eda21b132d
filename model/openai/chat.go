package openai

import (
	"context"
	"encoding/json"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/model"
)

const wire = model.WireChat

// chatPath is appended to the base URL, which at most servers ends in /v1.
const chatPath = "/chat/completions"

// Model is a model with a Chat Completions API.
type Model struct {
	client *model.Client
	cfg    model.Config // with its defaults
	enc    encoder
	form   model.Form
	tools  model.ToolCache
	past   model.Conversations
}

// New returns the model for a config whose provider uses Chat Completions, such as openai, ollama,
// llamacpp and openai-compatible. Errors have code config or auth_required.
func New(cfg model.Config, env model.Env) (*Model, error) {
	cfg.BaseURL = strings.TrimSuffix(strings.TrimRight(cfg.BaseURL, "/"), chatPath)
	c, err := model.NewClient(cfg, wire, env)
	if err != nil {
		return nil, err
	}
	m := newModel(c.Config())
	m.client, m.form.Maker = c, c.Maker()
	return m, nil
}

func newModel(cfg model.Config) *Model {
	m := &Model{cfg: cfg, enc: encoder{cfg.ResolvedQuirks(), cfg.Remote}}
	m.form = model.Form{Key: m.enc.key(), Encode: m.enc.message, Bridge: m.enc.bridge(), Mark: markLast}
	if m.enc.quirks.CacheMarks {
		m.form.Marks = turnMarks
	}
	return m
}

// Name returns "provider/model".
func (m *Model) Name() string { return m.client.Name() }

// Generate sends the request and yields the answer; see [tenon.Model].
func (m *Model) Generate(ctx context.Context, req *tenon.Request) iter.Seq2[tenon.Delta, error] {
	body, err := m.body(req)
	if err != nil {
		return func(yield func(tenon.Delta, error) bool) { yield(tenon.Delta{}, err) }
	}
	x := model.Exchange{Path: chatPath, Header: accept(), Key: bearer(m.cfg), Body: body, Parse: ParseChat}
	return m.client.Generate(ctx, x)
}

// body builds the request. Members that change least come first.
func (m *Model) body(req *tenon.Request) (*model.Body, error) {
	q := m.enc.quirks
	req = m.cfg.Fill(req)
	if !q.AllowedTools {
		req = model.Offer(req)
	}
	if !q.NamedChoice {
		req = model.OfferOne(req)
	}
	h := make([]byte, 0, 512)
	h = append(h, `{"model":`...)
	h = rawjson.AppendString(h, m.cfg.Model)
	most := req.MaxTokens
	if most <= 0 {
		most = m.cfg.MaxTokens
	}
	h = append(h, `,"`+q.MaxTokensField+`":`...)
	h = strconv.AppendInt(h, int64(most), 10)
	h = append(h, `,"stream":true`...)
	if q.StreamOptions {
		h = append(h, `,"stream_options":{"include_usage":true}`...)
	}
	h = model.AppendNumber(h, "temperature", req.Temperature, m.cfg.Temperature)
	h = model.AppendNumber(h, "top_p", req.TopP, m.cfg.TopP)
	asked := req.Sampling
	h = model.AppendSampling(h, model.WireChat, &asked)
	if req.Effort != "" {
		h = rawjson.AppendString(append(h, `,"reasoning_effort":`...), req.Effort)
	}
	h = appendSerial(h, m.cfg, req)
	if m.cfg.ToolMode == model.ToolsNone {
		req = &tenon.Request{System: req.System, Messages: req.Messages, Output: req.Output}
	}
	switch {
	case q.TakesObject(req):
		h = append(h, `,"response_format":{"type":"json_object"}`...)
	case q.TakesSchema(req) && q.ObjectSchema:
		h = append(h, `,"response_format":{"type":"json_object","schema":`...)
		h = append(model.AppendSchema(h, req.Output), '}')
	case q.TakesSchema(req):
		h = append(h, `,"response_format":{"type":"json_schema","json_schema":{`...)
		h = append(appendFormat(h, req.Output), "}}"...)
	}
	b := &model.Body{}
	h = m.cfg.AddSettings(appendChoice(h, req, choices()), model.WireChat, req, &asked)
	hosted := m.cfg.AppendHosted(nil, req)
	switch {
	case len(req.Tools) > 0:
		b.Add(append(h, `,"tools":`...))
		list := m.tools.Get(req.Tools, encodeTools)
		if q.CacheMarks && req.System == "" { // the mark of a system prompt covers the tools
			b.Add(list[:len(list)-len("}]")])
			b.Add([]byte(model.CacheMark + "}"))
		} else {
			b.Add(list[:len(list)-1])
		}
		h = append(hosted, ']')
	case len(hosted) > 0:
		h = append(append(append(h, `,"tools":[`...), hosted[1:]...), ']')
	}
	h = append(h, `,"messages":[`...)
	if req.System != "" {
		h = append(h, `{"role":"system","content":`...)
		if q.CacheMarks { // tools and system prompt are the same in all turns of a run
			h = rawjson.AppendString(append(h, `[{"type":"text","text":`...), req.System)
			h = append(h, model.CacheMark+"}]}"...)
		} else {
			h = append(rawjson.AppendString(h, req.System), '}')
		}
	}
	b.Add(h)
	if err := m.past.Add(b, &m.form, fresh(req.Messages, time.Now()), req.System == ""); err != nil {
		return nil, err
	}
	b.Add([]byte("]}"))
	return b, nil
}

// appendSerial appends the member that limits an answer to one call. It appends nothing without tools, because the API
// refuses the member then.
func appendSerial(dst []byte, cfg model.Config, req *tenon.Request) []byte {
	if !req.Serial || len(req.Tools) == 0 || cfg.ToolMode == model.ToolsNone || cfg.Refuses("parallel_tool_calls") {
		return dst
	}
	return append(dst, `,"parallel_tool_calls":false`...)
}

// appendFormat appends the members of a response format that enforces a schema.
func appendFormat(dst []byte, schema json.RawMessage) []byte {
	dst = append(dst, `"name":"answer","strict":`...)
	dst = strconv.AppendBool(dst, model.IsStrict(schema)) // strict is refused for other schemas
	return model.AppendSchema(append(dst, `,"schema":`...), schema)
}

// choiceForm is how an API writes the choice of tools.
type choiceForm struct {
	list, listEnd string // around the names of allowed tools; the mode is put in place of %
	name, nameEnd string // around one name
}

// choices returns the form of Chat Completions.
func choices() choiceForm {
	return choiceForm{`{"type":"allowed_tools","allowed_tools":{"mode":"%","tools":[`, "]}}",
		`{"type":"function","function":{"name":`, "}}"}
}

func appendChoice(dst []byte, req *tenon.Request, form choiceForm) []byte {
	if len(req.Tools) == 0 {
		return dst
	}
	switch req.ToolChoice {
	case "":
		return dst
	case "auto", "none":
		return append(dst, `,"tool_choice":"`+req.ToolChoice+`"`...)
	case "any":
		return append(dst, `,"tool_choice":"required"`...)
	}
	c := tenon.ParseChoice(req.ToolChoice)
	dst = append(dst, `,"tool_choice":`...)
	if !c.IsList() {
		return append(rawjson.AppendString(append(dst, form.name...), c.String()), form.nameEnd...)
	}
	dst = append(dst, strings.Replace(form.list, "%", mode(c), 1)...)
	for i, name := range c.Names {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(rawjson.AppendString(append(dst, form.name...), name), form.nameEnd...)
	}
	return append(dst, form.listEnd...)
}

// mode returns OpenAI's name of a tool choice's mode.
func mode(c tenon.Choice) string {
	if c.Forces() {
		return "required"
	}
	return c.Mode
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
