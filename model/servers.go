package model

import (
	"net/url"
	"slices"
	"strings"
)

// Server is an entry of the table of servers that use one of OpenAI's formats with differences.
type Server struct {
	Name     string
	Provider string // the value of models.NAME.provider for it, or ""
	Host     string // the longest matching suffix of the host wins; "" for servers on any host
	Notes    string // differences that need no switch, and advice for users
	change   func(*Quirks)
}

// servers is the table of differences. An entry changes the defaults of its wire format. The
// sources are recorded streams, the references of the servers, and reports of their users. Opened pages:
//
//	Cohere            docs.cohere.com/docs/compatibility-api: the lists of supported and unsupported parameters; there
//	                  is no tool_choice in either
//	Cerebras          Cerebras/cerebras-cloud-sdk-python 2026-01: completion_create_params.py;
//	                  inference-docs.cerebras.ai/capabilities/service-tiers; agno-agi/agno, issue 4508
//	Hugging Face      huggingface/hub-docs: docs/inference-providers/tasks/chat-completion.md, index.md
//	LM Studio         lmstudio-ai/docs: 3_openai-compat; lmstudio-ai/lmstudio-bug-tracker, issues 189, 670, 1396, 2403
//	Snowflake Cortex  docs.snowflake.com/user-guide/snowflake-cortex/open_ai_sdk
//	Bedrock, Mantle   docs.aws.amazon.com/bedrock/latest/userguide/inference-responses-api.html, bedrock-mantle.html
//
// Together and Fireworks were compared with their pages only for the format and reasoning_content. Databricks:
// docs.databricks.com, "Query reasoning models".
var servers = [...]Server{
	{"OpenAI", "openai", "api.openai.com", "`api: responses` keeps reasoning between tool calls", openAI},
	{"Azure OpenAI", "", "openai.azure.com",
		"a first chunk without choices; `base_url` ends with /openai/v1, or with " +
			"/openai/deployments/NAME?api-version=VERSION", azure},
	{"Azure AI services", "", "cognitiveservices.azure.com", "as Azure OpenAI", azure},
	{"Azure AI Foundry", "", "services.ai.azure.com", "as Azure OpenAI", azure},
	{"GitHub Models", "", "models.github.ai", "short limits: a request of 8,000 tokens can be too large", nil},
	{"GitHub Models (old address)", "", "models.inference.ai.azure.com", "as GitHub Models", nil},
	{"Ollama", providerOllama, "",
		"ignores tool_choice; `api: ollama` is Ollama's API, which takes num_ctx; otherwise its " +
			"context is short unless OLLAMA_CONTEXT_LENGTH is set, and it silently drops the oldest messages",
		func(q *Quirks) {
			local(q)
			q.EchoReasoning = []string{Reasoning}
		}},
	{"llama.cpp", "llamacpp", "", "tools need a server that was started with --jinja", func(q *Quirks) {
		local(q)
		q.EchoReasoning = []string{ReasoningContent}
	}},
	{"LM Studio", "lmstudio", "",
		"`api: responses` works too, but ignores schemas; its calls are not streamed in pieces",
		func(q *Quirks) {
			local(q)
			q.JSONObject, q.NamedChoice = false, false
		}},
	{"vLLM", "vllm", "", "tools need --enable-auto-tool-choice and a --tool-call-parser; GPUStack runs it, too", local},
	{"OpenRouter", "openrouter", "openrouter.ai",
		"comment lines; finish_reason sent twice; reports the cost of a request, which tenon uses",
		fetches(echo(Reasoning, ReasoningDetails))},
	{"Vercel AI Gateway", "", "ai-gateway.vercel.sh", "", echo(Reasoning, ReasoningDetails)},
	{"Groq", "groq", "api.groq.com", "usage sent twice; whole arguments in one piece", fetches(nil)},
	{"Mistral", "mistral", "api.mistral.ai",
		"content in parts; an empty tool name in later pieces; sends usage without being asked",
		func(q *Quirks) {
			q.StreamOptions, q.CallIDs, q.OutputSchema, q.BridgeResults = false, 9, SchemaAlone, true
			q.SystemMessages, q.Addresses = false, true
		}},
	{"DeepSeek", "deepseek", "api.deepseek.com", "counts cached tokens in its own members", func(q *Quirks) {
		q.EchoReasoning, q.NeedReasoning = []string{ReasoningContent}, true
	}},
	{"xAI", "xai", "api.x.ai",
		"whole arguments in one piece; chunks without finish_reason; reports the cost of a request",
		fetches(func(q *Quirks) { q.EchoReasoning, q.EncryptedReasoning = []string{ReasoningContent}, true })},
	{"Z.ai", "", "api.z.ai", "role in every chunk", echo(ReasoningContent)},
	{"Avian", "", "api.avian.io", "finish_reason sent twice", echo(ReasoningContent)},
	{"Cohere", "", "api.cohere.ai", "`base_url` ends with /compatibility/v1", cohere},
	{"Cohere (new address)", "", "api.cohere.com", "as Cohere", cohere},
	{"Cerebras", "", "api.cerebras.ai",
		"some models refuse parallel_tool_calls: false, such as gpt-oss-120b; service_tier is a preview for some " +
			"accounts",
		func(q *Quirks) {
			q.MaxTokensField, q.OutputSchema = "max_completion_tokens", SchemaAlone
		}},
	{"Hugging Face", "", "router.huggingface.co",
		"`base_url` ends with /v1; a suffix of the model, such as :cheapest or :groq, chooses its provider; usage " +
			"sent twice",
		fetches(alone)},
	{"Together", "", "api.together.xyz", "ends answers with eos", fetches(alone)},
	{"Together (new address)", "", "api.together.ai", "as Together", fetches(alone)},
	{"Fireworks", "", "api.fireworks.ai", "", func(q *Quirks) {
		q.EchoReasoning, q.OutputSchema = []string{ReasoningContent}, SchemaAlone
	}},
	{"Perplexity", "", "api.perplexity.ai", "no tools; reports the cost of a request", func(q *Quirks) {
		q.OutputSchema, q.JSONObject, q.SystemMessages = SchemaAlone, false, false
	}},
	{"Moonshot", "", "api.moonshot.ai", "", echo(ReasoningContent)},
	{"Snowflake Cortex", "", "snowflakecomputing.com", "streams without finish_reason", func(q *Quirks) {
		q.MaxTokensField = "max_completion_tokens"
	}},
	{"Databricks", "", "databricks.com", "`base_url` ends with /serving-endpoints; reasoning is a part of the content",
		echo(ReasoningParts)},
	{"Databricks on Azure", "", "azuredatabricks.net", "as Databricks", echo(ReasoningParts)},
	{"Amazon Bedrock", "", "amazonaws.com", "`base_url` ends with /openai/v1; the key is a Bedrock API key",
		func(q *Quirks) { q.MaxTokensField, q.EncryptedReasoning = "max_completion_tokens", true }},
	{"Amazon Bedrock Mantle", "", "api.aws", "`base_url` ends with /v1; Responses with `api: responses`",
		func(q *Quirks) { q.MaxTokensField, q.EncryptedReasoning = "max_completion_tokens", true }},
}

func openAI(q *Quirks) {
	q.MaxTokensField, q.EncryptedReasoning = "max_completion_tokens", true
	q.Documents, q.OutputSchema, q.AllowedTools, q.Addresses = true, SchemaAlways, true, true
}

// azure serves OpenAI's models. It reads a key from another header.
func azure(q *Quirks) {
	openAI(q)
	q.KeyHeader = true
}

// cohere is the compatible API, which is narrower than Cohere's own.
func cohere(q *Quirks) {
	alone(q)
	q.ObjectSchema, q.StreamOptions, q.NamedChoice = true, false, false
	q.Refused = []string{settingSerial, "store", "service_tier", "logprobs", "modalities"}
	q.Efforts = []string{"none", "high"}
}

// alone marks a server that enforces a schema with a grammar, which would not allow a tool call.
func alone(q *Quirks) { q.OutputSchema = SchemaAlone }

// local marks a server that writes the prompt with the template of the model. Many templates accept a system message
// only at the beginning.
func local(q *Quirks) {
	alone(q)
	q.SystemMessages = false
}

// fetches marks a server that reads images at addresses of the web.
func fetches(change func(*Quirks)) func(*Quirks) {
	return func(q *Quirks) {
		q.Addresses = true
		if change != nil {
			change(q)
		}
	}
}

func echo(members ...string) func(*Quirks) {
	return func(q *Quirks) { q.EchoReasoning = members }
}

// serverOf returns the entry for a host, otherwise the entry for a provider whose servers run on
// any host, or nil.
func serverOf(provider, host string) *Server {
	var best *Server
	for i := range servers {
		s := &servers[i]
		fits := s.Host != "" && (host == s.Host || strings.HasSuffix(host, "."+s.Host)) ||
			s.Host == "" && s.Provider == provider
		if fits && (best == nil || len(s.Host) > len(best.Host)) {
			best = s
		}
	}
	return best
}

// host returns the host of the address in lower case, or "".
func (c Config) host() string {
	u, err := url.Parse(c.BaseURL)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Hostname())
}

// server returns the row of the table for a configuration with its defaults, or nil.
func (c Config) server() *Server {
	switch c.Wire() { // the table has servers of OpenAI's formats
	case WireAnthropic, WireGemini, WireBedrock, WireScript:
		return nil
	}
	return serverOf(c.Provider, c.host())
}

// Refuses reports whether the server refuses a setting, by its name in OpenAI's API.
func (c Config) Refuses(setting string) bool {
	c = c.WithDefaults()
	s := c.server()
	if s == nil || s.change == nil {
		return false
	}
	var q Quirks
	s.change(&q)
	return slices.Contains(q.Refused, setting)
}

// effortsOf returns the efforts that the model and its server accept.
func (c Config) effortsOf() []string {
	can := samplingWires[c.Wire()].efforts(c.Model)
	s := c.WithDefaults().server()
	if s == nil || s.change == nil {
		return can
	}
	var q Quirks
	s.change(&q)
	if q.Efforts == nil {
		return can
	}
	return q.Efforts
}
