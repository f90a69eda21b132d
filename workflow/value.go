package workflow

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/policy"
)

// value is the value of a key of args. A string is an expression, lists and maps may contain expressions, and
// any other value is a literal.
type value struct {
	raw  json.RawMessage
	expr *policy.Expression
	list []value
	keys []string // sorted keys of a map, whose values are in list
	m    bool
}

// compileValue compiles a value.
func (c *compiler) compileValue(path string, raw json.RawMessage) value {
	var list []json.RawMessage
	var m map[string]json.RawMessage
	var text string
	switch raw = bytes.TrimSpace(raw); {
	case len(raw) == 0:
		return value{raw: json.RawMessage("null")}
	case raw[0] == '"' && json.Unmarshal(raw, &text) == nil:
		return value{expr: c.expression(path, text)}
	case raw[0] == '[' && json.Unmarshal(raw, &list) == nil:
		v := value{list: make([]value, len(list))}
		for i, e := range list {
			v.list[i] = c.compileValue(path, e)
		}
		return v
	case raw[0] == '{' && json.Unmarshal(raw, &m) == nil:
		v := value{m: true, keys: slices.Sorted(maps.Keys(m))}
		for _, k := range v.keys {
			v.list = append(v.list, c.compileValue(path, m[k]))
		}
		return v
	}
	return value{raw: raw}
}

// eval returns the value as JSON. If typed is set, doubles remain distinct from integers, because a query divides 5.0
// and 5 differently.
func (v *value) eval(vars map[string]any, typed bool) (json.RawMessage, error) {
	switch {
	case v.expr != nil && typed:
		return v.expr.Typed(vars)
	case v.expr != nil:
		return v.expr.Value(vars)
	case v.list == nil && !v.m:
		return v.raw, nil
	}
	brackets := "[]"
	if v.m {
		brackets = "{}"
	}
	out := []byte{brackets[0]}
	for i := range v.list {
		if i > 0 {
			out = append(out, ',')
		}
		if v.m {
			out = append(append(out, mustJSON(v.keys[i])...), ':')
		}
		e, err := v.list[i].eval(vars, typed)
		if err != nil {
			return nil, err
		}
		if out = append(out, e...); len(out) > maxArguments {
			return nil, tenon.Errorf(tenon.CodeTooLarge, "the values exceed %d bytes", maxArguments)
		}
	}
	return append(out, brackets[1]), nil
}

// maxArguments bounds the evaluated arguments of one step, in bytes.
const maxArguments = 8 << 20

// evalMap evaluates the values of a JSON object.
func evalMap(m map[string]value, vars map[string]any, typed bool) (json.RawMessage, error) {
	v := value{m: true, keys: slices.Sorted(maps.Keys(m))}
	for _, k := range v.keys {
		v.list = append(v.list, m[k])
	}
	return v.eval(vars, typed)
}

func mustJSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		// Callers pass only types of this package, whose raw parts were checked when they were decoded.
		panic("workflow: " + err.Error())
	}
	return b
}
