package catalog

import (
	"errors"
	"net/url"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon/internal/jsonschema"
)

// Limits of a tool's schema: its values and its levels. Package jsonschema has the same limits, and bounds the
// expansion of references during a check.
const (
	maxSchemaNodes = jsonschema.MaxNodes
	maxSchemaDepth = jsonschema.MaxDepth
)

var errSchemaSize = errors.New("the schema is too large or too deep")

// walker counts the nodes of a schema, and follows references from its root.
type walker struct {
	root any
	left int
}

func (w *walker) walk(node any, depth int) error {
	if w.left--; w.left < 0 || depth > maxSchemaDepth {
		return errSchemaSize
	}
	switch n := node.(type) {
	case []any:
		for _, v := range n {
			if err := w.walk(v, depth+1); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, v := range n {
			if err := w.walk(v, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// find follows a JSON pointer (RFC 6901) within the schema.
func (w *walker) find(ref string) (any, bool) {
	if ref == "#" {
		return w.root, true
	}
	keys, ok := pointerKeys(ref)
	if !ok {
		return nil, false
	}
	node := w.root
	for _, key := range keys {
		switch n := node.(type) {
		case map[string]any:
			if node, ok = n[key]; !ok {
				return nil, false
			}
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(n) {
				return nil, false
			}
			node = n[i]
		default:
			return nil, false
		}
	}
	return node, true
}

// pointerKeys splits a reference that is a JSON pointer in a URI fragment (RFC 6901, section 6): it first
// percent-decodes the whole text, then splits it. The validator does the same; with another order, tenon would read
// another schema than the validator.
func pointerKeys(ref string) (keys []string, ok bool) {
	pointer, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil, false
	}
	pointer, err := url.PathUnescape(pointer)
	if err != nil {
		return nil, false
	}
	keys = strings.Split(pointer, "/")
	for i, k := range keys {
		keys[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(k)
	}
	return keys, true
}
