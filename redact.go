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

// minRedacted is the minimum length of a redacted secret, in bytes. Redacting shorter values would mask
// unrelated text.
const minRedacted = 6

// Redactor masks the values of secrets in text that is shown, logged or stored. It recognizes a secret in plain form,
// in JSON, in URLs, in hexadecimal and in base64. In JSON and in URLs, only the special characters or all characters
// may be escaped. JSON may be nested in strings of JSON up to three levels. Secrets are added when they are first used.
// The zero value has no secrets. It is safe for concurrent use.
type Redactor struct {
	mu    sync.RWMutex
	forms []form // longest first
	// starts contains the forms that begin with an escape, by their first bytes. It allows one pass over a text to find
	// out whether the text contains any of them. To search for each form separately would take ten times as long.
	starts map[string][][]byte
}

const shortText = 31

// startLen is the length of the keys of starts. No form is shorter.
const startLen = minRedacted

// form is one form of a secret. If a text does not contain the mark, it does not contain the form.
type form struct {
	text []byte
	mark byte // '%' or '\\'; 0 for neither
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
	forms = append(append(forms, urlForms(v)...), jsonForms(v)...)
	for _, f := range forms {
		if slices.ContainsFunc(r.forms, func(o form) bool { return string(o.text) == f }) {
			continue
		}
		mark := byte(0)
		if i := strings.IndexAny(f, `%\`); i >= 0 {
			mark = f[i]
		}
		r.forms = append(r.forms, form{[]byte(f), mark})
		if mark != 0 && f[0] == mark {
			if r.starts == nil {
				r.starts = map[string][][]byte{}
			}
			r.starts[f[:startLen]] = append(r.starts[f[:startLen]], []byte(f))
		}
	}
	slices.SortStableFunc(r.forms, func(a, b form) int { return len(b.text) - len(a.text) })
}

// urlForms returns the forms of a text in a URL: with the escapes of common encoders, and with every byte escaped. The
// digits of an escape may have either case.
func urlForms(v string) []string {
	var all strings.Builder
	for _, c := range []byte(v) {
		fmt.Fprintf(&all, "%%%02X", c)
	}
	var forms []string
	for _, form := range []string{url.QueryEscape(v), url.PathEscape(v), all.String()} {
		forms = append(forms, form, lowerEscapes(form), strings.ReplaceAll(form, "%", "%25")) // a URL within a URL
	}
	return forms
}

// lowerEscapes changes the hexadecimal digits of percent escapes to lower case.
func lowerEscapes(text string) string {
	b := []byte(text)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:i+3], bytes.ToLower(b[i+1:i+3]))
			i += 2
		}
	}
	return string(b)
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
	percent, backslash := bytes.IndexByte(b, '%') >= 0, bytes.IndexByte(b, '\\') >= 0
	escapes := percent && r.startsIn(b, '%') || backslash && r.startsIn(b, '\\')
	for _, f := range r.forms {
		if f.mark == '%' && !percent || f.mark == '\\' && !backslash || f.text[0] == f.mark && !escapes {
			continue
		}
		// Package bytes finds short texts with vector instructions, and longer ones much slower.
		if bytes.Contains(b, f.text[:min(len(f.text), shortText)]) && bytes.Contains(b, f.text) {
			b = bytes.ReplaceAll(b, f.text, []byte(secretMask))
		}
	}
	return b
}

// startsIn reports whether a text contains a form that begins with an escape of the given mark.
func (r *Redactor) startsIn(b []byte, mark byte) bool {
	for {
		i := bytes.IndexByte(b, mark)
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
