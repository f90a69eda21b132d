package httpapi

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
)

// answer sends a result. What is asked for again and has not changed is 304.
func (c *call) answer(status int, v any) error {
	c.send(status, "application/json", v)
	return nil
}

// send writes a JSON value of our own types, with configured secrets masked. A client
// that has gone is no error of ours.
func (c *call) send(status int, kind string, v any) {
	b, err := encode(v)
	if err != nil {
		status, kind, b = http.StatusInternalServerError, "application/problem+json", []byte(`{"title":"Internal Server Error","code":"internal"}`)
	}
	c.sendBytes(status, kind, append(c.h.Masked(b), '\n'))
}

func (c *call) sendBytes(status int, kind string, b []byte) { c.sendTagged(status, kind, b, "") }

// tagOf is the entity tag of a body (RFC 9110, section 8.8.3).
func tagOf(b []byte) string {
	sum := sha256.Sum256(b)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
}

// sendTagged sends a body whose tag may be known already; "": it is not.
func (c *call) sendTagged(status int, kind string, b []byte, tag string) {
	h := c.w.Header()
	h.Set("Content-Type", kind)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	if status == http.StatusOK && (c.req.Method == http.MethodGet || c.req.Method == http.MethodHead) {
		if tag == "" {
			tag = tagOf(b)
		}
		h.Set("ETag", tag)
		h.Set("Cache-Control", "no-cache")
		if isHeld(c.req.Header.Get("If-None-Match"), tag) {
			c.w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	c.w.WriteHeader(status)
	_, _ = c.w.Write(b)
}

// isHeld reports whether If-None-Match names a tag, compared weakly (RFC 9110, section
// 13.1.2): a proxy that compresses makes a weak one of ours.
func isHeld(header, tag string) bool {
	for t := range strings.SplitSeq(header, ",") {
		if t = strings.TrimSpace(t); t == "*" || strings.TrimPrefix(t, "W/") == tag {
			return true
		}
	}
	return false
}

// encode writes JSON on one line, with < and & as they are.
func encode(v any) ([]byte, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return []byte(strings.TrimSuffix(b.String(), "\n")), err
}

// decode reads the body of a request: one JSON object with known keys. No body
// at all leaves v as it is, where that is allowed.
func (c *call) decode(v any, optional bool) error {
	if len(c.body) == 0 {
		if optional {
			return nil
		}
		return tenon.Errorf(tenon.CodeInvalid, "the body is missing: it must be a JSON object")
	}
	if bytes.TrimLeft(c.body, " \t\r\n")[0] != '{' {
		return tenon.Errorf(tenon.CodeInvalid, "the body is not what is taken here: it must be a JSON object")
	}
	d := json.NewDecoder(strings.NewReader(string(c.body)))
	if c.route.api == Native || c.route.api == "" {
		d.DisallowUnknownFields() // clients of other APIs send what theirs has
	}
	if err := d.Decode(v); err != nil {
		return tenon.Errorf(tenon.CodeInvalid, "the body is not what is taken here: %s", misfit(err))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return tenon.Errorf(tenon.CodeInvalid, "the body holds more than one JSON value")
	}
	return nil
}

// misfit says what of a body does not fit, in the words of JSON.
func misfit(err error) string {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return strings.TrimPrefix(err.Error(), "json: ")
	}
	want := "an object"
	switch wrong.Type.Kind() {
	case reflect.String:
		want = "a text"
	case reflect.Bool:
		want = "true or false"
	case reflect.Slice, reflect.Array:
		if want = "a list"; wrong.Type.Elem().Kind() == reflect.Uint8 {
			want = "a text in base64"
		}
	case reflect.Int, reflect.Int64, reflect.Uint64:
		want = "a whole number"
	case reflect.Float64:
		want = "a number"
	}
	what := cmp.Or(wrong.Field, "it")
	return what + " must be " + want + ", not " + wrong.Value
}

// list is a page of a list. Next, if set, is the cursor of the page after it.
type list[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next_cursor,omitempty"`
}

// items makes a list that is never null.
func items[T any](v []T) list[T] {
	if v == nil {
		v = []T{}
	}
	return list[T]{Items: v}
}

// The size of a page.
const (
	pageSize    = 50
	maxPageSize = 500
)

// limit reads ?limit=.
func (c *call) limit() (int, error) { return c.number("limit", pageSize, 1, maxPageSize) }

// number reads a number of the query.
func (c *call) number(key string, otherwise, least, most int) (int, error) {
	q := c.req.URL.Query()
	if !q.Has(key) {
		return otherwise, nil
	}
	text := q.Get(key)
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, tenon.Errorf(tenon.CodeInvalid, "%s must be a number from %d to %d, not '%s'", key, least, most, text)
	}
	return n, nil
}

// flag reads a parameter of the query that is true or false, and false when it is absent. What is
// neither is refused: who writes dry_run=yes must not see it done.
func (c *call) flag(key string) (bool, error) {
	text, err := c.oneOf(key, "true", "false")
	return text == "true", err
}

// oneOf reads a parameter of the query that has one of some values, and gives "" when it is absent.
func (c *call) oneOf(key string, values ...string) (string, error) {
	q := c.req.URL.Query()
	if text := q.Get(key); q.Has(key) && !slices.Contains(values, text) {
		return "", tenon.Errorf(tenon.CodeInvalid, "%s must be one of %s, not '%s'", key, strings.Join(values, ", "), tenon.Visible(text))
	}
	return q.Get(key), nil
}

// paged cuts what was read one item past the page.
func paged[T any](all []T, limit int, id func(T) string) list[T] {
	l := items(all)
	if len(all) > limit {
		l.Items = all[:limit]
		l.Next = id(l.Items[limit-1])
	}
	return l
}
