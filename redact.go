package tenon

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf16"
	"unicode/utf8"
)

// minRedacted is the minimum length of a redacted secret, in bytes. Redacting shorter values would mask
// unrelated text.
const minRedacted = 6

// Redactor masks the values of secrets in text that is shown, logged or stored. It recognizes a secret in plain form,
// in JSON, in URLs, in HTML, in hexadecimal and in base64. In JSON, only the special characters or all characters may
// be escaped; in URLs and HTML, any of them. JSON may be nested in strings of JSON up to three levels, and so may be
// the others. Secrets are added when they are first used.
// The zero value has no secrets. It is safe for concurrent use.
type Redactor struct {
	mu    sync.RWMutex
	forms []form // longest first
	// starts contains the forms that begin with an escape, by their first bytes. It allows one pass over a text to find
	// out whether the text contains any of them. To search for each form separately would take ten times as long.
	starts map[string][][]byte
	pluses [][]byte // secrets with spaces, as decoding of percent escapes leaves them if the spaces were written as +
}

const shortText = 31

// startLen is the length of the keys of starts. No form is shorter.
const startLen = minRedacted

// form is one form of a secret.
type form struct {
	text    []byte
	escaped bool // it contains a backslash
}

// Add registers a secret for redaction.
func (r *Redactor) Add(s Secret) {
	v := s.Reveal()
	if len(v) < minRedacted {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	hexed := hex.EncodeToString([]byte(v))
	forms := append(base64Forms(v), v, hexed, strings.ToUpper(hexed))
	forms = append(forms, jsonForms(v)...)
	if strings.Contains(v, " ") { // some encoders write a space of a URL as a plus sign
		r.pluses = append(r.pluses, []byte(strings.ReplaceAll(v, " ", "+")))
	}
	for _, f := range forms {
		if slices.ContainsFunc(r.forms, func(o form) bool { return string(o.text) == f }) {
			continue
		}
		escaped := strings.Contains(f, `\`)
		r.forms = append(r.forms, form{[]byte(f), escaped})
		if f[0] == '\\' {
			if r.starts == nil {
				r.starts = map[string][][]byte{}
			}
			r.starts[f[:startLen]] = append(r.starts[f[:startLen]], []byte(f))
		}
	}
	slices.SortStableFunc(r.forms, func(a, b form) int { return len(b.text) - len(a.text) })
}

// base64Forms returns the base64 forms of a text, both of the text alone and within a longer text. Within a longer
// text, the text can start at three positions of a group. Its first and last base64 digits then also depend on the
// neighbouring bytes.
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

// jsonForms returns the forms of a text in a JSON string, with the escapes of common encoders. The text of a
// tool is often JSON itself, so each form is also returned as part of a nested JSON string, and once more.
func jsonForms(v string) []string {
	ascii := func(r rune) bool { return r < utf8.RuneSelf }
	plain := func(special string) func(rune) bool {
		return func(r rune) bool { return ascii(r) && !strings.ContainsRune(special, r) }
	}
	none := func(rune) bool { return false }
	var forms []string
	for _, form := range []string{
		escaped(v, none, false),
		escaped(v, none, true),
		escaped(v, func(rune) bool { return true }, false),
		escaped(v, func(r rune) bool { return !strings.ContainsRune("<>&\u2028\u2029", r) }, false), // encoding/json
		escaped(v, ascii, false),                                // Python
		strings.ReplaceAll(escaped(v, ascii, false), "/", `\/`), // PHP
		escaped(v, plain("<>&'+`\""), true),                     // .NET
	} {
		for range 3 {
			forms = append(forms, form)
			form = escaped(form, func(rune) bool { return true }, false)
		}
	}
	return forms
}

// escaped returns a text as it appears between the quotes of a JSON string (RFC 8259, section 7). Characters
// that are not plain become \u escapes.
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

// IsEmpty reports whether the redactor has no secrets.
func (r *Redactor) IsEmpty() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.forms) == 0
}

// Size returns the number of recognized forms. It grows with each new secret. If the size is the same, text that was
// masked earlier needs no new masking.
func (r *Redactor) Size() int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.forms)
}

// Bytes returns b with every secret masked. If b contains none, it returns b itself.
func (r *Redactor) Bytes(b []byte) []byte {
	r.mu.RLock()
	defer r.mu.RUnlock()
	backslash := bytes.IndexByte(b, '\\') >= 0
	escapes := backslash && r.startsIn(b)
	for _, f := range r.forms {
		if f.escaped && !backslash || f.text[0] == '\\' && !escapes {
			continue
		}
		if contains(b, f.text) {
			b = bytes.ReplaceAll(b, f.text, []byte(secretMask))
		}
	}
	return r.decoded(b)
}

// contains is bytes.Contains, which finds short texts with vector instructions, and longer ones much slower.
func contains(b, text []byte) bool {
	return bytes.Contains(b, text[:min(len(text), shortText)]) && bytes.Contains(b, text)
}

// startsIn reports whether a text contains a form that begins with an escape of JSON.
func (r *Redactor) startsIn(b []byte) bool {
	for {
		i := bytes.IndexByte(b, '\\')
		if i < 0 || len(b)-i < startLen {
			return false
		}
		b = b[i:]
		for _, f := range r.starts[string(b[:startLen])] {
			if bytes.HasPrefix(b, f) {
				return true
			}
		}
		b = b[1:]
	}
}

// Text returns s with every secret masked.
func (r *Redactor) Text(s string) string {
	if r.IsEmpty() {
		return s
	}
	return string(r.Bytes([]byte(s)))
}

// Begun returns the number of bytes at the end of a text that may be the beginning of a secret. A text that is masked
// piece by piece is cut before them.
func (r *Redactor) Begun(s string) int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	longest := 0
	for _, f := range r.forms {
		for n := min(len(f.text)-1, len(s)); n > longest; n-- {
			if s[len(s)-n:] == string(f.text[:n]) {
				longest = n
				break
			}
		}
	}
	return longest
}
