package openai

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/model"
)

// responsesPath is appended to the base URL.
const responsesPath = "/responses"

// Responses is a model with a Responses API. The provider stores nothing (store is false). Every
// request contains the whole conversation, including the model's encrypted reasoning.
type Responses struct {
	client *model.Client
	cfg    model.Config // with its defaults
	enc    items
	quirks model.Quirks
	form   model.Form
	tools  model.ToolCache
	past   model.Conversations
}

// NewResponses returns the model for a config whose api is responses. Errors have code config or
// auth_required.
func NewResponses(cfg model.Config, env model.Env) (*Responses, error) {
	cfg.BaseURL = strings.TrimSuffix(strings.TrimRight(cfg.BaseURL, "/"), responsesPath)
	c, err := model.NewClient(cfg, model.WireResponses, env)
	if err != nil {
		return nil, err
	}
	q := c.Config().ResolvedQuirks()
	enc := items{images: q.Images, documents: q.Documents, encrypted: q.EncryptedReasoning, search: q.ToolSearch,
		plain: len(q.EchoReasoning) > 0, system: q.SystemMessages, remote: c.Config().Remote}
	form := model.Form{Maker: c.Maker(), Key: fmt.Sprintf("%s images=%t documents=%t search=%t plain=%t system=%t",
		model.WireResponses, q.Images, q.Documents, q.ToolSearch, enc.plain, q.SystemMessages) + q.RemoteKey()}
	return &Responses{client: c, cfg: c.Config(), quirks: q, enc: enc, form: form}, nil
}

// Name returns "provider/model".
func (m *Responses) Name() string { return m.client.Name() }

// Generate sends the request and yields the answer; see [tenon.Model].
func (m *Responses) Generate(ctx context.Context, req *tenon.Request) iter.Seq2[tenon.Delta, error] {
	body, err := m.body(req)
	if err != nil {
		return func(yield func(tenon.Delta, error) bool) { yield(tenon.Delta{}, err) }
	}
	x := model.Exchange{Path: responsesPath, Header: accept(), Key: bearer(m.cfg), Body: body,
		Parse: m.parser(req.Finder), Whole: whole}
	return m.client.Generate(ctx, x)
}

func bearer(cfg model.Config) func(h http.Header, key string) {
	both := cfg.ResolvedQuirks().KeyHeader
	return func(h http.Header, key string) {
		h.Set("Authorization", "Bearer "+key)
		if both {
			h.Set("Api-Key", key)
		}
	}
}

// accept is the header of all requests.
func accept() http.Header { return http.Header{"Accept": {"text/event-stream"}} }

// body builds the request. Members that change least come first.
func (m *Responses) body(req *tenon.Request) (*model.Body, error) {
	req = m.cfg.Fill(req)
	if !m.quirks.AllowedTools {
		req = model.Offer(req)
	}
	h := make([]byte, 0, 512)
	h = append(h, `{"model":`...)
	h = rawjson.AppendString(h, m.cfg.Model)
	most := req.MaxTokens
	if most <= 0 {
		most = m.cfg.MaxTokens
	}
	h = append(h, `,"max_output_tokens":`...)
	h = strconv.AppendInt(h, int64(most), 10)
	h = append(h, `,"stream":true,"store":`...)
	store := cmp.Or(req.Store, m.cfg.Store)
	h = strconv.AppendBool(h, store != nil && *store)
	if m.enc.encrypted {
		h = append(h, `,"include":["reasoning.encrypted_content"]`...)
	}
	h = model.AppendNumber(h, "temperature", req.Temperature, m.cfg.Temperature)
	h = model.AppendNumber(h, "top_p", req.TopP, m.cfg.TopP)
	asked := req.Sampling
	if req.Effort != "" {
		h = append(rawjson.AppendString(append(h, `,"reasoning":{"effort":`...), req.Effort), '}')
	}
	h = appendSerial(h, m.cfg, req)
	if m.cfg.ToolMode == model.ToolsNone {
		req = &tenon.Request{System: req.System, Messages: req.Messages, Output: req.Output}
	}
	switch {
	case m.quirks.TakesObject(req):
		h = append(h, `,"text":{"format":{"type":"json_object"}}`...)
	case m.quirks.TakesSchema(req):
		h = append(h, `,"text":{"format":{"type":"json_schema",`...)
		h = append(appendFormat(h, req.Output), "}}"...)
	}
	b := &model.Body{}
	h = m.cfg.AddSettings(appendChoice(h, req, flatChoices()), model.WireResponses, req, &asked)
	hosted := m.cfg.AppendHosted(nil, req)
	switch {
	case len(req.Tools) > 0:
		b.Add(append(h, `,"tools":`...))
		list := m.encodeTools(req)
		b.Add(list[:len(list)-1])
		if len(list) == 2 && len(hosted) > 0 { // all tools are in results of tool searches
			hosted = hosted[1:]
		}
		h = append(hosted, ']')
	case len(hosted) > 0:
		h = append(append(append(h, `,"tools":[`...), hosted[1:]...), ']')
	}
	if req.System != "" {
		h = append(h, `,"instructions":`...)
		h = rawjson.AppendString(h, req.System)
	}
	b.Add(append(h, `,"input":[`...))
	enc := m.enc
	enc.tools = req.Tools
	form := m.form
	form.Encode = enc.message
	messages := req.Messages
	if len(m.cfg.Tools) > 0 {
		messages = withdraw(messages, m.cfg.Connector)
	}
	if err := m.past.Add(b, &form, messages, true); err != nil {
		return nil, err
	}
	b.Add([]byte("]}"))
	return b, nil
}

// flatChoices returns the form of the Responses API.
func flatChoices() choiceForm {
	return choiceForm{`{"type":"allowed_tools","mode":"%","tools":[`, "]}", `{"type":"function","name":`, "}"}
}

// encodeFlatTools encodes the tools. It always writes strict, because the default is true, and a strict schema may not
// have optional arguments.
func encodeFlatTools(tools []tenon.Tool) []byte {
	dst := []byte{'['}
	for i := range tools {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendFlatTool(dst, &tools[i], false)
	}
	return append(dst, ']')
}

func appendFlatTool(dst []byte, t *tenon.Tool, found bool) []byte {
	dst = append(dst, `{"type":"function","name":`...)
	dst = rawjson.AppendString(dst, t.Name)
	if t.Description != "" {
		dst = append(dst, `,"description":`...)
		dst = rawjson.AppendString(dst, t.Description)
	}
	own := []string{"type", "name", "description", "parameters"}
	if found {
		dst, own = append(dst, `,"defer_loading":true`...), append(own, "defer_loading")
	}
	dst = append(dst, `,"parameters":`...)
	dst = model.Schema(dst, t.Input)
	if !model.HasOption(t, "openai", "strict") {
		dst = append(dst, `,"strict":false`...)
	}
	return append(model.AppendOptions(dst, t, "openai", own...), '}')
}

// EncodedLen returns the length of the body that Generate would send. It measures the cost of
// encoding a turn, for the figures.
func (m *Responses) EncodedLen(req *tenon.Request) (int64, error) {
	b, err := m.body(req)
	if err != nil {
		return 0, err
	}
	return b.Len(), nil
}

var _ tenon.Model = (*Responses)(nil)

// whole converts a response object that was not streamed to its last event.
func whole(response []byte) [][]byte {
	if rawjson.Field(response, "output") == nil {
		return nil
	}
	status := rawjson.String(rawjson.Field(response, "status"))
	if status != "incomplete" && status != "failed" {
		status = "completed"
	}
	return [][]byte{slices.Concat([]byte(`{"type":"response.`+status+`","response":`), response, []byte("}"))}
}
