package ollama

import (
	"context"
	"iter"
	"net/http"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/model"
)

const wire = model.WireOllama

const chatPath = "/api/chat"

// Model is a model of an Ollama server.
type Model struct {
	client *model.Client
	cfg    model.Config // with its defaults
	quirks model.Quirks
	form   model.Form
	tools  model.ToolCache
	past   model.Conversations
}

// New returns the model for a config whose provider uses this wire. Errors have code config.
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
	m := &Model{cfg: cfg, quirks: cfg.ResolvedQuirks()}
	e := encoder{images: m.quirks.Images, audio: m.quirks.Audio}
	m.form = model.Form{Key: e.key(), Encode: e.message}
	return m
}

// Name returns "ollama/" and the model's name.
func (m *Model) Name() string { return m.client.Name() }

// Generate sends the request and yields the answer; see [tenon.Model].
func (m *Model) Generate(ctx context.Context, req *tenon.Request) iter.Seq2[tenon.Delta, error] {
	most := m.mostTokens(req)
	body, err := m.body(req, most)
	if err != nil {
		return func(yield func(tenon.Delta, error) bool) { yield(tenon.Delta{}, err) }
	}
	x := model.Exchange{Base: model.OllamaBase(m.cfg.BaseURL), Path: chatPath, Body: body, Frames: Lines,
		Header: http.Header{"Accept": {"application/x-ndjson"}},
		Parse: func(next model.Events, emit func(tenon.Delta) bool) (*tenon.Response, error) {
			return parse(next, emit, most)
		}}
	if !m.cfg.APIKey.IsZero() { // the key of ollama.com or of a proxy
		x.Key = func(h http.Header, key string) { h.Set("Authorization", "Bearer "+key) }
	}
	return m.client.Generate(ctx, x)
}

// mostTokens returns the maximum length of the answer.
func (m *Model) mostTokens(req *tenon.Request) int {
	if req.MaxTokens > 0 {
		return req.MaxTokens
	}
	return m.cfg.MaxTokens
}

// body builds the request. Members that change least come first. The API has no tool choice. Tools that may not be
// called are omitted from the request. A forced call cannot be expressed.
func (m *Model) body(req *tenon.Request, most int) (*model.Body, error) {
	req = model.OfferOne(model.Offer(m.cfg.Fill(req))) // there is no tool_choice
	tools := m.offered(req)
	h := rawjson.AppendString([]byte(`{"model":`), m.cfg.Model)
	h = strconv.AppendBool(append(h, `,"stream":`...), m.quirks.Stream)
	h = append(h, think(req.Effort)...)
	alone := &tenon.Request{Output: req.Output, Tools: tools}
	switch {
	case m.quirks.TakesObject(alone):
		h = append(h, `,"format":"json"`...)
	case m.quirks.TakesSchema(alone):
		h = model.AppendSchema(append(h, `,"format":`...), req.Output)
	}
	h = strconv.AppendInt(append(h, `,"options":{"num_predict":`...), int64(most), 10)
	h = model.AppendNumber(h, "temperature", req.Temperature, m.cfg.Temperature)
	h = model.AppendNumber(h, "top_p", req.TopP, m.cfg.TopP)
	asked := req.Sampling
	h = append(model.AppendSampling(h, wire, &asked), '}')
	h = m.cfg.AddSettings(h, wire, req, &asked)
	for _, name := range []string{"truncate", "shift"} { // otherwise Ollama silently drops the oldest messages
		if rawjson.Field(m.cfg.Extra, name) == nil {
			h = append(h, `,"`+name+`":false`...)
		}
	}
	b := &model.Body{}
	if len(tools) > 0 {
		b.Add(append(h, `,"tools":`...))
		b.Add(m.tools.Get(tools, encodeTools))
		h = nil
	}
	h = append(h, `,"messages":[`...)
	if req.System != "" {
		h = append(rawjson.AppendString(append(h, `{"role":"system","content":`...), req.System), '}')
	}
	b.Add(h)
	if err := m.past.Add(b, &m.form, req.Messages, req.System == ""); err != nil {
		return nil, err
	}
	b.Add([]byte("]}"))
	return b, nil
}

// offered returns the tools of a request that the model may call.
func (m *Model) offered(req *tenon.Request) []tenon.Tool {
	if m.cfg.ToolMode == model.ToolsNone || req.ToolChoice == "none" {
		return nil
	}
	return req.Tools
}

// think returns the member for an effort, with a comma before it. Ollama's route in OpenAI's format
// maps the words in the same way (openai/openai.go, thinkFromReasoningEffort).
func think(effort string) string {
	switch effort {
	case "":
		return ""
	case "none":
		return `,"think":false`
	case "minimal":
		effort = "low"
	case "xhigh":
		effort = "max"
	}
	return `,"think":"` + effort + `"`
}

// EncodedLen returns the length of the body that Generate would send, for the figures.
func (m *Model) EncodedLen(req *tenon.Request) (int64, error) {
	b, err := m.body(req, m.mostTokens(req))
	if err != nil {
		return 0, err
	}
	return b.Len(), nil
}

var _ tenon.Model = (*Model)(nil)
