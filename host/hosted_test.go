package host_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/view"
)

// TestHostedToolsAndRules checks that the rules decide which of the provider's own tools a request offers, and that the
// journal contains the reason and the uses of these tools.
func TestHostedToolsAndRules(t *testing.T) {
	var sent, beta string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		sent, beta = string(b), r.Header.Get("Anthropic-Beta")
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range []string{`{"type":"message_start","message":{"id":"m","content":[]}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"s1","name":"web_search","input":{"query":"tea"}}}`, `{"type":"content_block_stop","index":0}`,
			`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"Green."}}`, `{"type":"content_block_stop","index":1}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, `{"type":"message_stop"}`} {
			_, _ = io.WriteString(w, "data: "+e+"\n\n")
		}
	}))
	defer srv.Close()
	const search, code, own = `"web_search_20250305"`, `"code_execution_20250825"`, `"mcp_toolset"`
	for name, c := range map[string]struct {
		rules    []policy.Rule
		question host.Question
		with     []string
		without  []string
		warning  string
	}{
		"MD-6_default":            {nil, host.Question{}, []string{search, code}, []string{own}, "the provider's tool wiki was not offered: the rules ask about it"},
		"MD-6_denied":             {[]policy.Rule{{When: `tool.server == "provider"`, Verdict: "deny"}}, host.Question{}, nil, []string{search, code, own}, "the provider's tool web_search was not offered"},
		"MD-6_one_denied":         {[]policy.Rule{{When: `tool.server == "provider" && tool.remote_name == "code_execution"`, Verdict: "deny"}}, host.Question{}, []string{search}, []string{code}, "the provider's tool code_execution was not offered"},
		"MD-6_denied_to_an_agent": {[]policy.Rule{{When: `tool.server == "provider" && agent == "default"`, Verdict: "deny"}}, host.Question{}, nil, []string{search}, "was not offered"},
		"MD-6_allowed":            {[]policy.Rule{{When: `tool.server == "provider"`, Verdict: "allow"}}, host.Question{}, []string{search, code, own}, nil, ""},
		"MD-6_no_tools":           {nil, host.Question{NoTools: true}, nil, []string{search, code, own}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), LookupEnv: func(string) (string, bool) { return "", false },
				Config: &config.Config{Policy: policy.Config{Rules: c.rules}, Agents: map[string]agent.Config{"default": agent.Config{Model: "m"}.WithDefaults()},
					Models: map[string]model.Config{"m": {Provider: "anthropic", Model: "claude-sonnet-4-5", BaseURL: srv.URL, APIKey: tenon.NewSecret("k"),
						Headers: map[string]string{"anthropic-beta": "mine"}, Tools: []byte(`{"web_search":{},"code_execution":{},"wiki":{"type":"mcp_toolset","mcp_server_name":"wiki"}}`)}}}})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = h.Close() }()
			c.question.Text = "tea?"
			a, err := host.Ask(t.Context(), h, c.question)
			if err != nil || a.Text != "Green." {
				t.Fatalf("%q %v", a.Text, err)
			}
			for _, s := range c.with {
				if !strings.Contains(sent, s) {
					t.Errorf("%s lacks %s", sent, s)
				}
			}
			for _, s := range c.without {
				if strings.Contains(sent, s) {
					t.Errorf("%s has %s", sent, s)
				}
			}
			if want := len(c.with) > 1; want != (beta == "mine,code-execution-2025-08-25") {
				t.Errorf("anthropic-beta is %q", beta)
			}
			events, err := h.Runs().Open(a.Run.ID).Journal(t.Context(), 0, 100)
			if err != nil {
				t.Fatal(err)
			}
			warned, used := "", ""
			for _, e := range events {
				if r, ok := (view.Event{Event: e}).Value().(*view.Answered); ok {
					warned, used = strings.Join(r.Warnings, "\n"), strings.Join(r.Message.Hosted(), "\n")
				}
			}
			if !strings.Contains(warned, c.warning) || c.warning == "" && warned != "" {
				t.Errorf("the warnings are %q", warned)
			}
			if used != `web_search {"query":"tea"}` {
				t.Errorf("the uses are %q", used)
			}
		})
	}
}
