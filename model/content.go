package model

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
)

// EmptyResult stands for a tool result without content.
const EmptyResult = "(empty result)"

// Note returns the text that stands for a block of a tool result where the
// wire has no form of its own for it: the text itself for text (with
// [Visible]), the text under its address for an embedded resource, the address
// of a link, and for all else a sentence that names what was left out.
func Note(c tenon.Content) string {
	switch c.Type {
	case tenon.ContentText:
		return Visible(c.Text)
	case tenon.ContentImage, tenon.ContentAudio:
		if c.Artifact != "" {
			return fmt.Sprintf("[%s %s %d bytes, saved as %s]", c.Type, mimeOf(c.MimeType), Size(c.Data), c.Artifact)
		}
		return fmt.Sprintf("[%s %s %d bytes omitted: this model does not take it]", c.Type, mimeOf(c.MimeType), Size(c.Data))
	case tenon.ContentResource:
		if c.Data != "" && c.Artifact != "" {
			return fmt.Sprintf("[resource %s %s %d bytes, saved as %s]", Visible(c.URI), mimeOf(c.MimeType), Size(c.Data), c.Artifact)
		}
		if c.Data != "" {
			return fmt.Sprintf("[resource %s %s %d bytes]", Visible(c.URI), mimeOf(c.MimeType), Size(c.Data))
		}
		return fmt.Sprintf("[resource %s%s]\n%s", Visible(c.URI), lead(c.MimeType), Visible(c.Text))
	case tenon.ContentLink:
		return fmt.Sprintf("[resource link %s%s%s]", Visible(c.URI), lead(c.Name), lead(c.MimeType))
	default:
		return fmt.Sprintf("[unsupported content type '%s' omitted]", Visible(c.Type))
	}
}

func mimeOf(s string) string {
	if s == "" {
		return "of unknown type"
	}
	return Visible(s)
}

func lead(s string) string {
	if s == "" {
		return ""
	}
	return " " + Visible(s)
}

// Size returns how many bytes a base64 text stands for.
func Size(b64 string) int {
	b64 = strings.TrimRight(b64, "=\r\n ")
	return base64.RawStdEncoding.DecodedLen(len(b64))
}

// ImageOf returns type and base64 data if the block holds an image that
// providers take natively: jpeg, png, gif or webp, as image block or as an
// embedded resource.
func ImageOf(c tenon.Content) (mimeType, data string, ok bool) {
	if c.Type != tenon.ContentImage && c.Type != tenon.ContentResource || c.Data == "" {
		return "", "", false
	}
	switch t := strings.ToLower(c.MimeType); t {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return t, c.Data, true
	case "image/jpg":
		return "image/jpeg", c.Data, true
	}
	return "", "", false
}

// ResultText returns a tool result as one text: its blocks' notes, one a line.
func ResultText(r *tenon.ToolResult) string {
	if len(r.Content) == 0 {
		return EmptyResult
	}
	notes := make([]string, len(r.Content))
	for i, c := range r.Content {
		notes[i] = Note(c)
	}
	s := strings.Join(notes, "\n")
	if s == "" {
		return EmptyResult
	}
	return s
}

// Visible shows control and invisible characters of a text that came from a
// tool as escapes (\x1b, \u202e), because a model reads what a person does not see.
// Line breaks and tabs stay, and so do the joiners and variation selectors that
// emoji and several scripts need behind another character of theirs.
func Visible(s string) string {
	i := 0
	for i < len(s) && s[i] < utf8.RuneSelf && (s[i] >= ' ' && s[i] != 0x7f || s[i] == '\n' || s[i] == '\t' || s[i] == '\r') {
		i++
	}
	if i == len(s) {
		return s
	}
	var b strings.Builder
	prev := rune(' ')
	for _, r := range s {
		if hidden(r, prev) {
			q := strconv.QuoteRuneToASCII(r)
			b.WriteString(q[1 : len(q)-1])
		} else {
			b.WriteRune(r)
		}
		prev = r
	}
	return b.String()
}

func hidden(r, prev rune) bool {
	switch {
	case r == '\n', r == '\t', r == '\r':
		return false
	case r == 0x200c, r == 0x200d: // zero width (non-)joiner
		return prev < utf8.RuneSelf
	case r >= 0xe0000 && r <= 0xe0fff, r == 0x034f, r == 0x115f, r == 0x1160, r == 0x3164, r == 0xffa0:
		return true // tags, more variation selectors, fillers
	case r == 0x2028, r == 0x2029:
		return true
	}
	return unicode.In(r, unicode.Cc, unicode.Cf)
}

// AppendArguments appends a call's arguments as a JSON object, as they came.
// What is not an object goes back under a name that tells the model so, because
// providers refuse everything else in a call that is echoed.
func AppendArguments(dst []byte, c *tenon.ToolCall) []byte {
	switch {
	case c.Malformed != "":
		dst = append(dst, `{"_invalid_json":`...)
		return append(rawjson.AppendString(dst, c.Malformed), '}')
	case len(c.Arguments) == 0 || string(c.Arguments) == "null":
		return append(dst, "{}"...)
	case c.Arguments[0] == '{' && json.Valid(c.Arguments):
		return append(dst, c.Arguments...)
	}
	dst = append(dst, `{"_not_an_object":`...)
	return append(rawjson.AppendRaw(dst, c.Arguments, "null"), '}')
}

// SetArguments puts the text of a call's arguments where it belongs: empty text
// is {}, valid JSON is kept byte for byte, anything else is malformed.
func SetArguments(c *tenon.ToolCall, text string) {
	switch {
	case strings.TrimSpace(text) == "":
		c.Arguments = json.RawMessage("{}")
	case json.Valid([]byte(text)):
		c.Arguments = json.RawMessage(text)
	default:
		c.Malformed = text
	}
}

// DistinctCalls returns the message with ids of its calls that differ: providers refuse
// a request in which two calls of a message have one id, and servers give such. A message
// that has none of them twice is returned itself; no message is changed.
func DistinctCalls(m *tenon.Message) *tenon.Message {
	seen := make(map[string]bool)
	var out *tenon.Message
	for i, p := range m.Parts {
		if p.Type != tenon.PartCall || p.Call == nil || p.Call.ID == "" {
			continue
		}
		id := p.Call.ID
		for n := 2; seen[id]; n++ {
			id = p.Call.ID + "_" + strconv.Itoa(n)
		}
		if seen[id] = true; id == p.Call.ID {
			continue
		}
		if out == nil {
			out = &tenon.Message{Role: m.Role, By: m.By, Parts: slices.Clone(m.Parts)}
		}
		c := *p.Call
		c.ID = id
		out.Parts[i].Call, out.Parts[i].Wire, out.Parts[i].Raw = &c, "", nil // which have the id as it came
	}
	if out == nil {
		return m
	}
	return out
}
