package script

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/lazyregexp"
)

// plain converts an error of the YAML library: it replaces Go types by the terms of a script and
// adds line numbers.
func plain(err error) error {
	var many *yaml.LoadErrors
	var one *yaml.LoadError
	switch {
	case errors.As(err, &many):
		var texts []string
		for _, e := range many.Errors {
			texts = append(texts, placed(e))
		}
		return errors.New(strings.Join(texts, "; "))
	case errors.As(err, &one):
		return errors.New(placed(one))
	}
	return err
}

func placed(e *yaml.LoadError) string {
	if strings.HasPrefix(e.Message, "line ") { // an error of this package
		return e.Message
	}
	return fmt.Sprintf("line %d: %s", e.Mark.Line, inWords(e.Message))
}

// The messages of the YAML library that contain Go types.
var (
	unknownField = lazyregexp.New(`^field (.*) not found in type (?:script\.)?(.*)$`)
	secondKey    = lazyregexp.New(`^mapping key "(.*)" already defined at line (\d+)$`)
	wrongKind    = lazyregexp.New("(?s)^cannot construct !!(\\w+)(?: `(.*)`)? into (.*)$")
)

// keysOf maps the type names in messages to the types, whose yaml tags are the known keys.
var keysOf = map[string]reflect.Type{
	"file":    reflect.TypeFor[file](),
	"Step":    reflect.TypeFor[Step](),
	"Call":    reflect.TypeFor[Call](),
	"Usage":   reflect.TypeFor[Usage](),
	"Failure": reflect.TypeFor[Failure](),
}

// kindWords and typeWords describe the actual and the expected values in messages.
var (
	kindWords = map[string]string{
		"seq": "a list", "map": "a map", "str": "a text", "int": "a number", "float": "a number",
		"bool": "true or false", "null": "empty",
	}
	typeWords = map[string]string{
		"string": "a text", "[]string": "a text or a list of texts", "int": "a whole number",
		"time.Duration": "a duration such as 300ms", "[]script.Call": "a list of calls",
		"[]libyaml.Node": "a list of steps", "[]yaml.Node": "a list of steps",
	}
)

func inWords(message string) string {
	if m := unknownField().FindStringSubmatch(message); m != nil {
		keys := keys(keysOf[m[2]])
		if near := tenon.Nearest(m[1], keys); near != "" {
			return fmt.Sprintf("unknown key '%s'; did you mean '%s'?", m[1], near)
		}
		return fmt.Sprintf("unknown key '%s'; known keys: %s", m[1], strings.Join(keys, ", "))
	}
	if m := secondKey().FindStringSubmatch(message); m != nil {
		return fmt.Sprintf("key '%s' is already in line %s", m[1], m[2])
	}
	if m := wrongKind().FindStringSubmatch(message); m != nil {
		want, is := typeWords[m[3]], kindWords[m[1]]
		want = cmp.Or(want, "a map")
		is = cmp.Or(is, "something else")
		if m[2] != "" {
			is = "'" + m[2] + "'"
		}
		return "must be " + want + ", is " + is
	}
	return message
}

func keys(t reflect.Type) []string {
	if t == nil {
		return []string{"match", "steps"} // the type of a conversation has no name
	}
	var list []string
	for i := range t.NumField() {
		if key := t.Field(i).Tag.Get("yaml"); key != "" {
			list = append(list, key)
		}
	}
	return list
}
