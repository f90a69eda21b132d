package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
)

// TestMD12_TextCalls runs a model that writes its tool call as plain text. If tool_mode is auto and the model is in the
// list of such models, the text becomes a call that the rules apply to. Otherwise it stays an answer.
func TestMD12_TextCalls(t *testing.T) {
	tests := map[string]struct {
		model string // keys of the entry
		rules string
		calls int
		want  string // the answer
	}{
		"a listed model":         {"model: qwen3-8b", "", 1, "done"},
		"another model":          {"model: gpt-5", "", 0, "<tool_call>"},
		"another model, told to": {"model: m, quirks: {text_calls: true}", "", 1, "done"},
		"switched off":           {"model: qwen3-8b, quirks: {text_calls: false}", "", 0, "<tool_call>"},
		"tool_mode native":       {"model: qwen3-8b, tool_mode: native", "", 0, "<tool_call>"},
		"a rule denies it":       {"model: qwen3-8b", "policy: {rules: [{when: 'tool.remote_name == \"echo\"', verdict: deny}]}\n", 0, "done"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			var second atomic.Value
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				text := "I look.\n<tool_call>\n{\"name\": \"echo\", \"arguments\": {\"n\": 9007199254740993}}\n</tool_call>"
				if asked.Add(1) > 1 {
					text = "done"
					second.Store(string(body))
				}
				content, _ := json.Marshal(text)
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprintf(w, "data: {\"id\":\"1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":%s},\"finish_reason\":\"stop\"}]}\n\n"+
					"data: [DONE]\n\n", content)
			}))
			t.Cleanup(s.Close)
			dir := t.TempDir()
			cfg, err := config.Parse("tenon.yaml", []byte("version: 1\nmodels:\n  m: {provider: openai-compatible, base_url: \""+
				s.URL+"/v1\", "+tt.model+"}\n"+tt.rules), config.Options{Dir: dir, LookupEnv: nothing})
			if err != nil {
				t.Fatal(err)
			}
			own := &echoed{}
			h, err := host.Open(t.Context(), host.Config{Config: cfg, Home: dir, LookupEnv: nothing,
				Toolsets: map[string]tenon.Toolset{"own": own}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = h.Close() })
			answer, err := h.Ask(t.Context(), "q")
			if err != nil {
				t.Fatal(err)
			}
			if n := int(own.calls.Load()); n != tt.calls || !strings.Contains(answer.Text, tt.want) {
				t.Errorf("%d calls, answer %q", n, answer.Text)
			}
			if tt.want != "done" {
				return
			}
			if sent, _ := second.Load().(string); !strings.Contains(sent, `"tool_calls"`) ||
				!strings.Contains(sent, `\"n\": 9007199254740993`) && !strings.Contains(sent, `\"n\":9007199254740993`) ||
				strings.Contains(sent, "tool_call>") || !strings.Contains(sent, "I look.") {
				t.Errorf("the second request: %s", sent)
			}
		})
	}
}

// echoed is a toolset with one tool. It counts the calls.
type echoed struct{ calls atomic.Int32 }

func (e *echoed) Tools(context.Context) ([]tenon.Tool, error) {
	yes := true
	return []tenon.Tool{{Remote: "echo", Annotations: tenon.Annotations{ReadOnly: &yes},
		Input: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`)}}, nil
}

func (e *echoed) Call(_ context.Context, c tenon.Call) (*tenon.Result, error) {
	e.calls.Add(1)
	return &tenon.Result{Content: []tenon.Content{tenon.Text(string(c.Arguments))}}, nil
}
