package model

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
)

// setting is a key of models.NAME that only some wires can express.
type setting struct {
	key   string
	value func(Config) []byte // as JSON; nil if it is not set
	paths map[string]string   // of the member on each wire; its parts are separated by points
}

// settings is the table of these keys. Sources: the request types of openai-go (verbosity, service_tier, store,
// include), anthropic-sdk-go (top_k, service_tier) and go-genai (topK). The members of
// Bedrock were written from knowledge.
var settings = [...]setting{
	{"top_k", func(c Config) []byte { return number(c.TopK) }, map[string]string{
		WireChat: "top_k", WireAnthropic: "top_k", WireGemini: "generationConfig.topK",
		WireBedrock: "additionalModelRequestFields.top_k"}},
	{"verbosity", func(c Config) []byte { return quoted(c.Verbosity) },
		map[string]string{WireChat: "verbosity", WireResponses: "text.verbosity"}},
	{"service_tier", func(c Config) []byte { return quoted(c.ServiceTier) }, map[string]string{
		WireChat: "service_tier", WireResponses: "service_tier", WireAnthropic: "service_tier",
		WireBedrock: "serviceTier.type"}},
	{"store", func(c Config) []byte {
		if c.Store == nil {
			return nil
		}
		return strconv.AppendBool(nil, *c.Store)
	}, map[string]string{WireChat: "store", WireResponses: "store"}},
	{"include", func(c Config) []byte {
		if len(c.Include) == 0 {
			return nil
		}
		list := []byte{'['}
		for i, s := range c.Include {
			if i > 0 {
				list = append(list, ',')
			}
			list = rawjson.AppendString(list, s)
		}
		return append(list, ']')
	}, map[string]string{WireResponses: "include"}},
}

func number(n int) []byte {
	if n == 0 {
		return nil
	}
	return strconv.AppendInt(nil, int64(n), 10)
}

func quoted(s string) []byte {
	if s == "" {
		return nil
	}
	return rawjson.AppendString(nil, s)
}

// at returns an object with one member at a path.
func at(path string, value []byte) json.RawMessage {
	parts := strings.Split(path, ".")
	for _, name := range slices.Backward(parts) {
		value = append(append(append(rawjson.AppendString([]byte{'{'}, name), ':'), value...), '}')
	}
	return value
}

// Fill returns the request with the settings of the configuration that it does not set itself.
func (c Config) Fill(req *tenon.Request) *tenon.Request {
	effort, _ := c.reasoning()
	if len(c.Stop) == 0 && c.Seed == nil && effort == "" {
		return req
	}
	r := *req
	if len(r.Stop) == 0 {
		r.Stop = c.Stop
	}
	if r.Seed == nil && c.Seed != nil {
		seed := int64(*c.Seed)
		r.Seed = &seed
	}
	if c.TakesEffort(effort) {
		r.Effort = cmp.Or(r.Effort, effort)
	}
	return &r
}

// AddSettings adds the settings of models.NAME of [settings], and then the additional members, to the
// members of a request on a wire: head is an object without its closing brace. Members in head count more. asked are
// the settings of the question.
func (c Config) AddSettings(head []byte, wire string, asked *tenon.Sampling) []byte {
	c.TopK = cmp.Or(max(asked.TopK, 0), c.TopK)
	for _, s := range settings {
		if v := s.value(c); v != nil && s.paths[wire] != "" {
			head = mergeMembers(head, at(s.paths[wire], v))
		}
	}
	if asked.Effort == "" {
		head = mergeMembers(head, c.thinking(wire, cmp.Or(max(asked.MaxTokens, 0), c.MaxTokens)))
	}
	return mergeMembers(head, c.Extra)
}

// reasoning splits models.NAME.reasoning into an effort or a number of tokens, which is -1 if it is not set.
func (c Config) reasoning() (effort string, tokens int) {
	if c.Reasoning == "" {
		return "", -1
	}
	n, err := strconv.Atoi(c.Reasoning)
	if err != nil || n < 0 {
		return c.Reasoning, -1
	}
	return "", n
}

// leastThinking is the smallest budget of thinking that Anthropic accepts (anthropic-sdk-go, ThinkingConfigEnabled).
const leastThinking = 1024

// thinking returns the members for a number of tokens of reasoning, in an answer of at most so many tokens. An effort
// becomes a number for models that have no efforts.
func (c Config) thinking(wire string, most int) json.RawMessage {
	effort, tokens := c.reasoning()
	if tokens < 0 && budgets[effort] != "" && c.takesTokens() && !c.TakesEffort(effort) {
		tokens, _ = strconv.Atoi(budgets[effort])
		tokens = min(tokens, most/2)
	}
	if tokens < 0 {
		return nil
	}
	n := number(tokens)
	switch wire {
	case WireChat:
		return at("reasoning.max_tokens", n)
	case WireGemini:
		return at("generationConfig.thinkingConfig.thinkingBudget", strconv.AppendInt(nil, int64(tokens), 10))
	}
	thinking := json.RawMessage(`{"type":"disabled"}`)
	if tokens = min(tokens, most-1); tokens >= leastThinking {
		thinking = fmt.Appendf(nil, `{"type":"enabled","budget_tokens":%d}`, tokens)
	}
	if wire == WireBedrock {
		return at("additionalModelRequestFields.thinking", thinking)
	}
	return at("thinking", thinking)
}

// budgets are the tokens of reasoning for an effort, as Google's own API in OpenAI's format has them.
var budgets = map[string]string{"none": "0", "minimal": "1024", "low": "1024", "medium": "8192", "high": "24576"}

// ThinkingBudget returns the tokens of reasoning for an effort, for models that take numbers.
func ThinkingBudget(effort string) string { return budgets[effort] }

// takesTokens reports whether a number of tokens of reasoning can be sent to the model.
func (c Config) takesTokens() bool {
	switch c.Wire() {
	case WireChat: // OpenRouter converts it for each maker
		return c.Provider == "openrouter"
	case WireGemini:
		return geminiEfforts(c.Model) != nil
	case WireAnthropic:
		return !strings.HasPrefix(c.Model, "claude-3-5") && !strings.HasPrefix(c.Model, "claude-3-haiku")
	case WireBedrock:
		return strings.Contains(c.Model, "anthropic.claude-") && !strings.Contains(c.Model, "claude-3-5")
	}
	return false
}

// maxIncluded bounds the elements of models.NAME.include.
const maxIncluded = 32

// checkSettings returns the first key whose value is wrong or cannot be sent to the model, and the reason.
func (c Config) checkSettings() (key string, reason error) {
	w, ok := samplingWires[c.Wire()]
	if !ok {
		return "", nil
	}
	switch {
	case c.TopK < 0:
		return "top_k", fmt.Errorf("%d is negative", c.TopK)
	case len(c.Stop) > maxStops || slices.Contains(c.Stop, ""):
		return "stop", fmt.Errorf("it must be at most %d texts that are not empty", maxStops)
	case len(c.Stop) > 0 && w.stop == "":
		return "stop", fmt.Errorf("%s has no such parameter", w.title)
	case len(c.Stop) > 0 && c.ToolMode == ToolsReact:
		return "stop", errors.New("it would cut off steps of tool_mode react")
	case c.Seed != nil && w.seed == "":
		return "seed", fmt.Errorf("%s has no such parameter", w.title)
	case c.Verbosity != "" && !slices.Contains([]string{"low", "medium", "high"}, c.Verbosity):
		return "verbosity", fmt.Errorf("'%s' is not one of low, medium, high", c.Verbosity)
	case len(c.Include) > maxIncluded:
		return "include", fmt.Errorf("it has more than %d elements", maxIncluded)
	case c.TopK != 0 && c.Provider == "openai":
		return "top_k", errors.New("OpenAI has no such parameter")
	case c.TopK != 0 && c.Wire() == WireBedrock && !c.takesTopK():
		return "top_k", errors.New("only Anthropic's models at Bedrock have such a parameter")
	}
	for _, s := range settings {
		if s.value(c) != nil && s.paths[c.Wire()] == "" {
			return s.key, fmt.Errorf("%s has no such parameter", w.title)
		}
	}
	return c.checkReasoning(w)
}

// takesTopK reports whether the model's API has a parameter top_k.
func (c Config) takesTopK() bool {
	switch c.Wire() {
	case WireChat:
		return c.Provider != "openai"
	case WireBedrock:
		return strings.Contains(c.Model, "anthropic.")
	}
	return c.Wire() == WireAnthropic || c.Wire() == WireGemini
}

func (c Config) checkReasoning(w samplingWire) (key string, reason error) {
	effort, tokens := c.reasoning()
	switch can := w.efforts(c.Model); {
	case c.Reasoning == "" || c.TakesEffort(effort):
	case effort != "" && !slices.Contains(efforts, effort):
		return "reasoning", fmt.Errorf("'%s' is neither a number of tokens nor one of %s", tenon.Visible(effort),
			strings.Join(efforts, ", "))
	case effort != "" && len(can) == 0 && c.takesTokens() && budgets[effort] != "": // a number of tokens is sent
	case effort != "" && len(can) > 0:
		return "reasoning", fmt.Errorf("model %s takes %s", c.Model, strings.Join(can, ", "))
	case effort != "" || !c.takesTokens() && len(can) == 0:
		return "reasoning", fmt.Errorf("tenon knows no such parameter of model %s; use `extra`", c.Model)
	case !c.takesTokens():
		return "reasoning", fmt.Errorf("model %s takes %s, and no number of tokens", c.Model, strings.Join(can, ", "))
	case c.Wire() != WireAnthropic && c.Wire() != WireBedrock, tokens == 0:
	case tokens < leastThinking || tokens >= c.WithDefaults().MaxTokens:
		return "reasoning", fmt.Errorf("%d is not from %d to below max_tokens (%d)", tokens, leastThinking,
			c.WithDefaults().MaxTokens)
	}
	return "", nil
}
