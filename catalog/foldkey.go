package catalog

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/tenonhq/tenon"
)

// Servers decode arguments in many ways. Go's encoding/json ignores the case of a key, C
// libraries stop at a NUL, and some programs normalize keys or drop characters that they do
// not know. foldKey maps every key that such a server may take for another one to the same
// text.

// foldKey returns the text that identifies a key: without characters that are not seen,
// without spaces at both ends, in compatibility form (NFKD, which unites full-width and
// ordinary forms), and without case in the sense of every locale. Two keys are lookalikes if
// their folded texts are equal.
func foldKey(key string) string {
	if isFolded(key) {
		return key
	}
	// One pass can make work for another: a removed character may join two that compose.
	for range maxFolds {
		next := foldOnce(key)
		if next == key {
			break
		}
		key = next
	}
	return key
}

// Plain returns a text in compatibility form (NFKD), without characters that are not seen.
// Letters in circles, in full width or of mathematics become ordinary ones; case stays.
func Plain(text string) string { return norm.NFKD.String(strings.Map(seen, text)) }

// maxFolds bounds the passes of foldKey. Two are enough for all known texts.
const maxFolds = 8

// isFolded reports whether a key is lower-case ASCII, as most keys are.
func isFolded(key string) bool {
	for i := range len(key) {
		if c := key[i]; c <= ' ' || c >= 0x7f || c >= 'A' && c <= 'Z' {
			return false
		}
	}
	return true
}

func foldOnce(key string) string {
	var b strings.Builder
	base := rune(0)
	for _, r := range norm.NFKD.String(strings.Map(seen, key)) {
		if r = seen(r); r < 0 {
			continue
		}
		r = unicode.ToLower(unicode.ToUpper(r)) // unites ſ and s, the Kelvin sign and k, ς and σ, ı and i
		switch {
		case r == '\u0307' && base == 'i': // İ in lower case, but for Turkish
			continue
		case r == 'ß':
			b.WriteString("ss")
		default:
			b.WriteRune(r)
		}
		if !unicode.Is(unicode.Mn, r) {
			base = r
		}
	}
	return strings.TrimSpace(b.String())
}

// seen returns the character, a space for every kind of space, or -1 for a character that is
// not seen.
func seen(r rune) rune {
	switch {
	case tenon.IsHidden(r), unicode.Is(unicode.Variation_Selector, r),
		unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r):
		return -1
	case r == '\u2800', r == unicode.ReplacementChar: // an empty Braille pattern; bytes that are not UTF-8
		return -1
	case unicode.IsSpace(r):
		return ' '
	}
	return r
}
