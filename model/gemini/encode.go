package gemini

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/model"
)

const wire = model.WireGemini

// ownID is the prefix of the ids that the adapter makes for calls without one. The provider never
// receives them.
const ownID = "tenon_call_"

// noSignature replaces the missing signature of a call that another provider's model made. Gemini 3
// refuses calls without a signature.
const noSignature = "skip_thought_signature_validator"

// Model is one Gemini model.
type Model struct {
	client *model.Client
	cfg    model.Config // with its defaults
	enc    encoder
	quirks model.Quirks
	form   model.Form
	tools  model.ToolCache
	past   model.Conversations
	caches caches
}

// New returns the model for a config whose provider is gemini. Errors have code config or
// auth_required.
func New(cfg model.Config, env model.Env) (*Model, error) {
	cfg.BaseURL = strings.TrimSuffix(strings.TrimRight(cfg.BaseURL, "/"), "/v1beta")
	cfg.Model = strings.TrimPrefix(cfg.Model, "models/")
	c, err := model.NewClient(cfg, wire, env)
	if err != nil {
		return nil, err
	}
	q := c.Config().ResolvedQuirks()
	old := strings.HasPrefix(cfg.Model, "gemini-1") || strings.HasPrefix(cfg.Model, "gemini-2")
	enc := encoder{images: q.Images, audio: q.Audio, documents: q.Documents, video: q.Video, signed: !old,
		remote: c.Config().Remote}
	m := &Model{client: c, cfg: c.Config(), enc: enc, quirks: q}
	m.form = model.Form{Maker: c.Maker(), Encode: m.enc.message,
		Key: fmt.Sprintf("%s images=%t audio=%t documents=%t signed=%t",
			wire, q.Images, q.Audio, q.Documents, enc.signed) + q.RemoteKey()}
	return m, nil
}

// Name returns "gemini/" and the model's name.
func (m *Model) Name() string { return m.client.Name() }

// Generate sends the request and yields the answer; see [tenon.Model].
func (m *Model) Generate(ctx context.Context, req *tenon.Request) iter.Seq2[tenon.Delta, error] {
	used := ""
	cache := func(prefix []byte) string {
		used = m.cached(ctx, prefix)
		return used
	}
	answer := m.generate(ctx, req, cache)
	if used == "" {
		return answer
	}
	return m.uncached(ctx, req, used, answer)
}

func setKey(h http.Header, key string) { h.Set("X-Goog-Api-Key", key) } // not in the URL, which may be logged

// generate sends the request; see body for cache.
func (m *Model) generate(ctx context.Context, req *tenon.Request, cache func([]byte) string,
) iter.Seq2[tenon.Delta, error] {
	body, err := m.body(req, cache)
	if err != nil {
		return func(yield func(tenon.Delta, error) bool) { yield(tenon.Delta{}, err) }
	}
	h := http.Header{"Accept": {"text/event-stream"}}
	x := model.Exchange{Header: h, Body: body, Parse: Parse, Whole: whole, Key: setKey}
	x.Path = "/v1beta/models/" + url.PathEscape(m.cfg.Model) + ":streamGenerateContent"
	if m.cfg.Provider == "vertex" {
		if x.Base, x.Path, err = m.client.Vertex(ctx, "google", "streamGenerateContent"); err != nil {
			return func(yield func(tenon.Delta, error) bool) { yield(tenon.Delta{}, err) }
		}
	}
	x.Path += "?alt=sse"
	return m.client.Generate(ctx, x)
}

// body builds the request. Members that change least come first. cache returns the name of the provider's cache of
// the members that it is given, or "" if there is none. It may be nil.
func (m *Model) body(req *tenon.Request, cache func(prefix []byte) string) (*model.Body, error) {
	req = m.cfg.Fill(req)
	h := make([]byte, 0, 512)
	h = append(h, `{"generationConfig":{"maxOutputTokens":`...)
	most := req.MaxTokens
	if most <= 0 {
		most = m.cfg.MaxTokens
	}
	h = strconv.AppendInt(h, int64(most), 10)
	h = model.AppendNumber(h, "temperature", req.Temperature, m.cfg.Temperature)
	h = model.AppendNumber(h, "topP", req.TopP, m.cfg.TopP)
	asked := req.Sampling
	h = model.AppendSampling(h, wire, &asked)
	h = m.appendEffort(h, req.Effort)
	if m.cfg.ToolMode == model.ToolsNone {
		req = &tenon.Request{System: req.System, Messages: req.Messages, Output: req.Output}
	}
	if m.quirks.TakesSchema(req) {
		h = append(h, `,"responseMimeType":"application/json"`...)
		if !model.IsAnyObject(req.Output) {
			h = model.AppendSchema(append(h, `,"responseJsonSchema":`...), req.Output)
		}
	}
	h, choice := append(h, '}'), appendChoice(nil, req)
	if cache = m.mayCache(cache); cache == nil {
		h, choice = append(h, choice...), nil
	}
	h = m.cfg.AddSettings(h, wire, req, &asked)
	stable := m.stable(req, choice)
	b := &model.Body{}
	name := ""
	if cache != nil {
		name = cache(bytes.Join(stable, nil))
	}
	if name == "" {
		b.Add(h)
		for _, piece := range stable {
			b.Add(piece)
		}
		h = nil
	} else {
		h = rawjson.AppendString(append(h, `,"cachedContent":`...), name)
	}
	b.Add(append(h, `,"contents":[`...))
	if err := m.past.Add(b, &m.form, req.Messages, true); err != nil {
		return nil, err
	}
	b.Add([]byte("]}"))
	return b, nil
}

// stable returns the members that are the same in all requests of a run, with a comma before each: the tools and the
// system prompt, after the choice of a tool.
func (m *Model) stable(req *tenon.Request, choice []byte) [][]byte {
	h := choice
	hosted := m.cfg.AppendHosted(nil, req)
	var pieces [][]byte
	switch {
	case len(req.Tools) > 0:
		pieces = append(pieces, append(h, `,"tools":[{"functionDeclarations":`...), m.tools.Get(req.Tools, encodeTools))
		h = append(append([]byte("}"), hosted...), ']')
	case len(hosted) > 0:
		h = append(append(append(h, `,"tools":[`...), hosted[1:]...), ']')
	}
	if req.System != "" {
		h = append(h, `,"systemInstruction":{"parts":[{"text":`...)
		h = append(rawjson.AppendString(h, req.System), "}]}"...)
	}
	return append(pieces, h)
}

// appendEffort appends the effort: a level from Gemini 3 on, a number of tokens before.
func (m *Model) appendEffort(dst []byte, effort string) []byte {
	switch {
	case !m.cfg.TakesEffort(effort):
		return dst
	case strings.HasPrefix(m.cfg.Model, "gemini-2"):
		return append(dst, `,"thinkingConfig":{"thinkingBudget":`+model.ThinkingBudget(effort)+`}`...)
	}
	return append(dst, `,"thinkingConfig":{"thinkingLevel":"`+effort+`"}`...)
}

func appendChoice(dst []byte, req *tenon.Request) []byte {
	if len(req.Tools) == 0 || req.ToolChoice == "" {
		return dst
	}
	dst = append(dst, `,"toolConfig":{"functionCallingConfig":{"mode":"`...)
	switch req.ToolChoice {
	case "auto", "any", "none":
		return append(append(dst, strings.ToUpper(req.ToolChoice)...), `"}}`...)
	}
	c := tenon.ParseChoice(req.ToolChoice)
	if c.Forces() {
		dst = append(dst, `ANY","allowedFunctionNames":[`...)
	} else { // the API refuses the list with AUTO; with VALIDATED the model need not call
		dst = append(dst, `VALIDATED","allowedFunctionNames":[`...)
	}
	for i, name := range c.Names {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = rawjson.AppendString(dst, name)
	}
	return append(dst, "]}}"...)
}

func encodeTools(tools []tenon.Tool) []byte {
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
		dst = append(dst, `,"parametersJsonSchema":`...)
		dst = model.Schema(dst, t.Input)
		own := []string{"name", "description", "parametersJsonSchema", "parameters"}
		dst = append(model.AppendOptions(dst, &t, "gemini", own...), '}')
	}
	return append(dst, ']')
}

// encoder encodes messages as contents.
type encoder struct {
	images, audio bool
	documents     bool
	video         bool
	signed        bool // calls need a signature, and results may contain images
	remote        func(tenon.Content) (model.Remote, bool)
}

// message returns the content of a message with a leading comma, or nothing if no part has a form
// on this wire.
func (e encoder) message(msg *tenon.Message) ([]byte, error) {
	msg = msg.AsUser()
	role := "user"
	if msg.Role == tenon.RoleAssistant {
		role = "model"
	}
	dst := append([]byte(nil), `,{"role":"`+role+`","parts":[`...)
	empty := len(dst)
	sep := func() {
		if len(dst) > empty {
			dst = append(dst, ',')
		}
	}
	var later []tenon.Content // content after the results
	calls := 0
	for i := range msg.Parts {
		p := &msg.Parts[i]
		switch {
		case p.Wire == wire && len(p.Raw) > 0 && p.Data != "":
			sep()
			dst = model.WithData(dst, p, "inlineData", "data")
		case p.Wire == wire && len(p.Raw) > 0:
			sep()
			dst = append(dst, p.Raw...)
			if p.Type == tenon.PartCall {
				calls++
			}
		case p.Type == tenon.PartText && p.Text != "":
			sep()
			dst = appendText(dst, p.Text)
		case p.Type == tenon.PartImage, p.Type == tenon.PartFile:
			sep()
			dst = e.block(dst, model.ContentOf(p))
		case p.Type == tenon.PartCall && p.Call != nil:
			sep()
			dst = e.call(dst, p.Call, calls == 0)
			calls++
		case p.Type == tenon.PartResult && p.Result != nil:
			sep()
			var rest []tenon.Content
			dst, rest = e.result(dst, p.Result)
			later = append(later, rest...)
		}
	}
	for _, c := range later {
		sep()
		dst = e.block(dst, c)
	}
	if len(dst) == empty {
		return nil, nil
	}
	return append(dst, "]}"...), nil
}

func appendText(dst []byte, s string) []byte {
	dst = append(dst, `{"text":`...)
	return append(rawjson.AppendString(dst, s), '}')
}

// appendID appends the id of a call, unless this adapter made the id.
func appendID(dst []byte, id string) []byte {
	if id == "" || strings.HasPrefix(id, ownID) {
		return dst
	}
	dst = append(dst, `"id":`...)
	return append(rawjson.AppendString(dst, id), ',')
}

// call appends a call without a signature. The first call of a turn gets noSignature instead.
func (e encoder) call(dst []byte, c *tenon.ToolCall, first bool) []byte {
	dst = append(dst, `{"functionCall":{`...)
	dst = appendID(dst, c.ID)
	dst = append(dst, `"name":`...)
	dst = rawjson.AppendString(dst, c.Name)
	dst = append(dst, `,"args":`...)
	dst = append(model.AppendArguments(dst, c), '}')
	if first && e.signed {
		dst = append(dst, `,"thoughtSignature":"`+noSignature+`"`...)
	}
	return append(dst, '}')
}

// result appends a result. It returns the content that must follow all results of the turn: audio,
// and images for older models.
func (e encoder) result(dst []byte, r *tenon.ToolResult) ([]byte, []tenon.Content) {
	dst = append(dst, `{"functionResponse":{`...)
	dst = appendID(dst, r.ID)
	dst = append(dst, `"name":`...)
	dst = rawjson.AppendString(dst, r.Name)
	key := "output"
	if r.IsError {
		key = "error"
	}
	dst = append(dst, `,"response":{"`+key+`":`...)
	var inside, later []tenon.Content
	var texts []string
	for _, c := range r.Content {
		note := model.Note(c)
		if mime, data, ok := e.inline(c); ok {
			at := "in the following part"
			m := tenon.Content{Type: c.Type, MimeType: mime, Data: data}
			if _, _, image := model.ImageOf(c); image && e.signed {
				at = "attached"
				inside = append(inside, m)
			} else {
				later = append(later, m)
			}
			note = fmt.Sprintf("[%s %d bytes, %s]", mime, model.Size(data), at)
		}
		texts = append(texts, note)
	}
	text := cmp.Or(strings.Join(texts, "\n"), model.EmptyResult)
	dst = append(rawjson.AppendString(dst, text), '}')
	for i, c := range inside {
		sep := `,"parts":[`
		if i > 0 {
			sep = ","
		}
		dst = e.block(append(dst, sep...), c)
	}
	if len(inside) > 0 {
		dst = append(dst, ']')
	}
	return append(dst, "}}"...), later
}

// inline returns content that is sent inline: images, documents, audio and videos.
func (e encoder) inline(c tenon.Content) (mime, data string, ok bool) {
	if mime, data, ok = model.ImageOf(c); ok {
		return mime, data, e.images
	}
	if _, data, ok = model.DocumentOf(c); ok {
		return "application/pdf", data, e.documents
	}
	if mime, data, ok = model.VideoOf(c); ok {
		return mime, data, e.video
	}
	mime = strings.ToLower(c.MimeType)
	return mime, c.Data, e.audio && c.Data != "" && strings.HasPrefix(mime, "audio/") &&
		(c.Type == tenon.ContentAudio || c.Type == tenon.ContentResource)
}

func (e encoder) block(dst []byte, c tenon.Content) []byte {
	if r, ok := e.remote(c); ok { // also files of the Files API, YouTube and gs:
		dst = append(dst, `{"fileData":{`...)
		if r.MIME != "" {
			dst = append(rawjson.AppendString(append(dst, `"mimeType":`...), r.MIME), ',')
		}
		return append(rawjson.AppendString(append(dst, `"fileUri":`...), r.GeminiURI()), "}}"...)
	}
	mime, data, ok := e.inline(c)
	if !ok {
		return appendText(dst, model.Note(c))
	}
	dst = append(dst, `{"inlineData":{"mimeType":`...)
	dst = rawjson.AppendString(dst, mime)
	dst = append(dst, `,"data":`...)
	return append(rawjson.AppendString(dst, data), "}}"...)
}

// EncodedLen returns the length of the body that Generate would send. It measures the cost of
// encoding a turn, for the figures.
func (m *Model) EncodedLen(req *tenon.Request) (int64, error) {
	b, err := m.body(req, nil)
	if err != nil {
		return 0, err
	}
	return b.Len(), nil
}

var _ tenon.Model = (*Model)(nil)
