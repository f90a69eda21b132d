package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/lazyregexp"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/jsonrpc"
	"github.com/tenonhq/tenon/transport"
)

// The annotation in a tool's schema that requests an argument as a header, too, and the prefix of that header
// (2026-07-28, tools and transports).
const (
	annotationHeader = "x-mcp-header"
	paramPrefix      = "Mcp-Param-"
)

// mirrored is an argument that is also sent as a header.
type mirrored struct {
	path   []string // property names from the root of the arguments
	kind   string   // string, integer or boolean
	header string
}

// maxSchemaDepth bounds the walk over a tool's schema.
const maxSchemaDepth = 64

// readMirrored returns the arguments of a tool that are also sent as headers. An error names an invalid annotation;
// such a tool must not be used (2026-07-28, tools).
func readMirrored(schema []byte) ([]mirrored, error) {
	w := headerWalk{seen: map[string]bool{}}
	w.reachable(schema, nil)
	return w.found, w.err
}

// headerWalk walks over a schema.
type headerWalk struct {
	found []mirrored
	seen  map[string]bool // in lower case
	err   error
}

func (w *headerWalk) fail(path []string, format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf("%s of parameter %q %s", annotationHeader, strings.Join(path, "."),
			fmt.Sprintf(format, args...))
	}
}

// reachable walks over a schema that is reached only through properties, where the annotation is allowed.
func (w *headerWalk) reachable(schema []byte, path []string) {
	if len(path) > maxSchemaDepth {
		w.fail(path, "lies too deep")
		return
	}
	for k, v := range rawjson.Members(schema) {
		switch string(k) {
		case annotationHeader:
			w.take(schema, v, path)
		case "properties":
			for name, property := range rawjson.Members(v) {
				w.reachable(property, append(path[:len(path):len(path)], string(name)))
				if w.err != nil {
					return
				}
			}
		case "default", "const", "enum", "examples": // data
		default:
			w.elsewhere(v, path, 0)
		}
		if w.err != nil {
			return
		}
	}
}

// elsewhere reports annotations where they are not allowed, such as in the items of a list or in one of several
// alternatives.
func (w *headerWalk) elsewhere(v []byte, path []string, depth int) {
	if depth > maxSchemaDepth || w.err != nil {
		return
	}
	for e := range rawjson.Elements(v) {
		w.elsewhere(e, path, depth+1)
	}
	for k, v := range rawjson.Members(v) {
		switch string(k) {
		case annotationHeader:
			if w.err == nil && !rawjson.IsObject(v) { // an object would be a property with this name
				w.fail(path, "is at a place that is not a single argument")
			}
		case "default", "const", "enum", "examples":
		default:
			w.elsewhere(v, path, depth+1)
		}
	}
}

// take reads one annotation.
func (w *headerWalk) take(schema, value []byte, path []string) {
	name, ok := rawjson.ParseString(value)
	kind := rawjson.String(rawjson.Field(schema, "type"))
	switch {
	case len(path) == 0:
		w.fail(path, "is at the root")
	case !ok || !isToken(name):
		w.fail(path, "is no name of a header: %s", clip(value))
	case w.seen[strings.ToLower(name)]:
		w.fail(path, "names the header %q a second time", name)
	case kind != "string" && kind != "integer" && kind != "boolean":
		w.fail(path, "is at a value that is neither string, integer nor boolean")
	default:
		w.seen[strings.ToLower(name)] = true
		w.found = append(w.found, mirrored{path: path, kind: kind, header: paramPrefix + name})
	}
}

// isToken reports whether a text can be the name of a header (RFC 9110, 5.6.2).
func isToken(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') &&
			!strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return s != "" && len(s) <= 128
}

// headersOf returns the headers of a call. Arguments that are absent, null or of another type than in the schema have
// no header.
func headersOf(params []mirrored, args []byte) map[string]string {
	var headers map[string]string
	for _, p := range params {
		v := args
		for _, name := range p.path {
			v = rawjson.Field(v, name)
		}
		text, ok := headerText(p.kind, v)
		if !ok {
			continue
		}
		if headers == nil {
			headers = map[string]string{}
		}
		headers[p.header] = text
	}
	return headers
}

func headerText(kind string, v []byte) (string, bool) {
	s, ok := valueText(kind, v)
	if kind == "string" {
		s = transport.HeaderValue(s)
	}
	return s, ok
}

// valueText returns the text of an argument before it is encoded for a header.
func valueText(kind string, v []byte) (string, bool) {
	switch kind {
	case "string":
		return rawjson.ParseString(v)
	case "boolean":
		return string(v), string(v) == "true" || string(v) == "false"
	}
	if len(v) == 0 || v[0] != '-' && (v[0] < '0' || v[0] > '9') {
		return "", false
	}
	s := string(v)
	if !strings.ContainsAny(s, ".eE") {
		return s, true
	}
	n, ok := safeInteger(s) // 42.0 and 4.2e1 are the integer 42
	return strconv.FormatInt(n, 10), ok
}

// safeInteger returns the integer that a JSON number is. ok is false if it is none, or beyond the range of integers
// that every peer can represent.
func safeInteger(s string) (n int64, ok bool) {
	const most = 1<<53 - 1
	x, err := strconv.ParseFloat(s, 64)
	if err != nil || math.Trunc(x) != x || math.Abs(x) > most {
		return 0, false
	}
	return int64(x), true
}

// paramHeaders are the headers of a tools/call request over modern HTTP.
type paramHeaders struct {
	header http.Header
	strict bool // an argument needs its header
}

// CheckHeaders returns a *jsonrpc.Error if the request came with headers of arguments (Mcp-Param-…) that differ from
// the arguments, or without a header that the tool's input schema requests (2026-07-28, "Server Behavior for Custom
// Headers"). It returns nil for requests that have no such headers: over streams, and of the legacy era. A schema with
// an invalid annotation requests none, since clients must not use its tool.
func (r *ToolRequest) CheckHeaders(schema json.RawMessage) error {
	if r.headers.header == nil || !bytes.Contains(schema, []byte(annotationHeader)) &&
		!bytes.ContainsRune(schema, '\\') { // which could escape a part of the annotation's name
		return nil
	}
	params, err := readMirrored(schema)
	if err != nil {
		return nil
	}
	for _, p := range params {
		v := []byte(r.Arguments)
		for _, name := range p.path {
			v = rawjson.Field(v, name)
		}
		got := r.headers.header.Values(p.header)
		if why := p.differs(got, v, r.headers.strict); why != "" {
			return jsonrpc.Errorf(codeHeaderMismatch, "Header mismatch: %s %s", p.header, why)
		}
	}
	return nil
}

// differs returns how the values of a header differ from an argument, or "" if they do not. v is nil if the argument is
// absent.
func (p *mirrored) differs(got []string, v []byte, strict bool) string {
	want, ok := valueText(p.kind, v)
	switch {
	case len(got) == 0 && (!ok || !strict):
		return ""
	case len(got) == 0:
		return "is missing"
	case !ok:
		return "has no such argument" // null, absent, or of a type that the schema refuses
	case len(got) > 1:
		return "is there more than once"
	}
	text, valid := transport.DecodeHeaderValue(got[0])
	switch {
	case !valid || !isVisible(got[0]) || !utf8.ValidString(text):
		return "contains invalid characters"
	case text == want, p.kind == "integer" && sameInteger(text, want):
		return ""
	}
	return "differs from the argument"
}

// isVisible reports whether a header contains only what a value may contain (RFC 9110, 5.5).
func isVisible(s string) bool {
	for i := 0; i < len(s); i++ {
		if (s[i] < ' ' || s[i] > '~') && s[i] != '\t' {
			return false
		}
	}
	return true
}

// integerForm matches the integers of headers. Other forms that ParseFloat reads are no decimal integers.
var integerForm = lazyregexp.New(`^-?[0-9]+(\.0+)?$`)

// sameInteger reports whether a header is the integer of an argument, within the range of integers that every peer can
// represent.
func sameInteger(header, argument string) bool {
	if !integerForm().MatchString(header) {
		return false
	}
	x, ok := safeInteger(header)
	y, ok2 := safeInteger(argument)
	return ok && ok2 && x == y
}

// learn records which arguments of a tool are also sent as headers. It returns an error for a tool that must not be
// used. Only modern HTTP has such headers.
func (c *Client) learn(t *tenon.Tool, params map[string][]mirrored) error {
	if !c.hasParamHeaders() {
		return nil
	}
	found, err := readMirrored(t.Input)
	if err == nil && len(found) > 0 {
		params[t.Remote] = found
	}
	return err
}

func (c *Client) hasParamHeaders() bool { return c.http != nil && c.isModern() }

// paramHeaders returns the headers for a call of a listed tool.
func (c *Client) paramHeaders(tool string, args []byte) map[string]string {
	params := c.params.Load()
	if params == nil || !c.hasParamHeaders() {
		return nil
	}
	return headersOf((*params)[tool], args)
}

// isHeaderMismatch reports whether a modern server refused a request because its headers and its body differ. This
// happens if the list of tools is outdated.
func (c *Client) isHeaderMismatch(err error) bool {
	var rpc *jsonrpc.Error
	return c.hasParamHeaders() && errors.As(err, &rpc) && rpc.Code == codeHeaderMismatch
}
