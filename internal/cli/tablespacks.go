package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/table"
)

// packFlaws compares the row of a workflow tool with its packed workflow. The row says which parameters and tables
// a call may have, so a difference fails the calls or hides a parameter. Workflows of other programs, and workflows
// that cannot be read, are not compared.
func packFlaws(t *table.Tool, pack []byte) (list []table.Flaw) {
	w, p, err := config.OpenWorkflow(t.Name, bytes.NewReader(pack), int64(len(pack)))
	if err != nil {
		return nil
	}
	want, err := workflowRow(host.Workflow{Workflow: w, Pack: p})
	if err != nil {
		return nil
	}
	add := func(field, what, row, packed string) {
		if row != packed {
			list = append(list, table.Flaw{Field: field, What: fmt.Sprintf("the %s of the row differ from its packed "+
				"workflow: %s, and in the workflow %s", what, row, packed)})
		}
	}
	add("3", "parameters", parameterText(t), parameterText(want))
	add("4", "inputs", portText(t.Inputs), portText(want.Inputs))
	add("5", "outputs", portText(t.Outputs), portText(want.Outputs))
	return list
}

// parameterText lists the parameters of a row by name, with their types. Which of them have a default is not in a
// row.
func parameterText(t *table.Tool) string {
	schema, err := t.Schema()
	if err != nil {
		return "unreadable" // another flaw says why
	}
	var s struct {
		Properties map[string]json.RawMessage
	}
	_ = json.Unmarshal(schema, &s) // what is missing differs
	var list []string
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		var property struct{ Type json.RawMessage }
		_ = json.Unmarshal(s.Properties[name], &property)
		text := tenon.Visible(name)
		if len(property.Type) > 0 {
			text += " (" + tenon.Visible(strings.Trim(string(property.Type), `"`)) + ")"
		}
		list = append(list, text)
	}
	return orNone(list)
}

// portText lists ports in their order, with their columns.
func portText(ports []table.Port) string {
	var list []string
	for _, p := range ports {
		var spec struct {
			Columns []struct{ Name, Type string }
		}
		_ = json.Unmarshal([]byte(p.Spec), &spec) // no columns are required
		var columns []string
		for _, c := range spec.Columns {
			columns = append(columns, tenon.Visible(c.Name+" "+c.Type))
		}
		slices.Sort(columns)
		text := tenon.Visible(p.Name)
		if len(columns) > 0 {
			text += " (" + strings.Join(columns, ", ") + ")"
		}
		list = append(list, text)
	}
	return orNone(list)
}

// orNone joins texts for a person.
func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}
