package model

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Quirks are the differences between servers of one wire format. The values come from recorded
// streams, and from the pages that the comments below name. Users override them in models.NAME.quirks.
type Quirks struct {
	// MaxTokensField is the name of the token limit. OpenAI's reasoning models refuse "max_tokens"
	// and need "max_completion_tokens", which many other servers do not know.
	MaxTokensField string
	// StreamOptions requests the token usage in the stream.
	StreamOptions bool
	// EchoReasoning names the members of an assistant message in which reasoning is sent back.
	EchoReasoning []string
	// Images means that the model accepts images. Otherwise notes replace them.
	Images bool
	// Audio means that the model accepts audio in user messages. Otherwise notes replace it.
	Audio bool
	// Documents means that the model reads PDF files. Otherwise notes replace them.
	Documents bool
	// Video means that the model accepts videos in user messages. Otherwise notes replace them.
	Video bool
	// Addresses means that the provider reads images and files at addresses of the web.
	Addresses bool
	// OutputSchema says when the provider can enforce a JSON Schema for an answer: SchemaAlways,
	// SchemaAlone (only in requests without tools), or SchemaNever.
	OutputSchema string
	// Cache requests prompt caching (Anthropic's top-level cache_control, cache points of Bedrock, caches of Gemini).
	Cache bool
	// Stream requests streamed answers. Some models of Bedrock cannot stream tool calls.
	Stream bool
	// CacheMarks marks the end of the stable prefix of a chat request for a prompt cache (Claude behind OpenRouter).
	CacheMarks bool
	// KeyHeader sends the key in the header api-key, too. Azure does not read keys from Authorization in all addresses.
	KeyHeader bool
	// NeedReasoning sends an empty reasoning member with tool calls that have no reasoning. Some
	// servers require the member.
	NeedReasoning bool
	// CallIDs is the required length of call ids, which then contain only letters and digits. 0
	// means any id.
	CallIDs int
	// BridgeResults inserts a short assistant message between tool results and a user message. Some
	// servers refuse a user message directly after results.
	BridgeResults bool
	// EncryptedReasoning requests encrypted reasoning from the Responses API, which can be sent
	// back although the provider stores nothing. Models without reasoning refuse the request.
	EncryptedReasoning bool
	// ToolSearch puts the definitions of found tools into the results of tool searches (Anthropic's
	// tool_reference, the Responses API's tool_search_output). The tools at the beginning of the
	// request then stay the same.
	ToolSearch bool
	// SystemMessages means that a conversation may contain messages of role system. Otherwise they are sent as
	// messages of the user.
	SystemMessages bool
	// AllowedTools means that a tool choice may list several tools (OpenAI's allowed_tools). Otherwise only these tools
	// are offered.
	AllowedTools bool
	// JSONObject means that the provider has OpenAI's response_format json_object.
	JSONObject bool
	// TextCalls recognizes calls that the model wrote as text at the end of an answer, in the form of its training.
	TextCalls bool
}

// QuirkConfig is models.NAME.quirks. It overrides the table, for servers that tenon does not know.
type QuirkConfig struct {
	// Name of the member that limits the length of the answer.
	MaxTokensField string `yaml:"max_tokens_field" enum:"max_tokens,max_completion_tokens" default:"provider's"`
	// false does not request token counts in the stream; some servers refuse the request.
	StreamOptions *bool `yaml:"stream_options" default:"provider's"`
	// Members in which reasoning is sent back: reasoning_content, reasoning, reasoning_details.
	EchoReasoning []string `yaml:"echo_reasoning" default:"provider's"`
	// false if the model does not accept images; a note replaces each.
	Images *bool `yaml:"images" default:"true"`
	// true if the model accepts audio (wav and mp3) in user messages.
	Audio *bool `yaml:"audio" default:"false"`
	// true if the model reads PDF files.
	Documents *bool `yaml:"documents" default:"provider's"`
	// true if the model accepts videos (gemini and bedrock).
	Video *bool `yaml:"video" default:"provider's"`
	// true if the provider reads images and files at https addresses. Otherwise tenon reads them, and sends their
	// bytes.
	Addresses *bool `yaml:"addresses" default:"provider's"`
	// When the provider enforces a schema for an answer: always, alone (only in requests without
	// tools) or never (the answer is only checked).
	OutputSchema string `yaml:"output_schema" enum:"always,alone,never" default:"provider's"`
	// Prompt caching with cache_control, as in Anthropic's own API and for its models at OpenRouter. With true, tools
	// and system prompt of gemini are put into a cache that is paid for, if they are large and used again within five
	// minutes; without it, Gemini caches by itself as far as it can.
	Cache *bool `yaml:"cache" default:"provider's"`
	// false requests whole answers, for models of Bedrock that cannot stream tool calls.
	Stream *bool `yaml:"stream" default:"true"`
	// true sends empty reasoning with tool calls that have none.
	NeedReasoning *bool `yaml:"need_reasoning" default:"provider's"`
	// Length of tool call ids, for servers that accept only letters and digits of one length.
	CallIDs *int `yaml:"call_ids" min:"0" max:"64" default:"provider's"`
	// true inserts a short answer of the model between tool results and a user message, for servers
	// that refuse a user message directly after results.
	BridgeResults *bool `yaml:"bridge_results" default:"provider's"`
	// true requests encrypted reasoning, which the next request sends back (`api: responses`).
	EncryptedReasoning *bool `yaml:"encrypted_reasoning" default:"provider's, by the model's name"`
	// true puts the definitions of found tools into the results of tool searches, as Anthropic's
	// and OpenAI's (`api: responses`) own APIs allow; false appends them to the list of tools.
	ToolSearch *bool `yaml:"tool_search" default:"provider's, by the model's name"`
	// false sends instructions in mid-conversation as messages of the user, for servers that accept the role system
	// only at the beginning (chat and responses).
	SystemMessages *bool `yaml:"system_messages" default:"provider's"`
	// true sends a tool choice of several tools as a list of allowed tools, so that the list of tools stays the same;
	// false offers only these tools (chat and responses).
	AllowedTools *bool `yaml:"allowed_tools" default:"provider's"`
	// false if the server has no response_format json_object (chat and responses).
	JSONObject *bool `yaml:"json_object" default:"true"`
	// true executes tool calls that the model wrote as text at the end of an answer, between the marks of its chat
	// template, when `tool_mode` is auto (`api: chat`). All rules apply to them. Text in code blocks, quotations and
	// thinking, and text copied from a tool result, is never a call.
	TextCalls *bool `yaml:"text_calls" default:"by the model's name: Hermes, Qwen, Llama, Mistral, DeepSeek"`
}

// The members for reasoning in the chat format, in order of preference.
const (
	ReasoningContent = "reasoning_content"
	Reasoning        = "reasoning"
	ReasoningDetails = "reasoning_details"
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
//	Cohere            docs.cohere.com/docs/compatibility-api, docs/structured-outputs
//	Cerebras          inference-docs.cerebras.ai/resources/openai, as quoted by promptfoo.dev/docs/providers/cerebras
//	Snowflake Cortex  docs.snowflake.com/user-guide/snowflake-cortex/open_ai_sdk
//	Bedrock, Mantle   docs.aws.amazon.com/bedrock/latest/userguide/inference-responses-api.html, bedrock-mantle.html
//
// The switches of Together, Fireworks and Databricks were not compared with a page.
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
	{"LM Studio", "lmstudio", "", "`api: responses` works too; its calls are not streamed in pieces", local},
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
	{"Cohere", "", "api.cohere.ai", "`base_url` ends with /compatibility/v1", alone},
	{"Cohere (new address)", "", "api.cohere.com", "as Cohere", alone},
	{"Cerebras", "", "api.cerebras.ai", "refuses penalties; newer settings may be refused, too", func(q *Quirks) {
		q.MaxTokensField, q.OutputSchema = "max_completion_tokens", SchemaAlone
	}},
	{"Together", "", "api.together.xyz", "ends answers with eos", fetches(alone)},
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
	{"Databricks", "", "databricks.com", "`base_url` ends with /serving-endpoints", nil},
	{"Databricks on Azure", "", "azuredatabricks.net", "as Databricks", nil},
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

// ResolvedQuirks returns the quirks of this entry: the defaults of the wire format, changed by the
// table's entry for the host, then by the user's quirks.
func (c Config) ResolvedQuirks() Quirks {
	c = c.WithDefaults()
	q := Quirks{MaxTokensField: "max_tokens", StreamOptions: true, Stream: true, Images: true,
		OutputSchema: SchemaNever}
	q.SystemMessages = c.Wire() == WireChat || c.Wire() == WireResponses
	q.JSONObject = q.SystemMessages || c.Wire() == WireOllama
	name := ""
	if u, err := url.Parse(c.BaseURL); err == nil {
		name = strings.ToLower(u.Hostname())
	}
	switch c.Provider {
	case providerVertex:
		q.Documents = true
		if c.Wire() == WireAnthropic {
			q.Cache = true // with a mark at the end of the system prompt
			break
		}
		q.Audio, q.Video, q.Addresses, q.OutputSchema = true, true, true, SchemaAlways
		if olderGemini(c.Model) {
			q.OutputSchema = SchemaAlone
		}
	case "gemini":
		q.Audio, q.Video, q.Documents, q.OutputSchema = true, true, true, SchemaAlways
		q.Addresses = !strings.HasPrefix(c.Model, "gemini-1") && !strings.HasPrefix(c.Model, "gemini-2.0")
		if olderGemini(c.Model) {
			q.OutputSchema = SchemaAlone
		}
	case "bedrock":
		q.Documents, q.Cache = true, cachesOnBedrock(c.Model)
		q.Video = strings.Contains(c.Model, "amazon.nova-") && !strings.Contains(c.Model, "nova-micro")
		// Models of other makers refuse text next to results: "Conversation blocks and tool use blocks cannot be
		// provided in the same turn" (quarkiverse/quarkus-langchain4j, issue 1983).
		q.BridgeResults = !strings.Contains(c.Model, "anthropic.") && !strings.Contains(c.Model, "amazon.")
	case "anthropic":
		q.Cache, q.Documents, q.Addresses = name == "api.anthropic.com", true, true
		if q.Cache && structuresAnswers(c.Model) {
			q.OutputSchema = SchemaAlways
		}
		q.ToolSearch = q.Cache && refersToTools(c.Model)
	}
	var s *Server
	switch c.Wire() { // the table has servers of OpenAI's formats
	case WireAnthropic, WireGemini, WireBedrock:
	default:
		s = serverOf(c.Provider, name)
	}
	if s != nil && s.change != nil {
		s.change(&q)
	}
	if s != nil && s.Name == "OpenRouter" {
		q.CacheMarks = strings.HasPrefix(c.Model, "anthropic/")
	}
	if c.API == APIResponses && name == "api.openai.com" {
		q.ToolSearch = searchesTools(c.Model)
	}
	if q.OutputSchema == SchemaAlways && c.Provider == "openai" && !schemaOfOpenAI(c.Model) {
		q.OutputSchema = SchemaNever
	}
	if !reasons(c.Model) {
		q.EncryptedReasoning = false
	}
	q.TextCalls = (c.Wire() == WireChat || c.Wire() == WireOllama) && slips(c.Model)
	o := c.Quirks
	if o.MaxTokensField != "" {
		q.MaxTokensField = o.MaxTokensField
	}
	if o.EchoReasoning != nil {
		q.EchoReasoning = slices.Clone(o.EchoReasoning)
	}
	if o.OutputSchema != "" {
		q.OutputSchema = o.OutputSchema
	}
	if o.CallIDs != nil {
		q.CallIDs = *o.CallIDs
	}
	for _, f := range []struct {
		to   *bool
		from *bool
	}{
		{&q.StreamOptions, o.StreamOptions}, {&q.Images, o.Images}, {&q.Audio, o.Audio},
		{&q.Documents, o.Documents}, {&q.Video, o.Video}, {&q.Addresses, o.Addresses}, {&q.Cache, o.Cache},
		{&q.NeedReasoning, o.NeedReasoning},
		{&q.BridgeResults, o.BridgeResults}, {&q.EncryptedReasoning, o.EncryptedReasoning},
		{&q.ToolSearch, o.ToolSearch}, {&q.CacheMarks, o.Cache}, {&q.Stream, o.Stream},
		{&q.TextCalls, o.TextCalls}, {&q.SystemMessages, o.SystemMessages},
		{&q.AllowedTools, o.AllowedTools}, {&q.JSONObject, o.JSONObject},
	} {
		if f.from != nil {
			*f.to = *f.from
		}
	}
	return q
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

// reasons reports whether an OpenAI model reasons, by its name. Older models and chat models do not.
func reasons(name string) bool {
	for _, old := range []string{"gpt-3", "gpt-4", "chatgpt", "ft:gpt-3", "ft:gpt-4"} {
		if strings.HasPrefix(name, old) {
			return false
		}
	}
	return !strings.Contains(name, "-chat")
}

// slips reports whether a model sometimes writes a tool call as text, by its name. These families were trained to write
// calls in a certain form. Servers convert this form to native calls, but only if the model follows it exactly. Package
// textcall reads these forms. Sources: issues 11185 and 14745 of ollama/ollama for Qwen; the other families were added
// without a source.
func slips(name string) bool {
	name = strings.ToLower(name)
	for _, family := range []string{"hermes", "qwen", "qwq", "llama", "mistral", "mixtral", "ministral", "magistral",
		"devstral", "codestral", "deepseek"} {
		if strings.Contains(name, family) {
			return true
		}
	}
	return false
}

// cachesOnBedrock reports whether a model of Amazon Bedrock accepts cache points, by its name. Other models refuse the
// whole request. Source: "Prompt caching" of Bedrock's user guide.
func cachesOnBedrock(name string) bool {
	for _, old := range []string{"claude-v2", "claude-instant", "claude-3-haiku", "claude-3-sonnet", "claude-3-opus",
		"claude-3-5-sonnet"} {
		if strings.Contains(name, old) {
			return false
		}
	}
	return strings.Contains(name, "anthropic.claude-") || strings.Contains(name, "amazon.nova-")
}

// refersToTools reports whether an Anthropic model accepts tool_reference, by its name. Models
// before version 4.5 and Haiku 4.5 do not.
func refersToTools(name string) bool {
	for _, old := range []string{
		"claude-1", "claude-2", "claude-3", "claude-instant", "claude-haiku-4-5",
		"claude-opus-4-0", "claude-opus-4-1", "claude-opus-4-2",
		"claude-sonnet-4-0", "claude-sonnet-4-2", // -4-2 is the date of version 4, 2025…
	} {
		if strings.HasPrefix(name, old) {
			return false
		}
	}
	return strings.HasPrefix(name, "claude-")
}

// searchesTools reports whether an OpenAI model supports tool search that the client executes, by
// its name: gpt-5.4 and later.
func searchesTools(name string) bool {
	rest, ok := strings.CutPrefix(name, "gpt-")
	if !ok || strings.Contains(name, "-chat") {
		return false
	}
	version, _, _ := strings.Cut(rest, "-")
	major, minor, _ := strings.Cut(version, ".")
	a, err := strconv.Atoi(major)
	b, _ := strconv.Atoi(minor) // 0 if there is no minor version
	return err == nil && (a > 5 || a == 5 && b >= 4)
}
