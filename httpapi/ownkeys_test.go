package httpapi_test

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/httpapi"
)

// TestWrongValuesByTheirKeys checks that the error about a wrong value names this value only, by the key of the request.
func TestWrongValuesByTheirKeys(t *testing.T) {
	h, _, _ := serve(t)
	handler := httpapi.New(h, httpapi.Config{})
	for name, tt := range map[string]struct{ path, body, want string }{
		"temperature": {"/chat", `{"message":"a","temperature":3}`, "temperature must be from 0 to 2, not 3"},
		"maxTokens":   {"/chat", `{"message":"a","maxTokens":-1}`, "maxTokens must not be negative"},
		"parameters": {"/chat", `{"message":"a","parameters":{"topP":2,"maxTokens":-1,"presencePenalty":5}}`,
			"parameters.maxTokens must not be negative; parameters.topP must be from 0 to 1, not 2; parameters.presencePenalty must be from -2 to 2, not 5"},
		"OpenAI":      {"/v1/chat/completions", `{"model":"default","messages":[{"role":"user","content":"a"}],"top_p":-1}`, "top_p must be from 0 to 1, not -1"},
		"OpenAI, new": {"/v1/chat/completions", `{"messages":[{"role":"user","content":"a"}],"max_completion_tokens":-1}`, "max_completion_tokens must not be negative"},
		"no prompt":   {"/mcp/prompts/get", `{"serverId":"house"}`, "promptName is missing: the prompt of server 'house'"},
		"no server":   {"/mcp/prompts/get", `{"promptName":"x"}`, "serverId is missing: it names the server of the prompt"},
		"of nowhere":  {"/mcp/resources/read", `{"uri":"x:y"}`, "serverId is missing: it names the server of the resource"},
		"argument":    {"/mcp/prompts/get", `{"serverId":"house","promptName":"x","arguments":{"a":"1","name":5}}`, "the body is not valid: arguments.name must be a text, not number"},
		"list":        {"/chat", `{"message":"a","parameters":{"stopSequences":["a",5]}}`, "the body is not valid: parameters.stopSequences.1 must be a text, not number"},
		"arguments":   {"/mcp/prompts/get", `{"serverId":"house","promptName":"x","arguments":"a"}`, "the body is not valid: arguments must be an object, not string"},
	} {
		t.Run(name, func(t *testing.T) {
			status, _, text := request(t, handler, "POST", tt.path, "application/json", tt.body)
			var e struct{ Error any }
			if err := json.Unmarshal([]byte(text), &e); err != nil {
				t.Fatal(err)
			}
			said, ok := e.Error.(string)
			if m, object := e.Error.(map[string]any); !ok && object {
				said, _ = m["message"].(string)
			}
			if status != 400 || said != tt.want {
				t.Errorf("HTTP %d %s", status, text)
			}
		})
	}
}

// TestServerEntryHasTheFormOfOtherPrograms adds a server with keys of tenon.yaml. The error says which form the entry
// has, and where the keys are set instead.
func TestServerEntryHasTheFormOfOtherPrograms(t *testing.T) {
	h, _, _ := serve(t)
	handler := httpapi.New(h, httpapi.Config{CommandLine: true, Editor: &keeping{}})
	for _, key := range []string{"auth", "policy"} {
		status, _, text := request(t, handler, "PUT", "/api/v1/config/servers/x", "application/json",
			`{"entry":{"url":"https://mcp.example/mcp","`+key+`":{}}}`)
		for _, want := range []string{"mcpServers, as in .mcp.json", "/api/v1/config/entries", "servers.x." + key + ": unknown key"} {
			if status != 400 || !strings.Contains(text, want) {
				t.Errorf("%s: HTTP %d %s, want %s", key, status, text, want)
			}
		}
	}
}

// curious is a toolset with a tool that needs a name before it can finish.
type curious struct{}

func (curious) Tools(context.Context) ([]tenon.Tool, error) {
	yes := true
	return []tenon.Tool{{Remote: "ask", Input: json.RawMessage(`{"type":"object"}`), Annotations: tenon.Annotations{ReadOnly: &yes}}}, nil
}

func (curious) Call(_ context.Context, c tenon.Call) (*tenon.Result, error) {
	if c.Input != nil {
		return &tenon.Result{Content: []tenon.Content{tenon.Text(string(c.Input.Responses))}}, nil
	}
	return &tenon.Result{Input: &tenon.InputRequired{State: "s", Requests: json.RawMessage(`{"who":{"method":"elicitation/create","params":{
		"message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}}}`)}}, nil
}

// TestWaitingCallNamesItsApproval calls a tool whose server asks for input. The answer has the approval, and its id
// decides it.
func TestWaitingCallNamesItsApproval(t *testing.T) {
	for path, body := range map[string]string{"/mcp/tools/call": `{"toolName":"ask"}`, "/api/v1/tools/ask/call": `{}`} {
		t.Run(path, func(t *testing.T) {
			h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), Interactive: true, Toolsets: map[string]tenon.Toolset{"door": curious{}}})
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close()
			handler := httpapi.New(h, httpapi.Config{})
			status, header, text := request(t, handler, "POST", path, "application/json", body)
			var e struct {
				Error, Detail, Run string
				Approvals          []host.Approval
			}
			if err := json.Unmarshal([]byte(text), &e); err != nil {
				t.Fatal(err)
			}
			if status != 424 || len(e.Approvals) != 1 || e.Run == "" || header.Get("Tenon-Run") != e.Run {
				t.Fatalf("HTTP %d %s", status, text)
			}
			id := e.Approvals[0].ID
			if !strings.HasPrefix(id, e.Run+"/") || !strings.Contains(e.Error+e.Detail, "decide, the slash of the id as %2F, id "+id+";") {
				t.Errorf("id %s: %s", id, text)
			}
			status, _, text = request(t, handler, "POST", "/api/v1/approvals/"+url.PathEscape(id)+"/decide", "application/json", `{"verdict":"allow","arguments":{"name":"Ada"}}`)
			if status != 200 || !strings.Contains(text, `"mine":true`) {
				t.Errorf("HTTP %d %s", status, text)
			}
		})
	}
}
