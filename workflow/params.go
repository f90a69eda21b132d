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
)

// jsonTypes are the types of JSON Schema.
var jsonTypes = []string{"string", "integer", "number", "boolean", "array", "object", "null"}

// unknownType finds what is no type in the type of a schema, a word or a list of words.
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

// isNumber reports whether a parameter is any number, whole or not.
func (w *Workflow) isNumber(name string) bool {
	var about struct {
		Type any `json:"type"`
	}
	if json.Unmarshal(w.Parameters[name], &about) != nil {
		return false
	}
	list, _ := about.Type.([]any) // number or null, say
	return about.Type == "number" || slices.Contains(list, any("number")) && !slices.Contains(list, any("integer"))
}

// Params holds arguments to the parameters and puts the defaults in. Errors: invalid.
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
		if _ = json.Unmarshal(w.Parameters[name], &about); len(about.Default) == 0 {
			missing = append(missing, name)
			continue
		}
		given[name] = about.Default
	}
	switch unknown := w.unknownParam(given); {
	case len(missing) > 0 && unknown != "":
		return nil, tenon.Errorf(tenon.CodeInvalid, "Missing configuration parameters: %s; and %s", strings.Join(missing, ", "), unknown)
	case len(missing) > 0:
		return nil, tenon.Errorf(tenon.CodeInvalid, "Missing configuration parameters: %s", strings.Join(missing, ", "))
	case unknown != "":
		return nil, tenon.Errorf(tenon.CodeInvalid, "%s", unknown)
	}
	if err := w.schema.Check(args); err != nil {
		return nil, tenon.Errorf(tenon.CodeInvalid, "the parameters of workflow '%s' cannot be used: %w", w.Name, err)
	}
	for _, name := range w.order {
		if raw := string(given[name]); !w.isNumber(name) && isRounded(raw) {
			return nil, tenon.Errorf(tenon.CodeInvalid, "the parameters of workflow '%s' cannot be used: %s: %s has more than 64 bits, and expressions would see it rounded; give it as a text, or declare a number",
				w.Name, name, raw)
		}
	}
	return mustJSON(given), nil
}

// unknownParam tells of an argument that is no parameter, "" where there is none.
func (w *Workflow) unknownParam(given map[string]json.RawMessage) string {
	for _, name := range slices.Sorted(maps.Keys(given)) {
		text := fmt.Sprintf("workflow '%s' has no parameter '%s'", w.Name, tenon.Visible(name))
		switch near := tenon.Nearest(name, w.order); {
		case slices.Contains(w.order, name):
			continue
		case len(w.order) == 0:
			return text + ": it takes none"
		case near != "":
			return text + "; did you mean '" + near + "'?"
		}
		return text + "; its parameters: " + strings.Join(w.order, ", ")
	}
	return ""
}

// isRounded reports whether JSON is a whole number that expressions have no whole number for.
func isRounded(raw string) bool {
	if strings.ContainsAny(raw, `.eE"[{tfn`) {
		return false
	}
	_, err := strconv.ParseInt(strings.TrimSpace(raw), 10, 64)
	return errors.Is(err, strconv.ErrRange)
}
