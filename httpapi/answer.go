package httpapi

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/exactjson"
)

// answer sends v as JSON. A GET whose If-None-Match names the current content is answered with 304 instead.
func (c *call) answer(status int, v any) error {
	c.send(status, "application/json", v)
	return nil
}

// send encodes v, masks configured secrets in it and writes it. kind is the content type. Write errors are ignored:
// they mean that the client has disconnected.
func (c *call) send(status int, kind string, v any) {
	b, err := encode(v)
	if err != nil {
		status, kind, b = http.StatusInternalServerError, "application/problem+json",
			[]byte(`{"title":"Internal Server Error","code":"internal"}`)
	}
	c.sendBytes(status, kind, append(c.h.Service().Callers().Mask(b), '\n'))
}

func (c *call) sendBytes(status int, kind string, b []byte) { c.sendTagged(status, kind, b, "") }

// tagOf returns the entity tag of a body (RFC 9110, section 8.8.3).
func tagOf(b []byte) string {
	sum := sha256.Sum256(b)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
}

// sendTagged sends a body with its entity tag. If tag is empty, it is computed.
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

// isHeld reports whether the value of an If-None-Match header names a tag. The comparison is weak (RFC 9110, section
// 13.1.2), because a proxy that compresses answers turns our strong tags into weak ones.
func isHeld(header, tag string) bool {
	for t := range strings.SplitSeq(header, ",") {
		if t = strings.TrimSpace(t); t == "*" || strings.TrimPrefix(t, "W/") == tag {
			return true
		}
	}
	return false
}

// encode returns v as one line of JSON. It does not escape < and &.
func encode(v any) ([]byte, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return []byte(strings.TrimSuffix(b.String(), "\n")), err
}

// decode decodes the body of the request, one JSON object, into the struct v. Member names must match exactly and be
// unique. The native API refuses unknown members. The other APIs ignore them, because their clients send parameters of
// other vendors; ResearchAI's refuses only names that look like misspelled members. If optional is set, the body may be
// missing.
func (c *call) decode(v any, optional bool) error {
	if len(c.body) == 0 {
		if optional {
			return nil
		}
		return tenon.Errorf(tenon.CodeInvalid, "the body is missing: it must be a JSON object")
	}
	if bytes.TrimLeft(c.body, " \t\r\n")[0] != '{' {
		return tenon.Errorf(tenon.CodeInvalid, "the body is not valid: it must be a JSON object")
	}
	read := exactjson.DecodeOpen
	switch c.route.api {
	case Native, "":
		read = exactjson.Decode
	case ResearchAI:
		read = exactjson.DecodeNear
	}
	if err := read(c.body, v); err != nil {
		return tenon.Errorf(tenon.CodeInvalid, "the body is not valid: %s", misfit(err))
	}
	return nil
}

// misfit describes a decoding error in terms of JSON, without the names of Go types.
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
		want = "a list"
		if wrong.Type.Elem().Kind() == reflect.Uint8 {
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

// list is the JSON form of a list, or of a page of it. Next is the cursor of the next page, empty on the last one.
type list[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next_cursor,omitempty"`
}

// items returns a list of v. If v is nil, its JSON is [], not null.
func items[T any](v []T) list[T] {
	if v == nil {
		v = []T{}
	}
	return list[T]{Items: v}
}

// The number of items on a page: the default and the maximum of ?limit=.
const (
	pageSize    = 50
	maxPageSize = 500
)

// limit reads ?limit=.
func (c *call) limit() (int, error) { return c.number("limit", pageSize, 1, maxPageSize) }

// number returns the query parameter key as a number from least to most, or otherwise if it is absent.
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

// flag returns the query parameter key, which is true or false; if absent, it is false. Other values are errors:
// otherwise dry_run=yes would make the change.
func (c *call) flag(key string) (bool, error) {
	text, err := c.oneOf(key, "true", "false")
	return text == "true", err
}

// oneOf returns the query parameter key, which must be one of values, or "" if it is absent.
func (c *call) oneOf(key string, values ...string) (string, error) {
	q := c.req.URL.Query()
	if text := q.Get(key); q.Has(key) && !slices.Contains(values, text) {
		return "", tenon.Errorf(tenon.CodeInvalid, "%s must be one of %s, not '%s'", key, strings.Join(values, ", "),
			tenon.Visible(text))
	}
	return q.Get(key), nil
}

// paged returns a page of at most limit items. The caller reads limit+1 items: the extra one only shows that there is
// a next page, whose cursor is the id of this page's last item.
func paged[T any](all []T, limit int, id func(T) string) list[T] {
	l := items(all)
	if len(all) > limit {
		l.Items = all[:limit]
		l.Next = id(l.Items[limit-1])
	}
	return l
}
