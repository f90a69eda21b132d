package workflow

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
)

// jsonTypes are the types of JSON Schema.
var jsonTypes = []string{"string", "integer", "number", "boolean", "array", "object", "null"}

// unknownType returns the unknown type in the type of a schema, which is a string or a list of strings.
func unknownType(typ any) (string, bool) {
	switch t := typ.(type) {
	case nil:
		return "", false
	case string:
		return t, !slices.Contains(jsonTypes, t)
	case []any:
		for _, e := range t {
			if s, ok := e.(string); !ok || !slices.Contains(jsonTypes, s) {
				return fmt.Sprint(e), true
			}
		}
		return "", false
	}
	return fmt.Sprint(typ), true
}

// isNumber reports whether a parameter may be any number, integral or not.
func (w *Workflow) isNumber(name string) bool {
	var about struct {
		Type any `json:"type"`
	}
	if json.Unmarshal(w.Parameters[name], &about) != nil {
		return false
	}
	list, _ := about.Type.([]any) // such as number or null
	return about.Type == "number" || slices.Contains(list, any("number")) && !slices.Contains(list, any("integer"))
}

// Params checks arguments against the parameters and adds the defaults. Errors: invalid.
func (w *Workflow) Params(args json.RawMessage) (json.RawMessage, error) {
	if args = bytes.TrimSpace(args); len(args) == 0 {
		args = json.RawMessage("{}")
	}
	var given map[string]json.RawMessage
	if json.Unmarshal(args, &given) != nil || given == nil {
		return nil, tenon.Errorf(tenon.CodeInvalid, "Parameters must be a JSON object.")
	}
	var missing []string
	for _, name := range w.order {
		if _, ok := given[name]; ok {
			continue
		}
		var about struct {
			Default json.RawMessage `json:"default"`
		}
		_ = json.Unmarshal(w.Parameters[name], &about)
		if len(about.Default) == 0 {
			missing = append(missing, name)
			continue
		}
		given[name] = about.Default
	}
	switch unknown := w.unknownParam(given); {
	case len(missing) > 0 && unknown != "":
		return nil, tenon.Errorf(tenon.CodeInvalid, "%w; and %s", &MissingError{Parameters: missing}, unknown)
	case len(missing) > 0:
		return nil, tenon.Errorf(tenon.CodeInvalid, "%w", &MissingError{Parameters: missing})
	case unknown != "":
		return nil, tenon.Errorf(tenon.CodeInvalid, "%s", unknown)
	}
	if err := w.schema.Check(args); err != nil {
		return nil, tenon.Errorf(tenon.CodeInvalid, "invalid parameters of workflow '%s': %w", w.Name, err)
	}
	for _, name := range w.order {
		given[name] = integers(w.Parameters[name], given[name])
		if raw := string(given[name]); !w.isNumber(name) && isRounded(raw) {
			return nil, tenon.Errorf(tenon.CodeInvalid,
				"invalid parameters of workflow '%s': %s: %s does not fit into 64 bits, and expressions would round "+
					"it; pass it as a string, or declare type number",
				w.Name, name, raw)
		}
	}
	return mustJSON(given), nil
}

// integers returns a value with the integers that its schema declares written as digits. JSON Schema accepts 5.0 as an
// integer, and an expression would divide it as a fraction. Values that the schema does not describe do not change.
func integers(schema, value json.RawMessage) json.RawMessage {
	var about struct {
		Type       any                        `json:"type"`
		Items      json.RawMessage            `json:"items"`
		Properties map[string]json.RawMessage `json:"properties"`
	}
	value = bytes.TrimSpace(value)
	if len(value) == 0 || json.Unmarshal(schema, &about) != nil {
		return value
	}
	types, _ := about.Type.([]any)
	isType := func(name string) bool { return about.Type == name || slices.Contains(types, any(name)) }
	switch {
	case value[0] == '[' && len(about.Items) > 0:
		var list []json.RawMessage
		if json.Unmarshal(value, &list) == nil {
			for i := range list {
				list[i] = integers(about.Items, list[i])
			}
			return mustJSON(list)
		}
	case value[0] == '{' && len(about.Properties) > 0:
		var members map[string]json.RawMessage
		if json.Unmarshal(value, &members) == nil {
			for name, property := range about.Properties {
				if v, ok := members[name]; ok {
					members[name] = integers(property, v)
				}
			}
			return mustJSON(members)
		}
	case isType("integer") && !isType("number"):
		if digits, ok := rawjson.IntegerDigits(string(value)); ok {
			return json.RawMessage(digits)
		}
	}
	return value
}

// MissingError is the error of a call that lacks parameters or tables.
type MissingError struct {
	Parameters []string
	Inputs     []string // names of ports; only if Parameters is empty
}

// Error implements error. The wording is the original implementation's.
func (m *MissingError) Error() string {
	if len(m.Parameters) > 0 {
		return "Missing configuration parameters: " + strings.Join(m.Parameters, ", ")
	}
	return "Missing data inputs for ports: " + strings.Join(m.Inputs, ", ")
}

// unknownParam describes an argument that is not a parameter. It returns "" if there is none.
func (w *Workflow) unknownParam(given map[string]json.RawMessage) string {
	for _, name := range slices.Sorted(maps.Keys(given)) {
		text := fmt.Sprintf("workflow '%s' has no parameter '%s'", w.Name, tenon.Visible(name))
		switch near := tenon.Nearest(name, w.order); {
		case slices.Contains(w.order, name):
			continue
		case len(w.order) == 0:
			return text + ": it has no parameters"
		case near != "":
			return text + "; did you mean '" + near + "'?"
		}
		return text + "; its parameters: " + strings.Join(w.order, ", ")
	}
	return ""
}

// isRounded reports whether JSON is an integer that expressions cannot represent exactly.
func isRounded(raw string) bool {
	if strings.ContainsAny(raw, `.eE"[{tfn`) {
		return false
	}
	_, err := strconv.ParseInt(strings.TrimSpace(raw), 10, 64)
	return errors.Is(err, strconv.ErrRange)
}
