package clientfile

import (
	"encoding/json"
	"strings"

	"github.com/tenonhq/tenon/internal/rawjson"
)

// putJSON puts an entry into the object of servers. The text may contain comments and trailing commas.
func (c Client) putJSON(text string, e Entry) (string, error) {
	if strings.TrimSpace(text) == "" {
		text = "{}\n"
	}
	entry := c.entryJSON(e)
	doc, servers, err := c.sectionJSON(text)
	switch {
	case err != nil:
		return "", err
	case servers == nil:
		return doc.add(text, c.section, "{\n    "+quoted(e.Name)+": "+indented(entry, "    ")+"\n  }", "  "), nil
	}
	if m := servers.find(e.Name); m != nil {
		return text[:m.value] + indented(entry, "    ") + text[m.end:], nil
	}
	return servers.add(text, e.Name, indented(entry, "    "), "    "), nil
}

// dropJSON removes an entry.
func (c Client) dropJSON(text, name string) (string, error) {
	if strings.TrimSpace(text) == "" {
		return text, nil
	}
	_, servers, err := c.sectionJSON(text)
	if err != nil || servers == nil {
		return text, err
	}
	for i, m := range servers.members {
		switch {
		case m.name != name:
			continue
		case i > 0:
			return text[:servers.members[i-1].end] + text[m.end:], nil
		case len(servers.members) > 1:
			return text[:m.key] + text[servers.members[1].key:], nil
		}
		return text[:servers.open+1] + text[servers.close:], nil
	}
	return text, nil
}

// entryJSON returns the entry as an object on several lines. The first line is not indented.
func (c Client) entryJSON(e Entry) string {
	var b strings.Builder
	b.WriteString("{\n")
	for i := 0; i+1 < len(c.extra); i += 2 {
		b.WriteString("  " + quoted(c.extra[i]) + ": " + quoted(c.extra[i+1]) + ",\n")
	}
	b.WriteString("  \"command\": " + quoted(e.Command) + ",\n  \"args\": " + list(e.Args) + "\n}")
	return b.String()
}

// indented indents all lines but the first.
func indented(text, by string) string { return strings.ReplaceAll(text, "\n", "\n"+by) }

// sectionJSON finds the top-level object and the object of servers in it. servers is nil if there is none.
func (c Client) sectionJSON(text string) (doc, servers *object, err error) {
	s := &scanner{text: text}
	at := s.blank(0)
	if doc = s.object(at); doc == nil || s.blank(doc.close+1) != len(text) {
		return nil, nil, c.unclear("it is not one JSON object")
	}
	if m := doc.find(c.section); m != nil {
		if servers = s.object(m.value); servers == nil {
			return nil, nil, c.unclear("'" + c.section + "' is not an object")
		}
	}
	for _, o := range []*object{doc, servers} {
		if o != nil && o.isDouble() {
			return nil, nil, c.unclear("a key is there twice")
		}
	}
	return doc, servers, nil
}

// object is an object in a text, with the offsets of its braces and members.
type object struct {
	open, close int
	members     []span
	trailing    int // offset after a trailing comma, or 0 if there is none
}

// span is a member of an object, with the offsets of its key, its value and its end.
type span struct {
	name            string
	key, value, end int
}

func (o *object) find(name string) *span {
	for i, m := range o.members {
		if m.name == name {
			return &o.members[i]
		}
	}
	return nil
}

// isDouble reports whether a key occurs twice. It is then not certain which of the two applies.
func (o *object) isDouble() bool {
	seen := map[string]bool{}
	for _, m := range o.members {
		if seen[m.name] {
			return true
		}
		seen[m.name] = true
	}
	return false
}

// add returns the text with a new member at the end of the object. by is the indentation of members.
func (o *object) add(text, name, value, by string) string {
	line := "\n" + by + quoted(name) + ": " + value
	switch {
	case len(o.members) == 0:
		return text[:o.open+1] + line + "\n" + by[2:] + strings.TrimLeft(text[o.open+1:], " \t\r\n")
	case o.trailing > 0:
		return text[:o.trailing] + line + "," + text[o.trailing:]
	}
	end := o.members[len(o.members)-1].end
	return text[:end] + "," + line + text[end:]
}

// scanner finds values in JSON with comments and trailing commas. Its methods return -1 or nil for a text that is not
// valid.
type scanner struct {
	text  string
	depth int
}

// maxDepth bounds the nesting of a file.
const maxDepth = 200

// blank returns the offset after blanks and comments.
func (s *scanner) blank(i int) int {
	for i < len(s.text) {
		rest := s.text[i:]
		switch {
		case strings.IndexByte(" \t\r\n", s.text[i]) >= 0:
			i++
		case strings.HasPrefix(rest, "\ufeff"):
			i += len("\ufeff")
		case strings.HasPrefix(rest, "//"):
			n := strings.IndexByte(rest, '\n')
			if n < 0 {
				return len(s.text)
			}
			i += n
		case strings.HasPrefix(rest, "/*"):
			n := strings.Index(rest, "*/")
			if n < 0 {
				return i
			}
			i += n + 2
		default:
			return i
		}
	}
	return i
}

// object reads the object that begins at an offset.
func (s *scanner) object(i int) *object {
	if i >= len(s.text) || s.text[i] != '{' || s.depth >= maxDepth {
		return nil
	}
	s.depth++
	defer func() { s.depth-- }()
	o := &object{open: i}
	for i = s.blank(i + 1); i < len(s.text) && s.text[i] != '}'; {
		m := span{key: i}
		end := s.str(i)
		if end < 0 {
			return nil
		}
		m.name = rawjson.String([]byte(s.text[i:end]))
		if i = s.blank(end); i >= len(s.text) || s.text[i] != ':' {
			return nil
		}
		m.value = s.blank(i + 1)
		if m.end = s.value(m.value); m.end < 0 {
			return nil
		}
		o.members = append(o.members, m)
		o.trailing = 0
		i = s.blank(m.end)
		if i < len(s.text) && s.text[i] == ',' {
			o.trailing = i + 1
			i = s.blank(i + 1)
		} else if i >= len(s.text) || s.text[i] != '}' {
			return nil
		}
	}
	if i >= len(s.text) {
		return nil
	}
	o.close = i
	return o
}

// value returns the end of the value that begins at an offset.
func (s *scanner) value(i int) int {
	if i >= len(s.text) {
		return -1
	}
	switch s.text[i] {
	case '{':
		if o := s.object(i); o != nil {
			return o.close + 1
		}
		return -1
	case '[':
		return s.array(i)
	case '"':
		return s.str(i)
	}
	end := i
	for end < len(s.text) && strings.IndexByte(" \t\r\n,:]}/", s.text[end]) < 0 {
		end++
	}
	if !json.Valid([]byte(s.text[i:end])) {
		return -1
	}
	return end
}

func (s *scanner) array(i int) int {
	if s.depth >= maxDepth {
		return -1
	}
	s.depth++
	defer func() { s.depth-- }()
	for i = s.blank(i + 1); i < len(s.text) && s.text[i] != ']'; {
		if i = s.value(i); i < 0 {
			return -1
		}
		if i = s.blank(i); i < len(s.text) && s.text[i] == ',' {
			i = s.blank(i + 1)
		} else if i >= len(s.text) || s.text[i] != ']' {
			return -1
		}
	}
	if i >= len(s.text) {
		return -1
	}
	return i + 1
}

// str returns the end of the string that begins at an offset.
func (s *scanner) str(i int) int {
	if i >= len(s.text) || s.text[i] != '"' {
		return -1
	}
	for j := i + 1; j < len(s.text); j++ {
		switch s.text[j] {
		case '\\':
			j++
		case '"':
			if !json.Valid([]byte(s.text[i : j+1])) {
				return -1
			}
			return j + 1
		}
	}
	return -1
}
