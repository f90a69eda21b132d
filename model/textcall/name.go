package textcall

import (
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
)

// decorations surround a name in Markdown and in quotations.
var decorations = []string{"**", "__", "`", `"`, "'", "“", "”", "‘", "’", "*"}

// Bare returns a name without the quotation marks and Markdown around it and without the punctuation at its end.
func Bare(name string) string {
	for {
		before := name
		name = strings.TrimRight(strings.TrimSpace(name), ".,;:")
		for _, d := range decorations {
			if rest, ok := strings.CutPrefix(name, d); ok {
				name = rest
			}
			name = strings.TrimSuffix(name, d)
		}
		if name == before {
			return name
		}
	}
}

// Name returns the exposed name of the tool that a text names. The text may be the exact name or the name with
// decorations. It may also differ in case if this leads to only one tool. repair describes the difference.
func Name(name string, tools []tenon.Tool) (exact, repair string, ok bool) {
	is := func(name string) bool {
		return slices.ContainsFunc(tools, func(t tenon.Tool) bool { return t.Name == name })
	}
	if is(name) {
		return name, "", true
	}
	// Markdown characters may belong to a name, such as __init.
	for _, bare := range []string{strings.TrimSpace(name), Bare(name), strings.TrimPrefix(Bare(name), "functions.")} {
		if is(bare) {
			return bare, "", true
		}
		var found []string
		for _, t := range tools {
			if bare != "" && strings.EqualFold(t.Name, bare) {
				found = append(found, t.Name)
			}
		}
		if len(found) == 1 {
			return found[0], "the tool's name was " + quoted(bare), true
		}
	}
	return "", "", false
}

// Nearest returns the name of the tool that is most similar to a text, or "".
func Nearest(name string, tools []tenon.Tool) string {
	names := make([]string, len(tools))
	for i := range tools {
		names[i] = tools[i].Name
	}
	return tenon.Nearest(Bare(name), names)
}

// takesNothing reports whether a tool has no parameters. A call of it without arguments is complete.
func takesNothing(name string, tools []tenon.Tool) bool {
	i := slices.IndexFunc(tools, func(t tenon.Tool) bool { return t.Name == name })
	if i < 0 {
		return false
	}
	for _, key := range []string{"$ref", "allOf", "anyOf", "oneOf", "patternProperties"} {
		if rawjson.Field(tools[i].Input, key) != nil {
			return false
		}
	}
	for range rawjson.Fields(rawjson.Field(tools[i].Input, "properties")) {
		return false
	}
	return true
}

func quoted(s string) string { return "'" + tenon.Truncate(s, maxQuoted) + "'" }

// maxQuoted bounds a name in an error, in bytes.
const maxQuoted = 64
