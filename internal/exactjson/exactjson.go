// Package exactjson decodes JSON into Go structs by exact names.
//
// Package encoding/json ignores the case of names, and uses the last of several members with one name. A body with
// "decision" and "Decision" therefore means different things to it, to a proxy, to a page in a browser and to a
// person. Inputs that decide something (a request to the HTTP API, an answer to a question, an imported file) are
// decoded by this package: each member has the exact name of its field, and no object has a name twice, not even in
// raw parts.
//
// The package adds its checks to encoding/json and decodes with it. It accepts any name where names are data: in maps,
// raw JSON and types that decode themselves.
//
// Packages httpapi, host and record use it.
package exactjson

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
)

// Decode reads one JSON value into v, which is a pointer. Unknown members are errors. Duplicate names in one object are
// also errors, even in parts that v keeps raw. Errors of syntax and types come from encoding/json.
func Decode(raw []byte, v any) error { return decode(raw, v, closed) }

// DecodeOpen is Decode for values that other programs write. It ignores unknown members, and checks names only where v
// has fields or a map. A member whose name differs from the name of a field only in case is still an error.
func DecodeOpen(raw []byte, v any) error { return decode(raw, v, open) }

// DecodeNear is DecodeOpen, but a member that looks like a misspelled field is an error if the field itself is missing:
// ignored silently, its value would have no effect.
func DecodeNear(raw []byte, v any) error { return decode(raw, v, near) }

// mode says which unknown members are errors.
type mode int

const (
	open   mode = iota // none
	near               // names that resemble a missing field
	closed             // all
)

func decode(raw []byte, v any, m mode) error {
	var whole json.RawMessage
	if err := json.Unmarshal(raw, &whole); err != nil {
		return err
	}
	c := checker{mode: m}
	if m == closed {
		if name, twice := rawjson.Twice(raw); twice {
			return c.twice(name)
		}
	}
	if err := c.value(raw, reflect.TypeOf(v)); err != nil {
		return err
	}
	err := json.Unmarshal(raw, v)
	if errors.As(err, new(*json.UnmarshalTypeError)) {
		if wrong := (&checker{}).misplaced(raw, reflect.TypeOf(v)); wrong != nil {
			return wrong
		}
	}
	return err
}

// misplaced returns the first value whose type differs from the type of its field, or nil if it does not find it.
// Unlike the error of encoding/json, its Field has the keys of maps and the places in lists: arguments.name, stop.1.
func (c *checker) misplaced(raw []byte, t reflect.Type) *json.UnmarshalTypeError {
	for t.Kind() == reflect.Pointer && !decodesItself(t) {
		t = t.Elem()
	}
	below := func(name string, v []byte, t reflect.Type) *json.UnmarshalTypeError {
		c.at = append(c.at, name)
		wrong := c.misplaced(v, t)
		c.at = c.at[:len(c.at)-1]
		return wrong
	}
	kind, first := t.Kind(), bytes.TrimLeft(raw, " \t\r\n")
	switch {
	case decodesItself(t) || decodesItself(reflect.PointerTo(t)) || len(first) == 0:
	case kind == reflect.Struct && first[0] == '{':
		fields := fieldsOf(t)
		for key, v := range rawjson.Members(raw) {
			if f := find(fields, string(key)); f != nil {
				if wrong := below(f.name, v, f.typ); wrong != nil {
					return wrong
				}
			}
		}
		return nil
	case kind == reflect.Map && first[0] == '{':
		for key, v := range rawjson.Members(raw) {
			if wrong := below(visible(string(key)), v, t.Elem()); wrong != nil {
				return wrong
			}
		}
		return nil
	case (kind == reflect.Slice || kind == reflect.Array) && first[0] == '[':
		i := 0
		for v := range rawjson.Elements(raw) {
			if wrong := below(strconv.Itoa(i), v, t.Elem()); wrong != nil {
				return wrong
			}
			i++
		}
		return nil
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(json.Unmarshal(raw, reflect.New(t).Interface()), &wrong) {
		wrong.Field = strings.Join(c.at, ".")
	}
	return wrong
}

// checker compares the member names in a JSON value with the fields of a Go type.
type checker struct {
	mode mode
	at   []string // the path of the value
}

var (
	unmarshaler     = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

func (c *checker) value(raw []byte, t reflect.Type) error {
	for t.Kind() == reflect.Pointer {
		if decodesItself(t) {
			return nil
		}
		t = t.Elem()
	}
	if decodesItself(t) || decodesItself(reflect.PointerTo(t)) {
		return nil
	}
	switch t.Kind() {
	case reflect.Struct:
		return c.object(raw, t)
	case reflect.Map:
		seen := map[string]bool{}
		for name, v := range rawjson.Members(raw) {
			if seen[string(name)] {
				return c.twice(string(name))
			}
			seen[string(name)] = true
			if err := c.below(string(name), v, t.Elem()); err != nil {
				return err
			}
		}
	case reflect.Slice, reflect.Array:
		if !holdsNames(t.Elem()) {
			return nil
		}
		i := 0
		for v := range rawjson.Elements(raw) {
			if err := c.below(strconv.Itoa(i), v, t.Elem()); err != nil {
				return err
			}
			i++
		}
	}
	return nil
}

// decodesItself reports whether a type decodes itself, so that it may have other names.
func decodesItself(t reflect.Type) bool {
	return t.Implements(unmarshaler) || t.Implements(textUnmarshaler)
}

// holdsNames reports whether a value of a type may hold an object.
func holdsNames(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Struct, reflect.Map, reflect.Pointer, reflect.Slice, reflect.Array:
		return true
	}
	return false
}

func (c *checker) below(name string, raw []byte, t reflect.Type) error {
	c.at = append(c.at, name)
	err := c.value(raw, t)
	c.at = c.at[:len(c.at)-1]
	return err
}

// object checks the members of an object. Any other value is left to encoding/json.
func (c *checker) object(raw []byte, t reflect.Type) error {
	fields := fieldsOf(t)
	var others []string
	for key, v := range rawjson.Members(raw) {
		name := string(key)
		if f := find(fields, name); f != nil {
			if f.seen {
				return c.twice(name)
			}
			f.seen = true
			if !holdsNames(f.typ) {
				continue
			}
			if err := c.below(name, v, f.typ); err != nil {
				return err
			}
			continue
		}
		for _, f := range fields {
			if strings.EqualFold(f.name, name) {
				return fmt.Errorf("the field %q%s has to be written %q", visible(name), c.where(), f.name)
			}
		}
		switch c.mode {
		case closed:
			return c.unknown(name, fields)
		case near:
			others = append(others, name)
		}
	}
	for _, name := range others {
		missing := slices.DeleteFunc(slices.Clone(fields), func(f field) bool { return f.seen })
		if tenon.Nearest(name, namesOf(missing)) != "" {
			return c.unknown(name, missing)
		}
	}
	return nil
}

// maxListed bounds the fields that the error about an unknown field lists.
const maxListed = 16

// unknown returns the error about a field that the object does not have.
func (c *checker) unknown(name string, fields []field) error {
	names := namesOf(fields)
	hint := ""
	similar := tenon.Nearest(name, names)
	switch {
	case similar != "":
		hint = fmt.Sprintf("; did you mean %q?", similar)
	case len(names) > 0 && len(names) <= maxListed:
		hint = "; the fields are " + strings.Join(names, ", ")
	}
	return fmt.Errorf("unknown field %q%s%s", visible(name), c.where(), hint)
}

func (c *checker) twice(name string) error {
	return fmt.Errorf("the key '%s'%s is there twice", visible(name), c.where())
}

// where returns the path of the object that is being checked, in the form that ends an error message.
func (c *checker) where() string {
	if len(c.at) == 0 {
		return ""
	}
	return " in " + visible(strings.Join(c.at, "."))
}

const maxShown = 100 // bytes of a name in an error

// visible shortens and escapes a name for an error message.
func visible(name string) string {
	if len(name) > maxShown {
		name = strings.ToValidUTF8(name[:maxShown], "") + "…"
	}
	return tenon.Visible(name)
}

type field struct {
	name string
	typ  reflect.Type
	seen bool
}

func namesOf(fields []field) []string {
	names := make([]string, 0, len(fields))
	for _, f := range fields {
		names = append(names, f.name)
	}
	return names
}

func find(fields []field, name string) *field {
	if i := slices.IndexFunc(fields, func(f field) bool { return f.name == name }); i >= 0 {
		return &fields[i]
	}
	return nil
}

// fieldsOf lists the fields of a struct, including embedded structs, by the names that encoding/json gives them.
func fieldsOf(t reflect.Type) []field {
	var list []field
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case f.Tag.Get("json") == "-":
		case f.Anonymous && name == "" && inner.Kind() == reflect.Struct:
			list = append(list, fieldsOf(inner)...)
		case !f.IsExported():
		case name != "":
			list = append(list, field{name: name, typ: f.Type})
		default:
			list = append(list, field{name: f.Name, typ: f.Type})
		}
	}
	return list
}
