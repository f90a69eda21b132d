package host_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
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

// asksForApproval is an answer of OpenAI's API that asks for the approval of a connector's call.
const asksForApproval = `data: {"type":"response.output_item.done","output_index":0,"item":{"type":"mcp_list_tools","id":"l","server_label":"zip1","server_url":"https://zip1.example/mcp?key=geheim","authorization":"geheim","tools":[]}}

data: {"type":"response.output_item.done","output_index":1,"item":{"type":"mcp_approval_request","id":"mcpr_1","arguments":"{\"url\":\"https://x.example\"}","name":"shorten","server_label":"zip1"}}

data: {"type":"response.completed","response":{"id":"r","status":"completed","usage":{"input_tokens":1,"output_tokens":1}}}

`

// approver is a stub of OpenAI's API that asks for an approval first. It appends the requests to sent.
func approver(sent *[]string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		*sent = append(*sent, string(b))
		w.Header().Set("Content-Type", "text/event-stream")
		if !strings.Contains(string(b), "mcp_approval_response") {
			_, _ = io.WriteString(w, asksForApproval)
			return
		}
		for _, e := range []string{`{"type":"response.output_item.done","output_index":0,"item":{"type":"mcp_call","id":"c","server_label":"zip1","name":"shorten","arguments":"{}","output":"ok"}}`,
			`{"type":"response.output_item.done","output_index":1,"item":{"type":"message","id":"m","role":"assistant","content":[{"type":"output_text","text":"Done."}]}}`,
			`{"type":"response.completed","response":{"id":"r2","status":"completed"}}`} {
			_, _ = io.WriteString(w, "data: "+e+"\n\n")
		}
	})
}

// TestApprovalsOfConnectors checks that the rules decide about each call of an MCP server that OpenAI calls: the next
// request contains the verdict.
func TestApprovalsOfConnectors(t *testing.T) {
	var sent []string
	srv := httptest.NewServer(approver(&sent))
	defer srv.Close()
	rule := func(when, verdict string) []policy.Rule {
		return []policy.Rule{{When: when, Verdict: verdict}}
	}
	const approved = `{"type":"mcp_approval_response","approval_request_id":"mcpr_1","approve":true}`
	for name, c := range map[string]struct {
		rules  []policy.Rule
		ruling *agent.Ruling // nil: nobody is asked
		sent   string
	}{
		"MD-6_asked_allow": {nil, &agent.Ruling{Verdict: tenon.Allow, By: "ann"}, approved},
		"MD-6_always":      {nil, &agent.Ruling{Verdict: tenon.Allow, By: "ann", Remember: agent.RememberAlways}, approved},
		"MD-6_asked_deny":  {nil, &agent.Ruling{Verdict: tenon.Deny, By: "ann", Reason: "not now"}, `"approve":false,"reason":"Error: the call was denied by ann: not now`},
		"MD-6_allow":       {rule(`tool.server == "provider"`, "allow"), nil, approved},
		"MD-6_allow_tool":  {rule(`tool.remote_name == "zip1/shorten" && args.url.startsWith("https://")`, "allow"), nil, approved},
		"MD-6_deny_tool":   {append(rule(`tool.remote_name == "zip1/shorten"`, "deny"), rule(`tool.server == "provider"`, "allow")...), nil, `"approve":false,"reason":"`},
	} {
		t.Run(name, func(t *testing.T) {
			sent = nil
			h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), LookupEnv: func(string) (string, bool) { return "", false },
				Config: &config.Config{Policy: policy.Config{Rules: c.rules}, Agents: map[string]agent.Config{"default": agent.Config{Model: "m"}.WithDefaults()},
					Models: map[string]model.Config{"m": {Provider: "openai", API: "responses", Model: "gpt-5", BaseURL: srv.URL, APIKey: tenon.NewSecret("k"),
						Tools: []byte(`{"zip1":{"mcp":"https://zip1.example/mcp?key=geheim","token":"geheim"}}`)}}}})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = h.Close() }()
			a, err := host.Ask(t.Context(), h, host.Question{Text: "shorten"})
			text, run, again := a.Text, a.Run.ID, err
			if c.ruling != nil {
				if tenon.ErrorCode(err) != tenon.CodeWaiting {
					t.Fatalf("%v", err)
				}
				list, err := h.Approvals().List(t.Context(), "")
				if err != nil || len(list) != 1 || list[0].Server != "provider" || list[0].Remote != "zip1/shorten" || string(list[0].Arguments) != `{"url":"https://x.example"}` {
					t.Fatalf("%+v %v", list, err)
				}
				edited := *c.ruling
				edited.Verdict, edited.Arguments = tenon.Allow, json.RawMessage(`{"url":"https://y.example"}`)
				if _, _, err := h.Approvals().Decide(t.Context(), list[0].Run, list[0].Step, edited); tenon.ErrorCode(err) != tenon.CodeInvalid {
					t.Errorf("edited arguments: %v", err)
				}
				if _, _, err := h.Approvals().Decide(t.Context(), list[0].Run, list[0].Step, *c.ruling); err != nil {
					t.Fatal(err)
				}
				grants, err := h.Approvals().Grants(t.Context(), "")
				if kept := c.ruling.Remember != ""; err != nil || kept != (len(grants) == 1) || kept && grants[0].State != host.GrantActive {
					t.Errorf("grants %+v %v", grants, err)
				}
				again = h.Runs().Resume(t.Context(), list[0].Run)
				r, _ := follow(t, h, list[0].Run)
				text, run = r.Answer, list[0].Run
			}
			if again != nil || text != "Done." {
				t.Fatalf("%q %v", text, again)
			}
			if last := sent[len(sent)-1]; len(sent) != 2 || !strings.Contains(last, c.sent) || !strings.Contains(last, `"type":"mcp_list_tools"`) ||
				strings.Contains(last, "function_call") {
				t.Errorf("%d requests, the last one is %s", len(sent), last)
			}
			events, err := h.Runs().Open(run).Journal(t.Context(), 0, 100)
			if err != nil {
				t.Fatal(err)
			}
			all, err := json.Marshal(events)
			if err != nil {
				t.Fatal(err)
			}
			if all := string(all); strings.Contains(all, "geheim") || !strings.Contains(all, "mcp_call") {
				t.Errorf("%s", all)
			}
		})
	}
}

// TestToolsOfAnAgent checks that an agent's tools of the provider are added to those of its model, under the rules, and
// that a model without such a tool is asked without it, with a warning.
func TestToolsOfAnAgent(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s.yaml")
	script := "steps:\n  - expect_tools: [provider/web_search, provider/code_execution]\n    uses: [{name: web_search, input: {query: tea}}]\n    text: Green.\n"
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	searches := model.Config{Provider: "script", Path: file, Tools: []byte(`{"web_search":{}}`)}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-ndjson")
		_, _ = io.WriteString(w, `{"message":{"role":"assistant","content":"Green."},"done":true,"done_reason":"stop"}`+"\n")
	}))
	defer srv.Close()
	for name, c := range map[string]struct {
		model   model.Config
		agent   agent.Config
		rules   []policy.Rule
		want    string // of the error
		warning string
	}{
		"MD-6_added":   {searches, agent.Config{Model: "m", ProviderTools: json.RawMessage(`{"code_execution":{}}`)}, nil, "", ""},
		"MD-6_without": {searches, agent.Config{Model: "m"}, nil, "expects the tool provider/code_execution; available tools: provider/web_search", ""},
		"MD-6_denied": {searches, agent.Config{Model: "m", ProviderTools: json.RawMessage(`{"code_execution":{}}`)},
			[]policy.Rule{{When: `tool.remote_name == "web_search"`, Verdict: "deny"}}, "expects the tool provider/web_search; available tools: provider/code_execution", ""},
		"MD-6_lacked": {model.Config{Provider: "ollama", API: "ollama", Model: "llama3.2", BaseURL: srv.URL}, agent.Config{Model: "m", ProviderTools: json.RawMessage(`{"code_execution":{}}`)},
			nil, "", "the provider's tool code_execution was not offered: the API of model 'm' does not have it"},
	} {
		t.Run(name, func(t *testing.T) {
			h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), LookupEnv: func(string) (string, bool) { return "", false },
				Config: &config.Config{Policy: policy.Config{Rules: c.rules}, Agents: map[string]agent.Config{"default": c.agent.WithDefaults()},
					Models: map[string]model.Config{"m": c.model}}})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = h.Close() }()
			a, err := host.Ask(t.Context(), h, host.Question{Text: "tea?"})
			if err != nil && (c.want == "" || !strings.Contains(err.Error(), c.want)) || err == nil && (c.want != "" || a.Text != "Green.") {
				t.Fatalf("%q %v", a.Text, err)
			}
			events, err := h.Runs().Open(a.Run.ID).Journal(t.Context(), 0, 100)
			if err != nil {
				t.Fatal(err)
			}
			warned := ""
			for _, e := range events {
				if r, ok := (view.Event{Event: e}).Value().(*view.Answered); ok {
					warned = strings.Join(r.Warnings, "\n")
				}
			}
			if !strings.Contains(warned, c.warning) || c.warning == "" && strings.Contains(warned, "does not have it") {
				t.Errorf("the warnings are %q", warned)
			}
		})
	}
}

// movedCase is a way in which a connector's entry changes between a call and its approval.
type movedCase struct {
	tools string // of the host that continues the run
	sent  string
}

// TestMovedConnector checks that an approval is only valid for the address that it was given for. If the entry has
// another address when the run continues, the provider gets a refusal.
func TestMovedConnector(t *testing.T) {
	for name, c := range map[string]movedCase{
		"MD-6_same_address":  {`{"zip1":{"mcp":"https://zip1.example/mcp?key=geheim"}}`, `"approve":true`},
		"MD-6_moved":         {`{"zip1":{"mcp":"https://other.example/mcp"}}`, `"approve":false,"reason":"The address of 'zip1' changed after this call was allowed`},
		"MD-6_moved_in_key":  {`{"zip1":{"mcp":"https://zip1.example/mcp?key=another"}}`, `"approve":false,"reason":"The address of 'zip1' changed`},
		"MD-6_untyped_moved": {`{"zip1":{"type":"mcp","server_label":"zip1","server_url":"https://other.example/mcp"}}`, `"approve":false`},
	} {
		t.Run(name, func(t *testing.T) {
			var sent []string
			srv := httptest.NewServer(approver(&sent))
			defer srv.Close()
			home := t.TempDir()
			open := func(tools string) *host.Host {
				h, err := host.Open(t.Context(), host.Config{Home: home, LookupEnv: func(string) (string, bool) { return "", false },
					Config: &config.Config{Agents: map[string]agent.Config{"default": agent.Config{Model: "m"}.WithDefaults()},
						Models: map[string]model.Config{"m": {Provider: "openai", API: "responses", Model: "gpt-5", BaseURL: srv.URL, APIKey: tenon.NewSecret("k"), Tools: []byte(tools)}}}})
				if err != nil {
					t.Fatal(err)
				}
				return h
			}
			h := open(`{"zip1":{"mcp":"https://zip1.example/mcp?key=geheim"}}`)
			_, err := host.Ask(t.Context(), h, host.Question{Text: "shorten"})
			if tenon.ErrorCode(err) != tenon.CodeWaiting {
				t.Fatal(err)
			}
			list, err := h.Approvals().List(t.Context(), "")
			if err != nil || len(list) != 1 || list[0].Connector == nil || !strings.HasPrefix(list[0].Connector.URL, "https://zip1.example/mcp#sha256-") {
				t.Fatalf("%+v %v", list, err)
			}
			if _, _, err := h.Approvals().Decide(t.Context(), list[0].Run, list[0].Step, agent.Ruling{Verdict: tenon.Allow, By: "ann"}); err != nil {
				t.Fatal(err)
			}
			if err := h.Close(); err != nil {
				t.Fatal(err)
			}
			h = open(c.tools)
			defer func() { _ = h.Close() }()
			err = h.Runs().Resume(t.Context(), list[0].Run)
			if err != nil && tenon.ErrorCode(err) != tenon.CodeConflict { // conflict: the host resumed it by itself
				t.Fatal(err)
			}
			if r, _ := follow(t, h, list[0].Run); r.Answer != "Done." {
				t.Errorf("%+v", r)
			}
			if last := sent[len(sent)-1]; !strings.Contains(last, c.sent) {
				t.Errorf("lacks %s: %s", c.sent, last)
			}
		})
	}
}
