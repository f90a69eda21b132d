package catalog

import (
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// keyNode is the part of a schema that determines which keys an object has, and which part applies to the value of
// each key and to the elements of a list.
type keyNode struct {
	id       int
	names    []string // keys that properties and other keywords name
	props    map[string]*keyNode
	patterns []keyPattern
	other    *keyNode // for keys that neither props nor patterns have
	prefix   []*keyNode
	items    []*keyNode
	same     []*keyNode // apply to the same value
	refs     []string   // references to nodes that apply to the same value
}

type keyPattern struct {
	match *regexp.Regexp // nil if Go cannot compile the pattern; it then matches every key
	node  *keyNode
}

// keyShape reads the nodes of one schema. It follows references only when they are needed, so a schema may refer to
// itself.
type keyShape struct {
	root    walker
	nodes   map[string]*keyNode // by JSON pointer
	count   int
	anchors map[string]string // pointers, by name; nil until the first reference to one
}

func newKeyShape(schema json.RawMessage) (*keyShape, *keyNode) {
	s := &keyShape{nodes: map[string]*keyNode{}}
	if json.Unmarshal(schema, &s.root.root) != nil {
		return s, &keyNode{} // names no key
	}
	return s, s.node("#", s.root.root)
}

// node returns the node of a schema at a pointer. It reads each schema once.
func (s *keyShape) node(at string, schema any) *keyNode {
	if n := s.nodes[at]; n != nil {
		return n
	}
	n := &keyNode{id: s.count}
	s.count++
	s.nodes[at] = n
	m, _ := schema.(map[string]any)
	for key, v := range m {
		s.keyword(n, at+"/"+pointerKey(key), key, v)
	}
	slices.Sort(n.names)
	n.names = slices.Compact(n.names)
	return n
}

// keyword reads one keyword of a schema. It treats all branches of anyOf, if and the like as applicable, although
// only some of them apply to a value: a key that any branch names is a name of the object.
func (s *keyShape) keyword(n *keyNode, at, key string, v any) {
	switch key {
	case "properties":
		n.props = s.named(n, at, v)
	case "patternProperties":
		m, _ := v.(map[string]any)
		for pattern, schema := range m {
			p := keyPattern{node: s.node(at+"/"+pointerKey(pattern), schema)}
			p.match, _ = regexp.Compile(pattern)
			n.patterns = append(n.patterns, p)
		}
	case "additionalProperties", "unevaluatedProperties":
		other := s.node(at, v)
		if n.other != nil {
			other = &keyNode{id: s.count, same: []*keyNode{n.other, other}}
			s.count++
		}
		n.other = other
	case "required":
		n.names = append(n.names, listed(v)...)
	case "propertyNames":
		m, _ := v.(map[string]any)
		n.names = append(n.names, listed(m["enum"])...)
	case "allOf", "anyOf", "oneOf":
		n.same = append(n.same, s.list(at, v)...)
	case "if", "then", "else":
		n.same = append(n.same, s.node(at, v))
	case "dependentSchemas", "dependencies", "dependentRequired":
		s.dependent(n, at, v)
	case "prefixItems":
		n.prefix = s.list(at, v)
	case "items":
		if _, isList := v.([]any); isList {
			n.prefix = s.list(at, v)
		} else {
			n.items = append(n.items, s.node(at, v))
		}
	case "additionalItems", "unevaluatedItems", "contains":
		n.items = append(n.items, s.node(at, v))
	case "$ref", "$dynamicRef", "$recursiveRef":
		if ref, ok := v.(string); ok {
			n.refs = append(n.refs, ref)
		}
	}
}

// named reads the schemas of properties, and adds their names to the names of the object.
func (s *keyShape) named(n *keyNode, at string, v any) map[string]*keyNode {
	m, _ := v.(map[string]any)
	props := make(map[string]*keyNode, len(m))
	for name, schema := range m {
		n.names = append(n.names, name)
		props[name] = s.node(at+"/"+pointerKey(name), schema)
	}
	return props
}

// dependent reads the keywords that apply if a key is present: they have more names, or a schema of the object.
func (s *keyShape) dependent(n *keyNode, at string, v any) {
	m, _ := v.(map[string]any)
	for name, then := range m {
		n.names = append(append(n.names, name), listed(then)...)
		if _, isSchema := then.(map[string]any); isSchema {
			n.same = append(n.same, s.node(at+"/"+pointerKey(name), then))
		}
	}
}

func (s *keyShape) list(at string, v any) []*keyNode {
	l, _ := v.([]any)
	nodes := make([]*keyNode, len(l))
	for i, schema := range l {
		nodes[i] = s.node(at+"/"+strconv.Itoa(i), schema)
	}
	return nodes
}

// listed returns the texts of a list.
func listed(v any) []string {
	l, _ := v.([]any)
	var names []string
	for _, e := range l {
		if name, ok := e.(string); ok {
			names = append(names, name)
		}
	}
	return names
}

// resolve returns the node to which a reference leads, or nil if it leads out of the schema.
func (s *keyShape) resolve(ref string) *keyNode {
	name, isFragment := strings.CutPrefix(ref, "#")
	if isFragment && name != "" && name[0] != '/' {
		if ref = s.anchor(name); ref == "" {
			return nil
		}
	}
	schema, ok := s.root.find(ref)
	if !ok {
		return nil
	}
	keys, _ := pointerKeys(ref)
	at := "#"
	for _, k := range keys {
		at += "/" + pointerKey(k)
	}
	return s.node(at, schema)
}

// anchor returns the JSON pointer to the part of the schema with an anchor.
func (s *keyShape) anchor(name string) string {
	if s.anchors == nil {
		s.anchors = map[string]string{}
		s.findAnchors("#", s.root.root)
	}
	return s.anchors[name]
}

func (s *keyShape) findAnchors(at string, v any) {
	switch v := v.(type) {
	case []any:
		for i, e := range v {
			s.findAnchors(at+"/"+strconv.Itoa(i), e)
		}
	case map[string]any:
		for key, e := range v {
			name, isText := e.(string)
			if isText && (key == "$anchor" || key == "$dynamicAnchor") {
				s.anchors[name] = at
			}
			if !slices.Contains(valueKeys, key) {
				s.findAnchors(at+"/"+url.PathEscape(pointerKey(key)), e)
			}
		}
	}
}
