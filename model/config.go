package model

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
)

// The values of [Config.ToolMode].
const (
	ToolsAuto   = "auto"
	ToolsNative = "native"
	ToolsReact  = "react"
	ToolsNone   = "none"
)

// Config is an entry of `models` in tenon.yaml: a model and how to reach it. The comments on the
// fields are the user documentation.
type Config struct {
	// Name is the key of the entry, for messages such as "set models.NAME.api_key".
	Name string `yaml:"-"`
	// ToolSecrets are the secrets in Tools, which are masked wherever they appear.
	ToolSecrets []tenon.Secret `yaml:"-"`

	// The provider of the model.
	Provider string `yaml:"provider" enum:"anthropic,openai,gemini,ollama,openai-compatible,llamacpp,lmstudio,vllm,openrouter,groq,mistral,deepseek,xai,bedrock,vertex,script"`
	// The provider's name for the model.
	Model string `yaml:"model"`
	// The API for providers that have OpenAI's APIs: chat (Chat Completions) or responses. With
	// responses, reasoning models keep their reasoning between tool calls. The provider stores
	// nothing. Provider ollama also has ollama, its own API, which takes num_ctx and keep_alive, keeps the sampling
	// settings of the model, and refuses a conversation that is too long, so that tenon compacts it.
	API string `yaml:"api" enum:"chat,responses,ollama" default:"chat"`
	// Address of the API, without the last part such as `/chat/completions`.
	BaseURL string `yaml:"base_url" default:"provider's"`
	// Region of a cloud (providers bedrock and vertex), such as us-east-1; for vertex also global.
	Region string `yaml:"region" default:"the cloud's variable or profile; global"`
	// Project of Google Cloud (provider vertex).
	Project string `yaml:"project" default:"GOOGLE_CLOUD_PROJECT, or of the credentials"`
	// Profile of AWS's shared files (provider bedrock). With a profile, the keys in the environment are not used.
	Profile string `yaml:"profile" default:"AWS_PROFILE"`
	// How requests are authorized: with api_key, or at addresses of Azure with tokens of Microsoft Entra, which come
	// from the environment, a managed identity or `az login`.
	Auth string `yaml:"auth" enum:"key,entra" default:"key"`
	// API key. Providers bedrock and vertex need none: they find the credentials of the cloud in the environment, a
	// profile, a sign-in, a container or a machine. A key that is refused is read again once.
	APIKey tenon.Secret `yaml:"api_key" default:"provider's usual variable"`
	// Additional HTTP headers.
	Headers map[string]string `yaml:"headers" default:"{}"`
	// Sampling temperature, 0 to 2.
	Temperature *float64 `yaml:"temperature" min:"0" max:"2" default:"provider's"`
	// Maximum number of tokens in an answer.
	MaxTokens int `yaml:"max_tokens" min:"1" default:"4096"`
	// Size of the model's context in tokens, for models that tenon does not know and for servers that have less. The
	// chat shows how much of it is used. A conversation is summarized before a request and its answer (max_tokens) no
	// longer fit, unless the agent sets `compaction.at_tokens`. With num_ctx, that is the size.
	ContextTokens int `yaml:"context_tokens" min:"1" default:"from a table, for the status line only"`
	// Nucleus sampling: only the most likely tokens with this total probability are considered, 0
	// to 1.
	TopP *float64 `yaml:"top_p" min:"0" max:"1" default:"provider's"`
	// How much the model reasons before it answers: none, minimal, low, medium, high or xhigh, as far as the model has
	// them, or a number of tokens in quotes, such as "2048", for models of Anthropic and Google and at OpenRouter. A
	// question can set another effort.
	Reasoning string `yaml:"reasoning" default:"provider's"`
	// Texts that end the answer, at most 4; not with `api: responses`. Agents with `mode: react` need a model without.
	Stop []string `yaml:"stop" default:"[]"`
	// Only so many of the most likely tokens are considered; not with `api: responses` and provider openai.
	TopK int `yaml:"top_k" min:"1" default:"provider's"`
	// Makes answers repeatable as far as the provider can (chat and gemini).
	Seed *int `yaml:"seed" default:"none"`
	// Length of answers (chat and responses of OpenAI).
	Verbosity string `yaml:"verbosity" enum:"low,medium,high" default:"provider's"`
	// Class of service, in the provider's words, such as flex or priority; not for gemini.
	ServiceTier string `yaml:"service_tier" default:"provider's"`
	// true lets the provider store the answers (chat and responses of OpenAI). tenon always sends the whole
	// conversation.
	Store *bool `yaml:"store" default:"false"`
	// Additional data in answers with `api: responses`, in OpenAI's words.
	Include []string `yaml:"include" default:"[]"`
	// Probabilities of tokens in answers, with so many alternatives of each token, 0 to 20 (chat, responses and
	// gemini). They are part of the journal and of JSON output.
	Logprobs *int `yaml:"logprobs" min:"0" max:"20" default:"none"`
	// Kinds of answers: text, audio, image, as far as the model has them (chat and gemini).
	Modalities []string `yaml:"modalities" default:"[text]"`
	// Voice of answers in audio, by the provider's name for it, such as alloy or Kore (chat and gemini).
	Voice string `yaml:"voice" default:"provider's"`
	// Size of the context in tokens with `api: ollama`. Ollama's own default is small for agents with many tools.
	NumCtx int `yaml:"num_ctx" min:"1" default:"the server's"`
	// How long a model stays loaded after a request with `api: ollama`: a duration such as 30m, 0 (not at all) or -1
	// (until the server stops).
	KeepAlive string `yaml:"keep_alive" default:"the server's, 5m"`
	// Maximum silence in a request: before the answer begins, and between two of its pieces.
	Timeout time.Duration `yaml:"timeout" default:"120s"`
	// Retries after the first attempt, for lost connections and status 408, 409, 429 and 5xx.
	Retries *int `yaml:"retries" min:"0" max:"10" default:"2"`
	// How tools are offered: native (the provider's own form), react (a text loop for models that
	// cannot call tools) or none. auto uses the table of providers. `mode` of an agent overrides
	// this.
	ToolMode string `yaml:"tool_mode" enum:"auto,native,react,none" default:"auto"`
	// File of steps for provider script, as in `--model script:FILE`.
	Path string `yaml:"path"`
	// Tools that the provider runs itself: web_search, web_fetch, file_search, code_execution and
	// image_generation, with their settings in the provider's words, as far as the API has them. `{mcp: URL, token:
	// TOKEN, allowed_tools: [NAME]}` is an MCP server that the provider calls (responses, anthropic and gemini). An
	// entry with a type is sent as it is. A rule about `tool.server == "provider"` can forbid them. A tool for which
	// the rules ask is not offered, because nobody can be asked about a single call, except for MCP servers with
	// OpenAI's responses: there the rules decide about each call. ${VARIABLE} and ${secret:NAME} are replaced.
	Tools json.RawMessage `yaml:"tools" default:"{}"`
	// When images, PDF documents, sounds and videos of a conversation are uploaded to the provider once, instead of
	// being sent with each request: auto (if the request would be too large), always (from 256 KiB on) or never.
	// anthropic, openai and gemini store files. tenon deletes them when the process ends, or after a day.
	Uploads string `yaml:"uploads" enum:"auto,always,never" default:"auto"`
	// Additional members of each request, such as the grammar of a local server. Objects and lists
	// are merged with the objects and lists of tenon. Members that tenon sets itself are not allowed. Members that
	// switch on tools of the provider, such as plugins and mcp_servers, count as such tools for rules; see tools.
	Extra json.RawMessage `yaml:"extra" default:"{}"`
	// Models that replace this one, tried in order, if it is unreachable, fails, is rate-limited or
	// out of quota, or breaks off an answer: entries of `models`, or provider/name.
	Fallback []string `yaml:"fallback" default:"[]"`
	// Price of the model's tokens; see also prices. `price: {}` means that the model is free.
	Price *Price `yaml:"price" default:"from the table of prices"`
	// Differences of a server from the entry of its provider in the table.
	Quirks QuirkConfig `yaml:"quirks"`
}

// The values of [Config.Uploads].
const (
	UploadAuto   = "auto"
	UploadAlways = "always"
	UploadNever  = "never"
)

// The values of [Config.API].
const (
	APIChat      = "chat"
	APIResponses = "responses"
	APIOllama    = "ollama"
)

// The defaults of [Config].
const (
	DefaultMaxTokens = 4096
	DefaultTimeout   = 120 * time.Second
	DefaultRetries   = 2
)

// WithDefaults returns a copy in which every field with a default is set.
func (c Config) WithDefaults() Config {
	c.MaxTokens = cmp.Or(c.MaxTokens, DefaultMaxTokens)
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	if c.Retries == nil {
		n := DefaultRetries
		c.Retries = &n
	}
	c.ToolMode = cmp.Or(c.ToolMode, ToolsAuto)
	if p, ok := Lookup(c.Provider); ok && c.BaseURL == "" {
		c.BaseURL = p.BaseURL
	}
	return c
}

// Check reports the first invalid value, with code config. It opens no files and reads no
// environment variables.
func (c Config) Check() error {
	at := c.key("")
	p, ok := Lookup(c.Provider)
	bad := func(key, format string, args ...any) error {
		return tenon.Errorf(tenon.CodeConfig, "%s%s: %w", at, key, fmt.Errorf(format, args...))
	}
	switch {
	case c.Provider == "":
		return bad("provider", "no provider; use one of %s", strings.Join(ProviderNames(), ", "))
	case !ok:
		return bad("provider", "unknown provider '%s'; use one of %s", c.Provider, strings.Join(ProviderNames(), ", "))
	case p.Wire == WireScript && c.Path == "":
		return bad("path", "provider script needs a file of steps")
	case c.ContextTokens < 0:
		return bad("context_tokens", "%d is negative", c.ContextTokens)
	case c.ContextTokens > 0 && c.NumCtx > 0:
		return bad("context_tokens", "num_ctx is the size of the context already; leave one of them out")
	case c.Price != nil && c.Price.bad() != "":
		return bad("price", "%s", c.Price.bad())
	case p.Wire == WireScript:
		if err := c.checkHosted(); err != nil {
			return bad("tools", "%w", err)
		}
		return nil
	case c.API != "" && p.Wire != WireChat:
		return bad("api", "provider %s has only one API", c.Provider)
	case c.API == APIOllama && p.Name != providerOllama:
		return bad("api", "only provider ollama has this API")
	case c.API != "" && c.API != APIChat && c.API != APIResponses && c.API != APIOllama:
		return bad("api", "'%s' is not one of chat, responses, ollama", c.API)
	case c.Model == "":
		return bad("model", "no model; name one that %s serves", c.Provider)
	case c.BaseURL == "" && p.BaseURL == "":
		return bad("base_url", "provider %s needs the address of its API", c.Provider)
	case c.MaxTokens < 0:
		return bad("max_tokens", "%d is negative", c.MaxTokens)
	case c.Timeout < 0:
		return bad("timeout", "%s is negative", c.Timeout)
	case c.Retries != nil && (*c.Retries < 0 || *c.Retries > 10):
		return bad("retries", "%d is not within 0 to 10", *c.Retries)
	case c.Temperature != nil && (*c.Temperature < 0 || *c.Temperature > 2):
		return bad("temperature", "%g is not within 0 to 2", *c.Temperature)
	case c.TopP != nil && (*c.TopP < 0 || *c.TopP > 1):
		return bad("top_p", "%g is not within 0 to 1", *c.TopP)
	}
	if key, reason := c.checkCloud(p); key != "" {
		return bad(key, "%s", reason)
	}
	if err := checkExtra(c.Wire(), c.Extra); err != nil {
		return bad("extra", "%w", err)
	}
	if err := c.checkHosted(); err != nil {
		return bad("tools", "%w", err)
	}
	if key, err := c.checkSettings(); key != "" {
		return bad(key, "%w", err)
	}
	switch c.Uploads {
	case "", UploadAuto, UploadNever:
	case UploadAlways:
		if !c.HasFiles() {
			return bad("uploads", "provider %s stores no files for requests", c.Provider)
		}
	default:
		return bad("uploads", "'%s' is not one of auto, always, never", tenon.Visible(c.Uploads))
	}
	switch c.ToolMode {
	case "", ToolsAuto, ToolsNative, ToolsReact, ToolsNone:
	default:
		return bad("tool_mode", "'%s' is not one of auto, native, react, none", c.ToolMode)
	}
	if c.BaseURL != "" {
		u, err := url.Parse(c.BaseURL)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return bad("base_url", "'%s' is not an http or https address", c.BaseURL)
		}
	}
	return nil
}

// key returns the path of a key of this entry: "models.main.api_key".
func (c Config) key(k string) string {
	name := c.Name
	if name == "" || strings.ContainsAny(name, "/:") { // the model was named on the command line
		name = "NAME"
	}
	return "models." + name + "." + k
}
