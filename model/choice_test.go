package model_test

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/model/gemini"
	"github.com/tenonhq/tenon/model/openai"
)

// TestChoiceOfTools checks a tool choice that names several tools. It is sent in the form of the wire format. If the
// format has none, only these tools are offered.
func TestChoiceOfTools(t *testing.T) {
	openAI := model.Config{Provider: "openai", Model: "gpt-5"}
	for _, c := range []struct {
		name, wire, choice string
		cfg                model.Config
		want               string
		offered            bool // tool c
	}{
		{"MD-9_chat_any", "chat", "a,b", openAI, `"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required",` +
			`"tools":[{"type":"function","function":{"name":"a"}},{"type":"function","function":{"name":"b"}}]}}`, true},
		{"MD-9_chat_auto", "chat", "auto:a", openAI, `"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto",` +
			`"tools":[{"type":"function","function":{"name":"a"}}]}}`, true},
		{"MD-9_chat_server", "chat", "auto:a,b", model.Config{}, `"tool_choice":"auto"`, false},
		{"MD-9_chat_server_any", "chat", "a,b", model.Config{}, `"tool_choice":"required"`, false},
		{"MD-9_responses", "responses", "a,b", openAI, `"tool_choice":{"type":"allowed_tools","mode":"required",` +
			`"tools":[{"type":"function","name":"a"},{"type":"function","name":"b"}]}`, true},
		{"MD-9_gemini_any", "gemini", "a,b", model.Config{Model: "gemini-3-pro"},
			`"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["a","b"]}`, true},
		{"MD-9_gemini_auto", "gemini", "auto:b", model.Config{Model: "gemini-3-pro"},
			`"functionCallingConfig":{"mode":"VALIDATED","allowedFunctionNames":["b"]}`, true},
		{"MD-9_anthropic", "anthropic", "a,b", model.Config{Model: "claude-sonnet-4-5"}, `"tool_choice":{"type":"any"}`, false},
		{"MD-9_anthropic_auto", "anthropic", "auto:a", model.Config{Model: "claude-sonnet-4-5"},
			`"tool_choice":{"type":"auto"}`, false},
		{"MD-9_bedrock", "bedrock", "a,b", model.Config{Provider: "bedrock", Model: "amazon.nova-2-lite-v1:0"},
			`"toolChoice":{"any":{}}`, false},
		{"MD-9_one", "chat", "a", openAI, `"tool_choice":{"type":"function","function":{"name":"a"}}`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := settingsSent(t, c.wire, c.cfg, &tenon.Request{Messages: []*tenon.Message{tenon.UserMessage("q")},
				Tools: []tenon.Tool{{Name: "a"}, {Name: "b"}, {Name: "c"}}, ToolChoice: c.choice})
			if !json.Valid([]byte(got)) || !strings.Contains(got, c.want) {
				t.Errorf("%s is not in %s", c.want, got)
			}
			if strings.Contains(got, `"name":"c"`) != c.offered {
				t.Errorf("tool c is offered: %t, want %t: %s", !c.offered, c.offered, got)
			}
		})
	}
}

// TestOffer checks MD-9: found tools stay in a request with a restricted list of tools, because earlier results name
// them.
func TestOffer(t *testing.T) {
	req := &tenon.Request{Tools: []tenon.Tool{{Name: "a"}, {Name: "find"}, {Name: "b"}, {Name: "found"}}, Deferred: 1,
		Finder: "find", ToolChoice: "auto:a"}
	var got []string
	out := model.Offer(req)
	for _, x := range out.Tools {
		got = append(got, x.Name)
	}
	if d := cmp.Diff([]string{"a", "found"}, got); d != "" || out.ToolChoice != "auto" || len(req.Tools) != 4 {
		t.Errorf("choice %s: %s", out.ToolChoice, d)
	}
	if none := model.Offer(&tenon.Request{Tools: req.Tools[:1], ToolChoice: "auto:x"}); len(none.Tools) > 0 || none.ToolChoice != "" {
		t.Errorf("got %+v", none)
	}
}

// TestSystemMessages checks that an instruction within a conversation keeps its position. It is a system message if the
// wire format permits one there.
func TestSystemMessages(t *testing.T) {
	for _, c := range []struct {
		name, wire string
		cfg        model.Config
		want       string
	}{
		{"MD-9_chat", "chat", model.Config{Provider: "openai", Model: "gpt-5"}, `{"role":"system","content":"Rhyme."}`},
		{"MD-9_responses", "responses", model.Config{Provider: "openai", Model: "gpt-5"}, `{"role":"system","content":"Rhyme."}`},
		{"MD-9_local", "chat", model.Config{Provider: "ollama"}, `{"role":"user","content":"\u003csystem\u003e\nRhyme.\n`},
		{"MD-9_mistral", "chat", model.Config{BaseURL: "https://api.mistral.ai/v1"}, `{"role":"user","content":"\u003csystem`},
		{"MD-9_anthropic", "anthropic", model.Config{Model: "claude-sonnet-4-5"}, `{"role":"user","content":[{"type":"text","text":"\u003csystem`},
		{"MD-9_gemini", "gemini", model.Config{Model: "gemini-3-pro"}, `{"role":"user","parts":[{"text":"\u003csystem`},
		{"MD-9_bedrock", "bedrock", model.Config{Provider: "bedrock", Model: "amazon.nova-2-lite-v1:0"}, `{"text":"\u003csystem\u003e\nRhyme.`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := settingsSent(t, c.wire, c.cfg, &tenon.Request{System: "top", Messages: []*tenon.Message{tenon.UserMessage("q"),
				tenon.AssistantMessage("a"), {Role: tenon.RoleSystem, Parts: []tenon.Part{{Type: tenon.PartText, Text: "Rhyme."}}},
				tenon.UserMessage("r")}})
			plain := strings.NewReplacer("<", `\u003c`, ">", `\u003e`).Replace(got)
			if strings.Count(plain, c.want) != 1 {
				t.Errorf("%s is not once in %s", c.want, plain)
			}
		})
	}
}

// TestObjectMode checks MD-9: a request for any JSON object uses the JSON mode of the server, even if the server cannot
// enforce a schema. The request has no tools.
func TestObjectMode(t *testing.T) {
	no := false
	for name, c := range map[string]struct {
		cfg   model.Config
		tools []tenon.Tool
		want  bool
	}{
		"MD-9_deepseek":   {model.Config{BaseURL: "https://api.deepseek.com"}, nil, true},
		"MD-9_with_tools": {model.Config{BaseURL: "https://api.groq.com/openai/v1"}, []tenon.Tool{{Name: "f"}}, false},
		"MD-9_perplexity": {model.Config{BaseURL: "https://api.perplexity.ai"}, nil, false},
		"MD-9_switch":     {model.Config{Quirks: model.QuirkConfig{JSONObject: &no}}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := settingsSent(t, "chat", c.cfg, &tenon.Request{Messages: []*tenon.Message{tenon.UserMessage("q")},
				Output: json.RawMessage(`{"type":"object"}`), Tools: c.tools})
			if strings.Contains(got, `"response_format":{"type":"json_object"}`) != c.want {
				t.Errorf("json_object is sent: %t, want %t: %s", !c.want, c.want, got)
			}
		})
	}
}

// TestLogprobs checks MD-9: the probabilities of tokens are decoded from each wire format that has them.
func TestLogprobs(t *testing.T) {
	a := tenon.TokenProb{Token: "a", Logprob: -0.5}
	half := tenon.TokenProb{Token: "\\xe2", Logprob: -1, Bytes: []byte{0xe2}}
	want := []tenon.TokenProb{{Token: "a", Logprob: -0.5, Top: []tenon.TokenProb{a, half}}, half}
	const one = `{"token":"a","logprob":-0.5,"bytes":[97],"top_logprobs":[{"token":"a","logprob":-0.5,"bytes":[97]},` +
		`{"token":"\\xe2","logprob":-1,"bytes":[226]}]}`
	const two = `{"token":"\\xe2","logprob":-1,"bytes":[226],"top_logprobs":[]}`
	for _, c := range []struct {
		name   string
		parse  model.Parser
		events []string
		want   []tenon.TokenProb
	}{
		{"MD-9_chat", openai.ParseChat, []string{
			`{"choices":[{"index":0,"delta":{"content":"a"},"logprobs":{"content":[` + one + `],"refusal":null}}]}`,
			`{"choices":[{"index":0,"delta":{"content":"b"},"logprobs":{"content":[` + two + `]},"finish_reason":"stop"}]}`,
			`[DONE]`}, want},
		{"MD-9_chat_none", openai.ParseChat, []string{
			`{"choices":[{"index":0,"delta":{"content":"a"},"logprobs":null,"finish_reason":"stop"}]}`, `[DONE]`}, nil},
		{"MD-9_responses", openai.ParseResponses, []string{`{"type":"response.completed","response":{"status":"completed",` +
			`"output":[{"type":"message","content":[{"type":"output_text","text":"ab","logprobs":[` + one + `,` + two + `]}]}]}}`}, want},
		{"MD-9_gemini", gemini.Parse, []string{`{"candidates":[{"content":{"parts":[{"text":"a"}]},"logprobsResult":{` +
			`"topCandidates":[{"candidates":[{"token":"a","tokenId":1,"logProbability":-0.5},{"token":"b","logProbability":-2}]}],` +
			`"chosenCandidates":[{"token":"a","tokenId":1,"logProbability":-0.5}]},"finishReason":"STOP"}]}`},
			[]tenon.TokenProb{{Token: "a", Logprob: -0.5, Top: []tenon.TokenProb{a, {Token: "b", Logprob: -2}}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := c.parse(eventsOf(c.events), func(tenon.Delta) bool { return true })
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, r.Logprobs); d != "" {
				t.Error(d)
			}
		})
	}
}

// eventsOf yields the events of a stream.
func eventsOf(list []string) model.Events {
	return func() ([]byte, error) {
		if len(list) == 0 {
			return nil, io.EOF
		}
		e := list[0]
		list = list[1:]
		return []byte(e), nil
	}
}
