package tree

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/tenonhq/tenon/internal/lazyregexp"
)

// MaxBytes is the maximum size of a file.
const MaxBytes = 4 << 20

const (
	maxDepth   = 64
	maxAliases = 10_000
	maxNodes   = 1_000_000 // after the expansion of aliases
)

// Parse parses the bytes of one file. It returns nil if an error makes the rest of the file unreadable, or if the file
// contains only comments.
func Parse(src *Source, data []byte, s *Sink) *Node {
	at := &Node{Src: src, Line: 1, Col: 1}
	if ext := strings.ToLower(path.Ext(src.Label)); ext == ".json" || ext == ".jsonc" {
		data = WithoutComments(data)
	}
	data = withoutSurrogates(data)
	if len(data) > MaxBytes {
		s.Add(at, "", fmt.Sprintf("the file has more than %d MiB", MaxBytes>>20), "")
		return nil
	}
	if i := badByte(data); i >= 0 {
		at.Line, at.Col = position(data, i)
		what := "not UTF-8"
		if data[i] < utf8.RuneSelf {
			what = "control characters are not allowed"
		}
		s.Add(at, "", what, "")
		return nil
	}
	loader, err := yaml.NewLoader(bytes.NewReader(data))
	if err != nil {
		s.Add(at, "", err.Error(), "")
		return nil
	}
	var doc, second yaml.Node
	if err := loader.Load(&doc); err != nil {
		if !errors.Is(err, io.EOF) {
			syntaxError(at, data, err, s)
		}
		return nil
	}
	c := converter{src: src, sink: s, open: map[*yaml.Node]bool{}}
	if err := loader.Load(&second); err == nil {
		s.Add(c.at(&second), "", "a second document", "a file holds one document: remove the line ---")
	} else if !errors.Is(err, io.EOF) {
		syntaxError(at, data, err, s)
	}
	if len(doc.Content) != 1 {
		return nil
	}
	n := c.convert(doc.Content[0], "", 1)
	if c.stop {
		return nil
	}
	return n
}

// WithoutComments replaces the comments that editors accept in JSON (// and /* */) by blanks, so that all positions
// stay the same.
func WithoutComments(data []byte) []byte {
	if !bytes.Contains(data, []byte("/")) {
		return data
	}
	out := bytes.Clone(data)
	text := false
	for i := 0; i < len(out); i++ {
		switch c := out[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text || c != '/' || i+1 == len(out):
		case out[i+1] == '/':
			for ; i < len(out) && out[i] != '\n'; i++ {
				out[i] = ' '
			}
		case out[i+1] == '*':
			end := bytes.Index(out[i+2:], []byte("*/"))
			if end < 0 {
				return data // the comment is not closed; the parser reports an error
			}
			for end += i + 4; i < end; i++ {
				if out[i] != '\n' && out[i] != '\r' {
					out[i] = ' '
				}
			}
			i--
		}
	}
	return out
}

// withoutSurrogates replaces escaped surrogate pairs in JSON, such as \ud83d\ude00, by their characters. YAML does not
// support such pairs, but Python's json.dumps writes each character beyond U+FFFF as a pair.
func withoutSurrogates(data []byte) []byte {
	if !surrogate().Match(data) || len(data) > MaxBytes || !json.Valid(data) {
		return data
	}
	out := make([]byte, 0, len(data))
	for i := 0; i < len(data); {
		if data[i] != '\\' {
			out = append(out, data[i])
			i++
			continue
		}
		end := i + 2
		if data[i+1] == 'u' {
			end = i + 6
		}
		if found := surrogate().Find(data[i:min(len(data), i+12)]); found != nil && bytes.HasPrefix(data[i:], found) {
			var r string
			if json.Unmarshal([]byte(`"`+string(found)+`"`), &r) == nil { // half of a pair becomes U+FFFD
				out, i = append(out, r...), i+len(found)
				continue
			}
		}
		out = append(out, data[i:end]...)
		i = end
	}
	return out
}

var surrogate = lazyregexp.New(`\\u[dD][89abAB][0-9a-fA-F]{2}(?:\\u[dD][c-fC-F][0-9a-fA-F]{2})?|` +
	`\\u[dD][c-fC-F][0-9a-fA-F]{2}`)

// badByte returns the offset of the first byte that YAML refuses, or -1.
func badByte(data []byte) int {
	for i := 0; i < len(data); {
		b := data[i]
		if b < utf8.RuneSelf {
			if b < ' ' && b != '\t' && b != '\n' && b != '\r' || b == 0x7f {
				return i
			}
			i++
			continue
		}
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

func position(data []byte, offset int) (line, col int) {
	before := data[:offset]
	start := bytes.LastIndexByte(before, '\n') + 1
	return bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[start:]) + 1
}

func syntaxError(at *Node, data []byte, err error, s *Sink) {
	var le *yaml.LoadError
	if !errors.As(err, &le) {
		s.Add(at, "", err.Error(), "")
		return
	}
	n := *at
	if le.Mark.Line > 0 {
		n.Line, n.Col = le.Mark.Line, le.Mark.Column
	}
	hint := ""
	if le.ContextMsg != "" {
		hint = le.ContextMsg
		if le.ContextMark.Line > 0 && le.ContextMark != le.Mark {
			hint += fmt.Sprintf(" that began at %d:%d", le.ContextMark.Line, le.ContextMark.Column)
		}
	}
	message := le.Message
	lines := strings.Split(string(data), "\n")
	switch end, _ := position(data, len(bytes.TrimRight(data, " \t\r\n"))); {
	case n.Line > end && le.ContextMark.Line > 0 && le.ContextMark.Line <= end:
		n.Line, n.Col = le.ContextMark.Line, le.ContextMark.Column
		message, hint = "not closed", "the file ends "+le.ContextMsg
	case n.Line <= len(lines):
		text := lines[n.Line-1]
		if lead := text[:len(text)-len(strings.TrimLeft(text, " \t"))]; strings.Contains(lead, "\t") {
			n.Col = strings.IndexByte(lead, '\t') + 1
			message, hint = "a tab in the indentation", "indent with spaces"
		} else if c := []rune(text); n.Col >= 1 && n.Col <= len(c) && strings.ContainsRune("@`%", c[n.Col-1]) {
			hint = fmt.Sprintf("put the value in quotes: a text cannot begin with %c", c[n.Col-1])
		}
	}
	s.Add(&n, "", message, hint)
}

// converter converts the nodes of the YAML library to nodes of this package.
type converter struct {
	src     *Source
	sink    *Sink
	open    map[*yaml.Node]bool // aliased nodes that are being expanded
	aliases int
	nodes   int
	stop    bool // a bound was exceeded; stop converting
}

func (c *converter) at(y *yaml.Node) *Node { return &Node{Src: c.src, Line: y.Line, Col: y.Column} }

func (c *converter) fail(y *yaml.Node, path, message string) *Node {
	c.stop = true
	c.sink.Add(c.at(y), path, message, "")
	return c.at(y)
}

func (c *converter) convert(y *yaml.Node, path string, depth int) *Node {
	n := c.at(y)
	if c.stop {
		return n
	}
	c.nodes++
	switch {
	case depth > maxDepth:
		return c.fail(y, "", fmt.Sprintf("nested deeper than %d levels", maxDepth))
	case c.nodes > c.src.maxValues():
		return c.fail(y, "", fmt.Sprintf("more than %d values", c.src.maxValues()))
	}
	switch y.Kind {
	case yaml.AliasNode:
		return c.alias(y, path, depth)
	case yaml.MappingNode:
		n.Kind = Map
		c.checkTag(y, path, "!!map")
		c.mapping(n, y, path, depth)
	case yaml.SequenceNode:
		n.Kind = List
		c.checkTag(y, path, "!!seq")
		for i, v := range y.Content {
			n.Vals = append(n.Vals, c.convert(v, Index(path, i), depth+1))
		}
	default:
		n.Tag, n.Val = y.ShortTag(), y.Value
		if !c.checkTag(y, path, "!!str", "!!int", "!!float", "!!bool", "!!null", "!!timestamp", "!!merge") {
			n.Tag = BadTag
		}
	}
	return n
}

func (c *converter) alias(y *yaml.Node, path string, depth int) *Node {
	c.aliases++
	switch {
	case y.Alias == nil || c.open[y.Alias]:
		return c.fail(y, path, "the alias *"+y.Value+" contains itself")
	case c.aliases > maxAliases:
		return c.fail(y, path, fmt.Sprintf("more than %d alias expansions", maxAliases))
	}
	c.open[y.Alias] = true
	n := c.convert(y.Alias, path, depth)
	delete(c.open, y.Alias)
	return n
}

func (c *converter) checkTag(y *yaml.Node, path string, known ...string) bool {
	tag := y.ShortTag()
	if !slices.Contains(known, tag) {
		c.sink.Add(c.at(y), path, "unknown tag "+tag, "")
		return false
	}
	return true
}

// mapping converts a map. A merge key (<<) at any position adds those keys of other maps that the map itself does not
// have.
func (c *converter) mapping(n *Node, y *yaml.Node, path string, depth int) {
	seen := make(map[string]*Node, len(y.Content)/2)
	var merged []*yaml.Node
	for i := 0; i+1 < len(y.Content) && !c.stop; i += 2 {
		k, v := y.Content[i], y.Content[i+1]
		if k.Kind == yaml.AliasNode && k.Alias != nil {
			k = k.Alias
		}
		if k.Kind != yaml.ScalarNode {
			c.sink.Add(c.at(y.Content[i]), path, "a key must be a text", "")
			continue
		}
		if k.ShortTag() == "!!merge" {
			merged = append(merged, v)
			continue
		}
		key := c.at(y.Content[i])
		key.Tag, key.Val = k.ShortTag(), k.Value
		if first := seen[key.Val]; first != nil {
			c.sink.Add(key, Join(path, key.Val), "duplicate key", fmt.Sprintf("the first one is at line %d",
				first.Line))
			continue
		}
		seen[key.Val] = key
		n.Keys = append(n.Keys, key)
		n.Vals = append(n.Vals, c.convert(v, Join(path, key.Val), depth+1))
	}
	for _, v := range merged {
		c.merge(n, v, seen, path, depth)
	}
}

func (c *converter) merge(n *Node, y *yaml.Node, seen map[string]*Node, path string, depth int) {
	m := c.convert(y, Join(path, "<<"), depth+1)
	if c.stop {
		return
	}
	from := []*Node{m}
	if m.Kind == List {
		from = m.Vals
	}
	for _, f := range from {
		if f.Kind != Map {
			c.sink.Add(f, Join(path, "<<"), "must be a map, or a list of maps", "")
			continue
		}
		for i, k := range f.Keys {
			if seen[k.Val] == nil {
				seen[k.Val] = k
				n.Keys, n.Vals = append(n.Keys, k), append(n.Vals, f.Vals[i])
			}
		}
	}
}
