package host_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/host"
)

// TestHelpersWithoutAgent calls tenon's own tools that are meant for agents, such as find_tools, outside of an agent's
// run. A person can call them by their server names.
func TestHelpersWithoutAgent(t *testing.T) {
	h := open(t, t.TempDir(), "steps: [{text: hello}]", &shop{})
	for _, c := range []struct{ server, tool, args, want string }{
		{catalog.FinderServer, "find_tools", `{"query":"a price"}`, "No tool fits 'a price'"},
		{catalog.DataServer, "query_table", `{"sql":"SELECT 6 * 7 AS n"}`, `{"n":42}`},
		{catalog.DataServer, "query_table", `{"sql":"SELECT * FROM table_0"}`, "No data item found with id: 0"},
		{catalog.ArtifactServer, "read_artifact", `{"artifact":"x-1.0-1"}`, "there is no artifact"},
	} {
		t.Run(c.tool, func(t *testing.T) {
			run, err := h.Tools().Start(t.Context(), host.ToolCall{Name: c.tool, Server: c.server,
				Arguments: json.RawMessage(c.args)})
			if err != nil {
				t.Fatal(err)
			}
			r, err := host.FollowCall(t.Context(), h.Runs(), run.ID, 0, func(tenon.Event) {})
			if err != nil || !strings.Contains(r.Text(), c.want) {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
}
