package tenon

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// IsHidden reports whether a character is not seen, or changes how others are
// seen: control characters, direction marks, zero width characters, tags,
// variation selectors (but for the one of emoji), private use. Texts of servers
// may hide instructions to a model, or to a terminal, in them.
func IsHidden(r rune) bool {
	switch {
	case r < 0x20, r >= 0x7f && r < 0xa0: // C0, DEL, C1
		return true
	case r < 0xad: // nothing more below U+00AD
		return false
	case r == '\u2028', r == '\u2029', r == '\u034f', r == '\u115f', r == '\u1160', r == '\u3164', r == '\uffa0':
		return true
	case r >= 0xfe00 && r <= 0xfe0e, r >= 0xe0100 && r <= 0xe01ef:
		return true
	}
	return unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Co, r)
}

// Visible returns the text with every hidden character written as \u{...}, its
// code point in hexadecimal, and bytes that are not UTF-8 as \x... . Line breaks
// and tabs stay, and so do the joiners that scripts and emoji need. A text
// without hidden characters is returned as it is.
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
			b.WriteByte('\r') // a line break of other systems
		default:
			fmt.Fprintf(&b, `\u{%x}`, r)
		}
		i += n
	}
	return b.String()
}

// isASCII reports whether a text has nothing but what is seen in ASCII, line breaks and
// tabs: most texts, told apart without decoding them.
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

// VisibleJSON returns valid JSON with the hidden characters of all its texts, names
// of members included, made visible as by [Visible]; everything else stays byte for
// byte. JSON without any is returned as it is.
func VisibleJSON(raw []byte) []byte {
	var out []byte
	done := 0 // what of raw is in out
	for i := 0; i < len(raw); i++ {
		if raw[i] != '"' {
			continue
		}
		start, escaped, odd := i, false, false
		for i++; i < len(raw) && raw[i] != '"'; i++ {
			if raw[i] == '\\' {
				escaped = true
				i++
			} else if raw[i] >= 0x7f {
				odd = true
			}
		}
		if !odd && !escaped || i >= len(raw) {
			continue
		}
		s := string(raw[start+1 : i])
		if escaped || !utf8.ValidString(s) {
			if json.Unmarshal(raw[start:i+1], &s) != nil {
				continue // the caller's JSON is not valid
			}
		}
		clean := Visible(s)
		if clean == s {
			continue
		}
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		_ = e.Encode(clean) // a text always encodes
		out = append(append(out, raw[done:start]...), bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
		done = i + 1
	}
	if out == nil {
		return raw
	}
	return append(out, raw[done:]...)
}
