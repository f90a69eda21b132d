package model_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model"
)

// featured are the models whose features the page about providers lists: one for each provider and API.
var featured = []model.Config{
	{Provider: "anthropic", Model: "claude-sonnet-4-5"}, {Provider: "openai", Model: "gpt-5"},
	{Provider: "openai", API: model.APIResponses, Model: "gpt-5"}, {Provider: "gemini", Model: "gemini-3-pro"},
	{Provider: "ollama", Model: "gpt-oss"}, {Provider: "ollama", API: model.APIOllama, Model: "gpt-oss"}, {Provider: "llamacpp", Model: "gpt-oss"}, {Provider: "lmstudio", Model: "gpt-oss"},
	{Provider: "vllm", Model: "gpt-oss"}, {Provider: "openrouter", Model: "anthropic/claude-sonnet-4.5"},
	{Provider: "groq", Model: "gpt-oss"}, {Provider: "mistral", Model: "mistral-large"},
	{Provider: "deepseek", Model: "deepseek-flash"}, {Provider: "xai", Model: "grok-4.3"},
	{Provider: "bedrock", Model: "us.anthropic.claude-sonnet-4-5-20250929-v1:0"},
	{Provider: "bedrock", Model: "amazon.nova-2-lite-v1:0"}, {Provider: "vertex", Model: "gemini-3-pro"},
	{Provider: "vertex", Model: "claude-sonnet-4-5"},
}

// features returns the features of a model by name, as tenon's tables and checks define them.
func features(c model.Config) map[string]string {
	q := c.ResolvedQuirks()
	yes := func(ok bool) string {
		if ok {
			return "yes"
		}
		return ""
	}
	hosted := 0
	names, _ := model.HostedForms()
	for _, name := range names {
		with := c
		with.Tools = fmt.Appendf(nil, `{%q:{}}`, name)
		if with.Check() == nil {
			hosted++
		}
	}
	reasoning := ""
	for _, word := range []string{"low", "2000"} {
		with := c
		with.Reasoning = word
		if with.Check() == nil {
			reasoning = strings.TrimPrefix(reasoning+", "+map[string]string{"low": "efforts", "2000": "tokens"}[word], ", ")
		}
	}
	tools := ""
	if hosted > 0 {
		tools = fmt.Sprint(hosted)
	}
	takes := func(mime, uri string) string {
		r, ok := model.RemoteOf(tenon.Content{Type: tenon.ContentResource, MimeType: mime, Remote: uri})
		return yes(ok && c.Takes(r))
	}
	return map[string]string{"images": yes(q.Images), "PDF": yes(q.Documents), "audio": yes(q.Audio), "video": yes(q.Video),
		"images by address": takes("image/png", "https://example.com/a.png"), "PDF by file id": takes("application/pdf", "file-id:f1"),
		"schema": q.OutputSchema, "cache marks": yes(q.CacheMarks || q.Cache && (c.Wire() == model.WireAnthropic || c.Wire() == model.WireBedrock)),
		"reasoning": reasoning, "tools of the provider": tools, "tool search": yes(q.ToolSearch), "calls in text": yes(q.TextCalls)}
}

var featureColumns = []string{"images", "PDF", "audio", "video", "images by address", "PDF by file id", "schema", "cache marks", "reasoning", "tools of the provider", "tool search", "calls in text"}

// writeFeatures writes the table of providers and features.
func writeFeatures(b *strings.Builder) {
	b.WriteString(`
## Providers and features

Features that requests to a typical model of each provider have. An empty cell: tenon sends a substitute, such as a
note in place of an image, or refuses the setting. Streams, tool calls, usage, cancellation and retries work with all of
them. The column of the provider's tools counts the names of the table below. Other models differ: see the tables of
switches and settings.

`)
	fmt.Fprintf(b, "| model | %s |\n|%s\n", strings.Join(featureColumns, " | "), strings.Repeat(" --- |", len(featureColumns)+1))
	for _, c := range featured {
		name := "`" + c.Provider + "/" + c.Model + "`"
		if c.API != "" {
			name += " (" + c.API + ")"
		}
		row := features(c)
		fmt.Fprintf(b, "| %s |", name)
		for _, f := range featureColumns {
			if row[f] == "" {
				b.WriteString(" |")
			} else {
				fmt.Fprintf(b, " %s |", row[f])
			}
		}
		b.WriteString("\n")
	}
}

// writeCompatible writes what differs between Anthropic's own API and the same API at another address.
func writeCompatible(b *strings.Builder) {
	b.WriteString(`
## Other servers with Anthropic's API

` + "`provider: anthropic`" + ` with a ` + "`base_url`" + ` sends requests in Anthropic's format to another server, such as a proxy.
The path ` + "`/v1/messages`" + ` follows the address. The key is in the header x-api-key, and ` + "`headers`" + ` can set others. tenon
does not use what only Anthropic's own API is known to have, unless ` + "`models.NAME.quirks`" + ` says otherwise:

| feature | api.anthropic.com | another address |
| --- | --- | --- |
`)
	own := model.Config{Provider: "anthropic", Model: "claude-sonnet-4-5"}
	other := own
	other.BaseURL = "https://proxy.example"
	a, o := features(own), features(other)
	for _, f := range featureColumns {
		if a[f] != o[f] {
			fmt.Fprintf(b, "| %s | %s | %s |\n", f, a[f], cmp.Or(o[f], "no"))
		}
	}
}

// TestFeatures checks the table of features against real requests. Each provider is listed, and an image or a PDF file
// is sent exactly if the table says so.
func TestFeatures(t *testing.T) {
	t.Run("MD-5_all_providers", func(t *testing.T) {
		for _, name := range model.ProviderNames() {
			if name != "script" && name != "openai-compatible" && !slices.ContainsFunc(featured, func(c model.Config) bool { return c.Provider == name }) {
				t.Errorf("provider %s is not in the table of features", name)
			}
		}
	})
	wires := map[string]string{model.WireAnthropic: "anthropic", model.WireChat: "chat", model.WireResponses: "responses", model.WireGemini: "gemini",
		model.WireOllama: "ollama"}
	const pdf = "JVBERi0xLjQK"
	req := &tenon.Request{Messages: []*tenon.Message{{Role: tenon.RoleUser, Parts: []tenon.Part{{Type: tenon.PartText, Text: "see"},
		{Type: tenon.PartImage, MimeType: "image/png", Data: pixel}, {Type: tenon.PartFile, MimeType: "application/pdf", Data: pdf, Text: "a.pdf"}}}}, System: "Be brief."}
	for _, c := range featured {
		if wires[c.Wire()] == "" || c.Provider == "vertex" {
			continue // other tests check the encoders of these providers
		}
		t.Run("MD-5_"+c.Provider+"_"+c.API, func(t *testing.T) {
			sent, want := settingsSent(t, wires[c.Wire()], c, req), features(c)
			for _, x := range []struct {
				feature string
				sent    bool
			}{{"images", strings.Contains(sent, pixel)}, {"PDF", strings.Contains(sent, pdf)}, {"cache marks", strings.Contains(sent, "cache_control")}} {
				if x.sent != (want[x.feature] == "yes") {
					t.Errorf("%s: the table says %q, but the request has it: %t\n%s", x.feature, want[x.feature], x.sent, sent)
				}
			}
		})
	}
}
