package mcp

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tenonhq/tenon"
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
	switch kind {
	case "string":
		s, ok := rawjson.ParseString(v)
		return transport.HeaderValue(s), ok
	case "boolean":
		return string(v), string(v) == "true" || string(v) == "false"
	}
	if len(v) == 0 || v[0] != '-' && (v[0] < '0' || v[0] > '9') {
		return "", false
	}
	s := string(v)
	if whole, zeros, ok := strings.Cut(s, "."); ok && strings.Trim(zeros, "0") == "" {
		s = whole // 42.0 is the integer 42
	}
	return s, !strings.ContainsAny(s, ".eE")
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
