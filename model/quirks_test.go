package model_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/history"
	"github.com/tenonhq/tenon/model"
)

var update = flag.Bool("update", false, "rewrite generated documents")

// resolved returns the quirks for a row of the table of servers.
func resolved(s model.Server) model.Quirks {
	cfg := model.Config{Provider: s.Provider, Model: "m"}
	if s.Provider == "" {
		cfg = model.Config{Provider: "openai-compatible", Model: "m", BaseURL: "https://" + s.Host + "/v1"}
	}
	return cfg.ResolvedQuirks()
}

// TestProvidersPage checks that docs/reference/providers.md matches the tables of this package.
func TestProvidersPage(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# Providers of models

Generated from the tables of package model by ` + "`go test ./model -update`" + `; do not edit.

## Providers

The value of ` + "`models.NAME.provider`" + `, and the part before the slash in ` + "`--model provider/name`" + `.

| provider | API | address | key |
| --- | --- | --- | --- |
`)
	apis := map[string]string{model.WireAnthropic: "Anthropic Messages", model.WireChat: "OpenAI Chat Completions; Responses with `api: responses`",
		model.WireGemini: "Gemini streamGenerateContent", model.WireBedrock: "Bedrock ConverseStream", model.WireScript: "none: a file of steps"}
	for _, name := range model.ProviderNames() {
		p, _ := model.Lookup(name)
		key := p.KeyEnv
		if key != "" {
			key = "`" + key + "`"
		}
		address := p.BaseURL
		if address == "" && p.Wire != model.WireScript {
			address = "the one in `base_url`"
		}
		api := apis[p.Wire]
		switch {
		case name == "vertex":
			api, key = "Gemini streamGenerateContent; Anthropic Messages for models named claude-…", "Application Default Credentials"
		case name == "ollama":
			api += "; its own with `api: ollama`"
		case p.Own:
			key = "AWS credentials, or " + key
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", name, api, address, key)
	}
	b.WriteString(`
## Servers that differ

A server is recognised by the host of its address, or by the provider if its servers have no common host.
` + "`models.NAME.quirks`" + ` sets the switches for a server that is not in the table. Differences in the last column need no
switch. ` + "`encrypted_reasoning`" + ` applies with ` + "`api: responses`" + ` to models that reason, as their names tell.
` + "`output_schema`" + ` says when the provider enforces the schema of ` + "`run --output-schema`" + `: always, or alone (only in
requests without tools). tenon always checks the answer. Anthropic's and Google's own models also enforce schemas;
Google's older models do so only in requests without tools.

| server | recognised by | switches | other differences and advice |
| --- | --- | --- | --- |
`)
	writeServers(&b)
	writeFeatures(&b)
	writeCompatible(&b)
	writeSettings(&b)
	writeHosted(&b)
	writeSearchPrices(&b)
	writeConnectors(&b)
	writeCitations(&b)
	const file = "../docs/reference/providers.md"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), b.String()); d != "" {
		t.Errorf("%s is stale; go test ./model -update rewrites it:\n%s", file, d)
	}
}

// writeServers writes the rows of the servers that differ from their provider's API.
func writeServers(b *strings.Builder) {
	plain := model.Config{Provider: "openai-compatible", Model: "m", BaseURL: "http://localhost"}.ResolvedQuirks()
	for _, s := range model.Servers() {
		q := resolved(s)
		var switches []string
		add := func(differs bool, format string, args ...any) {
			if differs {
				switches = append(switches, "`"+fmt.Sprintf(format, args...)+"`")
			}
		}
		add(q.MaxTokensField != plain.MaxTokensField, "max_tokens_field: %s", q.MaxTokensField)
		add(!q.StreamOptions, "stream_options: false")
		add(len(q.EchoReasoning) > 0, "echo_reasoning: [%s]", strings.Join(q.EchoReasoning, ", "))
		add(q.NeedReasoning, "need_reasoning: true")
		add(q.CallIDs != 0, "call_ids: %d", q.CallIDs)
		add(q.BridgeResults, "bridge_results: true")
		add(q.EncryptedReasoning, "encrypted_reasoning: true")
		add(q.ToolSearch, "tool_search: true")
		if q.KeyHeader {
			switches = append(switches, "key also in the header api-key")
		}
		add(q.Documents, "documents: true")
		add(q.Addresses, "addresses: true")
		add(q.OutputSchema != plain.OutputSchema, "output_schema: %s", q.OutputSchema)
		add(!q.NamedChoice, "named_choice: false")
		add(!q.JSONObject, "json_object: false")
		if len(q.Refused) > 0 {
			switches = append(switches, "refuses "+strings.Join(q.Refused, ", "))
		}
		if q.Efforts != nil {
			switches = append(switches, "efforts: "+strings.Join(q.Efforts, ", "))
		}
		by := s.Host
		if by == "" {
			by = "provider `" + s.Provider + "`"
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", s.Name, by, strings.Join(switches, ", "), s.Notes)
	}
}

// writeHosted writes the table of the provider's own tools (MD-6). TestHostedTools checks requests against it.
func writeHosted(b *strings.Builder) {
	b.WriteString(`
## Tools of providers

` + "`models.NAME.tools`" + ` names tools that the provider runs itself. Settings are members of the declaration, in the
provider's words. An empty cell is refused. An entry with a ` + "`type`" + `, or with another name, is sent as it is. With the
chat API these names work at OpenRouter, at Bedrock with Amazon's Nova models; Claude at Vertex has web_search. Rules
see a tool of server ` + "`provider`" + ` with the entry's name, before each request and without arguments. The tools of this
table are read-only for the rules. All others need a rule that allows them. ` + "`agents.NAME.provider_tools`" + ` has the same
entries for one agent. They are added to the entries of its model. An entry replaces one of the same name.

| tool | chat | responses | Anthropic | Gemini | Bedrock |
| --- | --- | --- | --- | --- | --- |
`)
	names, forms := model.HostedForms()
	for _, name := range names {
		fmt.Fprintf(b, "| %s |", name)
		for _, wire := range []string{model.WireChat, model.WireResponses, model.WireAnthropic, model.WireGemini,
			model.WireBedrock} {
			if f := forms[name][wire]; f != "" {
				fmt.Fprintf(b, " `%s` |", f)
			} else {
				b.WriteString(" |")
			}
		}
		b.WriteString("\n")
	}
}

// writeSearchPrices writes the table of prices of searches. TestPricesOfSearches checks it.
func writeSearchPrices(b *strings.Builder) {
	b.WriteString(`
Web searches cost extra. If the price of the model's tokens is known, the cost of an answer includes its searches:

| models | dollars per thousand searches |
| --- | --- |
`)
	for _, p := range model.SearchPrices() {
		fmt.Fprintf(b, "| `%s/%s…` | %g |\n", p.Provider, p.Family, p.Rate)
	}
	b.WriteString(`
Gemini up to 2.5 counts one search a request, Gemini 3 and later each query. Google's free searches (1,500 requests a
day, or 5,000 a month for Gemini 3, as of September 2026) are not subtracted: all programs of an account share them, so
tenon cannot know how many are left. ` + "`models.NAME.price.searches`" + ` sets another price, such as 0. OpenRouter,
Perplexity and xAI report the cost of a request, which tenon uses. Prices of other providers, and of Gemini at Vertex
AI, are not in the table.
`)
}

// writeConnectors writes the table of MCP connectors (MD-6). TestConnectors checks requests against it.
func writeConnectors(b *strings.Builder) {
	b.WriteString(`
An entry with the key ` + "`mcp`" + ` is an MCP server that the provider calls by itself:

` + "```yaml" + `
models:
  main:
    provider: openai
    api: responses
    model: gpt-5
    tools:
      wiki: {mcp: "https://wiki.example/mcp", token: "${secret:wiki}", allowed_tools: [search]}
` + "```" + `

Other keys of the entry are members of the declaration, in the provider's words. OpenAI asks before each call, unless
` + "`require_approval`" + ` says otherwise. tenon's rules then decide about the call, with its arguments. Its
` + "`tool.remote_name`" + ` is ` + "`wiki/search`" + `. A rule with ` + "`ask`" + ` makes the run wait for a person, who
cannot change the arguments. The other providers call at once, so the rules decide about the whole entry, before each
request. A request that is retried after a lost connection may repeat an approved call.

| API | declaration | decided about |
| --- | --- | --- |
`)
	const entry = `{"wiki":{"mcp":"https://wiki.example/mcp","token":"TOKEN"}}`
	for _, c := range []struct {
		name string
		cfg  model.Config
	}{{"responses of OpenAI and Azure", model.Config{Provider: "openai", API: model.APIResponses}},
		{"responses of others", model.Config{Provider: "xai", API: model.APIResponses}},
		{"Anthropic", model.Config{Provider: "anthropic"}}, {"Gemini, not at Vertex", model.Config{Provider: "gemini"}}} {
		c.cfg.Tools = json.RawMessage(entry)
		req := &tenon.Request{Hosted: []string{"wiki"}}
		form := "`" + strings.TrimPrefix(string(c.cfg.AppendHosted(nil, req)), ",") + "`"
		if c.cfg.Wire() == model.WireAnthropic {
			form += ", `" + strings.TrimPrefix(string(c.cfg.AppendServers(nil, req)), ",") + "`"
		}
		by := "each request"
		if len(c.cfg.AsksFirst()) > 0 {
			by = "each call"
		}
		fmt.Fprintf(b, "| %s | %s | %s |\n", c.name, form, by)
	}
}

// writeCitations describes what answers contain besides text and calls. TestCitations and TestGeneratedMedia check it.
func writeCitations(b *strings.Builder) {
	b.WriteString(`
## Citations and generated media

Citations have one form for all APIs: ` + "`title`, `url`, `file`, `quote`" + `, and the bytes of the text that the source
supports. An answer keeps at most 256, with 1 KiB of title and 2 KiB of quote. Images and audio that a model generates
are artifacts of the run, at most 48 MiB of base64 in an answer.

| API | citations | generated media |
| --- | --- | --- |
| chat | ` + "`annotations`" + `; lists ` + "`citations`, `search_results`" + ` (Perplexity, xAI) and ` + "`context`" + ` (Azure), which name no text | ` +
		"`images`" + ` (OpenRouter), sent back; ` + "`audio`" + ` with its transcript as the text, sent back by its id until that expires, then as the transcript |
| responses | ` + "`annotations`" + ` of addresses and files | ` + "`image_generation_call`" + `, sent back |
| Anthropic | ` + "`citations`" + ` of text blocks: pages, search results, passages of documents | |
| Gemini | ` + "`groundingMetadata`, `citationMetadata`" + ` | ` + "`inlineData`" + `, sent back with its signature |
| Bedrock | ` + "`citation`, `citationsContent`" + ` | ` + "`image`" + `, not sent back |
`)
}

// writeSettings writes the table of settings and wire formats (MD-9). TestSettingsOnTheWire checks requests against it.
func writeSettings(b *strings.Builder) {
	b.WriteString(`
## Settings and wires

The members of requests for settings that not all wires have; an empty cell is refused. Penalties are settings of
questions, the others are also keys of ` + "`models.NAME`" + `. OpenAI has no top_k. At Bedrock, only Anthropic's models have
it. The column Ollama is its own API. There, efforts become ` + "`think`" + `, which models that do not reason refuse.

| setting | chat | responses | Anthropic | Gemini | Bedrock | Ollama |
| --- | --- | --- | --- | --- | --- | --- |
`)
	keys, members := model.SettingsOf()
	for _, key := range keys {
		fmt.Fprintf(b, "| %s |", key)
		for _, wire := range []string{model.WireChat, model.WireResponses, model.WireAnthropic, model.WireGemini,
			model.WireBedrock, model.WireOllama} {
			if m := members[key][wire]; m != "" {
				fmt.Fprintf(b, " `%s` |", m)
			} else {
				b.WriteString(" |")
			}
		}
		b.WriteString("\n")
	}
	b.WriteString("\nWhat `models.NAME.reasoning` accepts depends on the model, as its name tells:\n\n" +
		"| model | efforts | number of tokens |\n| --- | --- | --- |\n")
	for _, c := range []model.Config{{Provider: "openai", Model: "gpt-5"}, {Provider: "openrouter", Model: "any"},
		{Provider: "anthropic", Model: "claude-sonnet-4-5"}, {Provider: "anthropic", Model: "claude-opus-4-6"},
		{Provider: "gemini", Model: "gemini-2.5-flash"}, {Provider: "gemini", Model: "gemini-3-pro"},
		{Provider: "bedrock", Model: "amazon.nova-2-lite-v1:0"}, {Provider: "ollama", Model: "gpt-oss"}} {
		var words []string
		for _, word := range []string{"none", "minimal", "low", "medium", "high", "xhigh"} {
			if c.Reasoning = word; c.Check() == nil {
				words = append(words, word)
			}
		}
		number := "yes"
		if c.Reasoning = "2000"; c.Check() != nil {
			number = "no"
		}
		fmt.Fprintf(b, "| `%s/%s` | %s | %s |\n", c.Provider, c.Model, strings.Join(words, ", "), number)
	}
}

// TestServersHaveLines checks that each provider with the chat format has a row in the table of servers, and that a row
// with a provider matches the provider's address.
func TestServersHaveLines(t *testing.T) {
	lines := map[string]string{}
	for _, s := range model.Servers() {
		if s.Provider == "" {
			continue
		}
		lines[s.Provider] = s.Name
		p, ok := model.Lookup(s.Provider)
		if !ok || s.Host != "" && !strings.Contains(p.BaseURL, s.Host) {
			t.Errorf("%s: provider %s, address %s", s.Name, s.Provider, p.BaseURL)
		}
	}
	for _, name := range model.ProviderNames() {
		if p, _ := model.Lookup(name); p.Wire == model.WireChat && name != "openai-compatible" && lines[name] == "" {
			t.Errorf("provider %s has no line in the table of servers", name)
		}
	}
	for _, name := range []string{"Ollama", "vLLM", "llama.cpp", "LM Studio", "OpenRouter", "Groq", "Mistral", "DeepSeek", "xAI"} {
		found := false
		for _, s := range model.Servers() {
			found = found || s.Name == name
		}
		if !found {
			t.Errorf("%s is not in the table", name)
		}
	}
}

// TestRequestsOfServers checks the requests to each server of the table against its quirks.
func TestRequestsOfServers(t *testing.T) {
	thought := tenon.Part{Type: tenon.PartThinking, Text: "hm", Wire: "openai-chat", Raw: []byte(`{"reasoning_content":"hm","reasoning":"hm"}`)}
	call := func(id string) *tenon.Message { return assistant(callPart(id, "f", "{}")) }
	result := func(id string) *tenon.Message { return results(&tenon.ToolResult{ID: id, Name: "f"}) }
	req := &tenon.Request{Tools: []tenon.Tool{{Name: "f"}}, Messages: []*tenon.Message{tenon.UserMessage("q"),
		assistant(thought, callPart("toolu_01", "f", "{}")), result("toolu_01"), call("abcDEF123"), result("abcDEF123"), call(""), result("")}}
	for provider, want := range map[string]struct{ has, lacks []string }{
		"openai":     {[]string{`"max_completion_tokens":`, `"include_usage":true`}, []string{`"max_tokens"`, "reasoning"}},
		"ollama":     {[]string{`"max_tokens":`, `"include_usage":true`, `"toolu_01"`, `"reasoning":`}, []string{"reasoning_content"}},
		"llamacpp":   {[]string{`"reasoning_content":"hm"`}, []string{`"reasoning":`, `"reasoning_content":""`}},
		"lmstudio":   {[]string{`"max_tokens":`}, []string{"reasoning"}},
		"vllm":       {[]string{`"max_tokens":`}, []string{"reasoning"}},
		"openrouter": {[]string{`"reasoning":"hm"`}, []string{`"reasoning_content"`}},
		"groq":       {[]string{`"include_usage":true`}, []string{"reasoning"}},
		"mistral":    {[]string{`"id":"abcDEF123"`, `"tool_call_id":"abcDEF123"`}, []string{"stream_options", "toolu_01", `"id":"call_0"`}},
		"deepseek":   {[]string{`"reasoning_content":"hm"`, `"reasoning_content":""`}, nil},
		"xai":        {[]string{`"reasoning_content":"hm"`}, []string{`"reasoning_content":""`}},
	} {
		p, _ := model.Lookup(provider)
		got := send(t, "chat", model.Config{Provider: provider, BaseURL: p.BaseURL}, req)
		if err := history.Check(got.path, got.body); err != nil {
			t.Errorf("%s: %v", provider, err)
		}
		for _, w := range want.has {
			if !strings.Contains(string(got.body), w) {
				t.Errorf("%s: %s lacks %s", provider, got.body, w)
			}
		}
		for _, w := range want.lacks {
			if strings.Contains(string(got.body), w) {
				t.Errorf("%s: %s holds %s", provider, got.body, w)
			}
		}
	}
}

// TestCostThatTheServerSays checks that a cost that the server reports overrides the price table.
func TestCostThatTheServerSays(t *testing.T) {
	cost := func(body string) string {
		p := &provider{replies: []reply{{body: body}}}
		m := adapter(t, "chat", model.Config{Provider: "openrouter", Model: "m", APIKey: tenon.NewSecret("k"), Price: &model.Price{Input: 1}}, p.env())
		a, err := generate(t.Context(), m, question)
		if err != nil {
			t.Fatal(err)
		}
		return a.resp.Cost.String()
	}
	const stream = `data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":2,"cost":%s}}` + "\n\ndata: [DONE]\n\n"
	for said, want := range map[string]string{"0.0125": "$0.0125", "0": "$0.00", "null": "$0.00001", "-1": "$0.00001", `"free"`: "$0.00001"} {
		if got := cost(fmt.Sprintf(stream, said)); got != want {
			t.Errorf("%s: %s, want %s", said, got, want)
		}
	}
}
