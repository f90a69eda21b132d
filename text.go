package tenon

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/tenonhq/tenon/internal/rawjson"
)

// IsHidden reports whether a character is invisible, or changes the display of other characters. Such characters are
// control characters, direction marks, zero width characters, tags, fillers, variation selectors (except the selector
// for emoji), private use characters, and noncharacters (Unicode, section 23). A server could hide instructions to a
// model or to a terminal in them. All functions that make text visible, in this package and in others, use IsHidden.
func IsHidden(r rune) bool {
	switch {
	case r < 0x20, r >= 0x7f && r < 0xa0: // C0, DEL, C1
		return true
	case r < 0xad: // there are no others below U+00AD
		return false
	case r == '\u2028', r == '\u2029', r == '\u034f', r == '\u115f', r == '\u1160', r == '\u3164', r == '\uffa0':
		return true
	// default ignorable
	case r == '\u17b4', r == '\u17b5', r >= 0x180b && r <= 0x180f, r == '\u2065', r >= 0xfff0 && r <= 0xfff8:
		return true
	case r >= 0xfe00 && r <= 0xfe0e, r >= 0xe0000 && r <= 0xe0fff:
		return true
	case r >= 0xfdd0 && r <= 0xfdef, r&0xfffe == 0xfffe: // noncharacters
		return true
	}
	return unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Co, r)
}

// Visible returns the text with hidden characters as \u{...}, with their code points in hexadecimal, and with bytes
// that are not UTF-8 as \x... . It keeps line breaks, tabs and the joiners of scripts and emoji. If the text contains
// no hidden characters, it returns the text unchanged.
func Visible(s string) string {
	if isASCII(s) {
		return s
	}
	if !strings.ContainsFunc(s, func(r rune) bool { return r == utf8.RuneError || !isPlain(r) }) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case isPlain(r):
			b.WriteString(s[i : i+n])
		case r == '\r' && strings.HasPrefix(s[i+n:], "\n"):
			b.WriteByte('\r') // part of a CRLF line break
		default:
			fmt.Fprintf(&b, `\u{%x}`, r)
		}
		i += n
	}
	return b.String()
}

// Shorten returns a text as one line of at most n characters. An ellipsis replaces the rest.
func Shorten(s string, n int) string {
	r := []rune(strings.Join(strings.Fields(s), " "))
	if len(r) > n {
		r = append(r[:n-1], '…')
	}
	return string(r)
}

// Truncate returns at most the first n bytes of a text, without splitting a character.
func Truncate(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// TruncateStart returns at most the last n bytes of a text, without splitting a character.
func TruncateStart(s string, n int) string {
	i := max(len(s)-n, 0)
	for i < len(s) && !utf8.RuneStart(s[i]) {
		i++
	}
	return s[i:]
}

// Elide omits the middle of a text that is longer than n bytes. The result states the size of the omitted part.
func Elide(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n/2], "") + fmt.Sprintf("\n[… %d bytes left out …]\n", len(s)-n) +
		strings.ToValidUTF8(s[len(s)-n/2:], "")
}

// isASCII reports whether a text consists of visible ASCII characters, line breaks and tabs. This fast check
// covers most texts.
func isASCII(s string) bool {
	for i := range len(s) {
		if b := s[i]; (b < ' ' || b >= 0x7f) && b != '\n' && b != '\t' {
			return false
		}
	}
	return true
}

func isPlain(r rune) bool {
	return !IsHidden(r) || r == '\n' || r == '\t' || r == '\u200c' || r == '\u200d'
}

// EscapeJSON returns JSON of the same value in which all hidden characters are \u escapes, so that it can be shown or
// opened in an editor. Bytes that are not UTF-8 become U+FFFD, as a decoder would read them. JSON without hidden
// characters is returned unchanged.
func EscapeJSON(raw []byte) []byte {
	odd := bytes.IndexFunc(raw, isOddInJSON)
	if odd < 0 {
		return raw
	}
	out := append(make([]byte, 0, len(raw)+64), raw[:odd]...)
	for i := odd; i < len(raw); {
		r, n := utf8.DecodeRune(raw[i:])
		switch {
		case !isOddInJSON(r), r == utf8.RuneError && n == 3:
			out = append(out, raw[i:i+n]...)
		case r == '\r':
			out = append(out, ' ') // a \r in valid JSON is between values, where a blank means the same
		case r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, hi, lo)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		i += n
	}
	return out
}

// isOddInJSON reports whether EscapeJSON must examine a character.
func isOddInJSON(r rune) bool {
	return r == utf8.RuneError || IsHidden(r) && r != '\n' && r != '\t'
}

// mayHide reports whether a raw JSON string contains an escape or a byte that is not visible ASCII.
func mayHide(quoted []byte) bool {
	return slices.ContainsFunc(quoted, func(c byte) bool { return c == '\\' || c >= 0x7f })
}

// VisibleJSON returns valid JSON in which hidden characters in strings, including names of members, are escaped as
// [Visible] does it. All other bytes stay the same. JSON without hidden characters is returned unchanged.
func VisibleJSON(raw []byte) []byte {
	var out []byte
	done := 0 // length of the prefix of raw that is in out
	for t := range rawjson.Strings(raw) {
		quoted := raw[t.From:t.To]
		if !mayHide(quoted) {
			continue
		}
		s, ok := rawjson.ParseString(quoted)
		if !ok {
			continue // the caller's JSON is not valid
		}
		clean := Visible(s)
		if clean == s {
			continue
		}
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		_ = e.Encode(clean) // a string always encodes
		out = append(append(out, raw[done:t.From]...), bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
		done = t.To
	}
	if out == nil {
		return raw
	}
	return append(out, raw[done:]...)
}
