package model

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/tenonhq/tenon"
)

// The limits of one request for embeddings.
const (
	MaxEmbedded       = 100      // texts
	maxEmbeddings     = 32 << 20 // bytes of the answer
	maxEmbeddingWidth = 16_384   // numbers of one vector
)

// Embedder turns texts into vectors. The cosine of two vectors measures the similarity of the meanings of their texts.
// It is safe for concurrent use.
type Embedder struct{ c *Client }

// NewEmbedder returns the embedder of a configured model. It uses the route `/embeddings` of OpenAI's API, or
// `:batchEmbedContents` of Gemini's. Errors have code config (the provider has no embeddings) or auth_required.
func NewEmbedder(cfg Config, env Env) (*Embedder, error) {
	known := true
	if cfg.Wire() == WireOllama { // embeddings use its route in OpenAI's format
		cfg.API, cfg.BaseURL = APIChat, embeddingBase(cfg.BaseURL)
	}
	switch cfg.Wire() {
	case WireChat, WireResponses, WireGemini:
	default:
		known = false
	}
	if !known || cfg.Provider == providerVertex {
		return nil, tenon.Errorf(tenon.CodeConfig, "%s: provider %s has no embeddings; name a model of another "+
			"provider", cfg.key("provider"), cfg.Provider)
	}
	c, err := NewClient(cfg, cfg.Wire(), env)
	if err != nil {
		return nil, err
	}
	return &Embedder{c}, nil
}

// embeddingBase returns the address of Ollama's API in OpenAI's format for a configured address. It returns "" for "".
func embeddingBase(base string) string {
	if base == "" {
		return ""
	}
	return OllamaBase(strings.TrimRight(base, "/")) + "/v1"
}

// Name returns "provider/model".
func (e *Embedder) Name() string { return e.c.Name() }

// Maker returns the embedder's name, followed by its address unless that is the provider's own; see [Client.Maker].
func (e *Embedder) Maker() string { return e.c.Maker() }

// Embed returns a vector for each text. There may be at most [MaxEmbedded] texts. It makes one attempt. Errors: errors
// of models, protocol (the answer has other vectors than requested).
func (e *Embedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	if len(texts) == 0 || len(texts) > MaxEmbedded {
		return nil, tenon.Errorf(tenon.CodeInternal, "%d texts, a request takes 1 to %d", len(texts), MaxEmbedded)
	}
	var vectors [][]float32
	var f *Failure
	if e.c.cfg.Wire() == WireGemini {
		vectors, f = e.gemini(ctx, texts)
	} else {
		vectors, f = e.openai(ctx, texts)
	}
	if f == nil {
		f = checkVectors(vectors, len(texts))
	}
	if f != nil {
		return nil, e.c.fail(f, 1)
	}
	return vectors, nil
}

func (e *Embedder) openai(ctx context.Context, texts []string) ([][]float32, *Failure) {
	both := e.c.cfg.ResolvedQuirks().KeyHeader
	key := func(h http.Header, key string) {
		h.Set("Authorization", "Bearer "+key)
		if both {
			h.Set("Api-Key", key)
		}
	}
	var answer struct {
		Data []struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		} `json:"data"`
	}
	body := map[string]any{"model": e.c.cfg.Model, "input": texts, "encoding_format": "float"}
	if f := e.c.post(ctx, "/embeddings", key, body, &answer); f != nil {
		return nil, f
	}
	vectors := make([][]float32, len(texts))
	for _, d := range answer.Data {
		if d.Index < 0 || d.Index >= len(texts) {
			return nil, &Failure{Status: 200, Code: tenon.CodeProtocol, Message: "an embedding has no text"}
		}
		vectors[d.Index] = d.Embedding
	}
	return vectors, nil
}

func (e *Embedder) gemini(ctx context.Context, texts []string) ([][]float32, *Failure) {
	key := func(h http.Header, key string) { h.Set("X-Goog-Api-Key", key) }
	type part struct {
		Text string `json:"text"`
	}
	type content struct {
		Parts []part `json:"parts"`
	}
	type request struct {
		Model   string  `json:"model"`
		Content content `json:"content"`
	}
	var body struct {
		Requests []request `json:"requests"`
	}
	for _, text := range texts {
		body.Requests = append(body.Requests, request{"models/" + e.c.cfg.Model, content{[]part{{text}}}})
	}
	var answer struct {
		Embeddings []struct {
			Values []float32 `json:"values"`
		} `json:"embeddings"`
	}
	path := "/v1beta/models/" + url.PathEscape(e.c.cfg.Model) + ":batchEmbedContents"
	if f := e.c.post(ctx, path, key, body, &answer); f != nil {
		return nil, f
	}
	var vectors [][]float32
	for _, v := range answer.Embeddings {
		vectors = append(vectors, v.Values)
	}
	return vectors, nil
}

// checkVectors refuses an answer that lacks vectors, or whose vectors differ in width.
func checkVectors(vectors [][]float32, n int) *Failure {
	if len(vectors) != n {
		return &Failure{Status: 200, Code: tenon.CodeProtocol,
			Message: "the number of embeddings is not the number of texts"}
	}
	for _, v := range vectors {
		if len(v) == 0 || len(v) > maxEmbeddingWidth || len(v) != len(vectors[0]) {
			return &Failure{Status: 200, Code: tenon.CodeProtocol,
				Message: "the embeddings have different or wrong lengths"}
		}
	}
	return nil
}

// post sends one JSON document and reads one.
func (c *Client) post(ctx context.Context, path string, key func(http.Header, string), body, answer any) *Failure {
	raw, err := json.Marshal(body)
	if err != nil {
		return Broken("the request cannot be written")
	}
	w := newWatch(ctx, c.cfg.Timeout)
	defer w.stop()
	resp, f := c.send(ctx, w, http.MethodPost, join(c.cfg.BaseURL, path), raw, Exchange{Key: key})
	if f != nil {
		return f
	}
	defer resp.Body.Close()
	limited := io.LimitReader(resp.Body, maxEmbeddings+1)
	text, err := io.ReadAll(limited)
	switch {
	case err != nil:
		return c.connection(ctx, w, err)
	case len(text) > maxEmbeddings:
		return &Failure{Status: 200, Code: tenon.CodeProtocol, Message: "the answer is too large"}
	case json.Unmarshal(text, answer) != nil:
		return &Failure{Status: 200, Code: tenon.CodeProtocol, Message: "the answer is not the JSON of embeddings"}
	}
	return nil
}
