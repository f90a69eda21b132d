package model_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/model"
)

// TestConnectors checks that one form of MCP connectors becomes the declaration of each API.
func TestConnectors(t *testing.T) {
	const wiki = `{"wiki":{"mcp":"https://w.example/mcp","token":"T","allowed_tools":["read","search"]}}`
	const open = `{"wiki":{"mcp":"https://w.example/mcp"}}`
	own := []tenon.Tool{{Name: "f"}}
	both := []string{"wiki"}
	for name, c := range map[string]struct {
		wire string
		cfg  model.Config
		req  tenon.Request
		want []string
	}{
		"MD-6_connector_responses": {"responses", model.Config{Provider: "openai", Tools: []byte(wiki)}, tenon.Request{Tools: own, Hosted: both},
			[]string{`"strict":false},{"type":"mcp","server_label":"wiki","server_url":"https://w.example/mcp","authorization":"T","allowed_tools":["read","search"],"require_approval":"always"}]`}},
		"MD-6_connector_own_words": {"responses", model.Config{Provider: "openai", Tools: []byte(`{"wiki":{"mcp":"https://w.example/mcp","require_approval":"never","server_description":"D"}}`)}, tenon.Request{Hosted: both},
			[]string{`"tools":[{"type":"mcp","server_label":"wiki","server_url":"https://w.example/mcp","require_approval":"never","server_description":"D"}]`}},
		"MD-6_connector_other_service": {"responses", model.Config{Provider: "xai", Tools: []byte(open)}, tenon.Request{Hosted: both},
			[]string{`"tools":[{"type":"mcp","server_label":"wiki","server_url":"https://w.example/mcp"}]`}},
		"MD-6_connector_anthropic": {"anthropic", model.Config{Tools: []byte(wiki)}, tenon.Request{Tools: own, Hosted: both},
			[]string{`"mcp_servers":[{"type":"url","name":"wiki","url":"https://w.example/mcp","authorization_token":"T"}]`,
				`,{"type":"mcp_toolset","mcp_server_name":"wiki","default_config":{"enabled":false},"configs":{"read":{"enabled":true},"search":{"enabled":true}}}]`}},
		"MD-6_connector_anthropic_extra": {"anthropic", model.Config{Tools: []byte(open), Extra: []byte(`{"mcp_servers":[{"name":"x"}]}`)}, tenon.Request{Hosted: append([]string{"mcp_servers"}, both...)},
			[]string{`"mcp_servers":[{"type":"url","name":"wiki","url":"https://w.example/mcp"},{"name":"x"}]`, `"tools":[{"type":"mcp_toolset","mcp_server_name":"wiki"}]`}},
		"MD-6_connector_gemini": {"gemini", model.Config{Tools: []byte(`{"wiki":{"mcp":"https://w.example/mcp","token":"T","timeout":"9s"}}`)}, tenon.Request{Tools: own, Hosted: both},
			[]string{`{"mcpServers":[{"name":"wiki","streamableHttpTransport":{"url":"https://w.example/mcp","headers":{"Authorization":"Bearer T"},"timeout":"9s"}}]}]`}},
	} {
		t.Run(name, func(t *testing.T) {
			c.req.Messages = question.Messages
			sent := settingsSent(t, c.wire, c.cfg, &c.req)
			for _, want := range c.want {
				if !strings.Contains(sent, want) {
					t.Errorf("%s\nlacks %s", sent, want)
				}
			}
		})
	}
	for name, c := range map[string]struct {
		cfg   model.Config
		tools string
		want  string
	}{
		"MD-6_connector_no_https":  {model.Config{Provider: "anthropic"}, `{"w":{"mcp":"http://w.example"}}`, "'w': mcp is not an https address"},
		"MD-6_connector_name":      {model.Config{Provider: "anthropic"}, `{"my wiki":{"mcp":"https://w.example"}}`, "'my wiki' cannot name a connector"},
		"MD-6_connector_type":      {model.Config{Provider: "anthropic"}, `{"w":{"mcp":"https://w.example","type":"mcp"}}`, "'w' has both mcp and type"},
		"MD-6_connector_token":     {model.Config{Provider: "anthropic"}, `{"w":{"mcp":"https://w.example","token":7}}`, "'w': token is not a text"},
		"MD-6_connector_allowed":   {model.Config{Provider: "anthropic"}, `{"w":{"mcp":"https://w.example","allowed_tools":"x"}}`, "'w': allowed_tools is not a list"},
		"MD-6_connector_no_list":   {model.Config{Provider: "gemini"}, `{"w":{"mcp":"https://w.example","allowed_tools":["x"]}}`, "no list of allowed tools"},
		"MD-6_connector_chat":      {model.Config{Provider: "openai"}, `{"w":{"mcp":"https://w.example"}}`, "no form of MCP connectors for this API"},
		"MD-6_connector_vertex":    {model.Config{Provider: "vertex"}, `{"w":{"mcp":"https://w.example"}}`, "no form of MCP connectors for this API"},
		"MD-6_connector_bedrock":   {model.Config{Provider: "bedrock"}, `{"w":{"mcp":"https://w.example"}}`, "no form of MCP connectors for this API"},
		"MD-6_connector_ollama":    {model.Config{Provider: "ollama", API: "ollama"}, `{"w":{"mcp":"https://w.example"}}`, "no tools of the provider"},
		"MD-6_connector_right":     {model.Config{Provider: "gemini"}, `{"w":{"mcp":"https://w.example"}}`, ""},
		"MD-6_connector_of_script": {model.Config{Provider: "script", Path: "x"}, `{"w":{"mcp":"https://w.example"},"web_search":{}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.cfg.Model, c.cfg.Tools = "m", []byte(c.tools)
			err := c.cfg.Check()
			if err == nil && c.want != "" || err != nil && (c.want == "" || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
	if model.HostedServer != catalog.ProviderServer {
		t.Error("the names of the provider's server differ")
	}
}

// TestAsksFirst checks for which connectors the rules decide about each call.
func TestAsksFirst(t *testing.T) {
	const all = `{"a":{"mcp":"https://a.example"},"b":{"mcp":"https://b.example","require_approval":"never"},"c":{"type":"mcp","server_label":"see"},
		"d":{"type":"mcp","require_approval":{"never":{"tool_names":["x"]}}},"web_search":{}}`
	for name, c := range map[string]struct {
		cfg  model.Config
		want []string
	}{
		"MD-6_openai":    {model.Config{Provider: "openai", API: "responses"}, []string{"a", "c"}},
		"MD-6_azure":     {model.Config{Provider: "openai-compatible", API: "responses", BaseURL: "https://x.openai.azure.com/openai/v1"}, []string{"a", "c"}},
		"MD-6_xai":       {model.Config{Provider: "xai", API: "responses"}, nil},
		"MD-6_anthropic": {model.Config{Provider: "anthropic"}, nil},
		"MD-6_script":    {model.Config{Provider: "script"}, []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.cfg.Tools = []byte(all)
			if diff := cmp.Diff(c.want, c.cfg.WithDefaults().AsksFirst()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestToolsOfAgents checks how the provider's tools of an agent are combined with those of its model.
func TestToolsOfAgents(t *testing.T) {
	for name, c := range map[string]struct {
		provider, model, agent string
		want                   string
		missing                []string
	}{
		"MD-6_adds":     {"anthropic", `{"web_search":{"max_uses":3}}`, `{"code_execution":{}}`, `{"web_search":{"max_uses":3},"code_execution":{}}`, nil},
		"MD-6_replaces": {"anthropic", `{"web_search":{"max_uses":3}}`, `{"web_search":{"max_uses":1}}`, `{"web_search":{"max_uses":1}}`, nil},
		"MD-6_missing":  {"anthropic", ``, `{"file_search":{},"web_search":{}}`, `{"web_search":{}}`, []string{"file_search"}},
		"MD-6_nothing":  {"anthropic", `{"web_search":{}}`, ``, `{"web_search":{}}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, missing := model.Config{Provider: c.provider, Model: "m", Tools: []byte(c.model)}.WithTools([]byte(c.agent))
			if string(got.Tools) != c.want {
				t.Errorf("%s", got.Tools)
			}
			if diff := cmp.Diff(c.missing, missing); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestApprovalsOfConnectors checks that a request for an approval is a call, and that its result is the answer.
func TestApprovalsOfConnectors(t *testing.T) {
	const item = `{"type":"mcp_approval_request","id":"mcpr_1","arguments":"{\"url\":\"x\"}","name":"create.url","server_label":"zip1"}`
	stream := streamOf(`{"type":"response.output_item.added","output_index":0,"item":`+item+`}`, `{"type":"response.output_item.done","output_index":0,"item":`+item+`}`,
		`{"type":"response.completed","response":{"id":"r","status":"completed"}}`)
	a := answerTo(t, "responses", stream)
	calls := a.resp.Message.Calls()
	if a.resp.Stop != tenon.StopToolUse || len(calls) != 1 {
		t.Fatalf("%s %+v", a.resp.Stop, calls)
	}
	want := &tenon.ToolCall{ID: "approval_mcpr_1", Name: "zip1__create_url", Arguments: []byte(`{"url":"x"}`),
		Connector: &tenon.Connector{Name: "zip1", URL: "https://zip1.io/mcp", Tool: "create.url"}}
	cfg := model.Config{Provider: "openai", Tools: []byte(`{"zip1":{"mcp":"https://zip1.io/mcp"}}`)}
	p := &provider{replies: []reply{{body: stream}}}
	cfg.API, cfg.Model, cfg.APIKey = "responses", "m", tenon.NewSecret("k")
	known, err := generate(t.Context(), adapter(t, "responses", cfg, p.env()), question)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, known.resp.Message.Calls()[0]); diff != "" {
		t.Error(diff)
	}
	a.resp.Message.By = "" // so that every model of the wire format gets the original item
	for name, c := range map[string]struct {
		wire string
		msg  *tenon.Message
		fail bool
		want string
	}{
		"MD-6_approved": {"responses", a.resp.Message, false, item + `,{"type":"mcp_approval_response","approval_request_id":"mcpr_1","approve":true}]`},
		"MD-6_refused":  {"responses", a.resp.Message, true, item + `,{"type":"mcp_approval_response","approval_request_id":"mcpr_1","approve":false,"reason":"Error: no"}]`},
		"MD-6_rebuilt": {"responses", a.resp.Message.Plain(), false, `{"type":"mcp_approval_request","id":"mcpr_1","server_label":"zip1","name":"create.url","arguments":"{\"url\":\"x\"}"},` +
			`{"type":"mcp_approval_response","approval_request_id":"mcpr_1","approve":true}]`},
		"MD-6_other_wire": {"anthropic", a.resp.Message.Plain(), false, `{"type":"tool_use","id":"approval_mcpr_1","name":"zip1__create_url","input":{"url":"x"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			text := "ok"
			if c.fail {
				text = "Error: no"
			}
			req := tenon.Request{Messages: []*tenon.Message{tenon.UserMessage("q"), c.msg, {Role: tenon.RoleTool, Parts: []tenon.Part{{Type: tenon.PartResult,
				Result: &tenon.ToolResult{ID: calls[0].ID, Name: calls[0].Name, Content: []tenon.Content{tenon.Text(text)}, IsError: c.fail}}}}}}
			if sent := settingsSent(t, c.wire, model.Config{Provider: map[string]string{"responses": "openai"}[c.wire]}, &req); !strings.Contains(sent, c.want) {
				t.Errorf("%s\nlacks %s", sent, c.want)
			}
		})
	}
}

// TestConnectorSecrets checks which values of connectors are secrets, and that the address in journals has none.
func TestConnectorSecrets(t *testing.T) {
	for name, c := range map[string]struct {
		tools, url string
		secrets    []string
	}{
		"MD-6_plain":   {`{"w":{"mcp":"https://w.example/mcp"}}`, "https://w.example/mcp", nil},
		"MD-6_token":   {`{"w":{"mcp":"https://w.example/mcp","token":"tok"}}`, "https://w.example/mcp", []string{"tok"}},
		"MD-6_headers": {`{"w":{"mcp":"https://w.example/mcp","headers":{"X-Key":"one","Y":["two"]}}}`, "https://w.example/mcp", []string{"one", "two"}},
		"MD-6_query":   {`{"w":{"mcp":"https://w.example/mcp?key=three"}}`, "https://w.example/mcp#sha256-", []string{"three"}},
		"MD-6_user":    {`{"w":{"type":"mcp","server_label":"w","server_url":"https://u:four@w.example/mcp"}}`, "https://w.example/mcp#sha256-", []string{"four"}},
	} {
		t.Run(name, func(t *testing.T) {
			var secrets []string
			for _, s := range model.ToolSecrets([]byte(c.tools)) {
				secrets = append(secrets, s.Reveal())
			}
			if diff := cmp.Diff(c.secrets, secrets); diff != "" {
				t.Error(diff)
			}
			got := model.Config{Tools: []byte(c.tools)}.Connector("w", "read").URL
			if got != c.url && !(strings.HasSuffix(c.url, "-") && strings.HasPrefix(got, c.url)) {
				t.Errorf("address %s", got)
			}
		})
	}
	one := model.Config{Tools: []byte(`{"w":{"mcp":"https://w.example/mcp?key=a"}}`)}.Connector("w", "read").URL
	other := model.Config{Tools: []byte(`{"w":{"mcp":"https://w.example/mcp?key=b"}}`)}.Connector("w", "read").URL
	if one == other {
		t.Errorf("two addresses are shown as %s", one)
	}
}
