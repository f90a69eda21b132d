package catalog

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/jsonschema"
)

// Word is an argument from a command line.
type Word struct {
	Key, Text string
	JSON      bool // Text is JSON: KEY:=JSON. Otherwise the schema says how to read it: KEY=TEXT.
}

// ReadWords returns the arguments of a call from words, according to the tool's schema. A text stays a text where the
// schema allows strings. Otherwise it is read as JSON if the result fits, so that a=2 is a number where the schema
// requires a number. Numbers keep their digits.
//
// A name that the schema does not declare is an error, unless the schema sets additionalProperties or
// patternProperties, has no properties at all, or declares names where a reader cannot enumerate them (allOf, $ref
// and the like). The error, of code invalid, names all mistakes, one a line, and repeats no schema. It is meant for a
// person.
func ReadWords(schema json.RawMessage, words []Word) (json.RawMessage, error) {
	r := newWordReader(schema)
	out := object{}
	var mistakes []string
	var meant []string // declared names that an unknown name is similar to
	for _, w := range words {
		if !r.declares(w.Key) {
			near := ""
			if len(w.Key) > 1 { // any name is similar to a single letter
				near = tenon.Nearest(w.Key, r.names)
			}
			meant = append(meant, near)
			mistakes = append(mistakes, r.unknown(w.Key, near))
			continue
		}
		v, mistake := r.value(w)
		if mistake != "" {
			mistakes = append(mistakes, mistake)
		}
		out = append(out, member{w.Key, v})
	}
	for _, name := range r.required {
		given := slices.ContainsFunc(words, func(w Word) bool { return w.Key == name })
		if !given && !slices.Contains(meant, name) {
			mistakes = append(mistakes, fmt.Sprintf("argument '%s' is missing%s", tenon.Visible(shorten(name, 100)),
				r.about(name)))
		}
	}
	if len(mistakes) > 0 {
		return nil, tenon.Errorf(tenon.CodeInvalid, "%w", &WordsError{mistakes})
	}
	return out.raw(), nil
}

// WordsError is the error of [ReadWords].
type WordsError struct{ Mistakes []string }

// Error implements error. It has a line for each mistake if there are several.
func (e *WordsError) Error() string {
	if len(e.Mistakes) == 1 {
		return e.Mistakes[0]
	}
	return fmt.Sprintf("%d mistakes in the arguments:\n  %s", len(e.Mistakes), strings.Join(e.Mistakes, "\n  "))
}

// TypedWords is like [ReadWords], but leaves all checks to the caller.
func TypedWords(schema json.RawMessage, words []Word) json.RawMessage {
	r := newWordReader(schema)
	out := object{}
	for _, w := range words {
		v, _ := r.value(w)
		out = append(out, member{w.Key, v})
	}
	return out.raw()
}

// wordReader reads words by one schema.
type wordReader struct {
	props    object
	names    []string
	required []string
	open     bool               // the schema allows names that are not in names
	single   *jsonschema.Schema // checks an object with a single argument; nil checks nothing
}

// apart lists the keywords with which a schema declares or requires names outside of properties.
var apart = []string{"$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "then", "else", "dependentSchemas",
	"dependencies"}

// together lists the keywords about several arguments. They are left out for the check of a single argument.
var together = []string{"required", "dependentRequired", "dependentSchemas", "dependencies", "minProperties",
	"maxProperties", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "unevaluatedProperties"}

func newWordReader(schema json.RawMessage) *wordReader {
	r := &wordReader{}
	root, ok := parseObject(schema)
	if !ok {
		r.open = true // the schema is true, or cannot be read
		return r
	}
	r.props, _ = parseObject(root.get("properties"))
	r.names = r.props.keys()
	r.required = texts(root.get("required"))
	r.open = !root.has("properties") || root.has("patternProperties") ||
		root.has("additionalProperties") && string(root.get("additionalProperties")) != "false" ||
		!root.has("additionalProperties") && slices.ContainsFunc(apart, root.has)
	// If the schema cannot be used, nothing is checked, and the words stay texts.
	r.single, _ = jsonschema.Compile(root.without(together...).raw(), jsonschema.Options{})
	return r
}

func (r *wordReader) declares(name string) bool { return r.open || r.props.has(name) }

// unknown describes a name that the schema does not declare.
func (r *wordReader) unknown(name, near string) string {
	text := fmt.Sprintf("unknown argument '%s'", tenon.Visible(shorten(name, 100)))
	switch {
	case near != "":
		return text + "; did you mean '" + tenon.Visible(near) + "'?"
	case len(r.names) == 0:
		return text + ": the tool declares none"
	}
	list, more := r.names, ""
	if len(list) > maxNames {
		list, more = list[:maxNames], fmt.Sprintf(" and %d more", len(list)-maxNames)
	}
	return text + "; there are: " + tenon.Visible(strings.Join(list, ", ")) + more
}

// value reads one word. The mistake is "" if the value fits.
func (r *wordReader) value(w Word) (json.RawMessage, string) {
	if w.JSON {
		return json.RawMessage(w.Text), r.misfit(w, json.RawMessage(w.Text))
	}
	text := encode(w.Text)
	if r.single == nil || r.check(w.Key, text) == nil {
		return text, ""
	}
	if v := json.RawMessage(strings.TrimSpace(w.Text)); json.Valid(v) && r.check(w.Key, v) == nil {
		return v, ""
	}
	return text, r.misfit(w, text)
}

// check checks one argument.
func (r *wordReader) check(key string, v json.RawMessage) error {
	if r.single == nil {
		return nil
	}
	decoded, err := jsonschema.Decode(object{{key, v}}.raw())
	if err != nil {
		return err
	}
	return r.single.Validate(decoded)
}

// misfit describes a value that does not fit the schema of its argument.
func (r *wordReader) misfit(w Word, v json.RawMessage) string {
	name := tenon.Visible(shorten(w.Key, 100))
	read := v
	if raw := json.RawMessage(strings.TrimSpace(w.Text)); !w.JSON && json.Valid(raw) && raw[0] != '"' {
		read = raw // check the value that was meant
	}
	err := r.check(w.Key, read)
	if err == nil {
		return ""
	}
	if want := wanted(r.props.get(w.Key)); want != "" && !w.JSON && string(read) == string(v) {
		text := fmt.Sprintf("argument '%s': '%s' is not %s", name, tenon.Visible(shorten(w.Text, 100)), want)
		if strings.Contains(want, "array") || strings.Contains(want, "object") {
			text += fmt.Sprintf("; write it as JSON: %s:='%s'", name, sample(want))
		}
		return text
	}
	reason := strings.TrimPrefix(err.Error(), "at /"+escapePointer(w.Key)+": ")
	return fmt.Sprintf("argument '%s': %s", name, tenon.Visible(reason))
}

// sample returns an example of a JSON value of a type.
func sample(want string) string {
	if strings.Contains(want, "array") {
		return `["…"]`
	}
	return `{"…":"…"}`
}

// escapePointer writes a name as a step of a JSON pointer (RFC 6901).
func escapePointer(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// about describes a missing argument: ": a number, the second".
func (r *wordReader) about(name string) string {
	var parts []string
	prop := r.props.get(name)
	if want := wanted(prop); want != "" {
		parts = append(parts, want)
	}
	var doc struct {
		Description string `json:"description"`
	}
	if json.Unmarshal(prop, &doc) == nil && doc.Description != "" {
		line, _, _ := strings.Cut(doc.Description, "\n")
		parts = append(parts, tenon.Visible(shorten(line, 100)))
	}
	if len(parts) == 0 {
		return ""
	}
	return ": " + strings.Join(parts, ", ")
}

// wanted describes the types that a schema allows, such as "a number". It returns "" if the schema has no type, or
// has a list of allowed values.
func wanted(schema json.RawMessage) string {
	o, ok := parseObject(schema)
	if !ok || o.has("enum") || o.has("const") {
		return ""
	}
	types := texts(o.get("type"))
	if len(types) == 0 {
		var one string
		if json.Unmarshal(o.get("type"), &one) != nil || one == "" {
			return ""
		}
		types = []string{one}
	}
	for i, t := range types {
		switch t {
		case "integer":
			types[i] = "a whole number"
		case "array", "object":
			types[i] = "an " + t
		case "null":
		default:
			types[i] = "a " + tenon.Visible(shorten(t, 50))
		}
	}
	return strings.Join(types, " or ")
}
