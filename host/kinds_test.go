package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/servers"
	"github.com/tenonhq/tenon/table"
)

// Test_KN2_OneInterface checks that a workflow, a tool of an MCP server, an HTTP request and a Go function report their
// kinds and are called in the same way.
func Test_KN2_OneInterface(t *testing.T) {
	url := servedTools(t, mcp.ServerConfig{Name: "x", Version: "1", Tools: []mcp.ServerTool{{
		Definition: json.RawMessage(`{"name":"remote","description":"Says hello","inputSchema":{"type":"object","properties":{"who":{"type":"string"}}}}`),
		Call: func(context.Context, *mcp.ToolRequest) (json.RawMessage, error) {
			return json.RawMessage(`{"content":[{"type":"text","text":"hello Ann"}]}`), nil
		}}}})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "hello "+r.URL.Query().Get("who")) }))
	defer web.Close()
	type args struct {
		Who string `json:"who"`
	}
	required := true
	h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), LookupEnv: func(string) (string, bool) { return "", false },
		Workflows: map[string]host.Workflow{"flow": flowFile(t, "parameters: {who: {type: string, description: whom}}\nsteps: [{id: m, template: 'hello {{ params.who }}'}]\nmessage: m\n")},
		Functions: []host.Function{host.NewFunction("local", "Says hello", func(_ context.Context, a args) (string, error) { return "hello " + a.Who, nil })},
		Config: &config.Config{Tools: map[string]catalog.Tool{"request": {Kind: tenon.KindHTTP, Description: "Says hello",
			Arguments: []catalog.Argument{{Name: "who", Required: &required}}, Request: catalog.Request{URL: web.URL + "/?who={{ args.who }}"}}}}})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close() //nolint:errcheck // nothing is read any more
	if err := h.Servers().Add(t.Context(), "far", servers.Config{URL: url}); err != nil {
		t.Fatal(err)
	}
	snapshot, problems, err := h.Tools().Snapshot(t.Context())
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	for _, c := range []struct{ name, kind string }{{"flow", tenon.KindWorkflow}, {"remote", tenon.KindMCP}, {"request", tenon.KindHTTP}, {"local", tenon.KindFunction}} {
		t.Run(c.kind, func(t *testing.T) {
			tool, ok := snapshot.Lookup(c.name)
			if !ok || tool.KindName() != c.kind || tool.Description == "" || len(tool.Input) == 0 {
				t.Fatalf("%+v", tool)
			}
			r, _, err := host.CallTool(t.Context(), h, c.name, json.RawMessage(`{"who":"Ann"}`), nil)
			if err != nil || r.Text() != "hello Ann" {
				t.Errorf("%+v %v", r, err)
			}
		})
	}
}

// modelForms is the description that a model gets of a tool of each kind.
const modelForms = `agent asks
  "Asks somebody"
  {"additionalProperties":false,"properties":{"message":{"description":"The task, with everything that the agent needs to know: it does not see this conversation.","type":"string"}},"required":["message"],"type":"object"}
workflow flow
  "A workflow."
  {"type":"object","properties":{"who":{"type":"string","description":"whom"}},"required":["who"],"additionalProperties":false}
function local
  "Greets in Go"
  {"type":"object","properties":{"who":{"type":"string"}},"required":["who"],"additionalProperties":false}
mcp remote
  "Says hello"
  {"type":"object","properties":{"who":{"type":"string"}}}
http request
  "Greets by HTTP"
  {"type":"object","properties":{"who":{"type":"string","description":"whom"}},"required":["who"],"additionalProperties":false}
workflow tables
  "description: \"A workflow.\"\ninput_ports:\n  - name: rows\n    description: \"goods\"\n    type: Table\n    columns:\n      \"n\": integer\noutput_ports:\n  - name: out\n    description: \"the same\"\n    type: Table\n"
  {"type":"object","properties":{"configuration":{"type":"object","properties":{"who":{"type":"string","description":"whom"}},"required":["who"],"additionalProperties":false},"data_inputs":{"type":"object","properties":{"rows":{"description":"Id of the table in the data repository: goods","type":["integer","string"]}},"required":["rows"],"additionalProperties":false}},"required":["configuration","data_inputs"],"additionalProperties":false}
prompt template
  "Greets by a model"
  {"type":"object","properties":{"who":{"type":"string","description":"whom"}},"required":["who"],"additionalProperties":false}
`

// strange is a toolset with a tool of an unknown kind.
type strange struct{}

func (strange) Tools(context.Context) ([]tenon.Tool, error) {
	return []tenon.Tool{{Remote: "odd", Kind: "9", Description: "Is odd", Input: json.RawMessage(`{"type":"object"}`)}}, nil
}

func (strange) Call(context.Context, tenon.Call) (*tenon.Result, error) { panic("it is not offered") }

// Test_KN23_ModelForm compares the description that a model gets of a tool of each kind with a golden text. An unknown
// kind is an error, in a request and in a table.
func Test_KN23_ModelForm(t *testing.T) {
	url := servedTools(t, mcp.ServerConfig{Name: "x", Version: "1", Tools: []mcp.ServerTool{{
		Definition: json.RawMessage(`{"name":"remote","description":"Says hello","inputSchema":{"type":"object","properties":{"who":{"type":"string"}}}}`)}}})
	var got strings.Builder
	required := true
	who := []catalog.Argument{{Name: "who", Description: "whom", Required: &required}}
	type args struct {
		Who string `json:"who"`
	}
	h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), LookupEnv: func(string) (string, bool) { return "", false },
		Toolsets:  map[string]tenon.Toolset{"strange": strange{}},
		Functions: []host.Function{host.NewFunction("local", "Greets in Go", func(_ context.Context, a args) (string, error) { return a.Who, nil })},
		Workflows: map[string]host.Workflow{
			"flow":   flowFile(t, "parameters: {who: {type: string, description: whom}}\nsteps: [{id: m, template: hello}]\nmessage: m\n"),
			"tables": flowFile(t, "parameters: {who: {type: string, description: whom}}\ninputs: [{name: rows, description: goods, columns: {n: integer}}]\nsteps: [{id: m, sql: SELECT n FROM rows}]\noutputs: [{name: out, description: the same, from: m}]\n")},
		Config: &config.Config{
			Servers: map[string]servers.Config{"far": {URL: url}},
			Agents:  map[string]agent.Config{"lead": agent.Config{Model: "m"}.WithDefaults(), "helper": agent.Config{Model: "m"}.WithDefaults()},
			Tools: map[string]catalog.Tool{
				"request":  {Kind: tenon.KindHTTP, Description: "Greets by HTTP", Arguments: who, Request: catalog.Request{URL: "http://example.com/?who={{ args.who }}"}},
				"template": {Kind: tenon.KindPrompt, Description: "Greets by a model", Arguments: who, Template: "Greet {{ args.who }}"},
				"asks":     {Kind: tenon.KindAgent, Agent: "helper", Description: "Asks somebody"},
			}},
		Model: "m", Models: map[string]tenon.Model{"m": answering(func(req *tenon.Request) (*tenon.Response, error) {
			for _, tool := range req.Tools {
				fmt.Fprintf(&got, "%s %s\n  %q\n  %s\n", tool.KindName(), tool.Name, tool.Description, tool.Input)
			}
			return says("hello"), nil
		})}})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close() //nolint:errcheck // nothing is read any more
	ask(t, h, host.Question{Text: "go", Agent: "lead"})
	if diff := cmp.Diff(modelForms, got.String()); diff != "" {
		t.Errorf("%s\n%s", diff, got.String())
	}
	_, problems, err := h.Tools().Snapshot(t.Context())
	if err != nil || len(problems) != 1 || !strings.HasSuffix(problems[0].Err.Error(), "Unknown tool type: 9") {
		t.Errorf("%+v %v", problems, err)
	}
	path := filepath.Join(t.TempDir(), "t.arrow")
	err = table.WriteTools(t.Context(), path, []table.Row{{ID: "Row0", Tool: &table.Tool{Kind: 9, Name: "odd", Message: -1}}}, table.WriteOptions{})
	if tenon.ErrorCode(err) != tenon.CodeInvalid || !strings.Contains(err.Error(), "Unknown tool type") {
		t.Errorf("error %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
