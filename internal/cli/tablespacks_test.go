package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/table"
)

// TestKN_PackFlaws compares rows of workflow tools with their packed workflow.
func TestKN_PackFlaws(t *testing.T) {
	dir := t.TempDir()
	text := "kind: workflow\nversion: 1\nname: w\ndescription: d\nparameters:\n  by: {type: integer, description: f}\n" +
		"  more: {type: string, description: m, default: x}\n" +
		"inputs: [{name: nums, description: n, columns: {n: integer}}]\n" +
		"steps:\n  - {id: s, sql: SELECT n FROM nums, tables: [nums]}\n  - {id: m, template: done}\n" +
		"outputs: [{name: s, description: The sum, from: s}]\nmessage: m\n"
	if err := os.WriteFile(filepath.Join(dir, "workflow.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	w, pack, err := config.ReadWorkflow(dir)
	if err != nil {
		t.Fatal(err)
	}
	zip, err := pack.Zip()
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		change func(row *table.Tool)
		want   []string // the fields of the flaws
		text   string
	}{
		"KN-9_same":              {func(*table.Tool) {}, nil, ""},
		"KN-9_other_description": {func(row *table.Tool) { row.Description, row.Inputs[0].Description = "x", "y" }, nil, ""},
		"KN-9_parameters": {func(row *table.Tool) { row.Parameters = `{"by":{"type":"string"}}` }, []string{"3"},
			"the parameters of the row differ from its packed workflow: by (string), and in the workflow by (integer), " +
				"more (string)"},
		"KN-9_input_columns": {func(row *table.Tool) { row.Inputs[0].Spec = "" }, []string{"4"},
			"the inputs of the row differ from its packed workflow: nums, and in the workflow nums (n Number (Long Integer))"},
		"KN-9_no_ports": {func(row *table.Tool) { row.Inputs, row.Outputs, row.Message = nil, nil, -1 }, []string{"4", "5"},
			"the inputs of the row differ from its packed workflow: none, and in the workflow nums"},
	} {
		t.Run(name, func(t *testing.T) {
			row, err := workflowRow(host.Workflow{Workflow: w, Pack: pack})
			if err != nil {
				t.Fatal(err)
			}
			tt.change(row)
			path := filepath.Join(t.TempDir(), "t.arrow")
			if err := table.WriteTools(t.Context(), path, []table.Row{{ID: "Row0", Tool: row, Pack: zip}},
				table.WriteOptions{}); err != nil {
				t.Fatal(err)
			}
			r, err := table.Open(t.Context(), path, table.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			flaws, err := r.CheckWith(t.Context(), table.Checks{Packed: packFlaws})
			if err != nil {
				t.Fatal(err)
			}
			var fields []string
			for _, f := range flaws {
				fields = append(fields, f.Field)
			}
			if !slices.Equal(fields, tt.want) || len(flaws) > 0 && !strings.HasPrefix(flaws[0].What, tt.text) {
				t.Errorf("flaws %v, want fields %q and %q", flaws, tt.want, tt.text)
			}
		})
	}
	if flaws := packFlaws(&table.Tool{Name: "of another program"}, []byte("PK\x03\x04")); flaws != nil {
		t.Errorf("KN-9: a workflow of another program has flaws: %v", flaws)
	}
}
