package host_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/table"
)

// rowsOf makes an Arrow table from JSON rows.
func rowsOf(t *testing.T, rows ...string) []byte {
	t.Helper()
	var list []json.RawMessage
	for _, r := range rows {
		list = append(list, json.RawMessage(r))
	}
	var out bytes.Buffer
	if err := table.WriteRows(t.Context(), "-", list, nil, table.WriteOptions{Stdout: &out}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestDataAfterRestart checks that a waiting run keeps its tables when its process ends: another process has the tables
// of the conversation and the tables that calls have made from them.
func TestDataAfterRestart(t *testing.T) {
	home := t.TempDir()
	flows := map[string]host.Workflow{"total": flowFile(t, `
inputs: [{name: in1, type: table, description: rows}]
steps:
  - {id: made, table: {rows: [{n: 1}, {n: 2}]}}
  - {id: msg, template: "{{ inputs.in1.count }} rows"}
outputs: [{name: made, description: what was made, from: made}]
message: msg
`)}
	var last string
	play := func(_ string, req *tenon.Request) *tenon.Response {
		last = lastText(req)
		switch {
		case strings.Contains(last, "rows") && strings.Contains(last, "2:\n"):
			return says("done")
		case strings.Contains(last, "3 rows"):
			return calls(`total {"data_inputs":{"in1":1}}`)
		}
		return calls(`total {"data_inputs":{"in1":0}}`)
	}
	h := flowHost(t, home, &shop{}, flows, play)
	run, err := h.Start(t.Context(), host.Question{Text: "total?", Data: [][]byte{rowsOf(t, `{"a":1}`, `{"a":2}`, `{"a":3}`)}})
	if err != nil {
		t.Fatal(err)
	}
	for waits := 0; ; waits++ {
		for _, err := range h.Runs().Events(t.Context(), run.ID, 0) {
			if err != nil {
				t.Fatal(err)
			}
		}
		list, err := h.Approvals().List(t.Context(), run.ID)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) == 0 {
			if waits != 2 {
				t.Errorf("it waited %d times", waits)
			}
			break
		}
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		h = flowHost(t, home, &shop{}, flows, play)
		if _, _, err := h.Approvals().Decide(t.Context(), list[0].Run, list[0].Step, agent.Ruling{Verdict: tenon.Allow, By: "ann"}); err != nil {
			t.Fatal(err)
		}
		if err := h.Runs().Resume(t.Context(), run.ID); err != nil {
			t.Fatal(err)
		}
	}
	if !strings.HasPrefix(last, "2 rows\n\n## Data repository update\n\n```yaml\n2:\n  name: made\n") {
		t.Errorf("the model was told\n%s", last)
	}
	all, made, err := host.RunTables(t.Context(), h, run.ID)
	if err != nil || len(all) != 3 || len(made) != 2 || all[0].Name != "input_table_1" || all[0].Rows != 3 {
		t.Fatalf("%+v %+v %v", all, made, err)
	}
	for _, a := range all {
		if data, err := host.TableData(t.Context(), h, a); err != nil || int64(len(data)) != a.Bytes {
			t.Errorf("table %s has %d bytes, %v; want %d", a.Name, len(data), err, a.Bytes)
		}
	}
}

// lister is a toolset whose only tool returns a long list of rows.
type lister struct{ structured json.RawMessage }

func (l lister) Tools(context.Context) ([]tenon.Tool, error) {
	yes := true
	return []tenon.Tool{{Remote: "list", Input: json.RawMessage(`{"type":"object"}`), Annotations: tenon.Annotations{ReadOnly: &yes}}}, nil
}

func (l lister) Call(context.Context, tenon.Call) (*tenon.Result, error) {
	return &tenon.Result{Content: []tenon.Content{tenon.Text(string(l.structured))}, Structured: l.structured}, nil
}

// TestLargeResultIsTable checks that a list of rows that is too large for the model becomes a table, and that the model
// can query the table.
func TestLargeResultIsTable(t *testing.T) {
	rows := make([]string, 5000)
	for i := range rows {
		rows[i] = fmt.Sprintf(`{"id":%d,"name":"thing %d"}`, 9007199254740993+i, i%7)
	}
	long := strings.Join(rows, ",")
	for _, tt := range []struct {
		name, structured string
		table            bool
	}{
		{"list", "[" + long + "]", true},
		{"member", `{"total":5000,"items":[` + long + `]}`, true},
		{"two lists", `{"a":[` + long + `],"b":[{"x":1},{"x":2}]}`, false},
		{"no rows", `["` + strings.Repeat("x", 200_000) + `"]`, false},
		{"small", `[{"a":1},{"a":2}]`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var asked []*tenon.Request
			h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), LookupEnv: func(string) (string, bool) { return "", false },
				Toolsets: map[string]tenon.Toolset{"s": lister{json.RawMessage(tt.structured)}}, Model: "m",
				Models: map[string]tenon.Model{"m": answering(func(req *tenon.Request) (*tenon.Response, error) {
					asked = append(asked, req)
					switch {
					case len(asked) == 1:
						return calls("list {}"), nil
					case len(asked) == 2 && tt.table:
						return calls(`query_table {"sql":"SELECT count(*) AS n, max(id) AS id FROM table_0 WHERE name = 'thing 3' AND name <> 'table_7'"}`), nil
					}
					return says("done"), nil
				})}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = h.Close() })
			run, err := h.Start(t.Context(), host.Question{Text: "what is there?"})
			if err != nil {
				t.Fatal(err)
			}
			for _, err := range h.Runs().Events(t.Context(), run.ID, 0) {
				if err != nil {
					t.Fatal(err)
				}
			}
			told := lastText(asked[1])
			if strings.Contains(told, "## Data repository update") != tt.table {
				t.Errorf("told of a table: %v, want %v: %.300s", !tt.table, tt.table, told)
			}
			if tt.table && (len(asked) != 3 || !strings.HasPrefix(lastText(asked[2]), `{"n":714,"id":9007199254745987}`)) {
				t.Errorf("%d requests; the query gave %s", len(asked), lastText(asked[len(asked)-1]))
			}
			for _, tool := range names(asked[len(asked)-1]) {
				if tool == "query_table" && !tt.table {
					t.Error("query_table is offered without a table")
				}
			}
		})
	}
}
