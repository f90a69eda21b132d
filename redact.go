package tenon

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"sync"
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
	js, err := json.Marshal(v)
	if err != nil {
		js = nil // a string always encodes
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	hexed := hex.EncodeToString([]byte(v))
	forms := append(base64Forms(v), v, strings.Trim(string(js), `"`), url.QueryEscape(v), url.PathEscape(v), hexed, strings.ToUpper(hexed))
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
