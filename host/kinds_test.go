package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/servers"
)

// TestKN2_OneInterface has a workflow, a tool of an MCP server, a request and a function
// of the program report their kinds and be called alike.
func TestKN2_OneInterface(t *testing.T) {
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
	if err := h.AddServer(t.Context(), "far", servers.Config{URL: url}); err != nil {
		t.Fatal(err)
	}
	snapshot, problems, err := h.Tools(t.Context())
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	for _, c := range []struct{ name, kind string }{{"flow", tenon.KindWorkflow}, {"remote", tenon.KindMCP}, {"request", tenon.KindHTTP}, {"local", tenon.KindFunction}} {
		t.Run(c.kind, func(t *testing.T) {
			tool, ok := snapshot.Lookup(c.name)
			if !ok || tool.KindName() != c.kind || tool.Description == "" || len(tool.Input) == 0 {
				t.Fatalf("%+v", tool)
			}
			r, _, err := h.CallTool(t.Context(), c.name, json.RawMessage(`{"who":"Ann"}`), nil)
			if err != nil || r.Text() != "hello Ann" {
				t.Errorf("%+v %v", r, err)
			}
		})
	}
}
