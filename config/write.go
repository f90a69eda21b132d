package config

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tenonhq/tenon/config/tree"
)

// maxFlow is the maximum width of a line with braces or brackets. A longer value is written on several lines.
const maxFlow = 110

// encode writes the tree of a whole file, with blank lines between sections and each entry on separate lines.
func encode(root *tree.Node) []byte {
	var b strings.Builder
	for i, k := range root.Keys {
		if i > 0 && (root.Vals[i].Kind != tree.Scalar || root.Vals[i-1].Kind != tree.Scalar) {
			b.WriteByte('\n')
		}
		v := root.Vals[i]
		if v.Kind != tree.Map || k.Val == "secrets" || len(v.Keys) == 0 || !namedMaps[k.Val] {
			writeKey(&b, k.Val, v, 0)
			continue
		}
		b.WriteString(scalar(k.Val) + ":\n")
		for j, name := range v.Keys {
			b.WriteString(block(name.Val, v.Vals[j], 2))
		}
	}
	return []byte(b.String())
}

// block writes an entry of a section: its name, and each key on a separate line.
func block(name string, entry *tree.Node, indent int) string {
	var b strings.Builder
	if entry.Kind != tree.Map || len(entry.Keys) == 0 {
		writeKey(&b, name, entry, indent)
		return b.String()
	}
	fmt.Fprintf(&b, "%s%s:\n", pad(indent), scalar(name))
	for i, k := range entry.Keys {
		writeKey(&b, k.Val, entry.Vals[i], indent+2)
	}
	return b.String()
}

func pad(n int) string { return strings.Repeat(" ", n) }

// writeKey writes a key and its value. A short value is written on one line, and a text of several lines as a block.
func writeKey(b *strings.Builder, key string, v *tree.Node, indent int) {
	fmt.Fprintf(b, "%s%s:", pad(indent), scalar(key))
	writeValue(b, v, indent, indent+utf8.RuneCountInString(key)+2)
}

// writeValue writes the value of a key or a list item. used is the number of columns already written on the line.
func writeValue(b *strings.Builder, v *tree.Node, indent, used int) {
	line := inline(v)
	switch {
	case v.Kind == tree.Scalar && literalBlock(v):
		mark := "|"
		if !strings.HasSuffix(v.Val, "\n") {
			mark = "|-"
		}
		b.WriteString(" " + mark + "\n")
		for _, l := range strings.Split(strings.TrimSuffix(v.Val, "\n"), "\n") {
			if l != "" {
				l = pad(indent+2) + l
			}
			b.WriteString(l + "\n")
		}
	case v.Kind == tree.Scalar, len(v.Vals) == 0, used+utf8.RuneCountInString(line) <= maxFlow && !apart(v):
		b.WriteString(" " + line + "\n")
	case v.Kind == tree.List:
		b.WriteByte('\n')
		for _, e := range v.Vals {
			b.WriteString(pad(indent+2) + "-")
			if e.Kind == tree.Map && len(e.Keys) > 0 &&
				(apart(e) || indent+4+utf8.RuneCountInString(inline(e)) > maxFlow) {
				var item strings.Builder
				for i, k := range e.Keys {
					writeKey(&item, k.Val, e.Vals[i], indent+4)
				}
				b.WriteString(" " + item.String()[indent+4:])
				continue
			}
			writeValue(b, e, indent+2, indent+4)
		}
	default:
		b.WriteByte('\n')
		for i, k := range v.Keys {
			writeKey(b, k.Val, v.Vals[i], indent+2)
		}
	}
}

// apart reports whether a value should be written on several lines: it is a list of maps, or contains a text of
// several lines.
func apart(v *tree.Node) bool {
	return v.Kind == tree.List && len(v.Vals) > 0 && v.Vals[0].Kind == tree.Map ||
		slices.ContainsFunc(v.Vals, func(e *tree.Node) bool {
			return e.Kind == tree.Scalar && literalBlock(e) || e.Kind != tree.Scalar && apart(e)
		})
}

// literalBlock reports whether a text should and can be written as a literal block.
func literalBlock(v *tree.Node) bool {
	s := v.Val
	return v.Tag == "!!str" && strings.Contains(strings.TrimSuffix(s, "\n"), "\n") && !strings.HasSuffix(s, "\n\n") &&
		!strings.HasPrefix(s, " ") && !strings.HasPrefix(s, "\n") && strings.IndexFunc(s, func(r rune) bool {
		return r < ' ' && r != '\n' || r == 0x7f || r == utf8.RuneError || 0x80 <= r && r < 0xa0 || r == '\u2028' ||
			r == '\u2029' || r == '\ufeff'
	}) < 0 && !strings.Contains(s, " \n")
}

// inline writes a value on one line.
func inline(v *tree.Node) string {
	parts := make([]string, len(v.Vals))
	switch v.Kind {
	case tree.Map:
		for i, k := range v.Keys {
			parts[i] = scalar(k.Val) + ": " + inline(v.Vals[i])
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case tree.List:
		for i, e := range v.Vals {
			parts[i] = inline(e)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	switch v.Tag {
	case "!!str", "!!timestamp", "!!merge":
		return scalar(v.Val)
	case "!!null":
		return "null"
	}
	return v.Val
}
