package model_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model"
)

// searched returns a request in the middle of a conversation in which the model has found a tool.
func searched(callID string, found ...string) *tenon.Request {
	schema := json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"}}}`)
	tools := []tenon.Tool{{Name: "echo", Input: schema}, {Name: "find_tools", Description: "Finds.", Input: schema}}
	for _, n := range found {
		tools = append(tools, tenon.Tool{Name: n, Description: "Does " + n, Input: schema})
	}
	return &tenon.Request{Tools: tools, Finder: "find_tools", Deferred: len(found), Sampling: tenon.Sampling{MaxTokens: 7}, Messages: []*tenon.Message{
		tenon.UserMessage("q"),
		assistant(callPart(callID, "find_tools", `{"query":"x"}`)),
		results(&tenon.ToolResult{ID: callID, Name: "find_tools", Content: []tenon.Content{tenon.Text("found")}, Found: found}),
	}}
}

// TestToolSearch checks in which form each wire format sends found tools.
func TestToolSearch(t *testing.T) {
	yes := true
	native := model.Config{Quirks: model.QuirkConfig{ToolSearch: &yes}}
	tests := []struct {
		name, wire string
		cfg        model.Config
		req        *tenon.Request
		has, hasNo []string
	}{
		{"anthropic refers", "anthropic", native, searched("c", "one", "two"),
			[]string{`"name":"two","description":"Does two","input_schema":{"type":"object","properties":{"a":{"type":"string"}}},"defer_loading":true}`,
				`"content":[{"type":"tool_reference","tool_name":"one"},{"type":"tool_reference","tool_name":"two"}]`},
			[]string{`{"name":"find_tools","description":"Finds.","input_schema":{"type":"object","properties":{"a":{"type":"string"}}},"defer_loading"`, `"text":"found"`}},
		{"anthropic has nothing to refer to", "anthropic", native, searched("c"), []string{`"text":"found"`}, []string{"tool_reference", "defer_loading"}},
		{"another server of that wire", "anthropic", model.Config{}, searched("c", "one"), []string{`"name":"one"`, `"text":"found"`}, []string{"tool_reference", "defer_loading"}},
		{"responses answers a search", "responses", native, searched("toolsearch_c", "one"),
			[]string{`{"type":"tool_search","execution":"client","description":"Finds.","parameters":`,
				`{"type":"tool_search_call","execution":"client","status":"completed","call_id":"c","arguments":{"query":"x"}}`,
				`{"type":"tool_search_output","execution":"client","status":"completed","call_id":"c","tools":[{"type":"function","name":"one","description":"Does one","defer_loading":true,`},
			[]string{`"name":"find_tools"`, `"function_call_output"`}},
		{"responses, found by another model", "responses", native, searched("c", "one"),
			[]string{`"type":"function_call_output"`, `{"type":"function","name":"one","description":"Does one","parameters"`, `"type":"tool_search"`},
			[]string{`"tool_search_output"`, "defer_loading"}},
		{"another server of responses", "responses", model.Config{}, searched("toolsearch_c", "one"),
			[]string{`"call_id":"toolsearch_c","name":"find_tools"`, `"type":"function_call_output","call_id":"toolsearch_c"`, `"name":"one"`},
			[]string{`"tool_search`, "defer_loading"}},
		{"chat", "chat", native, searched("toolsearch_c", "one"), []string{`"name":"one"`, "found"}, []string{"tool_search_", "defer_loading"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			body := sent(t, tt.wire, tt.cfg, tt.req)
			for _, s := range tt.has {
				if !strings.Contains(body, s) {
					t.Errorf("there is no %s in %s", s, body)
				}
			}
			for _, s := range tt.hasNo {
				if strings.Contains(body, s) {
					t.Errorf("there is %s in %s", s, body)
				}
			}
		})
	}
}

// TestToolSearchKeepsThePrefix checks that finding a tool does not change the beginning of
// requests, so the provider's cache stays valid.
func TestToolSearchKeepsThePrefix(t *testing.T) {
	yes := true
	native := model.Config{Quirks: model.QuirkConfig{ToolSearch: &yes}}
	before := searched("toolsearch_c")
	before.Messages = before.Messages[:1]
	after := searched("toolsearch_c", "one")
	list := func(wire string, req *tenon.Request) []json.RawMessage {
		var body struct{ Tools []json.RawMessage }
		if err := json.Unmarshal([]byte(sent(t, wire, native, req)), &body); err != nil {
			t.Fatal(err)
		}
		return body.Tools
	}
	for _, wire := range []string{"anthropic", "responses", "chat"} {
		a, b := list(wire, before), list(wire, after)
		if diff := cmp.Diff(a, b[:len(a)]); diff != "" {
			t.Errorf("%s: the tools have changed (-before +after):\n%s", wire, diff)
		}
	}
	if b := list("responses", after); len(b) != 2 {
		t.Errorf("responses: %d tools, want the two of before", len(b))
	}
}

// TestToolSearchModels checks which models have tool search by default.
func TestToolSearchModels(t *testing.T) {
	for name, want := range map[string]bool{
		"claude-sonnet-4-5": true, "claude-opus-4-5-20251101": true, "claude-opus-5": true, "claude-sonnet-4-6": true,
		"claude-3-5-haiku-latest": false, "claude-opus-4-1": false, "claude-sonnet-4-20250514": false, "claude-haiku-4-5": false, "x": false,
	} {
		if got := (model.Config{Provider: "anthropic", Model: name}).ResolvedQuirks().ToolSearch; got != want {
			t.Errorf("%s: %t", name, got)
		}
		if (model.Config{Provider: "anthropic", Model: name, BaseURL: "http://localhost"}).ResolvedQuirks().ToolSearch {
			t.Errorf("%s elsewhere knows it", name)
		}
	}
	for name, want := range map[string]bool{"gpt-5.4": true, "gpt-5.4-2026-03-05": true, "gpt-6": true, "gpt-5.4-chat-latest": false, "gpt-5.1": false, "gpt-4.1": false, "gpt-5": false, "o3": false} {
		if got := (model.Config{Provider: "openai", API: model.APIResponses, Model: name}).ResolvedQuirks().ToolSearch; got != want {
			t.Errorf("%s: %t", name, got)
		}
		if (model.Config{Provider: "openai", Model: name}).ResolvedQuirks().ToolSearch {
			t.Errorf("%s with Chat Completions knows it", name)
		}
	}
}

// TestToolSearchRecorded decodes a recorded search as a call of tenon's finder and encodes its
// result.
func TestToolSearchRecorded(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(sharedStreams, "vercel-ai/openai/responses/openai-client-tool-search.1.chunks.txt"))
	if err != nil {
		t.Skip("no recorded streams: the folder shared/data/llm-streams beside the repository is not there")
	}
	var stream strings.Builder
	for line := range strings.Lines(string(raw)) {
		stream.WriteString("data: " + strings.TrimSpace(line) + "\n\n")
	}
	yes := true
	m := adapter(t, "responses", model.Config{Model: "m", BaseURL: "http://localhost/v1", APIKey: tenon.NewSecret("k"), Quirks: model.QuirkConfig{ToolSearch: &yes}},
		model.Env{Transport: answering(stream.String())})
	r, err := generate(t.Context(), m, searched("toolsearch_c"))
	if err != nil {
		t.Fatal(err)
	}
	got := r.resp
	calls := got.Message.Calls()
	if len(calls) != 1 || calls[0].Name != "find_tools" || !strings.HasPrefix(calls[0].ID, "toolsearch_call_") || got.Stop != tenon.StopToolUse {
		t.Fatalf("calls %+v, stop %s", calls, got.Stop)
	}
	next := searched(calls[0].ID, "one")
	next.Messages[1] = got.Message
	body := sent(t, "responses", model.Config{Quirks: model.QuirkConfig{ToolSearch: &yes}}, next)
	for _, s := range []string{`"type":"tool_search_call","status":"completed"`, `"type":"tool_search_output","execution":"client","status":"completed","call_id":"` + strings.TrimPrefix(calls[0].ID, "toolsearch_")} {
		if !strings.Contains(body, s) {
			t.Errorf("there is no %s in %s", s, body)
		}
	}
}

// answering is a transport that always returns the same stream.
type answering string

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body: io.NopCloser(strings.NewReader(string(a))), Request: r}, nil
}
