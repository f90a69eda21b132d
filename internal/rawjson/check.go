package rawjson

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"unicode/utf8"
)

// defaultDepth is the maximum nesting if [Rules.Depth] is 0. Package encoding/json has the same limit.
const defaultDepth = 10_000

// Rules are the requirements of [Check] in addition to the grammar of RFC 8259.
type Rules struct {
	Depth      int  // maximum nesting of arrays and objects; if 0, 10,000
	Values     int  // maximum number of values, including members and elements; if 0, unlimited
	UniqueKeys bool // refuse objects with duplicate keys; keys are decoded for this
	UTF8       bool // refuse strings that are not UTF-8, which encoding/json would change
	Number     int  // maximum length of a number in bytes; if 0, unlimited
	// Surrogates replaces each escape of half a surrogate pair by \ufffd, which has as many bytes. The bytes of the
	// value are changed in place, also if Check returns an error afterwards. Decoders in Go read both escapes as
	// U+FFFD, and decoders in Python or Rust refuse the first one.
	Surrogates bool
}

// SyntaxError reports the first violation of the grammar or of a rule.
type SyntaxError struct {
	Offset int    // of the offending byte
	Reason string // such as "no comma"
	Key    string // the duplicate key, decoded
}

// The reasons that callers distinguish.
const (
	ReasonDeep      = "nested too deeply"
	ReasonDuplicate = "duplicate key"
	ReasonUTF8      = "invalid UTF-8"
	ReasonNumber    = "number that is too long"
)

// Error returns the reason and the position.
func (e *SyntaxError) Error() string { return fmt.Sprintf("%s at byte %d", e.Reason, e.Offset) }

// Check checks that raw is one JSON value that meets the rules. It stops at the first error, which is a [*SyntaxError].
// It does not allocate if the value is valid and its keys contain no escapes.
func Check(raw []byte, r Rules) error { return check(raw, r, nil) }

// CheckObject is [Check] for an object. While it checks, it calls member for each member of the object, but not of
// nested objects, with the decoded key and the checked value. If it returns an error, the results of these calls must
// be discarded.
func CheckObject(raw []byte, r Rules, member func(key, value []byte)) error {
	if i := space(raw, 0); i >= len(raw) || raw[i] != '{' {
		return &SyntaxError{Offset: i, Reason: "no JSON object"}
	}
	return check(raw, r, member)
}

// Twice returns the first key that occurs twice in one object, at any depth of valid JSON. Keys are compared after
// decoding.
func Twice(raw []byte) (key string, found bool) {
	err, _ := Check(raw, Rules{UniqueKeys: true}).(*SyntaxError)
	if err == nil || err.Reason != ReasonDuplicate {
		return "", false
	}
	return err.Key, true
}

func check(raw []byte, r Rules, member func(key, value []byte)) error {
	c := checker{b: raw, depth: r.Depth, left: r.Values, utf8: r.UTF8, longest: r.Number, pairs: r.Surrogates}
	if r.Number <= 0 {
		c.longest = len(raw)
	}
	if r.Depth <= 0 {
		c.depth = defaultDepth
	}
	if r.Values <= 0 {
		c.left = len(raw)
	}
	if r.UniqueKeys {
		c.keys = newKeySet()
		defer c.keys.free()
	}
	i := space(raw, 0)
	if member != nil {
		i = c.object(i, 1, member)
	} else {
		i = c.value(i, 0)
	}
	if i >= 0 {
		if i = space(raw, i); i == len(raw) {
			return nil
		}
		c.fail(i, "trailing data after the value")
	}
	return &SyntaxError{Offset: c.at, Reason: c.reason, Key: c.key}
}

// firstInvalid returns the offset of the first byte that is not part of valid UTF-8.
func firstInvalid(raw []byte) int {
	for i := 0; i < len(raw); {
		r, n := utf8.DecodeRune(raw[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(raw)
}

// checker checks one value. A method gets the index where an element of the grammar starts, and returns the index after
// it. It returns -1 after a call of fail.
type checker struct {
	b     []byte
	depth int     // maximum nesting
	left  int     // values that may follow
	utf8  bool    // strings must be valid UTF-8
	pairs bool    // replace escapes of half a surrogate pair
	keys  *keySet // keys of the enclosing objects; nil if duplicates are allowed

	longest int // maximum length of a number

	at     int
	reason string
	key    string
}

func (c *checker) fail(at int, reason string) int {
	c.at, c.reason = at, reason
	return -1
}

// byteAt returns the byte at i, or 0 at the end. The byte 0 is never valid outside of strings.
func (c *checker) byteAt(i int) byte {
	if i < len(c.b) {
		return c.b[i]
	}
	return 0
}

// value checks the value at i inside of nested containers.
func (c *checker) value(i, nested int) int {
	if i >= len(c.b) {
		return c.fail(i, "cut off")
	}
	if c.left--; c.left < 0 {
		return c.fail(i, "too many values")
	}
	switch b := c.b[i]; {
	case b == '"':
		end, _ := c.text(i)
		return end
	case b == '{':
		return c.object(i, nested+1, nil)
	case b == '[':
		return c.array(i, nested+1)
	case b == '-' || b >= '0' && b <= '9':
		return c.number(i)
	case b == 't':
		return c.word(i, "true")
	case b == 'f':
		return c.word(i, "false")
	case b == 'n':
		return c.word(i, "null")
	}
	return c.fail(i, "no JSON value")
}

func (c *checker) word(i int, w string) int {
	if len(c.b)-i < len(w) || string(c.b[i:i+len(w)]) != w {
		return c.fail(i, "no JSON value")
	}
	return i + len(w)
}

func (c *checker) array(i, nested int) int {
	if nested > c.depth {
		return c.fail(i, ReasonDeep)
	}
	if i = space(c.b, i+1); c.byteAt(i) == ']' {
		return i + 1
	}
	for {
		end := c.value(i, nested)
		if end < 0 {
			return end
		}
		i = space(c.b, end)
		switch c.byteAt(i) {
		case ',':
			i = space(c.b, i+1)
		case ']':
			return i + 1
		default:
			return c.noComma(i)
		}
	}
}

// object checks the object at i. It calls member for each of its members if member is not nil.
func (c *checker) object(i, nested int, member func(key, value []byte)) int {
	if nested > c.depth {
		return c.fail(i, ReasonDeep)
	}
	if i = space(c.b, i+1); c.byteAt(i) == '}' {
		return i + 1
	}
	var keys level
	if c.keys != nil {
		keys = c.keys.enter()
	}
	for {
		if c.byteAt(i) != '"' {
			return c.fail(i, "no key")
		}
		end, odd := c.text(i)
		if end < 0 {
			return end
		}
		key := c.b[i+1 : end-1]
		if odd && (c.keys != nil || member != nil) {
			key = decodedKey(key)
		}
		if c.keys != nil && c.keys.add(&keys, key) {
			c.key = string(key)
			return c.fail(i+1, ReasonDuplicate)
		}
		if i = space(c.b, end); c.byteAt(i) != ':' {
			return c.fail(i, "no colon")
		}
		i = space(c.b, i+1)
		if end = c.value(i, nested); end < 0 {
			return end
		}
		if member != nil {
			member(key, c.b[i:end])
		}
		i = space(c.b, end)
		switch c.byteAt(i) {
		case ',':
			i = space(c.b, i+1)
		case '}':
			if c.keys != nil {
				c.keys.leave(keys)
			}
			return i + 1
		default:
			return c.noComma(i)
		}
	}
}

func (c *checker) noComma(i int) int {
	if i >= len(c.b) {
		return c.fail(i, "cut off")
	}
	return c.fail(i, "no comma")
}

// text checks the string at i. It reports whether the string has escapes or bytes over 0x7f. It reads eight bytes
// at a time while none of them is special.
func (c *checker) text(i int) (end int, odd bool) {
	b, from := c.b, i
	wide, escaped := uint64(0), false
	i++
	for {
		for i+8 <= len(b) {
			w := binary.LittleEndian.Uint64(b[i:])
			wide |= w
			if hit := special(w); hit != 0 {
				i += bits.TrailingZeros64(hit) >> 3
				break
			}
			for i += 8; i+16 <= len(b); i += 16 { // for long texts
				v, w := binary.LittleEndian.Uint64(b[i:]), binary.LittleEndian.Uint64(b[i+8:])
				if special(v)|special(w) != 0 {
					break
				}
				wide |= v | w
			}
		}
		if i >= len(b) {
			return c.fail(i, "cut off"), false
		}
		switch ch := b[i]; {
		case ch == '"':
			// The last word may be wide because of bytes after the string.
			if wide&highs != 0 && c.utf8 && !utf8.Valid(b[from:i]) {
				return c.fail(from+firstInvalid(b[from:i]), ReasonUTF8), false
			}
			return i + 1, escaped || wide&highs != 0
		case ch < 0x20:
			return c.fail(i, "control character in a string"), false
		case ch != '\\':
			wide |= uint64(ch)
			i++
		case i+1 < len(b) && simpleEscape[b[i+1]]:
			escaped = true
			i += 2
		default:
			escaped = true
			if i = c.unicode(i); i < 0 {
				return i, false
			}
		}
	}
}

// simpleEscape holds the characters that follow a backslash in escapes of two bytes.
var simpleEscape = [256]bool{'"': true, '\\': true, '/': true, 'b': true, 'f': true, 'n': true, 'r': true, 't': true}

// unicode checks an escape of six bytes.
func (c *checker) unicode(i int) int {
	if i+1 < len(c.b) && c.b[i+1] != 'u' {
		return c.fail(i, "bad escape")
	}
	if i+6 > len(c.b) {
		return c.fail(i, "cut off")
	}
	for _, h := range c.b[i+2 : i+6] {
		if (h < '0' || h > '9') && (h|0x20 < 'a' || h|0x20 > 'f') {
			return c.fail(i, "bad escape")
		}
	}
	if c.pairs && c.b[i+2]|0x20 == 'd' && c.b[i+3] >= '8' {
		return c.surrogate(i)
	}
	return i + 6
}

// surrogate checks an escape of a surrogate. If the other half does not follow, it replaces the escape.
func (c *checker) surrogate(i int) int {
	if isHigh := c.b[i+3]|0x20 <= 'b'; isHigh && i+12 <= len(c.b) && c.b[i+6] == '\\' && c.b[i+7] == 'u' {
		low := c.b[i+8]|0x20 == 'd' && c.b[i+9]|0x20 >= 'c' && c.b[i+9]|0x20 <= 'f'
		if low && isHex(c.b[i+10]) && isHex(c.b[i+11]) {
			return i + 12
		}
	}
	copy(c.b[i+2:], "fffd")
	return i + 6
}

func isHex(b byte) bool { return b >= '0' && b <= '9' || b|0x20 >= 'a' && b|0x20 <= 'f' }

// number checks the number at i.
func (c *checker) number(i int) int {
	end := c.grammar(i)
	if end-i > c.longest {
		return c.fail(i, ReasonNumber)
	}
	return end
}

// grammar checks the number at i without its length.
func (c *checker) grammar(i int) int {
	b := c.b
	if b[i] == '-' {
		i++
	}
	from := i
	for i < len(b) && b[i]-'0' <= 9 {
		i++
	}
	if i == from || b[from] == '0' && i > from+1 {
		return c.fail(from, "bad number")
	}
	if i < len(b) && (b[i] == '.' || b[i]|0x20 == 'e') {
		return c.fraction(i)
	}
	return i
}

// fraction checks the rest of a number, which starts with a point or an exponent.
func (c *checker) fraction(i int) int {
	if c.b[i] == '.' {
		if i = c.digits(i + 1); i < 0 || c.byteAt(i)|0x20 != 'e' {
			return i
		}
	}
	i++
	if s := c.byteAt(i); s == '+' || s == '-' {
		i++
	}
	return c.digits(i)
}

// digits checks one or more digits.
func (c *checker) digits(i int) int {
	b, from := c.b, i
	for i < len(b) && b[i]-'0' <= 9 {
		i++
	}
	if i == from {
		return c.fail(i, "bad number")
	}
	return i
}

// equalKey reports whether two decoded keys are the same.
func equalKey(a, b []byte) bool { return len(a) == len(b) && bytes.Equal(a, b) }
