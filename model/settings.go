package model

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
)

// setting is a key of models.NAME that only some wire formats can express.
type setting struct {
	key   string
	value func(c Config, wire string) []byte // as JSON; nil if it is not set
	paths map[string]string                  // wire → path of the member, with points between its parts
	also  map[string]string                  // wire → object with further members
}

// settings is the table of these keys. Sources: the request types of openai-go (verbosity, service_tier, store,
// include), anthropic-sdk-go (top_k, service_tier), go-genai (topK), aws-sdk-go-v2 (serviceTier) and ollama/ollama
// (api/types.go: ChatRequest, Options). The members for
// logprobs, modalities and voice, and the members of Bedrock, were not compared with a source.
var settings = [...]setting{
	{key: "top_k", value: func(c Config, _ string) []byte { return number(c.TopK) }, paths: map[string]string{
		WireChat: "top_k", WireAnthropic: "top_k", WireGemini: "generationConfig.topK",
		WireBedrock: "additionalModelRequestFields.top_k", WireOllama: "options.top_k"}},
	{key: "num_ctx", value: func(c Config, _ string) []byte { return number(c.NumCtx) },
		paths: map[string]string{WireOllama: "options.num_ctx"}},
	{key: "keep_alive", value: func(c Config, _ string) []byte {
		if _, err := strconv.Atoi(c.KeepAlive); err == nil { // seconds
			return []byte(c.KeepAlive)
		}
		return quoted(c.KeepAlive)
	}, paths: map[string]string{WireOllama: "keep_alive"}},
	{key: "verbosity", value: func(c Config, _ string) []byte { return quoted(c.Verbosity) },
		paths: map[string]string{WireChat: "verbosity", WireResponses: "text.verbosity"}},
	{key: "service_tier", value: func(c Config, _ string) []byte { return quoted(c.ServiceTier) },
		paths: map[string]string{WireChat: "service_tier", WireResponses: "service_tier",
			WireAnthropic: "service_tier", WireBedrock: "serviceTier.type"}},
	{key: "store", value: func(c Config, _ string) []byte {
		if c.Store == nil {
			return nil
		}
		return strconv.AppendBool(nil, *c.Store)
	}, paths: map[string]string{WireChat: "store", WireResponses: "store"}},
	{key: "include", value: func(c Config, _ string) []byte { return texts(c.Include) },
		paths: map[string]string{WireResponses: "include"}},
	{key: "logprobs", value: func(c Config, wire string) []byte {
		if c.Logprobs == nil || wire == WireGemini && *c.Logprobs == 0 { // at Gemini, 0 is expressed by omission
			return nil
		}
		return strconv.AppendInt(nil, int64(*c.Logprobs), 10)
	}, paths: map[string]string{WireChat: "top_logprobs", WireResponses: "top_logprobs",
		WireGemini: "generationConfig.logprobs", WireOllama: "top_logprobs"},
		also: map[string]string{WireChat: `{"logprobs":true}`, WireOllama: `{"logprobs":true}`,
			WireResponses: `{"include":["message.output_text.logprobs"]}`,
			WireGemini:    `{"generationConfig":{"responseLogprobs":true}}`}},
	{key: "modalities", value: func(c Config, wire string) []byte {
		if wire != WireGemini {
			return texts(c.Modalities)
		}
		return []byte(strings.ToUpper(string(texts(c.Modalities))))
	}, paths: map[string]string{WireChat: "modalities", WireGemini: "generationConfig.responseModalities"}},
	{key: "voice", value: func(c Config, _ string) []byte { return quoted(c.Voice) }, paths: map[string]string{
		WireChat: "audio.voice", WireGemini: "generationConfig.speechConfig.voiceConfig.prebuiltVoiceConfig.voiceName"},
		also: map[string]string{WireChat: `{"audio":{"format":"pcm16"}}`}}, // the only format of streams
}

// isSet reports whether the key has a value.
func (s *setting) isSet(c Config) bool {
	return s.value(c, "") != nil
}

// add adds the members of the setting to a head.
func (s *setting) add(head []byte, c Config, wire string) []byte {
	if s.paths[wire] == "" || !s.isSet(c) {
		return head
	}
	if v := s.value(c, wire); v != nil {
		head = mergeMembers(head, at(s.paths[wire], v))
	}
	return mergeMembers(head, json.RawMessage(s.also[wire]))
}

// texts returns a list of texts, or nil for an empty one.
func texts(list []string) []byte {
	if len(list) == 0 {
		return nil
	}
	b := []byte{'['}
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = rawjson.AppendString(b, s)
	}
	return append(b, ']')
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

// Fill returns the request with the settings of the configuration, except for settings that the request contains
// already.
func (c Config) Fill(req *tenon.Request) *tenon.Request {
	effort, _ := c.reasoning()
	if req.Thinking != nil {
		effort = "" // the question has precedence
	}
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

// AddSettings adds the settings of models.NAME in [settings], and then the additional members, to a request. head is an
// object of the request without its closing brace. Members in head have precedence. asked are the settings of the
// question.
func (c Config) AddSettings(head []byte, wire string, req *tenon.Request, asked *tenon.Sampling) []byte {
	c = c.With(asked)
	c.Extra = c.offeredExtra(req.Hosted)
	for i := range settings {
		if s := &settings[i]; s.isSet(c) && !c.Refuses(s.key) {
			head = s.add(head, c, wire)
		}
	}
	if c.isClaude() && !mayThink(req) {
		c.Extra = withoutMember(c.Extra, "thinking")
	} else {
		head = mergeMembers(head, c.thinking(wire, cmp.Or(max(asked.MaxTokens, 0), c.MaxTokens)))
	}
	return mergeMembers(head, c.Extra)
}

// With returns the configuration changed by the settings of an agent or a question. s may be nil.
func (c Config) With(s *tenon.Sampling) Config {
	if s == nil {
		return c
	}
	c.TopK, c.MaxTokens = cmp.Or(max(s.TopK, 0), c.TopK), cmp.Or(max(s.MaxTokens, 0), c.MaxTokens)
	c.Temperature, c.TopP = cmp.Or(s.Temperature, c.Temperature), cmp.Or(s.TopP, c.TopP)
	c.Verbosity, c.ServiceTier = cmp.Or(s.Verbosity, c.Verbosity), cmp.Or(s.ServiceTier, c.ServiceTier)
	c.Store, c.Logprobs, c.Voice = cmp.Or(s.Store, c.Store), cmp.Or(s.Logprobs, c.Logprobs), cmp.Or(s.Voice, c.Voice)
	if len(s.Include) > 0 {
		c.Include = s.Include
	}
	if len(s.Modalities) > 0 {
		c.Modalities = s.Modalities
	}
	switch {
	case s.Effort != "":
		c.Reasoning = s.Effort
	case s.Thinking != nil:
		c.Reasoning = strconv.Itoa(*s.Thinking)
	}
	return c
}

// reasoning splits models.NAME.reasoning into an effort or a number of tokens. tokens is -1 if no number is set.
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

// thinking returns the members that enable reasoning with a number of tokens. most is the limit of the answer's tokens.
// For a model that accepts no efforts, an effort is converted to a number of tokens.
func (c Config) thinking(wire string, most int) json.RawMessage {
	effort, tokens := c.reasoning()
	if tokens < 0 && budgets[effort] != "" && c.takesTokens() && !c.TakesEffort(effort) {
		tokens, _ = strconv.Atoi(budgets[effort])
		tokens = min(tokens, most/2)
	}
	if tokens < 0 && c.isClaude() && wire != WireChat && c.TakesEffort(effort) &&
		thinksByItself(c.Model) {
		return at(claudeThinking(wire), []byte(`{"type":"adaptive"}`)) // otherwise it applies only to the answer
	}
	if tokens < 0 || !c.takesTokens() {
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
	return at(claudeThinking(wire), thinking)
}

// claudeThinking returns the path of the member for the thinking of Anthropic's models.
func claudeThinking(wire string) string {
	if wire == WireBedrock {
		return "additionalModelRequestFields.thinking"
	}
	return "thinking"
}

// budgets maps efforts to numbers of reasoning tokens, as Google's own API in OpenAI's format does.
var budgets = map[string]string{"none": "0", "minimal": "1024", "low": "1024", "medium": "8192", "high": "24576"}

// ThinkingBudget returns the number of reasoning tokens for an effort. It is for models that accept only numbers.
func ThinkingBudget(effort string) string { return budgets[effort] }

// takesTokens reports whether the model accepts a number of reasoning tokens.
func (c Config) takesTokens() bool {
	switch c.Wire() {
	case WireChat: // OpenRouter converts the number for each maker
		return c.Provider == "openrouter"
	case WireGemini:
		return geminiEfforts(c.Model) != nil
	case WireAnthropic:
		return !strings.HasPrefix(c.Model, "claude-3-5") && !strings.HasPrefix(c.Model, "claude-3-haiku") &&
			!samplesByItself(c.Model)
	case WireBedrock:
		return strings.Contains(c.Model, "anthropic.claude-") && !strings.Contains(c.Model, "claude-3-5") &&
			!samplesByItself(c.Model)
	}
	return false
}

// maxIncluded bounds the elements of models.NAME.include.
const maxIncluded = 32

// checkSettings returns the first key whose value is wrong or cannot be sent to the model, and the reason.
func (c Config) checkSettings() (key string, reason error) {
	if key, err := c.checkOnline(); key != "" {
		return key, err
	}
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
	if key, reason = c.checkOllama(); key != "" {
		return key, reason
	}
	for i := range settings {
		s := &settings[i]
		switch {
		case !s.isSet(c):
		case s.paths[c.Wire()] == "":
			return s.key, fmt.Errorf("%s has no such parameter", w.title)
		case c.Refuses(s.key):
			return s.key, fmt.Errorf("%s has no such parameter", c.WithDefaults().server().Name)
		}
	}
	if key, reason = c.checkModalities(); key != "" {
		return key, reason
	}
	if key, reason = c.checkReasoning(); key != "" {
		return key, reason
	}
	return c.checkThinking()
}

// checkOllama checks the settings that exist only in Ollama's own API.
func (c Config) checkOllama() (key string, reason error) {
	_, err := strconv.Atoi(c.KeepAlive)
	if err != nil {
		_, err = time.ParseDuration(c.KeepAlive)
	}
	switch own := c.Provider == providerOllama && c.API != APIOllama; {
	case c.NumCtx < 0:
		return "num_ctx", fmt.Errorf("%d is negative", c.NumCtx)
	case c.KeepAlive != "" && err != nil:
		return "keep_alive", fmt.Errorf("'%s' is neither a duration such as 30m nor a number of seconds",
			tenon.Visible(c.KeepAlive))
	case own && c.NumCtx != 0:
		return "num_ctx", errors.New("it needs `api: ollama`")
	case own && c.KeepAlive != "":
		return "keep_alive", errors.New("it needs `api: ollama`")
	}
	return "", nil
}

// maxLogprobs bounds the alternatives of a token (OpenAI API reference, top_logprobs).
const maxLogprobs = 20

func (c Config) checkModalities() (key string, reason error) {
	for _, m := range c.Modalities {
		if !slices.Contains([]string{"text", "audio", "image"}, m) {
			return "modalities", fmt.Errorf("'%s' is not one of text, audio, image", tenon.Visible(m))
		}
	}
	switch {
	case c.Logprobs != nil && (*c.Logprobs < 0 || *c.Logprobs > maxLogprobs):
		return "logprobs", fmt.Errorf("%d is not within 0 to %d", *c.Logprobs, maxLogprobs)
	case c.Provider == "openai" && c.Voice == "" && slices.Contains(c.Modalities, "audio") &&
		rawjson.Field(c.Extra, "audio") == nil:
		return "modalities", errors.New("OpenAI's audio needs a voice; set `voice`, such as alloy")
	}
	return "", nil
}

// takesTopK reports whether the model's API has a parameter top_k.
func (c Config) takesTopK() bool {
	switch c.Wire() {
	case WireChat:
		return c.Provider != "openai"
	case WireBedrock:
		return strings.Contains(c.Model, "anthropic.")
	}
	return c.Wire() == WireAnthropic || c.Wire() == WireGemini || c.Wire() == WireOllama
}

func (c Config) checkReasoning() (key string, reason error) {
	effort, tokens := c.reasoning()
	switch can := c.effortsOf(); {
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
