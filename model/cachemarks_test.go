package model_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model"
)

// cacheMark is how requests mark a block for a prompt cache.
const cacheMark = `"cache_control":{"type":"ephemeral"}`

// markedTurn returns an answer with a call, and the message with its result.
func markedTurn(id, text string) []*tenon.Message {
	call := &tenon.ToolCall{ID: id, Name: "f", Arguments: json.RawMessage("{}")}
	result := &tenon.ToolResult{ID: id, Name: "f", Content: []tenon.Content{tenon.Text(text)}}
	return []*tenon.Message{{Role: tenon.RoleAssistant, Parts: []tenon.Part{{Type: tenon.PartCall, Call: call}}},
		{Role: tenon.RoleTool, Parts: []tenon.Part{{Type: tenon.PartResult, Result: result}}}}
}

// marksOf returns the text of each block with a mark, in the order of the request.
func marksOf(t *testing.T, body string) []string {
	t.Helper()
	var request any
	if err := json.Unmarshal([]byte(body), &request); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	var marks []string
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			if v["cache_control"] != nil {
				text := fmt.Sprint(v["text"], v["name"], v["function"], v["content"])
				for _, word := range []string{"sys", "one", "two", "three", "four", "tool-g"} {
					if strings.Contains(text, word) {
						marks = append(marks, word)
					}
				}
			}
			for _, key := range []string{"tools", "system", "messages", "content"} {
				walk(v[key])
			}
		}
	}
	walk(request)
	if n := strings.Count(body, cacheMark); n != len(marks) || n > model.MaxCacheMarks {
		t.Errorf("%d marks, %q: %s", n, marks, body)
	}
	return marks
}

// TestCacheMarks checks which blocks Claude's requests mark for the prompt cache at OpenRouter and Vertex AI: the stable
// prefix, and the ends of the last two turns. No message is changed for the requests that follow.
func TestCacheMarks(t *testing.T) {
	no := false
	off := model.QuirkConfig{Cache: &no}
	image := &tenon.Message{Role: tenon.RoleUser, Parts: []tenon.Part{{Type: tenon.PartText, Text: "one"},
		{Type: tenon.PartImage, MimeType: "image/png", Data: pixel}}}
	marked := tenon.Tool{Name: "tool-f", Rules: tenon.ToolRules{Options: map[string]json.RawMessage{
		"anthropic": json.RawMessage(`{"cache_control":{"type":"ephemeral"}}`)}}}
	for name, c := range map[string]struct {
		system   string
		tools    []tenon.Tool
		messages []*tenon.Message
		quirks   model.QuirkConfig
		vertex   string // the marked blocks
		chat     string // "": the same
	}{
		"MD-8_first_request":        {"sys", nil, []*tenon.Message{tenon.UserMessage("one")}, model.QuirkConfig{}, "sys one", ""},
		"MD-8_second_turn":          {"sys", nil, append([]*tenon.Message{tenon.UserMessage("one")}, markedTurn("a", "two")...), model.QuirkConfig{}, "sys one two", ""},
		"MD-8_only_two_turns":       {"sys", nil, append(append([]*tenon.Message{tenon.UserMessage("one")}, markedTurn("a", "two")...), markedTurn("b", "three")...), model.QuirkConfig{}, "sys two three", ""},
		"MD-8_two_messages_a_turn":  {"sys", nil, append(append([]*tenon.Message{tenon.UserMessage("one")}, markedTurn("a", "two")...), tenon.UserMessage("three")), model.QuirkConfig{}, "sys one three", ""},
		"MD-8_ends_with_an_answer":  {"sys", nil, []*tenon.Message{tenon.UserMessage("one"), tenon.AssistantMessage("two")}, model.QuirkConfig{}, "sys one", ""},
		"MD-8_tools_without_system": {"", []tenon.Tool{{Name: "tool-f"}, {Name: "tool-g"}}, []*tenon.Message{tenon.UserMessage("one")}, model.QuirkConfig{}, "tool-g one", ""},
		"MD-8_ends_with_an_image":   {"sys", nil, []*tenon.Message{image}, model.QuirkConfig{}, "sys", "sys"},
		"MD-8_off":                  {"sys", []tenon.Tool{{Name: "tool-g"}}, []*tenon.Message{tenon.UserMessage("one")}, off, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			req := &tenon.Request{System: c.system, Tools: c.tools, Messages: c.messages}
			for wire, cfg := range map[string]model.Config{
				"chat":      {Provider: "openrouter", Model: "anthropic/claude-sonnet-4.5", Quirks: c.quirks},
				"anthropic": {Provider: "vertex", Model: "claude-sonnet-4-5", Project: "p", Quirks: c.quirks},
			} {
				if wire == "anthropic" && c.chat != "" {
					continue // every block can be marked there
				}
				if got := strings.Join(marksOf(t, sent(t, wire, cfg, req)), " "); got != c.vertex {
					t.Errorf("%s: marks at %q, want %q", wire, got, c.vertex)
				}
				cfg.Quirks = off
				if got := sent(t, wire, cfg, req); strings.Contains(got, "cache_control") {
					t.Errorf("%s: the marks stay in the messages: %s", wire, got)
				}
			}
		})
	}
	t.Run("MD-8_at_most_four", func(t *testing.T) {
		cfg := model.Config{Provider: "vertex", Model: "claude-sonnet-4-5", Project: "p"}
		for n, want := range []int{3, 4, 4, 4} {
			tools := []tenon.Tool{{Name: "tool-g"}}
			for range n {
				tools = append(tools, marked)
			}
			req := &tenon.Request{System: "sys", Tools: tools, Messages: append([]*tenon.Message{tenon.UserMessage("one")}, markedTurn("a", "two")...)}
			if got := strings.Count(sent(t, "anthropic", cfg, req), cacheMark); got != want {
				t.Errorf("%d tools with marks: %d marks, want %d", n, got, want)
			}
		}
	})
	t.Run("MD-8_the_next_turn_of_one_model", func(t *testing.T) {
		p := &provider{replies: []reply{{body: good}}}
		cfg := model.Config{Provider: "openrouter", Model: "anthropic/claude-sonnet-4.5", APIKey: tenon.NewSecret(key)}
		m := chat(t, p, func(c *model.Config) { *c = cfg })
		messages := []*tenon.Message{tenon.UserMessage("one")}
		for _, turn := range []string{"two", "three", "four"} {
			if _, err := generate(t.Context(), m, &tenon.Request{System: "sys", Messages: messages}); err != nil {
				t.Fatal(err)
			}
			messages = append(messages, markedTurn(turn, turn)...)
		}
		for i, want := range []string{"sys one", "sys one two", "sys two three"} {
			if got := strings.Join(marksOf(t, p.bodies[i]), " "); got != want {
				t.Errorf("request %d: marks at %q, want %q: %s", i, got, want, p.bodies[i])
			}
		}
		if strings.Count(p.bodies[2], `"role"`) != 6 {
			t.Error(p.bodies[2])
		}
	})
}
