package tenon

import (
	"bytes"
	"encoding/base64"
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
	for _, f := range []string{v, strings.Trim(string(js), `"`), url.QueryEscape(v), url.PathEscape(v),
		base64.StdEncoding.EncodeToString([]byte(v)), base64.RawStdEncoding.EncodeToString([]byte(v)),
		base64.URLEncoding.EncodeToString([]byte(v)), base64.RawURLEncoding.EncodeToString([]byte(v))} {
		if !slices.ContainsFunc(r.forms, func(o []byte) bool { return string(o) == f }) {
			r.forms = append(r.forms, []byte(f))
		}
	}
	slices.SortFunc(r.forms, func(a, b []byte) int { return len(b) - len(a) })
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
