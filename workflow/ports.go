package workflow

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
)

// CheckInputs holds the tables of a call to the ports: all are there, no others are,
// and each has the columns that it must have. Errors: invalid.
func (w *Workflow) CheckInputs(tables map[string]tenon.Table) error {
	names := slices.Sorted(maps.Keys(tables))
	if err := w.CheckPorts(names); err != nil {
		return err
	}
	for _, name := range names {
		in := w.inputs[name]
		t := tables[name]
		if miss := misfit(&t, in.Columns); miss != "" {
			return tenon.Errorf(tenon.CodeInvalid, "the table for input '%s' of workflow '%s' does not fit: %s", name, w.Name, miss)
		}
	}
	return nil
}

// CheckPorts holds the names of the tables that a call would give to the ports. Errors: invalid.
func (w *Workflow) CheckPorts(names []string) error {
	var missing []string
	for _, in := range w.Inputs {
		if !slices.Contains(names, in.Name) {
			missing = append(missing, in.Name)
		}
	}
	unknown := ""
	for _, name := range names {
		if w.inputs[name] == nil {
			unknown = fmt.Sprintf("workflow '%s' has no input '%s'%s", w.Name, tenon.Visible(name), w.inputHint(name))
			break
		}
	}
	switch {
	case len(missing) > 0 && unknown != "":
		return tenon.Errorf(tenon.CodeInvalid, "Missing data inputs for ports: %s; and %s", strings.Join(missing, ", "), unknown)
	case len(missing) > 0:
		return tenon.Errorf(tenon.CodeInvalid, "Missing data inputs for ports: %s", strings.Join(missing, ", "))
	case unknown != "":
		return tenon.Errorf(tenon.CodeInvalid, "%s", unknown)
	}
	return nil
}

func (w *Workflow) inputHint(name string) string {
	names := slices.Sorted(maps.Keys(w.inputs))
	switch near := tenon.Nearest(name, names); {
	case len(names) == 0:
		return ": it takes no tables"
	case near != "":
		return "; did you mean '" + near + "'?"
	}
	return "; its inputs: " + strings.Join(names, ", ")
}

// misfit says what a table lacks of columns, "" for nothing.
func misfit(t *tenon.Table, columns map[string]string) string {
	for _, name := range slices.Sorted(maps.Keys(columns)) {
		want := columns[name]
		i := slices.IndexFunc(t.Columns, func(c tenon.TableColumn) bool { return c.Name == name })
		switch {
		case i < 0:
			var names []string
			for _, c := range t.Columns {
				names = append(names, c.Name)
			}
			return fmt.Sprintf("it has no column '%s'; its columns: %s", name, cmp.Or(strings.Join(names, ", "), "none"))
		case want == "any", t.Columns[i].Type == want, want == "number" && t.Columns[i].Type == "integer":
		default:
			return fmt.Sprintf("its column '%s' is %s, not %s", name, t.Columns[i].Type, want)
		}
	}
	return ""
}

// ParameterMap is the parameters as tool tables have them: a JSON object from name to
// schema, in the order of the file.
func (w *Workflow) ParameterMap() json.RawMessage {
	out := []byte{'{'}
	for i, name := range w.order {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, mustJSON(name)...), ':'), w.Parameters[name]...)
	}
	return append(out, '}')
}

// QueryTables are the tables that the query of a step reads, an index of Steps: the name
// in SQL -> an input, a step, or STEP.PORT.
func (w *Workflow) QueryTables(step int) map[string]string {
	out := map[string]string{}
	for _, name := range w.steps[step].tables {
		out[sqlName(name)] = name
	}
	return out
}
