package agent_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/tenonhq/tenon/agent"
)

// TestCheckData checks table ids in the forms in which models write them. Only the arguments that are data ports are
// checked.
func TestCheckData(t *testing.T) {
	for ids, want := range map[string]string{
		`{"in":1}`:          "",
		`{"in":"1"}`:        "",
		`{"in":1.0}`:        "",
		`{"in":0,"more":9}`: "",
		`{"in":2}`:          "No data item found with id: 2. Available ids: ['0', '1']",
		`{"in":0.5}`:        "No data item found with id: 0.5. Available ids: ['0', '1']",
		`{"in":-1}`:         "No data item found with id: -1. Available ids: ['0', '1']",
		`{"in":1e300}`:      "No data item found with id: 1e300. Available ids: ['0', '1']",
		`{"in":"01"}`:       "No data item found with id: 01. Available ids: ['0', '1']",
		`{"in":null}`:       "No data item found with id: null. Available ids: ['0', '1']",
		`{"more":0}`:        "Missing data inputs for ports: in",
	} {
		var m map[string]json.RawMessage
		if err := json.Unmarshal([]byte(ids), &m); err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := agent.CheckData([]string{"in"}, m, 2); err != nil {
			got = fmt.Sprint(err)
		}
		if got != want {
			t.Errorf("%s: %q, want %q", ids, got, want)
		}
	}
}
