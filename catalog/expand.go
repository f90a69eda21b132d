package catalog

import (
	"encoding/json"
	"errors"
	"net/url"
	"strconv"
	"strings"
)

// The bounds of a schema that is used for checking: nodes after all references
// are followed, and depth. A schema that refers to itself has no end and is over
// them too. The validator below follows references without a bound of its own,
// so a hostile schema would end the process.
const (
	maxSchemaNodes = 20_000
	maxSchemaDepth = 64
)

var (
	errSchemaSize = errors.New("the schema is too large, too deep, or refers to itself")
	errSchemaRef  = errors.New("the schema refers to something outside of it, or dynamically")
)

// bounded walks a schema as a validator would, references followed, and says
// whether that comes to an end within bounds.
func bounded(raw json.RawMessage) error {
	var root any
	if err := json.Unmarshal(raw, &root); err != nil {
		return err
	}
	w := walker{root: root, left: maxSchemaNodes}
	return w.walk(root, 0)
}

// walker counts the nodes of a schema. Without a root it follows no references.
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
		for k, v := range n {
			ref, isText := v.(string)
			switch {
			case w.root == nil:
			case k == "$dynamicRef" || k == "$recursiveRef" || k == "$id" && depth > 0:
				return errSchemaRef
			case k == "$ref" && isText:
				target, ok := w.find(ref)
				if !ok {
					return errSchemaRef
				}
				v = target
			}
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

// pointerKeys reads a reference that is a JSON pointer, and so the fragment of a URI
// (RFC 6901, section 6): percent-decoded as a whole, then taken apart. Whoever reads it in
// another way sees another schema than the validator does.
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
