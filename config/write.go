package config

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxFlow is the maximum width of a line with braces or brackets. A longer value is written on several lines.
const maxFlow = 110

// encode writes the tree of a whole file, with blank lines between sections and each entry on separate lines.
func encode(root *node) []byte {
	var b strings.Builder
	for i, k := range root.keys {
		if i > 0 && (root.vals[i].kind != scalarNode || root.vals[i-1].kind != scalarNode) {
			b.WriteByte('\n')
		}
		v := root.vals[i]
		if v.kind != mapNode || k.val == "secrets" || len(v.keys) == 0 || !namedMaps[k.val] {
			writeKey(&b, k.val, v, 0)
			continue
		}
		b.WriteString(scalar(k.val) + ":\n")
		for j, name := range v.keys {
			b.WriteString(block(name.val, v.vals[j], 2))
		}
	}
	return []byte(b.String())
}

// block writes an entry of a section: its name, and each of its keys on a line.
func block(name string, entry *node, indent int) string {
	var b strings.Builder
	if entry.kind != mapNode || len(entry.keys) == 0 {
		writeKey(&b, name, entry, indent)
		return b.String()
	}
	fmt.Fprintf(&b, "%s%s:\n", pad(indent), scalar(name))
	for i, k := range entry.keys {
		writeKey(&b, k.val, entry.vals[i], indent+2)
	}
	return b.String()
}

func pad(n int) string { return strings.Repeat(" ", n) }

// writeKey writes a key and its value: on one line where that is short, a text of
// several lines as it is.
func writeKey(b *strings.Builder, key string, v *node, indent int) {
	fmt.Fprintf(b, "%s%s:", pad(indent), scalar(key))
	writeValue(b, v, indent, indent+utf8.RuneCountInString(key)+2)
}

// writeValue writes the value of a key or a list item. used is the number of columns already written on the line.
func writeValue(b *strings.Builder, v *node, indent, used int) {
	line := inline(v)
	switch {
	case v.kind == scalarNode && literalBlock(v):
		mark := "|"
		if !strings.HasSuffix(v.val, "\n") {
			mark = "|-"
		}
		b.WriteString(" " + mark + "\n")
		for _, l := range strings.Split(strings.TrimSuffix(v.val, "\n"), "\n") {
			if l != "" {
				l = pad(indent+2) + l
			}
			b.WriteString(l + "\n")
		}
	case v.kind == scalarNode, len(v.vals) == 0, used+utf8.RuneCountInString(line) <= maxFlow && !apart(v):
		b.WriteString(" " + line + "\n")
	case v.kind == listNode:
		b.WriteByte('\n')
		for _, e := range v.vals {
			b.WriteString(pad(indent+2) + "-")
			if e.kind == mapNode && len(e.keys) > 0 &&
				(apart(e) || indent+4+utf8.RuneCountInString(inline(e)) > maxFlow) {
				var item strings.Builder
				for i, k := range e.keys {
					writeKey(&item, k.val, e.vals[i], indent+4)
				}
				b.WriteString(" " + item.String()[indent+4:])
				continue
			}
			writeValue(b, e, indent+2, indent+4)
		}
	default:
		b.WriteByte('\n')
		for i, k := range v.keys {
			writeKey(b, k.val, v.vals[i], indent+2)
		}
	}
}

// apart reports whether a value is better read on several lines: a list of maps,
// a text of several lines anywhere in it.
func apart(v *node) bool {
	return v.kind == listNode && len(v.vals) > 0 && v.vals[0].kind == mapNode ||
		slices.ContainsFunc(v.vals, func(e *node) bool {
			return e.kind == scalarNode && literalBlock(e) || e.kind != scalarNode && apart(e)
		})
}

// literalBlock reports whether a text is better read as it is, and can be.
func literalBlock(v *node) bool {
	s := v.val
	return v.tag == "!!str" && strings.Contains(strings.TrimSuffix(s, "\n"), "\n") && !strings.HasSuffix(s, "\n\n") &&
		!strings.HasPrefix(s, " ") && !strings.HasPrefix(s, "\n") && strings.IndexFunc(s, func(r rune) bool {
		return r < ' ' && r != '\n' || r == 0x7f || r == utf8.RuneError || 0x80 <= r && r < 0xa0 || r == '\u2028' ||
			r == '\u2029' || r == '\ufeff'
	}) < 0 && !strings.Contains(s, " \n")
}

// inline writes a value on one line.
func inline(v *node) string {
	parts := make([]string, len(v.vals))
	switch v.kind {
	case mapNode:
		for i, k := range v.keys {
			parts[i] = scalar(k.val) + ": " + inline(v.vals[i])
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case listNode:
		for i, e := range v.vals {
			parts[i] = inline(e)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	switch v.tag {
	case "!!str", "!!timestamp", "!!merge":
		return scalar(v.val)
	case "!!null":
		return "null"
	}
	return v.val
}
