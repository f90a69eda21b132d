package model

import (
	"cmp"
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
	// ObjectSchema sends a schema as member schema of response_format json_object (Cohere).
	ObjectSchema bool
	// NamedChoice means that a tool choice may name one tool. Otherwise only this tool is offered, and the model must
	// call a tool.
	NamedChoice bool
	// Refused lists settings that the server refuses, by their names in OpenAI's API.
	Refused []string
	// Efforts lists the efforts that the server accepts; nil means the model's.
	Efforts []string
	// TextCalls recognizes calls that the model wrote as text at the end of an answer, in the form of its training.
	TextCalls bool
}

// QuirkConfig is models.NAME.quirks. It overrides the table, for servers that tenon does not know.
type QuirkConfig struct {
	// Name of the member that limits the length of the answer.
	MaxTokensField string `yaml:"max_tokens_field" enum:"max_tokens,max_completion_tokens" default:"provider's"`
	// false does not request token counts in the stream; some servers refuse the request.
	StreamOptions *bool `yaml:"stream_options" default:"provider's"`
	// Members in which reasoning is sent back: reasoning_content, reasoning, reasoning_details; content if it is a list
	// with the reasoning.
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
	// false if the server accepts no name in tool_choice; then only the named tool is offered (chat).
	NamedChoice *bool `yaml:"named_choice" default:"provider's"`
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
	// ReasoningParts means that the content is a list whose first parts are the reasoning.
	ReasoningParts = "content"
)

// ResolvedQuirks returns the quirks of this entry: the defaults of the wire format, changed by the
// table's entry for the host, then by the user's quirks.
func (c Config) ResolvedQuirks() Quirks {
	c = c.WithDefaults()
	q := Quirks{MaxTokensField: "max_tokens", StreamOptions: true, Stream: true, Images: true,
		OutputSchema: SchemaNever}
	q.SystemMessages = c.Wire() == WireChat || c.Wire() == WireResponses
	q.JSONObject, q.NamedChoice = q.SystemMessages || c.Wire() == WireOllama, true
	name := c.host()
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
		if _, id, ok := strings.Cut(c.Model, "anthropic."); ok && structuresOnBedrock(id) {
			q.OutputSchema = SchemaAlways
		}
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
	s := c.server()
	if s != nil && s.change != nil {
		s.change(&q)
	}
	if s != nil && s.Name == "OpenRouter" {
		q.CacheMarks = strings.HasPrefix(c.Model, "anthropic/")
	}
	if s != nil && s.Provider == "lmstudio" && c.API == APIResponses {
		q.OutputSchema = SchemaNever // it ignores text.format (lmstudio-ai/lmstudio-bug-tracker, issues 1396, 2403)
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
	q.MaxTokensField = cmp.Or(o.MaxTokensField, q.MaxTokensField)
	if o.EchoReasoning != nil {
		q.EchoReasoning = slices.Clone(o.EchoReasoning)
	}
	q.OutputSchema = cmp.Or(o.OutputSchema, q.OutputSchema)
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
		{&q.AllowedTools, o.AllowedTools}, {&q.JSONObject, o.JSONObject}, {&q.NamedChoice, o.NamedChoice},
	} {
		if f.from != nil {
			*f.to = *f.from
		}
	}
	return q
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
