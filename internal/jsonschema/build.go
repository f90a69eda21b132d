package jsonschema

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	validator "github.com/santhosh-tekuri/jsonschema/v6"
)

// base is the URL of a schema without `$id`. No loader knows its scheme.
const base = "tenon:///schema"

// maxRepairs bounds the keywords that are removed from one schema because they are wrong.
const maxRepairs = 50

// maxIDs bounds the `$id` keywords of a schema, because the library compares each of them with all others.
const maxIDs = 500

// builder compiles one schema. It modifies doc, so no one else may use it.
type builder struct {
	options   Options
	doc       any
	unchecked []Unchecked
	work      *meter
	roots     []*validator.Schema // all schemas that can apply to a value
}

func (b *builder) note(pointer, format string, args ...any) {
	if len(b.unchecked) < 1000 {
		b.unchecked = append(b.unchecked, Unchecked{pointer, fmt.Sprintf(format, args...)})
	}
}

// build compiles the document. It removes wrong keywords.
func (b *builder) build() (*validator.Schema, error) {
	if countKey(b.doc, "$id")+countKey(b.doc, "id") > maxIDs {
		return nil, fmt.Errorf("the schema has more than %d identifiers", maxIDs)
	}
	declared := b.dialect()
	if b.options.Draft == 0 && !declared {
		for _, draft := range []*validator.Draft{validator.Draft2020, validator.Draft7, validator.Draft4} {
			root, err := b.compile(draft)
			if invalid := new(validator.SchemaValidationError); !errors.As(err, &invalid) {
				if err == nil {
					return root, nil
				}
				break // a reference without a target is wrong in every draft
			}
		}
	}
	for range maxRepairs {
		root, err := b.compile(draftOf(b.options.Draft))
		if err == nil {
			return root, nil
		}
		if !b.repair(err) {
			return nil, fmt.Errorf("the schema cannot be used: %s", oneLine(err))
		}
	}
	return nil, fmt.Errorf("the schema has more than %d mistakes", maxRepairs)
}

func draftOf(n int) *validator.Draft {
	switch n {
	case 4:
		return validator.Draft4
	case 6:
		return validator.Draft6
	case 7:
		return validator.Draft7
	case 2019:
		return validator.Draft2019
	}
	return validator.Draft2020
}

// dialect converts each `$schema` to the spelling that the library knows. It reports whether the root declares a
// known draft.
func (b *builder) dialect() (declared bool) {
	eachSchema(b.doc, nil, func(m map[string]any, path []string) {
		v, ok := m["$schema"]
		if !ok {
			return
		}
		name, isText := v.(string)
		known := canonical(name)
		_, own := b.options.Documents[strings.TrimSuffix(name, "#")]
		switch {
		case isText && known != "":
			m["$schema"] = known
			declared = declared || len(path) == 0
		case own:
			declared = declared || len(path) == 0
		default:
			delete(m, "$schema")
			if strings.TrimSpace(name) != "" || !isText {
				b.note(pointer(append(path, "$schema")), "the dialect %.100q is not known; the schema is read as "+
					"draft 2020-12", fmt.Sprint(v))
			}
		}
	})
	return declared
}

// drafts maps the URLs of drafts, without scheme, to their official form.
var drafts = map[string]string{
	"json-schema.org/draft-04/schema":      "http://json-schema.org/draft-04/schema#",
	"json-schema.org/draft-06/schema":      "http://json-schema.org/draft-06/schema#",
	"json-schema.org/draft-07/schema":      "http://json-schema.org/draft-07/schema#",
	"json-schema.org/draft/2019-09/schema": "https://json-schema.org/draft/2019-09/schema",
	"json-schema.org/draft/2020-12/schema": "https://json-schema.org/draft/2020-12/schema",
	"json-schema.org/schema":               "https://json-schema.org/draft/2020-12/schema",
}

// canonical returns the official URL of a draft, or "" if the draft is not known. It ignores the scheme, case, a
// trailing slash, and an empty fragment.
func canonical(name string) string {
	name = strings.ToLower(strings.TrimSpace(name))
	name = strings.TrimRight(name, "#/")
	if _, rest, ok := strings.Cut(name, "://"); ok {
		name = rest
	}
	return drafts[strings.TrimPrefix(name, "www.")]
}

// nothing is a loader that only loads the documents of [Options].
type nothing struct{ documents map[string]json.RawMessage }

var errOutside = errors.New("it is outside of the schema")

// Load implements [validator.URLLoader].
func (n nothing) Load(address string) (any, error) {
	raw, ok := n.documents[address]
	if !ok {
		return nil, errOutside
	}
	return Decode(raw)
}

func (b *builder) compile(draft *validator.Draft) (*validator.Schema, error) {
	c := validator.NewCompiler()
	c.DefaultDraft(draft)
	c.UseLoader(nothing{b.options.Documents})
	c.UseRegexpEngine(b.work.pattern)
	if b.options.Formats {
		c.RegisterFormat(&validator.Format{Name: "idn-email", Validate: idnEmail})
		c.AssertFormat()
	}
	if err := c.AddResource(base, b.doc); err != nil {
		return nil, err
	}
	root, err := c.Compile(base)
	if err != nil {
		return nil, err
	}
	b.roots = []*validator.Schema{root}
	eachSchema(b.doc, nil, func(m map[string]any, path []string) {
		if m["$dynamicAnchor"] == nil && m["$recursiveAnchor"] == nil {
			return
		}
		// A dynamic reference can lead here, although no field of the root does.
		if s, err := c.Compile(base + "#" + (&url.URL{Fragment: pointer(path)}).EscapedFragment()); err == nil {
			b.roots = append(b.roots, s)
		}
	})
	return root, nil
}

// repair removes the keyword that caused an error from the document. It returns false if it does not find the
// keyword.
func (b *builder) repair(err error) bool {
	if invalid := new(validator.SchemaValidationError); errors.As(err, &invalid) {
		return b.cutInvalid(invalid)
	}
	load, anchor := new(validator.LoadURLError), new(validator.AnchorNotFoundError)
	missing := new(validator.JSONPointerNotFoundError)
	switch {
	case errors.As(err, &load):
		return b.cutRefs(load.URL, "it leads out of the schema")
	case errors.As(err, &anchor):
		return b.cutRefs(anchor.Reference, "it leads to nothing in the schema")
	case errors.As(err, &missing):
		return b.cutRefs(missing.URL, "it leads to nothing in the schema")
	}
	return b.cutRefs("", oneLine(err))
}

// cutInvalid removes the keyword that violates the rules of the draft.
func (b *builder) cutInvalid(invalid *validator.SchemaValidationError) bool {
	var wrong *validator.ValidationError
	if !errors.As(invalid.Err, &wrong) {
		return false
	}
	_, at, _ := strings.Cut(invalid.URL, "#")
	at, err := url.PathUnescape(at)
	if err != nil {
		return false
	}
	var path []string
	for _, key := range strings.Split(at, "/")[1:] {
		path = append(path, strings.NewReplacer("~1", "/", "~0", "~").Replace(key))
	}
	leaf := firstLeaf(wrong)
	path = append(path, leaf.InstanceLocation...)
	for len(path) > 0 && !b.cut(path, "the schema is not valid here: "+reasonOf(leaf)) {
		path = path[:len(path)-1] // the parent of an element or of an absent member
	}
	return len(path) > 0
}

// cut removes the member of an object at a path. It returns false if there is none.
func (b *builder) cut(path []string, reason string) bool {
	node, last := b.doc, len(path)-1
	for _, key := range path[:last] {
		next, ok := child(node, key)
		if !ok {
			return false
		}
		node = next
	}
	m, ok := node.(map[string]any)
	if _, has := m[path[last]]; !ok || !has {
		return false
	}
	delete(m, path[last])
	b.note(pointer(path), "%s", reason)
	return true
}

// cutRefs removes the references that lead to an address. If address is "", it removes all references and identifiers
// that are not valid URL references.
func (b *builder) cutRefs(address, reason string) bool {
	found := false
	eachSchema(b.doc, nil, func(m map[string]any, path []string) {
		for _, key := range []string{"$ref", "$dynamicRef", "$recursiveRef", "$id", "id"} {
			ref, ok := m[key].(string)
			if !ok || !leadsTo(ref, address) || address != "" && strings.HasSuffix(key, "id") {
				continue
			}
			delete(m, key)
			b.note(pointer(append(path, key)), "the reference %.100q is not followed: %s", ref, reason)
			found = true
		}
	})
	return found
}

// leadsTo reports whether the library may have resolved a reference to an address. If address is "", it reports
// whether the reference is invalid.
func leadsTo(ref, address string) bool {
	u, err := url.Parse(ref)
	if err != nil || address == "" {
		return err != nil
	}
	where, fragment, _ := strings.Cut(address, "#")
	if p, err := url.PathUnescape(fragment); err == nil {
		fragment = p
	}
	if fragment != "" && !strings.HasSuffix(fragment, u.Fragment) {
		return false
	}
	u.Fragment, u.RawFragment = "", ""
	rest := strings.TrimLeft(u.String(), "./")
	return strings.HasSuffix(where, rest)
}
