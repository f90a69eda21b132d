package model

import (
	"strings"
)

// family is a family of models with the size of their context.
type family struct {
	prefix string // of the model's name; a longer prefix of another row wins
	tokens int
	source string
}

// Sources of the sizes, read in November 2026.
const (
	windowsClaude = "platform.claude.com/docs/en/build-with-claude/context-windows and the overviews of the models"
	windowsGPT    = "the model's page at platform.openai.com/docs/models, as other services repeat it"
	windowsGemini = "ai.google.dev/gemini-api/docs/models and the pages of Vertex AI"
	otherWindows  = "other models of the family have another size"
)

// families has the sizes of contexts in tokens, input and output together; at Gemini, only the input. A size of 0 means
// that it is not known. A name that is not in the list has no known size.
var families = []family{
	{"claude-", 200_000, windowsClaude},
	{"claude-fable-", 1_000_000, windowsClaude},
	{"claude-mythos-", 1_000_000, windowsClaude},
	{"claude-opus-5", 1_000_000, windowsClaude},
	{"claude-opus-4-6", 1_000_000, windowsClaude},
	{"claude-opus-4-7", 1_000_000, windowsClaude},
	{"claude-opus-4-8", 1_000_000, windowsClaude},
	{"claude-sonnet-5", 1_000_000, windowsClaude},
	{"claude-sonnet-4-6", 1_000_000, windowsClaude},
	{"claude-haiku-5-5", 1_000_000, windowsClaude},
	{"claude-2-0", 100_000, windowsClaude},
	{"claude-instant", 100_000, windowsClaude},
	{"gpt-4o", 128_000, windowsGPT},
	{"gpt-4-turbo", 128_000, windowsGPT},
	{"gpt-4.1", 1_047_576, windowsGPT},
	{"gpt-5", 400_000, windowsGPT},
	{"gpt-5-chat", 128_000, windowsGPT},
	{"gpt-5.1-chat", 128_000, windowsGPT},
	{"gpt-5.2-chat", 0, otherWindows},
	{"gpt-5.3-chat", 0, otherWindows},
	{"gpt-5.4", 1_050_000, windowsGPT},
	{"gpt-5.4-mini", 0, otherWindows},
	{"gpt-5.4-nano", 0, otherWindows},
	{"gpt-5.5", 0, otherWindows},
	{"gpt-5.6", 0, otherWindows},
	{"o3", 200_000, windowsGPT},
	{"o4-mini", 200_000, windowsGPT},
	{"gemini-2.0-flash", 1_048_576, windowsGemini},
	{"gemini-2.5-", 1_048_576, windowsGemini},
	{"gemini-2.5-flash-image", 0, otherWindows},
	{"gemini-2.5-computer", 0, otherWindows},
}

// CompactAt returns the number of tokens of a request from which on the conversation is shortened, so that the answer
// still fits into ContextTokens. It is at least half of the context, and 0 if ContextTokens is not set.
func (c Config) CompactAt() int {
	if c.ContextTokens <= 0 {
		return 0
	}
	return max(c.ContextTokens-c.WithDefaults().MaxTokens, c.ContextTokens/2, 1)
}

// Window returns the size of the model's context in tokens, or 0 if it is not known. NumCtx and ContextTokens win, if
// one of them is set. A size from the table is a size of the maker's own service: a proxy or a cloud may have less.
func (c Config) Window() int {
	if n := max(c.NumCtx, c.ContextTokens); n > 0 {
		return n
	}
	switch c.Provider {
	case "anthropic", "openai", "azure", "gemini", "bedrock", "openrouter", providerVertex:
	default:
		return 0 // models of other servers only resemble these by their names
	}
	name := strings.ToLower(c.Model)
	name = name[strings.LastIndex(name, "/")+1:]
	if i := strings.Index(name, "anthropic."); i >= 0 { // Bedrock, with or without a region
		name = name[i+len("anthropic."):]
	}
	for _, media := range []string{"-image", "-audio", "-realtime", "-tts", "-live", "-transcribe", "-embedding"} {
		if strings.Contains(name, media) {
			return 0
		}
	}
	if strings.HasPrefix(name, "claude-") {
		name = strings.ReplaceAll(name, ".", "-") // OpenRouter writes claude-opus-4.6
	}
	best := family{}
	for _, f := range families {
		if strings.HasPrefix(name, f.prefix) && len(f.prefix) > len(best.prefix) {
			best = f
		}
	}
	return best.tokens
}
