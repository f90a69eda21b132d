package config

import (
	"bytes"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/tenonhq/tenon/config/tree"
	"go.yaml.in/yaml/v4"
)

// yamlText is the text of a YAML file with the positions of its values. An edit replaces the bytes of one value and
// keeps all others.
type yamlText struct {
	data  []byte
	lines []int // offset of each line
	root  *yaml.Node
	eol   string
	json  bool // new values are written as JSON
}

// openText finds the positions of the values in a file that [tree.Parse] accepts. It returns nil for a file without a
// value.
func openText(label string, data []byte) *yamlText {
	t := &yamlText{data: data, lines: []int{0}, eol: "\n"}
	plain := data
	if ext := strings.ToLower(path.Ext(label)); ext == ".json" || ext == ".jsonc" {
		plain, t.json = tree.WithoutComments(data), true
	}
	for i, c := range data {
		if c == '\n' {
			t.lines = append(t.lines, i+1)
		}
	}
	if i := bytes.IndexByte(data, '\n'); i > 0 && data[i-1] == '\r' {
		t.eol = "\r\n"
	}
	loader, err := yaml.NewLoader(bytes.NewReader(plain))
	if err != nil {
		return nil
	}
	var doc yaml.Node
	if loader.Load(&doc) != nil || len(doc.Content) != 1 {
		return nil
	}
	t.root = doc.Content[0]
	return t
}

// offset returns the byte offset of a node. Lines and columns count from 1, columns in characters.
func (t *yamlText) offset(n *yaml.Node) int {
	if n.Line < 1 || n.Line > len(t.lines) {
		return len(t.data)
	}
	at := t.lines[n.Line-1]
	if n.Line == 1 && bytes.HasPrefix(t.data, []byte("\ufeff")) {
		at += len("\ufeff")
	}
	for i := 1; i < n.Column && at < len(t.data); i++ {
		_, size := utf8.DecodeRune(t.data[at:])
		at += size
	}
	return at
}

// lineEnd returns the offset of the end of the line that contains at, without its line break.
func (t *yamlText) lineEnd(at int) int {
	end := bytes.IndexByte(t.data[at:], '\n')
	if end < 0 {
		return len(t.data)
	}
	if end += at; end > at && t.data[end-1] == '\r' {
		end--
	}
	return end
}

// lineStart returns the offset of the beginning of the line that contains at.
func (t *yamlText) lineStart(at int) int { return bytes.LastIndexByte(t.data[:at], '\n') + 1 }

// end returns the offset after a value. indent is the indentation of the value's key or dash.
func (t *yamlText) end(n *yaml.Node, indent int) int {
	at := t.offset(n)
	switch {
	case n.Kind == yaml.AliasNode:
		return at + bytes.IndexFunc(append(t.data[at:len(t.data):len(t.data)], ' '),
			func(r rune) bool { return strings.ContainsRune(" \t\r\n,]}", r) })
	case n.Kind == yaml.MappingNode || n.Kind == yaml.SequenceNode:
		if n.Style&yaml.FlowStyle != 0 || len(n.Content) == 0 {
			return t.flowEnd(t.skipMarks(at))
		}
		return t.end(n.Content[len(n.Content)-1], n.Column-1)
	}
	at = t.skipMarks(at)
	switch {
	case n.Style&yaml.DoubleQuotedStyle != 0, n.Style&yaml.SingleQuotedStyle != 0:
		return t.quoteEnd(at)
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return t.blockEnd(at, indent)
	}
	return t.plainEnd(at, n.Value)
}

// skipMarks returns the offset of a value after its anchor and tag.
func (t *yamlText) skipMarks(at int) int {
	for at < len(t.data) && (t.data[at] == '&' || t.data[at] == '!') {
		for at < len(t.data) && !strings.ContainsRune(" \t\r\n,]}", rune(t.data[at])) {
			at++
		}
		for at < len(t.data) && strings.ContainsRune(" \t", rune(t.data[at])) {
			at++
		}
	}
	return at
}

func (t *yamlText) quoteEnd(at int) int {
	if at >= len(t.data) {
		return at
	}
	quote := t.data[at]
	for i := at + 1; i < len(t.data); i++ {
		switch {
		case quote == '"' && t.data[i] == '\\':
			i++
		case t.data[i] != quote:
		case quote == '\'' && i+1 < len(t.data) && t.data[i+1] == quote:
			i++
		default:
			return i + 1
		}
	}
	return len(t.data)
}

// flowEnd returns the offset after the bracket that closes the bracket at an offset.
func (t *yamlText) flowEnd(at int) int {
	depth := 0
	for i := at; i < len(t.data); i++ {
		before := byte(' ')
		if i > 0 {
			before = t.data[i-1]
		}
		switch c := t.data[i]; {
		case (c == '"' || c == '\'') && strings.ContainsRune(" \t\n,[{:", rune(before)):
			i = t.quoteEnd(i) - 1
		case c == '#' && strings.ContainsRune(" \t\n", rune(before)):
			i = t.lineEnd(i)
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(t.data)
}

// blockEnd returns the offset after a literal or folded text, without its last line break.
func (t *yamlText) blockEnd(at, indent int) int {
	end := t.lineEnd(at)
	header := string(t.data[at:end])
	header, _, _ = strings.Cut(header, " #")
	keep := strings.Contains(header, "+")
	for next := end; next < len(t.data); {
		start := next + 1
		if t.data[next] == '\r' {
			start++
		}
		if start > len(t.data) {
			break
		}
		next = t.lineEnd(start)
		line := string(t.data[start:next])
		blank := strings.Trim(line, " \t") == ""
		if !blank && len(line)-len(strings.TrimLeft(line, " ")) <= indent {
			break
		}
		if !blank || keep && start < len(t.data) {
			end = next
		}
	}
	return end
}

// plainEnd returns the offset after an unquoted text. It compares the text with the value, ignoring white space.
func (t *yamlText) plainEnd(at int, value string) int {
	end := at
	rest := strings.Join(strings.Fields(value), "")
	for i := at; i < len(t.data) && rest != ""; {
		r, size := utf8.DecodeRune(t.data[i:])
		if !strings.ContainsRune(" \t\r\n", r) {
			if !strings.HasPrefix(rest, string(t.data[i:i+size])) {
				return end
			}
			rest = rest[size:]
			end = i + size
		}
		i += size
	}
	return end
}

// childOf returns the value for a key or an index, its key, and its position among the children of n.
func childOf(n *yaml.Node, step any) (value, key *yaml.Node, at int) {
	switch step := step.(type) {
	case string:
		for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
			if k := n.Content[i]; k.Kind == yaml.ScalarNode && k.Value == step && k.ShortTag() != "!!merge" {
				return n.Content[i+1], k, i
			}
		}
	case int:
		if n.Kind == yaml.SequenceNode && step < len(n.Content) {
			return n.Content[step], nil, step
		}
	}
	return nil, nil, -1
}
