package catalog

import (
	"strings"
	"testing"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/tenonhq/tenon/internal/longtest"
)

func TestFoldKey(t *testing.T) {
	for _, tt := range []struct {
		name, a, b string
		same       bool
	}{
		{"case", "amount", "aMOUNT", true},
		{"long s", "pass", "paſs", true},
		{"Kelvin sign", "kind", "\u212aind", true},
		{"Angstrom sign", "\u00e5", "\u212b", true},
		{"dotted capital I", "id", "\u0130d", true},
		{"dotless i", "id", "\u0131d", true},
		{"final sigma", "λογος", "ΛΟΓΟΣ", true},
		{"sharp s", "strasse", "straße", true},
		{"capital sharp s", "strasse", "STRA\u1e9eE", true},
		{"ligature", "file", "\ufb01le", true},
		{"iota below", "\u1fb3", "\u03b1\u03b9", true},
		{"full width", "path", "\uff50\uff41\uff54\uff48", true},
		{"mathematical letters", "path", "\U0001d429ath", true},
		{"composed and decomposed", "caf\u00e9", "cafe\u0301", true},
		{"spaces at the ends", "path", "\u00a0 path\u3000", true},
		{"tag characters", "path", "path\U000e0061", true},
		{"variation selector", "path", "path\ufe0f", true},
		{"variation selector 17", "path", "path\U000e0100", true},
		{"soft hyphen", "path", "pa\u00adth", true},
		{"Hangul filler", "path", "path\u3164", true},
		{"combining grapheme joiner", "path", "p\u034fath", true},
		{"Mongolian separator", "path", "p\u180eath", true},
		{"Khmer inherent vowel", "path", "path\u17b4", true},
		{"bytes that are not UTF-8", "path", "path\ufffd", true},
		{"another key", "path", "paths", false},
		{"an accent", "cafe", "café", false},
		{"a space in it", "a b", "ab", false},
		{"a dash", "user-id", "user_id", false},
		{"Cyrillic a", "path", "p\u0430th", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if a, b := foldKey(tt.a), foldKey(tt.b); (a == b) != tt.same {
				t.Errorf("%q and %q are %q and %q", tt.a, tt.b, a, b)
			}
		})
	}
}

// TestFoldKeyOfEveryCharacter checks that foldKey maps a character and its forms to the same text. The forms are its
// upper, lower and title case and its Unicode normal forms, because other programs may treat them as equal.
func TestFoldKeyOfEveryCharacter(t *testing.T) {
	longtest.Skip(t)
	for r := rune(1); r <= unicode.MaxRune; r++ {
		s := string(r)
		want := foldKey(s)
		for _, other := range []string{string(unicode.SimpleFold(r)), strings.ToUpper(s), strings.ToLower(s), strings.ToTitle(s), norm.NFC.String(s), norm.NFD.String(s), norm.NFKC.String(s)} {
			if got := foldKey(other); got != want {
				t.Errorf("%U: %q, and its form %+q: %q", r, want, other, got)
			}
		}
	}
}

// FuzzFoldKey checks that folding a folded key changes nothing, and that every disguise of a key folds to the same
// text.
func FuzzFoldKey(f *testing.F) {
	for _, s := range []string{"amount", "İstanbul", "ﬃ", "i\u0323\u0307", "\u00a8", "e\u034f\u0301", "\x00", " a ", "\xff", "ᾳ", strings.Repeat("\u0301", 40)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, key string) {
		folded := foldKey(key)
		if again := foldKey(folded); again != folded {
			t.Fatalf("%+q folds to %+q, and that to %+q", key, folded, again)
		}
		for _, other := range []string{"\u200b" + key + "\u202e", " " + key + "\t", strings.ToUpper(folded), strings.ToLower(folded), norm.NFC.String(folded)} {
			if got := foldKey(other); got != folded {
				t.Fatalf("%+q folds to %+q, %+q to %+q", key, folded, other, got)
			}
		}
	})
}
