package model

import "strings"

// The wire formats. tenon.Part.Wire uses the same names.
const (
	WireAnthropic = "anthropic"
	WireChat      = "openai-chat"
	WireResponses = "openai-responses"
	WireGemini    = "gemini"
	WireBedrock   = "bedrock"
	WireOllama    = "ollama"
	WireScript    = "script"
)

// Provider is an entry of the table of providers.
type Provider struct {
	Name    string // the value of models.NAME.provider
	Wire    string // the wire format of its API
	BaseURL string // "" if the user must set it
	KeyEnv  string // the environment variable in which users usually keep their key, or ""
	NeedKey bool   // requests to BaseURL need a key
	// Own means that requests without a key use credentials of the machine, such as AWS credentials. models.NAME.region
	// then replaces REGION in BaseURL.
	Own bool
}

// providerVertex serves models of several makers in their formats.
const providerVertex = "vertex"

// providerOllama serves models in Ollama's API and in OpenAI's.
const providerOllama = "ollama"

// providerScript plays files of steps.
const providerScript = "script"

// providers is never modified; functions return copies. A new provider also needs its name in [Config], its quirks, a
// case in host/open_model.go if its API is new, and rows of host/detect.go and of the workbench's keysform.tsx, if
// tenon shall find its key or local server.
var providers = [...]Provider{
	{"anthropic", WireAnthropic, "https://api.anthropic.com", "ANTHROPIC_API_KEY", true, false},
	{"openai", WireChat, "https://api.openai.com/v1", "OPENAI_API_KEY", true, false},
	{"gemini", WireGemini, "https://generativelanguage.googleapis.com", "GEMINI_API_KEY", true, false},
	{providerOllama, WireChat, "http://127.0.0.1:11434/v1", "", false, false},
	{"llamacpp", WireChat, "http://127.0.0.1:8080/v1", "", false, false},
	{"lmstudio", WireChat, "http://127.0.0.1:1234/v1", "", false, false},
	{"vllm", WireChat, "http://127.0.0.1:8000/v1", "VLLM_API_KEY", false, false},
	{"openrouter", WireChat, "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", true, false},
	{"groq", WireChat, "https://api.groq.com/openai/v1", "GROQ_API_KEY", true, false},
	{"mistral", WireChat, "https://api.mistral.ai/v1", "MISTRAL_API_KEY", true, false},
	{"deepseek", WireChat, "https://api.deepseek.com", "DEEPSEEK_API_KEY", true, false},
	{"xai", WireChat, "https://api.x.ai/v1", "XAI_API_KEY", true, false},
	{"bedrock", WireBedrock, "https://bedrock-runtime.REGION.amazonaws.com", "AWS_BEARER_TOKEN_BEDROCK", false, true},
	{providerVertex, WireGemini, "https://REGION-aiplatform.googleapis.com", "", false, true},
	{"openai-compatible", WireChat, "", "", false, false},
	{providerScript, WireScript, "", "", false, false},
}

// Lookup returns the provider with the given name.
func Lookup(name string) (Provider, bool) {
	for _, p := range providers {
		if p.Name == name {
			return p, true
		}
	}
	return Provider{}, false
}

// ProviderNames returns the names of the providers in the order of the table.
func ProviderNames() []string {
	names := make([]string, len(providers))
	for i, p := range providers {
		names[i] = p.Name
	}
	return names
}

// Wire returns the wire format of the entry's provider, or "" if the provider is unknown.
func (c Config) Wire() string {
	p, _ := Lookup(c.Provider)
	if p.Name == providerVertex && strings.HasPrefix(c.Model, "claude") {
		return WireAnthropic
	}
	switch {
	case p.Wire == WireChat && c.API == APIResponses:
		return WireResponses
	case p.Name == providerOllama && c.API == APIOllama:
		return WireOllama
	}
	return p.Wire
}
