package catalog

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/tenonhq/tenon"
)

// Servers decode arguments in many ways. Go's encoding/json ignores the case of a key, C libraries stop at a NUL, and
// some programs normalize keys or drop unknown characters. Therefore foldKey maps all keys that such a server could
// confuse to the same text.

// foldKey returns a text that is equal for keys that a server could confuse: without invisible characters and without
// spaces at both ends, in compatibility form (NFKD, which unites full-width and ordinary forms), and without case in
// all locales. Two keys are lookalikes if foldKey returns the same text for both.
func foldKey(key string) string {
	if isFolded(key) {
		return key
	}
	// A pass can require another one: without a removed character its neighbors may compose.
	for range maxFolds {
		next := foldOnce(key)
		if next == key {
			break
		}
		key = next
	}
	return key
}

// Plain returns a text in compatibility form (NFKD), without invisible characters. Circled, full-width and
// mathematical letters become ordinary ones; case stays.
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
		case r == '\u0307' && base == 'i': // İ in lower case, except in Turkish
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

// seen returns the character, a space for every kind of space, or -1 for an invisible character.
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
