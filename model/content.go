package model

import (
	"cmp"
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

// EmptyResult replaces a tool result without content.
const EmptyResult = "(empty result)"

// Note returns a text for a content block without a form on the wire. The note of a text block is
// the text itself (with [Visible]). The note of an embedded text resource is its URI and its text,
// and the note of a link is its URI. For other blocks, a sentence names the omitted content.
func Note(c tenon.Content) string {
	if r, ok := RemoteOf(c); ok {
		return r.note()
	}
	switch c.Type {
	case tenon.ContentText:
		return Visible(c.Text)
	case tenon.ContentImage, tenon.ContentAudio:
		if c.Artifact != "" {
			return fmt.Sprintf("[%s %s %d bytes, saved as %s]", c.Type, mimeOf(c.MimeType), Size(c.Data), c.Artifact)
		}
		if _, ok := base64Of(c.Data); !ok {
			return fmt.Sprintf("[%s %s omitted: its data is not base64]", c.Type, mimeOf(c.MimeType))
		}
		return fmt.Sprintf("[%s %s %d bytes omitted: this model does not take it]",
			c.Type, mimeOf(c.MimeType), Size(c.Data))
	case tenon.ContentResource:
		if c.Data != "" && c.Artifact != "" {
			return fmt.Sprintf("[resource %s %s %d bytes, saved as %s]",
				Visible(c.URI), mimeOf(c.MimeType), Size(c.Data), c.Artifact)
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

// Size returns the number of bytes that a base64 text encodes.
func Size(b64 string) int {
	b64 = strings.TrimRight(b64, "=\r\n ")
	return base64.RawStdEncoding.DecodedLen(len(b64))
}

// ImageOf returns the MIME type and the base64 data of an image block or an embedded resource, if it has a format that
// providers accept: jpeg, png, gif or webp.
func ImageOf(c tenon.Content) (mimeType, data string, ok bool) {
	if c.Type != tenon.ContentImage && c.Type != tenon.ContentResource || c.Data == "" {
		return "", "", false
	}
	t := strings.ToLower(c.MimeType)
	switch t {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
	case "image/jpg":
		t = "image/jpeg"
	default:
		return "", "", false
	}
	data, ok = base64Of(c.Data)
	return t, data, ok
}

// AudioOf returns the MIME type and the base64 data of an audio block.
func AudioOf(c tenon.Content) (mimeType, data string, ok bool) {
	if c.Type != tenon.ContentAudio || c.Data == "" {
		return "", "", false
	}
	data, ok = base64Of(c.Data)
	return strings.ToLower(c.MimeType), data, ok
}

// VideoOf returns the MIME type and the base64 data of a video of a user message.
func VideoOf(c tenon.Content) (mimeType, data string, ok bool) {
	if c.Type != tenon.ContentResource || c.Data == "" || !strings.HasPrefix(strings.ToLower(c.MimeType), "video/") {
		return "", "", false
	}
	data, ok = base64Of(c.Data)
	return strings.ToLower(c.MimeType), data, ok
}

// base64Of returns base64 data in the form that providers accept: with padding and without line breaks. ok is false if
// the text is not base64. Such a block must not be sent: the provider would refuse the whole request, and each later
// request of the session.
func base64Of(s string) (data string, ok bool) {
	if strings.ContainsAny(s, "\r\n") {
		s = strings.NewReplacer("\r", "", "\n", "").Replace(s)
	}
	body := strings.TrimRight(s, "=")
	if pad := len(s) - len(body); pad > 2 || pad > 0 && len(s)%4 != 0 || len(body)%4 == 1 {
		return "", false
	}
	for i := range len(body) {
		switch c := body[i]; {
		case 'A' <= c && c <= 'Z', 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '+', c == '/':
		default:
			return "", false
		}
	}
	if len(s)%4 != 0 {
		s += strings.Repeat("=", 4-len(s)%4)
	}
	return s, true
}

// ResultText returns a tool result as text: the notes of its blocks, one per line.
func ResultText(r *tenon.ToolResult) string {
	if len(r.Content) == 0 {
		return EmptyResult
	}
	notes := make([]string, len(r.Content))
	for i, c := range r.Content {
		notes[i] = Note(c)
	}
	s := strings.Join(notes, "\n")
	return cmp.Or(s, EmptyResult)
}

// FailureText returns the text of a result for APIs that have no error flag. After a failed call, it begins with
// "Error".
func FailureText(r *tenon.ToolResult, text string) string {
	if r.IsError && !strings.HasPrefix(text, "Error") {
		return "Error: " + text
	}
	return text
}

// SplitResult returns a tool result for APIs whose results are texts: its text, and the blocks that only a user message
// can contain, which follows the result. takes returns such a block in the form of the user message. The text names it.
func SplitResult(r *tenon.ToolResult, takes func(tenon.Content) (tenon.Content, bool)) (string, []tenon.Content) {
	var later []tenon.Content
	texts := make([]string, 0, len(r.Content))
	for _, c := range r.Content {
		out, ok := takes(c)
		if !ok {
			texts = append(texts, Note(c))
			continue
		}
		later = append(later, out)
		name := string(out.Type)
		if out.Type == tenon.ContentResource {
			name += " " + Visible(out.URI)
		}
		texts = append(texts, fmt.Sprintf("[%s %s %d bytes, in the following user message]", name, out.MimeType,
			Size(out.Data)))
	}
	text := cmp.Or(strings.Join(texts, "\n"), EmptyResult)
	return FailureText(r, text), later
}

// Visible escapes control characters and invisible characters in the text of a tool (\x1b, \u202e), because a model
// would read them although no person sees them. It keeps line breaks and tabs, and also the joiners and variation
// selectors that emoji and several scripts need after a character.
func Visible(s string) string {
	plain := func(c byte) bool {
		return c < utf8.RuneSelf && (c >= ' ' && c != 0x7f || c == '\n' || c == '\t' || c == '\r')
	}
	i := 0
	for i < len(s) && plain(s[i]) {
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

// AppendArguments appends the arguments of a call as a JSON object, unchanged if they are one. Providers refuse any
// other value in a call of an earlier message. AppendArguments therefore wraps other values in an object with a key
// that describes the mistake to the model.
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

// SetArguments sets the arguments of a call from their text. Empty text becomes {}. Valid JSON is
// kept byte for byte. Other text is malformed.
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

// DistinctCalls returns the message with unique call ids. Some servers use an id for two calls of a
// message, and providers refuse requests with duplicate ids. If the ids are unique, it returns the
// message itself. It does not modify the message.
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
		seen[id] = true
		if id == p.Call.ID {
			continue
		}
		if out == nil {
			out = &tenon.Message{Role: m.Role, By: m.By, Parts: slices.Clone(m.Parts)}
		}
		c := *p.Call
		c.ID = id
		out.Parts[i].Call, out.Parts[i].Wire, out.Parts[i].Raw = &c, "", nil // the raw part has the old id
	}
	return cmp.Or(out, m)
}

// RequireCalls changes the stop reason of an answer that announces tool calls and has none to
// [tenon.StopBadCall], so that the model is asked again. RawStop becomes the explanation for the model.
func RequireCalls(r *tenon.Response) {
	if r.Stop != tenon.StopToolUse || r.Message != nil && len(r.Message.Calls()) > 0 {
		return
	}
	r.Stop, r.RawStop = tenon.StopBadCall, fmt.Sprintf("the answer ended with %q, but contains no tool call",
		cmp.Or(r.RawStop, string(r.Stop)))
}
