package model

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
)

// The limits of listings.
const (
	maxListing = 16 << 20 // bytes of one page
	maxPages   = 50
)

// Listed is a model that a provider offers.
type Listed struct {
	ID      string `json:"id"`                // for models.NAME.model
	Title   string `json:"title,omitempty"`   // for people
	Owner   string `json:"owner,omitempty"`   // its maker
	Context int    `json:"context,omitempty"` // tokens of the context, if the provider reports them
}

// List returns the models that a configured provider offers, sorted by id. It uses the route `/models` of OpenAI's,
// Anthropic's, Gemini's and Vertex AI's APIs. The config needs no model. Errors have code config (the provider has no
// such route), or are errors of models.
func List(ctx context.Context, cfg Config, env Env) ([]Listed, error) {
	cfg.Model = cmp.Or(cfg.Model, "none")
	if cfg.Provider == providerVertex {
		cfg.Model = "none" // one client lists the models of all publishers
	}
	wire := cfg.Wire()
	if wire == WireScript || wire == WireBedrock {
		return nil, tenon.Errorf(tenon.CodeConfig, "provider %s has no route that lists its models", cfg.Provider)
	}
	c, err := NewClient(cfg, wire, env)
	if err != nil {
		return nil, err
	}
	var list []Listed
	var f *Failure
	switch {
	case cfg.Provider == providerVertex:
		list, f = c.listVertex(ctx)
	case wire == WireAnthropic:
		list, f = c.listAnthropic(ctx)
	case wire == WireGemini:
		list, f = c.listGemini(ctx)
	case wire == WireOllama:
		list, f = c.listOllama(ctx)
	default:
		list, f = c.listOpenAI(ctx)
	}
	if f != nil {
		return nil, c.fail(f, 1)
	}
	slices.SortFunc(list, func(a, b Listed) int { return strings.Compare(a.ID, b.ID) })
	return list, nil
}

// listOpenAI reads {"data": [...]}, or a bare list (Together). Servers use different names for the size of the context.
func (c *Client) listOpenAI(ctx context.Context) ([]Listed, *Failure) {
	type entry struct {
		ID      string `json:"id"`
		Name    string `json:"name"`
		Owner   string `json:"owned_by"`
		Context int    `json:"context_length"`     // OpenRouter, Together
		Window  int    `json:"context_window"`     // Groq
		Len     int    `json:"max_model_len"`      // vLLM
		Most    int    `json:"max_context_length"` // Mistral, LM Studio
	}
	both := c.cfg.ResolvedQuirks().KeyHeader
	key := func(h http.Header, key string) {
		h.Set("Authorization", "Bearer "+key)
		if both {
			h.Set("Api-Key", key)
		}
	}
	var raw json.RawMessage
	f := &Failure{Status: http.StatusNotFound}
	if c.ownList() {
		f = c.get(ctx, "/models/user", key, &raw)
	}
	if f != nil && f.Status == http.StatusNotFound { // a proxy may have only the usual route
		f = c.get(ctx, "/models", key, &raw)
	}
	if f != nil {
		return nil, f
	}
	var entries []entry
	if json.Unmarshal(raw, &entries) != nil {
		var page struct {
			Data []entry `json:"data"`
		}
		if json.Unmarshal(raw, &page) != nil {
			return nil, noListing()
		}
		entries = page.Data
	}
	list := make([]Listed, 0, len(entries))
	for _, e := range entries {
		m := Listed{ID: e.ID, Title: e.Name, Owner: e.Owner, Context: cmp.Or(e.Context, e.Window, e.Len, e.Most)}
		if m.Title == m.ID {
			m.Title = ""
		}
		list = append(list, m)
	}
	return list, nil
}

// ownList reports whether the provider has a list of the models that a key may use: its account's providers, privacy
// settings and guardrails decide (OpenRouter's API reference, GET /models/user).
func (c *Client) ownList() bool {
	s := c.cfg.server()
	return s != nil && s.Provider == "openrouter" && !c.key.Load().IsZero()
}

func (c *Client) listAnthropic(ctx context.Context) ([]Listed, *Failure) {
	key := func(h http.Header, key string) { h.Set("X-Api-Key", key) }
	base := strings.TrimSuffix(c.cfg.BaseURL, "/v1")
	var list []Listed
	after := ""
	for range maxPages {
		var page struct {
			Data []struct {
				ID    string `json:"id"`
				Title string `json:"display_name"`
				Input int    `json:"max_input_tokens"`
			} `json:"data"`
			More bool   `json:"has_more"`
			Last string `json:"last_id"`
		}
		if f := c.getAt(ctx, base, "/v1/models?limit=1000"+after, key, &page); f != nil {
			return nil, f
		}
		for _, e := range page.Data {
			list = append(list, Listed{ID: e.ID, Title: e.Title, Context: e.Input})
		}
		if !page.More || page.Last == "" {
			break
		}
		after = "&after_id=" + url.QueryEscape(page.Last)
	}
	return list, nil
}

func (c *Client) listGemini(ctx context.Context) ([]Listed, *Failure) {
	key := func(h http.Header, key string) { h.Set("X-Goog-Api-Key", key) }
	base := strings.TrimSuffix(c.cfg.BaseURL, "/v1beta")
	var list []Listed
	token := ""
	for range maxPages {
		var page struct {
			Models []struct {
				Name    string   `json:"name"`
				Title   string   `json:"displayName"`
				Input   int      `json:"inputTokenLimit"`
				Methods []string `json:"supportedGenerationMethods"`
			} `json:"models"`
			Next string `json:"nextPageToken"`
		}
		if f := c.getAt(ctx, base, "/v1beta/models?pageSize=1000"+token, key, &page); f != nil {
			return nil, f
		}
		for _, e := range page.Models {
			list = append(list, Listed{ID: strings.TrimPrefix(e.Name, "models/"), Title: e.Title, Context: e.Input})
		}
		if page.Next == "" {
			break
		}
		token = "&pageToken=" + url.QueryEscape(page.Next)
	}
	return list, nil
}

func (c *Client) listOllama(ctx context.Context) ([]Listed, *Failure) {
	key := func(h http.Header, key string) { h.Set("Authorization", "Bearer "+key) }
	var page struct {
		Models []struct {
			Name string `json:"name"`
		} `json:"models"`
	}
	if f := c.getAt(ctx, OllamaBase(c.cfg.BaseURL), "/api/tags", key, &page); f != nil {
		return nil, f
	}
	list := make([]Listed, 0, len(page.Models))
	for _, e := range page.Models {
		list = append(list, Listed{ID: e.Name})
	}
	return list, nil
}

func noListing() *Failure {
	return &Failure{Status: 200, Code: tenon.CodeProtocol, Message: "the answer is not a list of models"}
}

func (c *Client) get(ctx context.Context, path string, key func(http.Header, string), answer any) *Failure {
	return c.getAt(ctx, c.cfg.BaseURL, path, key, answer)
}

// getAt reads one JSON document.
func (c *Client) getAt(ctx context.Context, base, path string, key func(http.Header, string), answer any) *Failure {
	return c.getWith(ctx, base, path, Exchange{Key: key, Body: &Body{}}, answer)
}

// getWith reads one JSON document with the headers of an exchange. If base is "", it uses the configured address.
func (c *Client) getWith(ctx context.Context, base, path string, x Exchange, answer any) *Failure {
	w := newWatch(ctx, c.cfg.Timeout)
	defer w.stop()
	resp, f := c.send(ctx, w, http.MethodGet, join(cmp.Or(base, c.cfg.BaseURL), path), nil, x)
	return c.readListing(ctx, w, resp, f, answer)
}

// Get reads one JSON document with the address and the credentials of an exchange. It makes a second attempt only if
// the credentials were renewed. Errors are errors of models.
func (c *Client) Get(ctx context.Context, x Exchange, answer any) error {
	return c.Call(ctx, http.MethodGet, x, nil, answer)
}

// Call is Get with another method and a JSON body. If answer is nil, the answer is not read.
func (c *Client) Call(ctx context.Context, method string, x Exchange, body []byte, answer any) error {
	x.Body = &Body{}
	for again := false; ; again = true {
		w := newWatch(ctx, c.cfg.Timeout)
		resp, f := c.send(ctx, w, method, join(cmp.Or(x.Base, c.cfg.BaseURL), x.Path), body, x)
		if answer == nil && f == nil {
			_ = resp.Body.Close() // the status says enough
		} else {
			f = c.readListing(ctx, w, resp, f, answer)
		}
		w.stop()
		switch {
		case f == nil:
			return nil
		case !again && f.Code == tenon.CodeAuth && f.Status != 0 && c.renew(ctx, &x, f):
		default:
			return c.fail(f, 1)
		}
	}
}

func (c *Client) readListing(ctx context.Context, w *watch, resp *http.Response, f *Failure, answer any) *Failure {
	if f != nil {
		return f
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxListing+1))
	switch {
	case err != nil:
		return c.connection(ctx, w, err)
	case len(text) > maxListing:
		return &Failure{Status: 200, Code: tenon.CodeProtocol, Message: "the list of models is too large"}
	case json.Unmarshal(text, answer) != nil:
		return noListing()
	}
	return nil
}

// send makes one request without retries. The caller closes the body of a successful answer.
func (c *Client) send(ctx context.Context, w *watch, method, address string, body []byte, x Exchange,
) (*http.Response, *Failure) {
	req, err := http.NewRequestWithContext(w.ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return nil, Broken("%s is not an address", address)
	}
	w.request = req
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.cfg.Wire() == WireAnthropic {
		req.Header.Set("Anthropic-Version", "2023-06-01")
	}
	for k, v := range x.Header {
		req.Header[k] = v
	}
	if err := c.authorize(req, &x); err != nil {
		return nil, unauthorized(ctx, err)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.connection(ctx, w, err)
	}
	if f := c.status(resp, io.LimitReader(resp.Body, maxErrorBody)); f != nil {
		resp.Body.Close()
		return nil, f
	}
	return resp, nil
}
