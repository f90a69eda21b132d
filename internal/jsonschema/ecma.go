package jsonschema

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
)

// whiteSpace lists the white space of ECMA-262 for a character class of RE2, since \s of RE2 only has white space of
// ASCII.
const whiteSpace = `\t\n\v\f\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}`

// translate converts a pattern of ECMA-262 (with the flag u) to the syntax of RE2. It returns false if RE2 cannot
// express the pattern, because of lookahead, lookbehind or backreferences.
func translate(p string) (string, bool) {
	t := translator{in: p, dotAll: strings.Contains(p, "(?s")}
	for t.at < len(p) {
		if !t.next() {
			return "", false
		}
	}
	return t.out.String(), true
}

type translator struct {
	in      string
	at      int
	out     strings.Builder
	inClass bool
	dotAll  bool
}

func (t *translator) rest() string { return t.in[t.at:] }

// take replaces the next n bytes of the input by a text in the output.
func (t *translator) take(n int, as string) bool {
	t.at += n
	t.out.WriteString(as)
	return true
}

func (t *translator) next() bool {
	rest := t.rest()
	switch c := rest[0]; {
	case c == '\\':
		return t.escape()
	case t.inClass && c == ']':
		t.inClass = false
		return t.take(1, "]")
	case t.inClass && c == '[':
		return t.take(1, `\[`) // RE2 has [:alpha:]
	case t.inClass:
		return t.take(1, rest[:1])
	case strings.HasPrefix(rest, "[]"):
		return t.take(2, `[^\x00-\x{10FFFF}]`)
	case strings.HasPrefix(rest, "[^]"):
		return t.take(3, `[\x00-\x{10FFFF}]`)
	case c == '[':
		t.inClass = true
		if strings.HasPrefix(rest, "[^") {
			return t.take(2, "[^")
		}
		return t.take(1, "[")
	case c == '.' && !t.dotAll:
		return t.take(1, `[^\n\r\x{2028}\x{2029}]`)
	case strings.HasPrefix(rest, "(?=") || strings.HasPrefix(rest, "(?!") || strings.HasPrefix(rest, "(?<=") ||
		strings.HasPrefix(rest, "(?<!"):
		return false
	}
	return t.take(1, rest[:1])
}

// escape translates an escape sequence.
func (t *translator) escape() bool {
	rest := t.rest()
	if len(rest) < 2 {
		return false
	}
	switch c := rest[1]; c {
	case 'd', 'D', 'w', 'W', 't', 'n', 'r', 'f', 'v':
		return t.take(2, rest[:2])
	case 's':
		if t.inClass {
			return t.take(2, whiteSpace)
		}
		return t.take(2, "["+whiteSpace+"]")
	case 'S':
		return !t.inClass && t.take(2, "[^"+whiteSpace+"]")
	case 'b':
		if t.inClass {
			return t.take(2, `\x08`)
		}
		return t.take(2, `\b`)
	case 'B', 'A', 'z': // \A and \z are from other languages
		return !t.inClass && t.take(2, rest[:2])
	case 'Z': // \Z of Python: the end of the text
		return !t.inClass && t.take(2, `\z`)
	case 'x':
		return len(rest) >= 4 && isHex(rest[2:4]) && t.take(4, rest[:4])
	case 'u':
		return t.unicode()
	case 'c':
		if len(rest) < 3 || !isLetter(rest[2]) {
			return false
		}
		return t.take(3, fmt.Sprintf(`\x{%x}`, rest[2]%32))
	case '0':
		if len(rest) > 2 && rest[2] >= '0' && rest[2] <= '9' {
			return false
		}
		return t.take(2, `\x00`)
	case 'p', 'P':
		return t.property()
	default:
		if isLetter(c) || c >= '1' && c <= '9' || c >= 0x80 {
			return false
		}
		return t.take(2, rest[:2])
	}
}

// unicode translates \uXXXX, a pair of surrogates, and \u{XXXXX}.
func (t *translator) unicode() bool {
	rest := t.rest()
	if strings.HasPrefix(rest, `\u{`) {
		end := strings.IndexByte(rest, '}')
		return end > 3 && end <= 9 && isHex(rest[3:end]) && t.take(end+1, `\x{`+rest[3:end]+"}")
	}
	if len(rest) < 6 || !isHex(rest[2:6]) {
		return false
	}
	r, n := parseHex(rest[2:6]), 6
	if utf16.IsSurrogate(r) {
		if len(rest) < 12 || rest[6:8] != `\u` || !isHex(rest[8:12]) {
			return false
		}
		if r, n = utf16.DecodeRune(r, parseHex(rest[8:12])), 12; r == '\uFFFD' {
			return false
		}
	}
	return t.take(n, fmt.Sprintf(`\x{%x}`, r))
}

// property translates \p{…}. RE2 only accepts the value of a property, without the property's name.
func (t *translator) property() bool {
	rest := t.rest()
	end := strings.IndexByte(rest, '}')
	if len(rest) < 4 || rest[2] != '{' || end < 0 {
		return false
	}
	name, value, hasValue := strings.Cut(rest[3:end], "=")
	if hasValue {
		switch name {
		case "Script", "sc", "General_Category", "gc":
			name = value
		default:
			return false
		}
	}
	return t.take(end+1, rest[:2]+"{"+name+"}")
}

func isHex(s string) bool {
	_, err := strconv.ParseUint(s, 16, 32)
	return err == nil
}

func parseHex(s string) rune {
	n, _ := strconv.ParseUint(s, 16, 32)
	return rune(n) //nolint:gosec // four digits
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
