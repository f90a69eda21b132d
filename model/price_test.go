package model_test

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/model/openai"
)

func f(v float64) *float64 { return &v }

func TestPriceCost(t *testing.T) {
	p := model.Price{Input: 3, Output: 15, CacheRead: f(0.3), CacheWrite: f(3.75)}
	long := model.Price{Input: 0.1, Output: 0.5, Above: &model.LongPrice{Tokens: 100, Input: 1, Output: 2, CacheRead: f(0)}}
	for name, c := range map[string]struct {
		price model.Price
		usage tenon.Usage
		want  tenon.USD
	}{
		"nothing":                {p, tenon.Usage{}, 0},
		"a million of each":      {p, tenon.Usage{Input: 1e6, Output: 1e6}, 18e6},
		"cached is not fresh":    {p, tenon.Usage{Input: 1000, CacheRead: 800, CacheWrite: 100, Output: 10}, 100*3 + 240 + 375 + 150},
		"no cached price":        {model.Price{Input: 2}, tenon.Usage{Input: 10, CacheRead: 10}, 20},
		"rounded up":             {model.Price{Input: 0.1}, tenon.Usage{Input: 11}, 2},
		"whole but for binary":   {model.Price{Input: 0.1}, tenon.Usage{Input: 30}, 3},
		"at the border":          {long, tenon.Usage{Input: 100, Output: 100}, 60},
		"past it, every token":   {long, tenon.Usage{Input: 101, CacheRead: 1, Output: 100}, 100 + 200},
		"more cached than input": {p, tenon.Usage{Input: 1, CacheRead: 10}, 3},
		"MD-6_searches":          {model.Price{Input: 1, Searches: f(10)}, tenon.Usage{Input: 5, Searches: 3}, 30_005},
		"MD-6_no_price":          {model.Price{Input: 1}, tenon.Usage{Input: 5, Searches: 3}, 5},
		"as much as there is":    {model.Price{Input: math.MaxFloat64}, tenon.Usage{Input: 2}, math.MaxInt64},
	} {
		if got := c.price.Cost(c.usage); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestPriceTable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "prices.json")
	if err := os.WriteFile(file, []byte(`{"models":{"openai/gpt-5":{"input":9,"output":9},"openai-compatible/mine":{"input":1,"output":1}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	own, err := model.LoadPrices(file)
	if err != nil {
		t.Fatal(err)
	}
	table, err := model.LoadPrices("")
	if err != nil || len(table.AsOf) != len("2026-11-05") || len(table.Sources) == 0 {
		t.Fatalf("%+v, %v", table, err)
	}
	for name, c := range map[string]struct {
		table *model.Prices
		cfg   model.Config
		input float64 // -1 if the price is unknown
	}{
		"built in":                   {table, model.Config{Provider: "anthropic", Model: "claude-sonnet-4-5"}, 3},
		"a snapshot":                 {table, model.Config{Provider: "anthropic", Model: "claude-sonnet-4-5-20250929"}, 3},
		"a snapshot with dashes":     {table, model.Config{Provider: "openai", Model: "gpt-5-mini-2025-08-07"}, 0.25},
		"latest":                     {table, model.Config{Provider: "anthropic", Model: "claude-3-5-haiku-latest"}, 0.8},
		"a version is no date":       {table, model.Config{Provider: "openai", Model: "gpt-4.1-20"}, -1},
		"unknown":                    {table, model.Config{Provider: "openai", Model: "gpt-99"}, -1},
		"only a date":                {table, model.Config{Provider: "openai", Model: "20250101"}, -1},
		"no model":                   {table, model.Config{Provider: "openai"}, -1},
		"the provider's own address": {table, model.Config{Provider: "openai", Model: "gpt-5", BaseURL: "https://api.openai.com/v1"}, 1.25},
		"somebody else's":            {table, model.Config{Provider: "openai", Model: "gpt-5", BaseURL: "https://proxy.example/v1"}, -1},
		"local":                      {table, model.Config{Provider: "ollama", Model: "qwen3"}, -1},
		"the entry's own":            {table, model.Config{Provider: "openai", Model: "gpt-5", Price: &model.Price{Input: 7}}, 7},
		"the entry's own is free":    {table, model.Config{Provider: "ollama", Model: "x", Price: &model.Price{}}, 0},
		"the file's":                 {own, model.Config{Provider: "openai", Model: "gpt-5-2025-08-07", BaseURL: "https://proxy.example/v1"}, 9},
		"the file's for a server":    {own, model.Config{Provider: "openai-compatible", Model: "mine", BaseURL: "http://localhost/v1"}, 1},
		"built in beside the file":   {own, model.Config{Provider: "openai", Model: "gpt-5-nano"}, 0.05},
	} {
		p, ok := c.table.For(c.cfg)
		if ok != (c.input >= 0) || ok && p.Input != c.input {
			t.Errorf("%s: %+v, %t", name, p, ok)
		}
	}
	if cost, ok := table.Cost("openai/gpt-5", tenon.Usage{Input: 1e6}); !ok || cost != 1_250_000 {
		t.Errorf("%s, %t", cost, ok)
	}
	if _, ok := table.Cost("openai/gpt-99", tenon.Usage{}); ok {
		t.Error("a price for a model that nobody knows")
	}
}

func TestPriceFilesThatAreWrong(t *testing.T) {
	for text, want := range map[string]string{
		"{\n\"models\": {\n]": "line 3", `{"models":{"gpt":{"input":1,"output":1}}}`: "provider/model",
		`{"models":{"a/b":{"inptu":1}}}`:           "unknown field",
		`{"models":{"a/b":{"input":-1}}}`:          "negative",
		`{"models":{"a/b":{"above":{"input":1}}}}`: "above.tokens",
		`[]`: "the file has the wrong type (array)", ``: "ends too early", `{"models":{`: "ends too early", `{} x`: "line 1",
		"{}\n{}": "line 2: not a table of prices: text follows", "{\n\"models\":\n{\"a/b\":{\"input\":\"1\"}}}": "line 3: not a table of prices: models.input has the wrong type (string)",
		`{"models":{"a/b":{"input":1},"a/b":{"input":2}}}`: "models.a/b: duplicate key",
	} {
		_, err := model.ParsePrices([]byte(text))
		if tenon.ErrorCode(err) != tenon.CodeConfig || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := model.LoadPrices(filepath.Join(t.TempDir(), "none.json")); tenon.ErrorCode(err) != tenon.CodeConfig {
		t.Errorf("%v", err)
	}
}

// TestCostOfAnAnswer checks that an answer has a cost if price and usage are known.
func TestCostOfAnAnswer(t *testing.T) {
	const stream = `data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":2}}` + "\n\ndata: [DONE]\n\n"
	none := strings.Replace(stream, `"usage"`, `"no"`, 1)
	for name, c := range map[string]struct {
		price *model.Price
		body  string
		want  string
	}{
		"known":    {&model.Price{Input: 2, Output: 10}, stream, "$0.00004"},
		"no usage": {&model.Price{Input: 2, Output: 10}, none, ""},
		"no price": {nil, stream, ""},
	} {
		m, err := openai.New(model.Config{Provider: "openai-compatible", BaseURL: "http://localhost", Model: "m", Price: c.price},
			model.Env{Transport: fixed(func() io.Reader { return strings.NewReader(c.body) })})
		if err != nil {
			t.Fatal(err)
		}
		a, err := generate(t.Context(), m, question)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if a.resp.Cost != nil {
			got = a.resp.Cost.String()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestSearchesOfAnAnswer: MD-6, web searches are counted where the provider reports them, and priced.
func TestSearchesOfAnAnswer(t *testing.T) {
	const claude = `data: {"type":"message_start","message":{"id":"m","role":"assistant","content":[],"usage":{"input_tokens":5,"output_tokens":1}}}

data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"x"}}

data: {"type":"content_block_stop","index":0}

data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2,"server_tool_use":{"web_search_requests":2,"web_fetch_requests":1}}}

data: {"type":"message_stop"}

`
	const responses = `data: {"type":"response.completed","response":{"id":"r","status":"completed","usage":{"input_tokens":5,"output_tokens":2},"output":[]}}

`
	const item = `data: {"type":"response.output_item.done","output_index":%d,"item":{"id":"w%d","type":"web_search_call","status":"completed","action":{"type":%q}}}

`
	const chat = `data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":2,"num_search_queries":4}}

data: [DONE]

`
	const grounded = `data: {"candidates":[{"content":{"parts":[{"text":"x"}]},"groundingMetadata":{"webSearchQueries":["tea","green tea"]}}]}

data: {"modelVersion":%q,"candidates":[{"content":{"parts":[{"text":"y"}]},"finishReason":"STOP","groundingMetadata":{"webSearchQueries":["tea","green tea"],"groundingChunks":[]}}],"usageMetadata":{"promptTokenCount":5}}

`
	for _, c := range []struct {
		name, wire string
		cfg        model.Config
		body       string
		want       int
	}{
		{"MD-6_anthropic", "anthropic", model.Config{Provider: "anthropic"}, claude, 2},
		{"MD-6_responses", "responses", model.Config{Provider: "openai", API: model.APIResponses},
			fmt.Sprintf(item, 0, 0, "search") + fmt.Sprintf(item, 1, 1, "open_page") + responses, 1},
		{"MD-6_perplexity", "chat", model.Config{Provider: "openai-compatible", BaseURL: "https://api.perplexity.ai"}, chat, 4},
		{"MD-6_openrouter", "chat", model.Config{Provider: "openrouter"},
			strings.Replace(chat, `"num_search_queries":4`, `"server_tool_use":{"web_search_requests":3,"tool_calls_requested":5}`, 1), 3},
		{"MD-6_gemini", "gemini", model.Config{Provider: "gemini"}, fmt.Sprintf(grounded, "gemini-3-pro"), 2},
		{"MD-6_gemini_2", "gemini", model.Config{Provider: "gemini"}, fmt.Sprintf(grounded, "gemini-2.5-flash"), 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &provider{replies: []reply{{body: c.body}}}
			c.cfg.Model, c.cfg.APIKey, c.cfg.Price = "m", tenon.NewSecret("k"), &model.Price{Searches: f(10)}
			a, err := generate(t.Context(), adapter(t, c.wire, c.cfg, p.env()), question)
			if err != nil {
				t.Fatal(err)
			}
			if got := a.resp.Usage.Searches; got != c.want || *a.resp.Cost != tenon.USD(c.want*10_000) {
				t.Errorf("%d searches for %s", got, a.resp.Cost)
			}
		})
	}
}

// TestPricesOfSearches checks the price of searches by provider and family of models. A configured price replaces it.
func TestPricesOfSearches(t *testing.T) {
	prices, err := model.LoadPrices("")
	if err != nil {
		t.Fatal(err)
	}
	c := model.Config{}
	for name, want := range map[string]float64{"anthropic/claude-sonnet-4-5": 10, "openai/gpt-5.5": 10,
		"gemini/gemini-2.5-pro": 35, "gemini/gemini-3-pro-preview": 14, "gemini/gemini-3.8-flash": 14} {
		t.Run("MD-6_price_of_"+name, func(t *testing.T) {
			c.Tools = []byte(`{"web_search":{}}`)
			c.Provider, c.Model, _ = strings.Cut(name, "/")
			if p, ok := prices.For(c); !ok || p.Searches == nil || *p.Searches != want {
				t.Errorf("%+v", p)
			}
			zero := 0.0
			c.Price = &model.Price{Input: 1, Searches: &zero}
			if p, ok := prices.For(c); !ok || *p.Searches != 0 {
				t.Errorf("the configured price: %+v", p)
			}
			c.Price = nil
			c.Tools = nil
			if p, _ := prices.For(c); p.Searches != nil {
				t.Errorf("without tools: %+v", p)
			}
		})
	}
}
