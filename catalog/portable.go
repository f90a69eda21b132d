package catalog

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/tenonhq/tenon"
)

// Change is a change of a schema that a provider would otherwise refuse. Arguments are always checked against the
// original schema.
type Change struct {
	Pointer string `json:"pointer"` // JSON pointer (RFC 6901) into the schema; "" is the root
	What    string `json:"what"`
}

// dialect is the part of JSON Schema that a provider accepts. Parts that the provider is known to refuse are adapted;
// everything else is sent unchanged.
type dialect struct {
	tools      int                   // maximum number in one request; 0 if no limit is known
	properties bool                  // an object at the root needs properties
	items      bool                  // an array needs items
	root       []string              // keywords that are refused at the root
	keys       func() *regexp.Regexp // pattern for names of parameters; nil allows any name
	inline     bool                  // references are refused
	depth      int                   // maximum depth of nested schemas; 0 means maxSchemaDepth
	maxItems   int                   // maximum sum of all maxItems; 0 allows any sum
	only       []string              // allowed keywords; nil allows all
	strict     bool                  // tools can be strict
}

// These patterns are compiled at their first use, since few runs need them.
var (
	unionKeys   = []string{"anyOf", "oneOf", "allOf"}
	anthropicID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`) })
	geminiID    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`) })
)

// GeminiSubset is the name of the dialect for Gemini's older field `parameters`, for models that do not accept
// parametersJsonSchema.
const GeminiSubset = "gemini-subset"

// maxSentNodes bounds the size of a schema in which references are replaced by their targets.
const maxSentNodes = 5000

// dialects maps each provider to its rules, which come from recorded rejections.
var dialects = map[string]dialect{
	"anthropic":         {properties: true, root: unionKeys, keys: anthropicID},
	"openai":            {tools: 128, items: true, root: append(slices.Clip(unionKeys), "enum", "not"), strict: true},
	"openai-compatible": {tools: 128, items: true, root: append(slices.Clip(unionKeys), "enum", "not"), strict: true},
	"ollama":            {items: true, root: append(slices.Clip(unionKeys), "enum", "not"), inline: true},
	"gemini":            {tools: 512, items: true, root: unionKeys, keys: geminiID, depth: 24, maxItems: 960},
	GeminiSubset: {tools: 512, items: true, root: unionKeys, keys: geminiID, inline: true, depth: 24, maxItems: 960,
		only: strings.Fields("type format title description nullable enum items minItems maxItems properties " +
			"minProperties maxProperties " +
			"required minLength maxLength pattern minimum maximum anyOf default example propertyOrdering")},
}

// Providers returns the names of the providers whose rules are known, sorted.
func Providers() []string { return slices.Sorted(maps.Keys(dialects)) }

// MaxTools returns the maximum number of tools that a provider accepts in one request, or 0 if no limit is known.
func MaxTools(provider string) int { return dialects[provider].tools }

// Portable returns a tool's schema in the form that a provider accepts, and the changes. A provider without known
// rules gets the schema unchanged. The error, of code invalid, says why the tool cannot be sent at all.
func Portable(provider string, schema json.RawMessage) (json.RawMessage, []Change, error) {
	d, ok := dialects[provider]
	if !ok {
		return schema, nil, nil
	}
	p := porter{dialect: d, nodes: maxSentNodes}
	p.depth = cmp.Or(p.depth, maxSchemaDepth)
	root, ok := parseObject(schema)
	if !ok {
		return nil, nil, tenon.Errorf(tenon.CodeInvalid, "the schema is not an object")
	}
	p.root = root
	root = p.flatten(root)
	out, err := p.schema(root, "", 0)
	if err != nil {
		return nil, p.changes, tenon.Errorf(tenon.CodeInvalid, "%s", err.Error())
	}
	if p.inline {
		out = out.without("$defs", "definitions")
	}
	if d.properties && !out.has("properties") {
		out = out.set("properties", json.RawMessage("{}"))
		p.note("", "an empty list of properties is added")
	}
	if p.drafted && out.has("$schema") {
		out = out.without("$schema")
		p.note("/$schema", "taken off: the schema no longer is one of this draft")
	}
	if len(p.changes) == 0 {
		return schema, nil, nil
	}
	return out.raw(), p.changes, nil
}

// porter adapts one schema.
type porter struct {
	dialect
	root    object
	stack   []string // references that are being followed
	found   map[string]object
	nodes   int
	sum     int // sum of maxItems so far
	changes []Change
	drafted bool // keywords of an older draft were replaced
}

func (p *porter) note(pointer, format string, args ...any) {
	if len(p.changes) < 1000 {
		p.changes = append(p.changes, Change{pointer, fmt.Sprintf(format, args...)})
	}
}

// flatten removes the keywords that are refused at the root. Properties of their branches become properties of the
// root. Such a property is required if every branch requires it, or, for allOf, if any branch does.
func (p *porter) flatten(root object) object {
	for range 8 { // the target of a reference may be a reference, too
		ref := text(root.get("$ref"))
		target, ok := p.find(ref)
		if ref == "" || !ok {
			break
		}
		for _, m := range root.without("$ref") {
			target = target.set(m.key, m.value)
		}
		root = target
		p.note("/$ref", "the reference at the root is replaced by what it leads to")
	}
	if !root.has("type") {
		root = root.first("type", encode("object"))
	}
	for _, key := range p.dialect.root {
		if !root.has(key) {
			continue
		}
		if slices.Contains(unionKeys, key) {
			root = p.unite(root, key)
		}
		root = root.without(key)
		p.note("/"+key, "%s is not accepted at the root; the properties of its branches are merged", key)
	}
	return root
}

func (p *porter) unite(root object, key string) object {
	var branches []json.RawMessage
	if json.Unmarshal(root.get(key), &branches) != nil {
		return root
	}
	props, _ := parseObject(root.get("properties"))
	required := texts(root.get("required"))
	counts := map[string]int{}
	for _, raw := range branches {
		b, _ := parseObject(raw)
		if ref := text(b.get("$ref")); ref != "" {
			b, _ = p.find(ref)
		}
		own, _ := parseObject(b.get("properties"))
		for _, m := range own {
			if !props.has(m.key) {
				props = append(slices.Clip(props), m)
			}
		}
		need := texts(b.get("required"))
		for i, r := range need {
			if !slices.Contains(need[:i], r) {
				counts[r]++
			}
		}
	}
	for _, r := range slices.Sorted(maps.Keys(counts)) {
		if (key == "allOf" || counts[r] == len(branches)) && props.has(r) && !slices.Contains(required, r) {
			required = append(required, r)
		}
	}
	return mustObject(withParameters(root, props, required))
}

// find follows a reference within the schema to an object. It caches the object, because a small schema can contain
// very many references.
func (p *porter) find(ref string) (object, bool) {
	if o, ok := p.found[ref]; ok {
		return o, o != nil
	}
	o := p.lookup(ref)
	if p.found == nil {
		p.found = map[string]object{}
	}
	p.found[ref] = o
	return o, o != nil
}

func (p *porter) lookup(ref string) object {
	if ref == "#" {
		return p.root
	}
	keys, ok := pointerKeys(ref)
	if !ok {
		return nil
	}
	node, raw := p.root, json.RawMessage(nil)
	for _, k := range keys {
		if raw != nil {
			if node, ok = parseObject(raw); !ok {
				return nil
			}
		}
		if raw = node.get(k); raw == nil {
			return nil
		}
	}
	o, _ := parseObject(raw)
	return o
}

// Keywords whose value is a schema, a list of schemas, or a map of schemas.
var (
	oneSchema = []string{"items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames",
		"unevaluatedItems", "unevaluatedProperties"}
	listSchema = []string{"anyOf", "oneOf", "allOf", "prefixItems"}
	mapSchema  = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
)

// schema adapts one node and everything below it.
func (p *porter) schema(o object, at string, depth int) (object, error) {
	if p.nodes--; p.nodes < 0 {
		return nil, fmt.Errorf("with its references followed, the schema has more than %d nodes", maxSentNodes)
	}
	if depth > p.depth {
		return nil, fmt.Errorf("the schema is nested deeper than the %d levels that are taken, at %s", p.depth,
			shorten(at, 200))
	}
	if o.has("$ref") {
		return p.reference(o, at, depth)
	}
	o, err := p.node(o, at)
	if err != nil {
		return nil, err
	}
	o = slices.Clone(o)
	for i, m := range o {
		if o[i].value, err = p.below(m, at+"/"+pointerKey(m.key), depth); err != nil {
			return nil, err
		}
	}
	return o, nil
}

func (p *porter) below(m member, at string, depth int) (json.RawMessage, error) {
	switch {
	case slices.Contains(oneSchema, m.key):
		return p.one(m.value, at, depth)
	case slices.Contains(listSchema, m.key):
		var list []json.RawMessage
		if json.Unmarshal(m.value, &list) != nil {
			return m.value, nil
		}
		for i := range list {
			v, err := p.one(list[i], fmt.Sprintf("%s/%d", at, i), depth)
			if err != nil {
				return nil, err
			}
			list[i] = v
		}
		return encode(list), nil
	case slices.Contains(mapSchema, m.key):
		if p.inline && (m.key == "$defs" || m.key == "definitions") {
			return m.value, nil // removed at the end
		}
		o, ok := parseObject(m.value)
		if !ok {
			return m.value, nil
		}
		for i, e := range o { // o has just been parsed, so nothing else uses it
			if m.key == "properties" && p.keys != nil && !p.keys().MatchString(e.key) {
				return nil, fmt.Errorf("the name of the parameter '%s' is not taken (%s)", shorten(e.key, 100),
					p.keys())
			}
			v, err := p.one(e.value, at+"/"+pointerKey(e.key), depth)
			if err != nil {
				return nil, err
			}
			o[i].value = v
		}
		return o.raw(), nil
	}
	return m.value, nil
}

// one adapts a schema that may also be true or false.
func (p *porter) one(raw json.RawMessage, at string, depth int) (json.RawMessage, error) {
	o, ok := parseObject(raw)
	if !ok {
		return raw, nil
	}
	out, err := p.schema(o, at, depth+1)
	if err != nil {
		return nil, err
	}
	return out.raw(), nil
}

// reference replaces a reference by its target if the provider refuses references. A reference that leads to nothing
// in the schema, or only to references that lead back to it, is removed. So is one within its own target, where the
// target would otherwise repeat without end.
func (p *porter) reference(o object, at string, depth int) (object, error) {
	ref := text(o.get("$ref"))
	target, ok := p.find(ref)
	rest := o.without("$ref")
	switch {
	case !ok:
		p.note(at, "the reference %q leads to nothing in the schema; any value is described", shorten(ref, 100))
		return p.schema(rest, at, depth)
	case p.circles(ref):
		p.note(at, "the reference %q leads to references that lead back to it; any value is described",
			shorten(ref, 100))
		return p.schema(rest, at, depth)
	case !p.inline:
		return o, nil
	case slices.Contains(p.stack, ref):
		p.note(at, "the schema refers to itself here; any value is described from this level on")
		if t := target.get("type"); t != nil && !rest.has("type") {
			rest = rest.first("type", t)
		}
		return p.schema(rest, at, depth)
	}
	p.stack = append(p.stack, ref)
	defer func() { p.stack = p.stack[:len(p.stack)-1] }()
	p.note(at, "the reference %q is replaced by what it leads to", shorten(ref, 100))
	for _, m := range rest {
		target = target.set(m.key, m.value)
	}
	return p.schema(target, at, depth)
}

// circles reports whether a reference leads only to references that form a circle.
func (p *porter) circles(ref string) bool {
	for seen := []string{ref}; ; seen = append(seen, ref) {
		target, ok := p.find(ref)
		if ref = text(target.get("$ref")); !ok || ref == "" {
			return false
		}
		if slices.Contains(seen, ref) {
			return true
		}
	}
}

// pointerKey escapes a key as a part of a JSON pointer (RFC 6901).
func pointerKey(k string) string {
	return strings.ReplaceAll(strings.ReplaceAll(k, "~", "~0"), "/", "~1")
}

// text returns the value of a JSON string, or "" for any other JSON.
func text(raw json.RawMessage) string {
	var s string
	if len(raw) == 0 || json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

func mustObject(raw json.RawMessage) object { o, _ := parseObject(raw); return o }
