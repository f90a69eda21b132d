package config

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config/tree"
)

var (
	durationType = reflect.TypeFor[time.Duration]()
	sizeType     = reflect.TypeFor[tenon.Size]()
	secretType   = reflect.TypeFor[tenon.Secret]()
	rawType      = reflect.TypeFor[json.RawMessage]()
)

// field is one key of a config struct, as described by the tags of the struct's field.
type field struct {
	index    int
	name     string
	alias    string   // another name that is accepted
	enum     []string // the values that are accepted
	min, max *float64
	short    bool   // a scalar instead of the struct sets this key
	def      string // for the documentation
	goName   string
	typ      reflect.Type
}

// fieldsOf has the keys of each config struct that was asked for, a []field for each reflect.Type.
var fieldsOf sync.Map

// fields returns the keys of a config struct in the order of its fields. Callers must not change them.
func fields(t reflect.Type) []field {
	if known, ok := fieldsOf.Load(t); ok {
		return known.([]field)
	}
	out := make([]field, 0, t.NumField())
	for i := range t.NumField() {
		sf := t.Field(i)
		name, _, _ := strings.Cut(sf.Tag.Get("yaml"), ",")
		if !sf.IsExported() || name == "" || name == "-" {
			continue
		}
		f := field{index: i, name: name, alias: sf.Tag.Get("alias"), def: sf.Tag.Get("default"), goName: sf.Name,
			typ: sf.Type, short: sf.Tag.Get("short") == "true"}
		f.enum = list(sf.Tag.Get("enum"))
		f.min, f.max = number(sf.Tag.Get("min")), number(sf.Tag.Get("max"))
		out = append(out, f)
	}
	fieldsOf.Store(t, out)
	return out
}

func list(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}

func number(s string) *float64 {
	if s == "" {
		return nil // most keys; ParseFloat would make an error
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil {
		return &f
	}
	return nil
}

// place is the position of a value: its path, for messages, and its pattern, under which rules about the key are
// found. In a pattern, the user's names are NAME and list indexes are [].
type place struct{ path, pattern string }

func (p place) key(k string) place { return place{tree.Join(p.path, k), tree.Join(p.pattern, k)} }
func (p place) named(k string) place {
	return place{tree.Join(p.path, k), tree.Join(p.pattern, "NAME")}
}
func (p place) at(i int) place { return place{tree.Index(p.path, i), p.pattern + "[]"} }

// decoder decodes nodes into the config structs.
type decoder struct {
	*tree.Sink
	vars    *tree.Variables
	nodes   map[string]*tree.Node   // path → value
	keyed   map[string]*tree.Node   // path → key
	order   map[string][]string     // path of a map of names → its names in file order
	secrets map[string]SecretSource // path of a value of type secret → its source
	late    map[string]*tree.Node   // path → a text that contains ${secret:NAME}
	apart   bool                    // files that the file names need not exist
	off     bool                    // inside a disabled server: variables are not resolved
	floor   bool                    // a trusted layer is read by itself; see alone
	typed   bool                    // the values come from a Go program; see CheckEntry
}

func (d *decoder) decode(n *tree.Node, p place, v reflect.Value, f field) {
	d.nodes[p.path] = n
	switch t := v.Type(); {
	case t == secretType:
		d.secret(n, p)
	case t == durationType:
		d.duration(n, p, v, f)
	case t == sizeType:
		d.size(n, p, v)
	case t == rawType:
		d.raw(n, p, v)
	case t.Kind() == reflect.Struct:
		d.object(n, p, v)
	case t.Kind() == reflect.Map:
		d.mapping(n, p, v)
	case t.Kind() == reflect.Slice:
		d.list(n, p, v, f)
	case t.Kind() == reflect.Pointer && n.IsNull() && t.Elem().Kind() == reflect.Struct: // an absent value
	case t.Kind() == reflect.Pointer:
		e := reflect.New(t.Elem())
		d.decode(n, p, e.Elem(), f)
		v.Set(e)
	default:
		d.scalar(n, p, v, f)
	}
}

// object decodes a map with known keys.
func (d *decoder) object(n *tree.Node, p place, v reflect.Value) {
	if n.IsNull() {
		return
	}
	known := fields(v.Type())
	if at := slices.IndexFunc(known, func(f field) bool { return f.short }); at >= 0 && n.Kind == tree.Scalar {
		f := known[at]
		d.decode(n, p.key(f.name), v.Field(f.index), f)
		return
	}
	if n.Kind != tree.Map {
		d.Add(n, p.path, "must be a map, is "+n.Form(), mapHint(n, p))
		return
	}
	from := map[int]*tree.Node{} // field → the key that set it
	for k, val := range n.All() {
		if strings.HasPrefix(k.Val, "x-") {
			continue
		}
		at := slices.IndexFunc(known, func(f field) bool {
			return f.name == k.Val || f.alias != "" &&
				f.alias == k.Val
		})
		if at < 0 {
			d.unknown(k, p, v.Type(), known)
			continue
		}
		f := known[at]
		fp := p.key(f.name)
		if b, ok := bounds[fp.pattern]; ok {
			f.min, f.max = &b[0], &b[1]
		}
		if first := from[at]; first != nil {
			if was := d.nodes[fp.path]; was == nil || !tree.Same(was, val) {
				d.Add(k, tree.Join(p.path, k.Val), fmt.Sprintf("'%s' and '%s' are the same key and differ", first.Val,
					k.Val), "keep one of them")
			}
			continue
		}
		from[at], d.keyed[fp.path] = k, k
		if k.Val == f.alias && f.alias == "type" && val.Kind == tree.Scalar {
			if ours := map[string]string{"streamable-http": "http", "ws": "websocket"}[val.Val]; ours != "" {
				val = &tree.Node{Tag: val.Tag, Val: ours, Line: val.Line, Col: val.Col, Src: val.Src}
			}
		}
		d.decode(val, fp, v.Field(f.index), f)
	}
}

// mapHint returns a hint how to write a list as the map that is required, or "" if that is not known.
func mapHint(n *tree.Node, p place) string {
	if n.Kind != tree.List {
		return ""
	}
	switch p.pattern {
	case "tools":
		return "write entries by name: tools: {NAME: {…}}; agents.NAME.tools: {include: [NAME]} chooses the tools of " +
			"an agent"
	case "agents.NAME.tools":
		names := "NAME"
		if len(n.Vals) == 1 && n.Vals[0].Kind == tree.Scalar {
			names = n.Vals[0].Val
		}
		return "write tools: {include: [" + names + "]}"
	}
	if namedMaps[p.path] {
		return "write entries by name: " + p.path + ": {NAME: {…}}"
	}
	return ""
}

// nameRule is the message about an invalid name.
const nameRule = "a name has 1 to 64 of the characters A-Z a-z 0-9 _ . -"

// CheckName returns an error of code invalid if a name is not valid for an entry of the configuration. what is the
// kind of entry, such as server.
func CheckName(what, name string) error {
	if tree.IsName(name) {
		return nil
	}
	return tenon.Errorf(tenon.CodeInvalid, "'%s' cannot be the name of a %s: %s", tenon.Visible(name), what, nameRule)
}

// mapping decodes a map whose keys are chosen by the user, such as names of servers, variables or headers.
func (d *decoder) mapping(n *tree.Node, p place, v reflect.Value) {
	if n.IsNull() {
		return
	}
	if n.Kind != tree.Map {
		d.Add(n, p.path, "must be a map, is "+n.Form(), mapHint(n, p))
		return
	}
	t := v.Type()
	v.Set(reflect.MakeMapWithSize(t, len(n.Keys)))
	for i, k := range n.Keys {
		kp := p.named(k.Val)
		if namedMaps[p.path] && !k.Qualified && !tree.IsName(k.Val) {
			d.Add(k, kp.path, nameRule, "")
			continue
		}
		d.keyed[kp.path] = k
		d.order[p.path] = append(d.order[p.path], k.Val)
		if p.path == "servers" {
			off, _ := n.Vals[i].Get("enabled")
			d.off = off != nil && off.Kind == tree.Scalar && off.Tag == "!!bool" && !tree.Truth(off.Val)
		}
		e := reflect.New(t.Elem()).Elem()
		d.decode(n.Vals[i], kp, e, field{})
		d.off = false
		v.SetMapIndex(reflect.ValueOf(k.Val), e)
	}
}

func (d *decoder) list(n *tree.Node, p place, v reflect.Value, f field) {
	if n.IsNull() {
		return
	}
	if n.Kind != tree.List {
		hint := ""
		if n.Kind == tree.Scalar {
			hint = fmt.Sprintf("write [%s]", quoted(n.Val))
		}
		d.Add(n, p.path, "must be a list, is "+n.Form(), hint)
		return
	}
	out := reflect.MakeSlice(v.Type(), len(n.Vals), len(n.Vals))
	for i, e := range n.Vals {
		d.decode(e, p.at(i), out.Index(i), field{enum: f.enum})
	}
	v.Set(out)
}

// secret reads a reference to a secret: the name of an entry of secrets, or the same object inline. The secret is
// read only when it is needed. No message quotes the text, because it may be the secret itself.
func (d *decoder) secret(n *tree.Node, p place) {
	if d.typed { // the value is the secret itself
		return
	}
	const hint = "write {env: VARIABLE}, {file: PATH}, {command: [PROGRAM, ARG]}, {keyring: SERVICE/USER}, {prompt: " +
		"TEXT} or the name of an entry of secrets"
	switch {
	case n.Kind == tree.Map:
		s := SecretSource{from: n.Src}
		d.object(n, p, reflect.ValueOf(&s).Elem())
		d.oneSource(n, p, s)
		d.secrets[p.path] = s
	case n.Kind != tree.Scalar || n.Tag != "!!str":
		d.Add(n, p.path, "must be a secret, is "+n.Form(), hint)
	case strings.HasPrefix(n.Val, "${"):
		name, _, _ := strings.Cut(strings.Trim(n.Val, "${}"), ":")
		if !tree.IsVariable(name) {
			name = "VARIABLE"
		}
		d.Add(n, p.path, "variables are not expanded in a secret", fmt.Sprintf("write {env: %s}", name))
	case LooksLikeToken(n.Val) || !tree.IsName(n.Val):
		d.Add(n, p.path, "the value of a secret does not belong in the file", hint)
	default:
		d.secrets[p.path] = SecretSource{name: n.Val, from: n.Src}
	}
}

// oneSource checks that a secret has exactly one source.
func (d *decoder) oneSource(n *tree.Node, p place, s SecretSource) {
	if n.Kind != tree.Map {
		return
	}
	count := 0
	for _, k := range n.Keys {
		if slices.Contains(secretKinds, k.Val) {
			count++
		}
	}
	if count != 1 && !d.HasKeyError(n) {
		d.Add(n, p.path, "a secret has one of 'env', 'file', 'command', 'keyring' and 'prompt'", "")
	}
	if at, key := n.Get("password"); at != nil && s.Prompt == "" {
		d.Add(key, p.path+".password", "'password' has no effect without 'prompt'", "")
	}
	if service, user, ok := strings.Cut(s.Keyring, "/"); s.Keyring != "" && (!ok || service == "" || user == "") {
		at, _ := n.Get("keyring")
		d.Add(at, p.path+".keyring", "not of the form SERVICE/USER", "")
	}
	if s.Command != nil && len(s.Command) == 0 {
		at, _ := n.Get("command")
		d.Add(at, p.path+".command", "must name a program", "")
	}
	if s.Env != "" && !tree.IsVariable(s.Env) {
		at, _ := n.Get("env")
		d.Add(at, p.path+".env", "not the name of a variable", "a name has letters, digits and _; write it without ${}")
	}
}
