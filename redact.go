package tenon

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"unicode/utf16"
	"unicode/utf8"
)

// minRedacted is the shortest secret that is looked for: to mask less would hide
// half of every text.
const minRedacted = 6

// Redactor takes the values of secrets out of what is shown, logged or kept:
// as they are, and as they stand in JSON, in URLs and in base64. It learns
// secrets as they come into use. The zero value knows none. It is safe for
// concurrent use.
type Redactor struct {
	mu    sync.RWMutex
	forms [][]byte // longest first
}

// Add has the redactor look for a secret from now on.
func (r *Redactor) Add(s Secret) {
	v := s.Reveal()
	if len(v) < minRedacted {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	hexed := hex.EncodeToString([]byte(v))
	forms := append(base64Forms(v), v, url.QueryEscape(v), url.PathEscape(v), hexed, strings.ToUpper(hexed))
	forms = append(forms, jsonForms(v)...)
	for _, f := range forms {
		if !slices.ContainsFunc(r.forms, func(o []byte) bool { return string(o) == f }) {
			r.forms = append(r.forms, []byte(f))
		}
	}
	slices.SortFunc(r.forms, func(a, b []byte) int { return len(b) - len(a) })
}

// base64Forms returns how a text stands in base64, alone and within a longer one: there
// it begins at any of three places of a group, and shares its first and last digit with
// what stands beside it.
func base64Forms(v string) []string {
	var forms []string
	for _, e := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		forms = append(forms, e.EncodeToString([]byte(v)))
		for before := range 3 {
			all := e.WithPadding(base64.NoPadding).EncodeToString([]byte(strings.Repeat("x", before) + v))
			forms = append(forms, all[(before*8+5)/6:(before+len(v))*8/6])
		}
	}
	return forms
}

// jsonForms returns how a text stands in a JSON string: with what has to be escaped, and
// with what common writers escape beyond that. A tool's text is often JSON itself, so
// each form also stands in a string of that.
func jsonForms(v string) []string {
	ascii := func(r rune) bool { return r < utf8.RuneSelf }
	plain := func(special string) func(rune) bool {
		return func(r rune) bool { return ascii(r) && !strings.ContainsRune(special, r) }
	}
	var forms []string
	for _, form := range []string{
		escaped(v, func(rune) bool { return true }, false),
		escaped(v, func(r rune) bool { return !strings.ContainsRune("<>&\u2028\u2029", r) }, false), // encoding/json
		escaped(v, ascii, false),                                // Python
		strings.ReplaceAll(escaped(v, ascii, false), "/", `\/`), // PHP
		escaped(v, plain("<>&'+`\""), true),                     // .NET
	} {
		forms = append(forms, form, escaped(form, func(rune) bool { return true }, false))
	}
	return forms
}

// escaped writes a text as it stands between the quotes of a JSON string (RFC 8259,
// section 7); characters that are not plain are written by their numbers.
func escaped(v string, plain func(rune) bool, upper bool) string {
	format := `\u%04x`
	if upper {
		format = `\u%04X`
	}
	var b strings.Builder
	for _, r := range v {
		short := strings.IndexRune("\"\\\b\f\n\r\t", r)
		switch {
		case short >= 0 && plain(r):
			b.WriteString(`\` + `"\bfnrt`[short:short+1])
		case r >= ' ' && plain(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, format+format, high, low)
		default:
			fmt.Fprintf(&b, format, r)
		}
	}
	return b.String()
}

// IsEmpty reports whether the redactor knows no secret.
func (r *Redactor) IsEmpty() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.forms) == 0
}

// Bytes returns b with every secret masked: b itself where it holds none.
func (r *Redactor) Bytes(b []byte) []byte {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, f := range r.forms {
		if bytes.Contains(b, f) {
			b = bytes.ReplaceAll(b, f, []byte(secretMask))
		}
	}
	return b
}

// Text returns s with every secret masked.
func (r *Redactor) Text(s string) string {
	if r.IsEmpty() {
		return s
	}
	return string(r.Bytes([]byte(s)))
}
