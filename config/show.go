package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config/tree"
	"github.com/tenonhq/tenon/servers"
)

// Value is one value of a configuration, with its origin.
type Value struct {
	Path   string `json:"path"`
	Value  string `json:"value"`  // YAML on one line, as written, with unresolved variables
	Origin string `json:"origin"` // "FILE:LINE" or "default"
	Layer  string `json:"layer"`  // the layer that sets it: admin, user, project or program; or "default"
}

// Show returns the values at and below a path, in the order of the reference, and entries in file order. The path ""
// means everything. It adds the rules of each trusted layer, which apply besides the project's. Absent values without
// a default are left out. Values of secrets and credentials in URLs and arguments are never shown. The error has code
// not_found.
func (c *Config) Show(path string) ([]Value, error) {
	w := &shower{c: c, under: path}
	w.walk(place{}, reflect.ValueOf(*c), field{})
	for _, f := range c.floors {
		below := &shower{c: f.c, under: path, rules: true}
		below.walk(place{}, reflect.ValueOf(*f.c), field{})
		w.out = append(w.out, below.out...)
	}
	if len(w.out) == 0 && path != "" {
		return nil, tenon.Errorf(tenon.CodeNotFound, "nothing at '%s' in the configuration; config show without "+
			"--path lists all of it", path)
	}
	return w.out, nil
}

type shower struct {
	c     *Config
	under string
	rules bool // only show the rules of a file
	out   []Value
}

func (w *shower) put(p place, value string) {
	if w.rules && (w.c.nodes[p.path] == nil || !slices.ContainsFunc(slices.Collect(maps.Keys(judgedApart)),
		func(at string) bool {
			return p.path == at || strings.HasPrefix(p.path, at+".") || strings.HasPrefix(p.path, at+"[")
		})) {
		return
	}
	if w.under == "" || p.path == w.under || strings.HasPrefix(p.path, w.under+".") ||
		strings.HasPrefix(p.path, w.under+"[") {
		w.out = append(w.out, Value{p.path, value, w.c.Origin(p.path), w.c.layerName(p.path)})
	}
}

func (w *shower) walk(p place, v reflect.Value, f field) {
	if !leadsTo(p.path, w.under) && !leadsTo(w.under, p.path) {
		return
	}
	n := w.c.nodes[p.path]
	switch t := v.Type(); {
	case t == secretType:
		w.secret(p, v)
	case t.Kind() == reflect.Struct:
		for _, f := range fields(t) {
			w.walk(p.key(f.name), v.Field(f.index), f)
		}
	case t.Kind() == reflect.Map:
		w.mapping(p, v)
	case v.IsZero() && n == nil: // an absent value
	case t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Bool && n == nil && w.c.rowNode(p.path) != nil:
		w.put(p, fmt.Sprint(v.Elem().Bool())) // also if false, because servers of a table differ from the default
	case t.Kind() == reflect.Pointer:
		w.walk(p, v.Elem(), f)
	case t == durationType:
		if n == nil && f.def != "" && f.def[0] >= '0' && f.def[0] <= '9' {
			if d, err := time.ParseDuration(f.def); err == nil && d == v.Interface() {
				w.put(p, f.def)
				return
			}
		}
		w.put(p, short(v.Interface().(time.Duration)))
	case t == rawType && n != nil && n.Kind == tree.Scalar && maskLiteral(n.Val, literalNames(p.path)...) != n.Val:
		w.put(p, hidden(n.Val, literalNames(p.path)...))
	case t == rawType:
		w.put(p, maskJSON(hideTokens(w.written(p, n, v.Bytes()))))
	case t.Kind() == reflect.Slice && (t.Elem().Kind() == reflect.Struct || t.Elem() == rawType):
		for i := range v.Len() {
			w.walk(p.at(i), v.Index(i), field{})
		}
	case t.Kind() == reflect.Slice:
		w.put(p, w.list(n, v))
	case t.Kind() == reflect.String && n != nil && n.Kind == tree.Scalar:
		w.put(p, hidden(n.Val, literalNames(p.path)...))
	case t.Kind() == reflect.String:
		w.put(p, scalar(v.String()))
	default:
		b, err := json.Marshal(v.Interface())
		if err != nil {
			b = []byte(fmt.Sprint(v.Interface()))
		}
		w.put(p, string(b))
	}
}

// written returns JSON of the file as it is written there, with references to variables and secrets in place of their
// values.
func (w *shower) written(p place, n *tree.Node, value []byte) string {
	var b bytes.Buffer
	if n == nil || !expandsJSON[p.pattern] || !n.WriteJSON(&b, p.path, &tree.Sink{}, nil) {
		return string(value)
	}
	return b.String()
}

// leadsTo reports whether path is equal to, or a parent of, the path to.
func leadsTo(path, to string) bool {
	rest, ok := strings.CutPrefix(to, path)
	return ok && (path == "" || rest == "" || rest[0] == '.' || rest[0] == '[')
}

func (w *shower) mapping(p place, v reflect.Value) {
	var keys []string
	read := map[string]bool{}
	for _, k := range w.c.order[p.path] {
		if !read[k] && v.MapIndex(reflect.ValueOf(k)).IsValid() {
			keys, read[k] = append(keys, k), true
		}
	}
	var added []string
	for _, k := range v.MapKeys() {
		if !read[k.String()] {
			added = append(added, k.String())
		}
	}
	slices.Sort(added)
	for _, k := range append(keys, added...) {
		w.walk(p.named(k), v.MapIndex(reflect.ValueOf(k)), field{})
	}
}

// secret shows the source of a secret, or that there is a secret.
func (w *shower) secret(p place, v reflect.Value) {
	ref, ok := w.c.secrets[p.path]
	switch {
	case ok && ref.name != "":
		w.put(p, scalar(ref.name))
	case ok:
		w.walk(p, reflect.ValueOf(ref), field{})
	case !v.IsZero():
		w.put(p, "***")
	}
}

func (w *shower) list(n *tree.Node, v reflect.Value) string {
	out := make([]string, v.Len())
	for i := range out {
		out[i] = fmt.Sprint(v.Index(i).Interface())
		if n != nil && n.Kind == tree.List && i < len(n.Vals) && n.Vals[i].Kind == tree.Scalar {
			out[i] = n.Vals[i].Val
		}
	}
	return flow(servers.MaskArgs(out))
}

// hideTokens returns JSON of the file without credentials of URLs, or "***" if it contains a token.
func hideTokens(s string) string {
	for _, word := range strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(`"{}[],: `, r) }) {
		if LooksLikeToken(word) {
			return "***"
		}
	}
	return servers.MaskAddresses(s)
}

// hidden returns a text of the file as YAML with its secret parts masked.
func hidden(s string, names ...string) string { return scalar(maskLiteral(s, names...)) }

// short formats a duration without zeros at its end: 5m, not 5m0s.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

// Redacted returns the values without private data, so that they can be shown to others. It masks the values of
// variables and headers, settings of servers, and the user and query parts of addresses.
func Redacted(list []Value) []Value {
	out := slices.Clone(list)
	for i, v := range out {
		parts := strings.Split(v.Path, ".")
		inside := func(section string, keys ...string) bool {
			return len(parts) > 3 && parts[0] == section && slices.ContainsFunc(parts[2:len(parts)-1],
				func(p string) bool { return slices.Contains(keys, p) })
		}
		switch last := parts[len(parts)-1]; {
		case inside("servers", "env", "headers", "config"), inside("models", "headers"), inside("tools", "headers"),
			len(parts) == 3 && parts[0] == "models" && last == "tools",
			len(parts) == 3 && parts[0] == "agents" && last == "provider_tools":
			out[i].Value = "***"
		case last == "url" || last == "base_url" || last == "issuer" || last == "otlp":
			out[i].Value = redactedURL(v.Value)
		}
	}
	return out
}

// redactedURL removes the credentials and the query from a URL as written in the file.
func redactedURL(s string) string {
	quote := ""
	if strings.HasPrefix(s, `"`) && strings.HasSuffix(s, `"`) && len(s) > 1 {
		quote, s = `"`, s[1:len(s)-1]
	}
	if before, _, ok := strings.Cut(s, "?"); ok {
		s = before + "?***"
	}
	if scheme, rest, ok := strings.Cut(s, "://"); ok {
		host, path, _ := strings.Cut(rest, "/")
		if _, after, ok := strings.Cut(host, "@"); ok {
			rest = "***@" + after
			if path != "" {
				rest += "/" + path
			}
			s = scheme + "://" + rest
		}
	}
	return quote + s + quote
}
