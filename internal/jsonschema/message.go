package jsonschema

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"

	validator "github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// maxReasons bounds the number of mistakes in one error.
const maxReasons = 3

// explain returns an error text with the first mistakes in a value, sorted by place, such as "at /city: it is a
// number, expected string".
func explain(err *validator.ValidationError) string {
	list := leaves(err)
	slices.SortStableFunc(list, func(a, b *validator.ValidationError) int {
		return cmp.Or(slices.Compare(a.InstanceLocation, b.InstanceLocation), strings.Compare(reasonOf(a), reasonOf(b)))
	})
	var texts []string
	for _, leaf := range list {
		text := reasonOf(leaf)
		if where := pointer(leaf.InstanceLocation); where != "" {
			text = "at " + shorten(where, 200) + ": " + text
		}
		if !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	if more := len(texts) - maxReasons; more > 0 {
		texts = append(texts[:maxReasons], fmt.Sprintf("%d more", more))
	}
	return strings.Join(texts, "; ")
}

// firstLeaf returns the mistake with the first place in the value.
func firstLeaf(err *validator.ValidationError) *validator.ValidationError {
	return slices.MinFunc(leaves(err), func(a, b *validator.ValidationError) int {
		return cmp.Or(slices.Compare(a.InstanceLocation, b.InstanceLocation), strings.Compare(reasonOf(a), reasonOf(b)))
	})
}

// leaves returns the most specific mistakes: the ones without causes. Of anyOf and oneOf, it uses the branches whose
// mistakes are deepest in the value.
func leaves(err *validator.ValidationError) []*validator.ValidationError {
	if len(err.Causes) == 0 {
		return []*validator.ValidationError{err}
	}
	var list []*validator.ValidationError
	switch err.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf:
		best := -1
		for _, cause := range err.Causes {
			branch := leaves(cause)
			depth := 0
			for _, leaf := range branch {
				depth = max(depth, len(leaf.InstanceLocation))
			}
			if depth > best {
				best, list = depth, nil
			}
			if depth == best {
				list = append(list, branch...)
			}
		}
		return mergeTypes(list)
	case *kind.Contains, *kind.MinContains:
		return []*validator.ValidationError{err}
	case *kind.PropertyNames:
		return []*validator.ValidationError{err}
	}
	for _, cause := range err.Causes {
		list = append(list, leaves(cause)...)
	}
	return list
}

// mergeTypes merges the mistakes of several branches that expect different types of the same value.
func mergeTypes(list []*validator.ValidationError) []*validator.ValidationError {
	var out []*validator.ValidationError
	for _, leaf := range list {
		wrong, ok := leaf.ErrorKind.(*kind.Type)
		same := slices.IndexFunc(out, func(o *validator.ValidationError) bool {
			_, isType := o.ErrorKind.(*kind.Type)
			return ok && isType && slices.Equal(o.InstanceLocation, leaf.InstanceLocation)
		})
		if same < 0 {
			out = append(out, leaf)
			continue
		}
		first := out[same].ErrorKind.(*kind.Type)
		joined := *out[same]
		joined.ErrorKind = &kind.Type{Got: first.Got, Want: slices.Concat(first.Want, wrong.Want)}
		out[same] = &joined
	}
	return out
}

// reasonOf describes a mistake in a value.
func reasonOf(err *validator.ValidationError) string {
	switch k := err.ErrorKind.(type) {
	case *kind.FalseSchema:
		return "no value is allowed here"
	case *kind.Type:
		want := slices.Clone(k.Want)
		slices.Sort(want)
		return fmt.Sprintf("it is %s, expected %s", article(k.Got), strings.Join(slices.Compact(want), " or "))
	case *kind.Enum:
		return fmt.Sprintf("it is %s, expected one of %s", show(k.Got, 100), show(k.Want, 500))
	case *kind.Const:
		return fmt.Sprintf("it is %s, expected %s", show(k.Got, 100), show(k.Want, 500))
	case *kind.Format:
		return fmt.Sprintf("%s is not of the format %s: %v", show(k.Got, 100), k.Want, k.Err)
	case *kind.Required:
		return "required properties are missing: " + names(k.Missing)
	case *kind.Dependency:
		return fmt.Sprintf("with the property %q, these are required too: %s", k.Prop, names(k.Missing))
	case *kind.DependentRequired:
		return fmt.Sprintf("with the property %q, these are required too: %s", k.Prop, names(k.Missing))
	case *kind.AdditionalProperties:
		return "unknown properties: " + names(k.Properties)
	case *kind.PropertyNames:
		return fmt.Sprintf("the name of the property %q is not allowed", shorten(k.Property, 100))
	case *kind.Pattern:
		return fmt.Sprintf("%s does not match the pattern %q", show(k.Got, 100), shorten(k.Want, 300))
	case *kind.OneOf:
		if len(k.Subschemas) == 2 {
			return fmt.Sprintf("it fits oneOf/%d and oneOf/%d, expected exactly one", k.Subschemas[0], k.Subschemas[1])
		}
		return "it fits no branch of oneOf"
	case *kind.AnyOf:
		return "it fits no branch of anyOf"
	case *kind.Not:
		return "it fits a schema that it must not fit (not)"
	case *kind.UniqueItems:
		return fmt.Sprintf("elements %d and %d are equal", k.Duplicates[0], k.Duplicates[1])
	case *kind.Contains:
		return "no element fits contains"
	case *kind.MinContains:
		return fmt.Sprintf("%d elements fit contains, expected at least %d", len(k.Got), k.Want)
	case *kind.MaxContains:
		return fmt.Sprintf("%d elements fit contains, expected at most %d", len(k.Got), k.Want)
	}
	return reasonOfSize(err)
}

// reasonOfSize describes a mistake in a size or a number.
func reasonOfSize(err *validator.ValidationError) string {
	switch k := err.ErrorKind.(type) {
	case *kind.MinProperties:
		return fmt.Sprintf("it has %d properties, expected at least %d", k.Got, k.Want)
	case *kind.MaxProperties:
		return fmt.Sprintf("it has %d properties, expected at most %d", k.Got, k.Want)
	case *kind.MinItems:
		return fmt.Sprintf("it has %d elements, expected at least %d", k.Got, k.Want)
	case *kind.MaxItems:
		return fmt.Sprintf("it has %d elements, expected at most %d", k.Got, k.Want)
	case *kind.AdditionalItems:
		return fmt.Sprintf("it has %d elements too many", k.Count)
	case *kind.MinLength:
		return fmt.Sprintf("it has %d characters, expected at least %d", k.Got, k.Want)
	case *kind.MaxLength:
		return fmt.Sprintf("it has %d characters, expected at most %d", k.Got, k.Want)
	case *kind.Minimum:
		return fmt.Sprintf("%s is less than %s", number(k.Got), number(k.Want))
	case *kind.Maximum:
		return fmt.Sprintf("%s is greater than %s", number(k.Got), number(k.Want))
	case *kind.ExclusiveMinimum:
		return fmt.Sprintf("%s is not greater than %s", number(k.Got), number(k.Want))
	case *kind.ExclusiveMaximum:
		return fmt.Sprintf("%s is not less than %s", number(k.Got), number(k.Want))
	case *kind.MultipleOf:
		return fmt.Sprintf("%s is not a multiple of %s", number(k.Got), number(k.Want))
	case *kind.RefCycle:
		return "the schema refers to itself"
	}
	return err.ErrorKind.LocalizedString(message.NewPrinter(language.English))
}

// article returns the name of a type with its article.
func article(kind string) string {
	switch kind {
	case "null":
		return kind
	case "array", "integer", "object":
		return "an " + kind
	}
	return "a " + kind
}

// number returns a fraction as a decimal number. It rounds a fraction that has no short decimal form.
func number(r *big.Rat) string {
	if r.IsInt() {
		return shorten(r.Num().String(), 50)
	}
	if n, exact := r.FloatPrec(); exact && n <= 30 {
		return r.FloatString(n)
	}
	f, _ := r.Float64()
	return fmt.Sprint(f)
}

func names(list []string) string {
	list = slices.Clone(list)
	slices.Sort(list)
	more := ""
	if n := len(list) - 20; n > 0 {
		list, more = list[:20], fmt.Sprintf(" and %d more", n)
	}
	for i, name := range list {
		list[i] = fmt.Sprintf("%q", shorten(name, 100))
	}
	return strings.Join(list, ", ") + more
}

// show returns a value as JSON of limited length.
func show(v any, most int) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%T", v)
	}
	return shorten(string(raw), most)
}

// shorten shortens a text to a number of bytes, without cutting a character.
func shorten(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && s[most]&0xc0 == 0x80 {
		most--
	}
	return s[:most] + "…"
}
