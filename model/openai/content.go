package openai

import (
	"slices"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
)

// content handles a text, or a list of parts: texts and reasoning. Reasoning is a part of type thinking (Mistral), or
// of type reasoning with a summary (docs.databricks.com, "Query reasoning models").
func (a *answer) content(v []byte) {
	if v[0] == '"' {
		a.text = append(a.text, rawjson.StringBody(v)...)
		a.send(tenon.DeltaText, rawjson.String(v))
		return
	}
	for part := range rawjson.Elements(v) {
		switch rawjson.String(rawjson.Field(part, "type")) {
		case "text":
			a.content(orEmpty(rawjson.Field(part, "text")))
		case "thinking":
			a.reasoned("thinking", rawjson.Field(part, "thinking"))
		case "reasoning":
			a.reasoned("reasoning", rawjson.Field(part, "summary"))
		}
	}
}

// reasoned handles the list of texts in a part that is reasoning.
func (a *answer) reasoned(kind string, texts []byte) {
	a.part = kind
	for t := range rawjson.Elements(texts) {
		s := rawjson.String(rawjson.Field(t, "text"))
		a.thinking.WriteString(s)
		a.send(tenon.DeltaThinking, s)
		if sign := rawjson.StringBody(rawjson.Field(t, "signature")); len(sign) > 0 {
			a.signature = append(a.signature[:0], sign...)
		}
	}
}

// reasonedPart returns the list with the reasoning, in the form of the content that contained it.
func (a *answer) reasonedPart() []byte {
	text := rawjson.AppendString(nil, a.thinking.String())
	if a.part == "thinking" {
		return slices.Concat([]byte(`[{"type":"thinking","thinking":[{"type":"text","text":`), text, []byte("}]}]"))
	}
	if len(a.signature) > 0 {
		text = slices.Concat(text, []byte(`,"signature":"`), a.signature, []byte(`"`))
	}
	return slices.Concat([]byte(`[{"type":"reasoning","summary":[{"type":"summary_text","text":`), text, []byte("}]}]"))
}

// readUsage reads the counts. Some members occur only at some servers: prompt_cache_hit_tokens (DeepSeek),
// cache_write_tokens (OpenRouter), cache_creation_input_tokens and cache_read_input_tokens (gateways in front of
// Anthropic, which include them in prompt_tokens), and reasoning_tokens next to the other counts (Perplexity).
func readUsage(v []byte) *tenon.Usage {
	u := &tenon.Usage{}
	var hit, total int
	known := false
	for k, v := range rawjson.Fields(v) {
		n, _ := rawjson.Int(v)
		switch string(k) {
		case "prompt_tokens":
			u.Input, known = n, true
		case "completion_tokens":
			u.Output, known = n, true
		case "total_tokens":
			total = n
		case "prompt_cache_hit_tokens", "cache_read_input_tokens", "cached_tokens": // the last: Moonshot
			hit = max(hit, n)
		case "cache_creation_input_tokens":
			u.CacheWrite = max(u.CacheWrite, n)
		case "reasoning_tokens":
			u.Reasoning = max(u.Reasoning, n)
		case "num_search_queries": // Perplexity
			u.Searches = n
		case "server_tool_use": // OpenRouter
			u.Searches, _ = rawjson.Int(rawjson.Field(v, "web_search_requests"))
		case "prompt_tokens_details":
			u.CacheRead, _ = rawjson.Int(rawjson.Field(v, "cached_tokens"))
			n, _ := rawjson.Int(rawjson.Field(v, "cache_write_tokens"))
			u.CacheWrite = max(u.CacheWrite, n)
		case "completion_tokens_details":
			n, _ := rawjson.Int(rawjson.Field(v, "reasoning_tokens"))
			u.Reasoning = max(u.Reasoning, n)
		}
	}
	u.CacheRead = max(u.CacheRead, hit)
	if !known || min(u.Input, u.Output, u.CacheRead, u.Searches) < 0 {
		return nil // a missing or wrong usage is unknown, not zero
	}
	if u.Reasoning > 0 && total == u.Input+u.Output+u.Reasoning { // xAI does not count reasoning in completion_tokens
		u.Output += u.Reasoning
	}
	return u
}
