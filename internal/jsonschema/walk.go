package jsonschema

import (
	"slices"
	"strconv"
	"strings"
)

// Keywords whose value is a schema, a list of schemas, or a map of schemas.
var (
	single = []string{"items", "additionalItems", "additionalProperties", "not", "if", "then", "else", "contains",
		"propertyNames", "unevaluatedItems", "unevaluatedProperties", "contentSchema"}
	lists = []string{"anyOf", "oneOf", "allOf", "prefixItems", "items"}
	maps  = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"}
)

// eachSchema calls f for every object of a document that is a schema by its place. f must not keep the path, which is
// reused.
func eachSchema(node any, path []string, f func(m map[string]any, path []string)) {
	m, ok := node.(map[string]any)
	if !ok {
		return
	}
	f(m, path)
	for key, v := range m {
		switch v := v.(type) {
		case map[string]any:
			if slices.Contains(maps, key) {
				for name, sub := range v {
					eachSchema(sub, append(path, key, name), f)
				}
			} else if slices.Contains(single, key) {
				eachSchema(v, append(path, key), f)
			}
		case []any:
			if slices.Contains(lists, key) {
				for i, sub := range v {
					eachSchema(sub, append(path, key, strconv.Itoa(i)), f)
				}
			}
		}
	}
}

// countKey counts, in all objects of a document, the members under a key whose value is a text.
func countKey(node any, key string) int {
	n := 0
	switch v := node.(type) {
	case map[string]any:
		for k, sub := range v {
			if _, isText := sub.(string); isText && k == key {
				n++
			}
			n += countKey(sub, key)
		}
	case []any:
		for _, sub := range v {
			n += countKey(sub, key)
		}
	}
	return n
}

// child returns the member or element of a node.
func child(node any, key string) (any, bool) {
	switch n := node.(type) {
	case map[string]any:
		v, ok := n[key]
		return v, ok
	case []any:
		i, err := strconv.Atoi(key)
		if err != nil || i < 0 || i >= len(n) {
			return nil, false
		}
		return n[i], true
	}
	return nil, false
}

// pointer returns a path as a JSON pointer (RFC 6901).
func pointer(path []string) string {
	var b strings.Builder
	for _, key := range path {
		b.WriteByte('/')
		b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(key))
	}
	return b.String()
}

// oneLine returns the text of an error on one line.
func oneLine(err error) string {
	text := strings.Join(strings.Fields(err.Error()), " ")
	return strings.ReplaceAll(text, base, "")
}
