package model

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Quirks are the switches by which servers of one wire format differ. The
// values come from recorded streams; a user overrides them in
// models.NAME.quirks.
type Quirks struct {
	// MaxTokensField is "max_completion_tokens" where reasoning models refuse
	// the older "max_tokens", which is all that many other servers know.
	MaxTokensField string
	// StreamOptions asks for the usage of a stream.
	StreamOptions bool
	// EchoReasoning names the members of an assistant message in which the
	// recorded clients send reasoning back.
	EchoReasoning []string
	// Images: the model sees images; else they become notes.
	Images bool
	// Audio: the model hears audio in user messages; else it becomes a note.
	Audio bool
	// Documents: the model reads PDF files; else they become notes.
	Documents bool
	// OutputSchema says when the provider holds an answer to a JSON Schema: SchemaAlways,
	// SchemaAlone (only where no tools are offered), or SchemaNever.
	OutputSchema string
	// Cache asks for prompt caching (Anthropic's top-level cache_control).
	Cache bool
	// NeedReasoning sends an empty member for reasoning with calls that came
	// without any, because the server asks for it.
	NeedReasoning bool
	// CallIDs is the length of the ids of calls, letters and digits only; 0: any.
	CallIDs int
	// BridgeResults puts a short answer of the model between tool results and a message
	// of the user, which the server refuses right behind them.
	BridgeResults bool
	// EncryptedReasoning asks the Responses API for reasoning that can go back
	// although nothing is kept there; models that do not reason refuse the wish.
	EncryptedReasoning bool
	// ToolSearch tells the model of tools that it has found in the results that name
	// them (Anthropic's tool_reference, the Responses API's tool_search_output), so
	// that the tools at the beginning of a request stay as they are.
	ToolSearch bool
}

// QuirkConfig is models.NAME.quirks: it overrides the table for servers that
// tenon does not know.
type QuirkConfig struct {
	// Member that limits the answer's length.
	MaxTokensField string `yaml:"max_tokens_field" enum:"max_tokens,max_completion_tokens" default:"provider's"`
	// false: do not ask for token counts in the stream; some servers refuse the question.
	StreamOptions *bool `yaml:"stream_options" default:"provider's"`
	// Members in which reasoning is sent back, of reasoning_content, reasoning and reasoning_details.
	EchoReasoning []string `yaml:"echo_reasoning" default:"provider's"`
	// false: the model sees no images; a note stands for each.
	Images *bool `yaml:"images" default:"true"`
	// true: the model takes audio (wav and mp3) in user messages.
	Audio *bool `yaml:"audio" default:"false"`
	// true: the model reads PDF files.
	Documents *bool `yaml:"documents" default:"provider's"`
	// When the provider itself holds an answer to a schema: always; alone: only where no tools are offered; never: the answer is only checked.
	OutputSchema string `yaml:"output_schema" enum:"always,alone,never" default:"provider's"`
	// Prompt caching by cache_control, as Anthropic's own API has it.
	Cache *bool `yaml:"cache" default:"provider's"`
	// true: send empty reasoning with tool calls that came without any.
	NeedReasoning *bool `yaml:"need_reasoning" default:"provider's"`
	// Length of the ids of tool calls where the server takes letters and digits of one length only.
	CallIDs *int `yaml:"call_ids" min:"0" max:"64" default:"provider's"`
	// true: a short answer of the model stands between tool results and a message of the user, for servers that refuse the one right behind the other.
	BridgeResults *bool `yaml:"bridge_results" default:"provider's"`
	// true: ask for encrypted reasoning, which goes back with the next request (`api: responses`).
	EncryptedReasoning *bool `yaml:"encrypted_reasoning" default:"provider's, by the model's name"`
	// true: tools that the model has found are told of where it found them, as Anthropic's own API and OpenAI's (`api: responses`) can; false: they stand behind the others in the list of tools.
	ToolSearch *bool `yaml:"tool_search" default:"provider's, by the model's name"`
}

// The members for reasoning in the chat format, in the order they are looked for.
const (
	ReasoningContent = "reasoning_content"
	Reasoning        = "reasoning"
	ReasoningDetails = "reasoning_details"
)

// Server is one line of the table of servers that speak one of OpenAI's formats
// and differ in something.
type Server struct {
	Name     string
	Provider string // the value of models.NAME.provider that leads to it; "" where there is none
	Host     string // of its address: the longest suffix that fits wins; "" for servers on any host
	Notes    string // what is borne without a switch, and what its users should know
	change   func(*Quirks)
}

// servers is the one table of differences. What a line changes are the defaults
// of its wire; the sources are recorded streams, the servers' references and their
// users' reports.
var servers = [...]Server{
	{"OpenAI", "openai", "api.openai.com", "`api: responses` keeps reasoning between tool calls", openAI},
	{"Azure OpenAI", "", "openai.azure.com", "a first chunk without choices", openAI},
	{"Azure AI services", "", "cognitiveservices.azure.com", "", openAI},
	{"Ollama", "ollama", "", "ignores tool_choice; its context is short unless OLLAMA_CONTEXT_LENGTH is set", alone},
	{"llama.cpp", "llamacpp", "", "tools need a server that was started with --jinja", func(q *Quirks) {
		q.EchoReasoning, q.OutputSchema = []string{ReasoningContent}, SchemaAlone
	}},
	{"LM Studio", "lmstudio", "", "`api: responses` works too; its calls come without pieces", alone},
	{"vLLM", "vllm", "", "tools need --enable-auto-tool-choice and a --tool-call-parser", alone},
	{"OpenRouter", "openrouter", "openrouter.ai", "comment lines; finish_reason sent twice; says what a request cost, and that counts", echo(Reasoning, ReasoningDetails)},
	{"Vercel AI Gateway", "", "ai-gateway.vercel.sh", "", echo(Reasoning, ReasoningDetails)},
	{"Groq", "groq", "api.groq.com", "usage sent twice; whole arguments in one piece", nil},
	{"Mistral", "mistral", "api.mistral.ai", "content in parts; an empty tool name in later pieces; usage comes unasked", func(q *Quirks) {
		q.StreamOptions, q.CallIDs, q.OutputSchema, q.BridgeResults = false, 9, SchemaAlone, true
	}},
	{"DeepSeek", "deepseek", "api.deepseek.com", "counts cached tokens in members of its own", func(q *Quirks) {
		q.EchoReasoning, q.NeedReasoning = []string{ReasoningContent}, true
	}},
	{"xAI", "xai", "api.x.ai", "whole arguments in one piece; chunks without finish_reason", echo(ReasoningContent)},
	{"Z.ai", "", "api.z.ai", "role in every chunk", echo(ReasoningContent)},
	{"Avian", "", "api.avian.io", "finish_reason sent twice", echo(ReasoningContent)},
}

func openAI(q *Quirks) {
	q.MaxTokensField, q.EncryptedReasoning, q.Documents, q.OutputSchema = "max_completion_tokens", true, true, SchemaAlways
}

// alone is of servers that hold an answer to a schema by a grammar, which a tool call
// would not fit.
func alone(q *Quirks) { q.OutputSchema = SchemaAlone }

func echo(members ...string) func(*Quirks) {
	return func(q *Quirks) { q.EchoReasoning = members }
}

// Servers returns the table of servers that differ, for documents and lists.
func Servers() []Server { return slices.Clone(servers[:]) }

// ResolvedQuirks returns the switches for this entry: the wire's defaults, what the
// table says about the host, then what the user wrote.
func (c Config) ResolvedQuirks() Quirks {
	c = c.WithDefaults()
	q := Quirks{MaxTokensField: "max_tokens", StreamOptions: true, Images: true, OutputSchema: SchemaNever}
	name := ""
	if u, err := url.Parse(c.BaseURL); err == nil {
		name = strings.ToLower(u.Hostname())
	}
	switch c.Provider {
	case "gemini":
		q.Audio, q.Documents, q.OutputSchema = true, true, SchemaAlways
		if olderGemini(c.Model) {
			q.OutputSchema = SchemaAlone
		}
	case "anthropic":
		q.Cache, q.Documents = name == "api.anthropic.com", true
		if q.Cache && structuresAnswers(c.Model) {
			q.OutputSchema = SchemaAlways
		}
		q.ToolSearch = q.Cache && refersToTools(c.Model)
	}
	if s := serverOf(c.Provider, name); s != nil && s.change != nil {
		s.change(&q)
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
	}{{&q.StreamOptions, o.StreamOptions}, {&q.Images, o.Images}, {&q.Audio, o.Audio}, {&q.Documents, o.Documents}, {&q.Cache, o.Cache},
		{&q.NeedReasoning, o.NeedReasoning}, {&q.BridgeResults, o.BridgeResults}, {&q.EncryptedReasoning, o.EncryptedReasoning}, {&q.ToolSearch, o.ToolSearch}} {
		if f.from != nil {
			*f.to = *f.from
		}
	}
	return q
}

// serverOf returns the line for a host, else the one for a provider whose servers
// have no host of their own, or nil.
func serverOf(provider, host string) *Server {
	var best *Server
	for i := range servers {
		s := &servers[i]
		fits := s.Host != "" && (host == s.Host || strings.HasSuffix(host, "."+s.Host)) || s.Host == "" && s.Provider == provider
		if fits && (best == nil || len(s.Host) > len(best.Host)) {
			best = s
		}
	}
	return best
}

// reasons reports whether a model of OpenAI's reasons, by its name: all do but
// the older ones and those for chat.
func reasons(name string) bool {
	for _, old := range []string{"gpt-3", "gpt-4", "chatgpt", "ft:gpt-3", "ft:gpt-4"} {
		if strings.HasPrefix(name, old) {
			return false
		}
	}
	return !strings.Contains(name, "-chat")
}

// refersToTools reports whether a model of Anthropic's takes tool_reference, by its
// name: all do but those before version 4.5.
func refersToTools(name string) bool {
	for _, old := range []string{"claude-1", "claude-2", "claude-3", "claude-instant", "claude-haiku-4-5",
		"claude-opus-4-0", "claude-opus-4-1", "claude-opus-4-2", "claude-sonnet-4-0", "claude-sonnet-4-2"} { // -4-2: the date of version 4
		if strings.HasPrefix(name, old) {
			return false
		}
	}
	return strings.HasPrefix(name, "claude-")
}

// searchesTools reports whether a model of OpenAI's has the tool search that a
// client answers, by its name: gpt-5.4 and later.
func searchesTools(name string) bool {
	rest, ok := strings.CutPrefix(name, "gpt-")
	if !ok || strings.Contains(name, "-chat") {
		return false
	}
	version, _, _ := strings.Cut(rest, "-")
	major, minor, _ := strings.Cut(version, ".")
	a, err := strconv.Atoi(major)
	b, _ := strconv.Atoi(minor) // none: 0
	return err == nil && (a > 5 || a == 5 && b >= 4)
}
