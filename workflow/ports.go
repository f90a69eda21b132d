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

// CheckInputs checks the tables of a call against the input ports. No table may be missing or unknown, and each must
// have the required columns. Errors: invalid.
func (w *Workflow) CheckInputs(tables map[string]tenon.Table) error {
	names := slices.Sorted(maps.Keys(tables))
	if err := w.CheckPorts(names); err != nil {
		return err
	}
	for _, name := range names {
		in := w.inputs[name]
		t := tables[name]
		if miss := columnMismatch(&t, in.Columns); miss != "" {
			return tenon.Errorf(tenon.CodeInvalid, "the table for input '%s' of workflow '%s' does not match: %s", name,
				w.Name, miss)
		}
	}
	return nil
}

// CheckPorts checks the names of the tables of a call against the input ports. Errors: invalid.
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
		return tenon.Errorf(tenon.CodeInvalid, "%w; and %s", &MissingError{Inputs: missing}, unknown)
	case len(missing) > 0:
		return tenon.Errorf(tenon.CodeInvalid, "%w", &MissingError{Inputs: missing})
	case unknown != "":
		return tenon.Errorf(tenon.CodeInvalid, "%s", unknown)
	}
	return nil
}

func (w *Workflow) inputHint(name string) string {
	names := slices.Sorted(maps.Keys(w.inputs))
	switch near := tenon.Nearest(name, names); {
	case len(names) == 0:
		return ": it has no inputs"
	case near != "":
		return "; did you mean '" + near + "'?"
	}
	return "; its inputs: " + strings.Join(names, ", ")
}

// columnMismatch describes how a table differs from the required columns. It returns "" if it matches.
func columnMismatch(t *tenon.Table, columns map[string]string) string {
	for _, name := range slices.Sorted(maps.Keys(columns)) {
		want := columns[name]
		i := slices.IndexFunc(t.Columns, func(c tenon.TableColumn) bool { return c.Name == name })
		switch {
		case i < 0:
			var names []string
			for _, c := range t.Columns {
				names = append(names, c.Name)
			}
			return fmt.Sprintf("it has no column '%s'; its columns: %s", name,
				cmp.Or(strings.Join(names, ", "), "none"))
		case want == "any", t.Columns[i].Type == want, want == "number" && t.Columns[i].Type == "integer":
		default:
			return fmt.Sprintf("its column '%s' is %s, not %s", name, t.Columns[i].Type, want)
		}
	}
	return ""
}

// ParameterMap returns the parameters in the form of tool tables: a JSON object from name to schema, in file
// order.
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

// QueryTables maps the SQL names of the tables that a query reads to an input, a step, or STEP.PORT. step is an index
// into Steps.
func (w *Workflow) QueryTables(step int) map[string]string {
	out := map[string]string{}
	for _, name := range w.steps[step].tables {
		out[sqlName(name)] = name
	}
	return out
}
