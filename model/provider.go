package model

import (
	"net/url"
	"slices"
	"strings"
)

// The wire formats. Their names stand in tenon.Part.Wire as well.
const (
	WireAnthropic = "anthropic"
	WireChat      = "openai-chat"
	WireResponses = "openai-responses"
	WireGemini    = "gemini"
	WireScript    = "script"
)

// Provider is one line of the table of providers.
type Provider struct {
	Name    string // value of models.NAME.provider
	Wire    string // which adapter speaks to it
	BaseURL string // "" = the user has to name one
	KeyEnv  string // the variable its users usually keep their key in, "" = none
	NeedKey bool   // without a key there is no answer at BaseURL
}

// providers is never changed; functions hand out copies.
var providers = [...]Provider{
	{"anthropic", WireAnthropic, "https://api.anthropic.com", "ANTHROPIC_API_KEY", true},
	{"openai", WireChat, "https://api.openai.com/v1", "OPENAI_API_KEY", true},
	{"gemini", WireGemini, "https://generativelanguage.googleapis.com", "GEMINI_API_KEY", true},
	{"ollama", WireChat, "http://127.0.0.1:11434/v1", "", false},
	{"llamacpp", WireChat, "http://127.0.0.1:8080/v1", "", false},
	{"openai-compatible", WireChat, "", "", false},
	{"script", WireScript, "", "", false},
}

// Lookup returns the provider of that name.
func Lookup(name string) (Provider, bool) {
	for _, p := range providers {
		if p.Name == name {
			return p, true
		}
	}
	return Provider{}, false
}

// ProviderNames lists the providers in the order of the table.
func ProviderNames() []string {
	names := make([]string, len(providers))
	for i, p := range providers {
		names[i] = p.Name
	}
	return names
}

// Wire names the adapter that speaks to the entry's provider, or is "" where
// there is no such provider.
func (c Config) Wire() string {
	p, _ := Lookup(c.Provider)
	if p.Wire == WireChat && c.API == APIResponses {
		return WireResponses
	}
	return p.Wire
}

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
	// Cache asks for prompt caching (Anthropic's top-level cache_control).
	Cache bool
	// EncryptedReasoning asks the Responses API for reasoning that can go back
	// although nothing is kept there; models that do not reason refuse the wish.
	EncryptedReasoning bool
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
	// Prompt caching by cache_control, as Anthropic's own API has it.
	Cache *bool `yaml:"cache" default:"provider's"`
	// true: ask for encrypted reasoning, which goes back with the next request (`api: responses`).
	EncryptedReasoning *bool `yaml:"encrypted_reasoning" default:"provider's, by the model's name"`
}

// The members for reasoning in the chat format, in the order they are looked for.
const (
	ReasoningContent = "reasoning_content"
	Reasoning        = "reasoning"
	ReasoningDetails = "reasoning_details"
)

// hostQuirks is the table of known hosts: the longest suffix that fits wins.
// Each line changes the defaults of its wire.
var hostQuirks = [...]struct {
	host   string
	change func(*Quirks)
}{
	{"api.anthropic.com", func(q *Quirks) { q.Cache = true }},
	{"api.openai.com", openAI},
	{"openai.azure.com", openAI},
	{"cognitiveservices.azure.com", openAI},
	{"api.x.ai", echo(ReasoningContent)},
	{"api.z.ai", echo(ReasoningContent)},
	{"api.avian.io", echo(ReasoningContent)},
	{"openrouter.ai", echo(Reasoning, ReasoningDetails)},
	{"ai-gateway.vercel.sh", echo(Reasoning, ReasoningDetails)},
}

func openAI(q *Quirks) { q.MaxTokensField, q.EncryptedReasoning = "max_completion_tokens", true }

func echo(members ...string) func(*Quirks) {
	return func(q *Quirks) { q.EchoReasoning = members }
}

// ResolvedQuirks returns the switches for this entry: the wire's defaults, what the
// table says about the host, then what the user wrote.
func (c Config) ResolvedQuirks() Quirks {
	c = c.WithDefaults()
	q := Quirks{MaxTokensField: "max_tokens", StreamOptions: true, Images: true}
	if c.Provider == "llamacpp" {
		q.EchoReasoning = []string{ReasoningContent}
	}
	if c.Provider == "gemini" {
		q.Audio = true
	}
	if u, err := url.Parse(c.BaseURL); err == nil {
		best := 0
		for _, h := range hostQuirks {
			name := strings.ToLower(u.Hostname())
			if (name == h.host || strings.HasSuffix(name, "."+h.host)) && len(h.host) > best {
				best = len(h.host)
				h.change(&q)
			}
		}
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
	for _, f := range []struct {
		to   *bool
		from *bool
	}{{&q.StreamOptions, o.StreamOptions}, {&q.Images, o.Images}, {&q.Audio, o.Audio}, {&q.Cache, o.Cache},
		{&q.EncryptedReasoning, o.EncryptedReasoning}} {
		if f.from != nil {
			*f.to = *f.from
		}
	}
	return q
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
