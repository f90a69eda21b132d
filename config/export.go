package config

import (
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config/tree"
	"github.com/tenonhq/tenon/internal/lazyregexp"
	"github.com/tenonhq/tenon/servers"
)

// exporters turn our tree into another program's.
var exporters = map[string]func(*export) *tree.Node{
	kindClaude: (*export).claude, kindCursor: (*export).claude, kindVSCode: (*export).vscode,
	kindHoloDeck:   (*export).holodeck,
	kindTrustGraph: (*export).trustgraph, kindAIDK: (*export).aidk, kindResearchAI: (*export).researchai,
}

// Export writes the configuration in another program's form, as it is written:
// variables unresolved, without defaults. The second result lists what that form
// cannot hold, `not exported: PATH` with the place. The error has code invalid for
// a kind that is none of [Kinds].
func (c *Config) Export(kind string) ([]byte, []Error, error) {
	do := exporters[kind]
	if do == nil {
		return nil, nil, tenon.Errorf(tenon.CodeInvalid, "there is no form '%s'; there are: %s", kind,
			strings.Join(Kinds(), ", "))
	}
	root := c.tree
	if root == nil {
		root = &tree.Node{Kind: tree.Map}
	}
	e := &export{kind: kind, c: c, Sink: &tree.Sink{}}
	e.root = e.unquoted(root)
	out := do(e)
	for i, k := range root.Keys {
		known := []string{"$schema", "version", "name", "servers", "secrets", "x-" + kind}
		switch kind {
		case kindHoloDeck:
			known = append(known, "models", "agents")
		case kindTrustGraph:
			known = append(known, "tools")
		}
		v := root.Vals[i]
		switch {
		case slices.Contains(known, k.Val), v.Src != nil && v.Src.Profile:
		case k.Val == "profile" && (v.Val == kind || v.Val == "default"):
		default:
			e.missing(k, k.Val)
		}
	}
	data := out.JSON()
	if kind == kindHoloDeck {
		data = encode(out)
	}
	return data, tree.Sorted(e.Warns), nil
}

// export is one export under way.
type export struct {
	*tree.Sink
	kind string
	c    *Config
	root *tree.Node
}

// missing notes what has no place.
func (e *export) missing(at *tree.Node, path string) {
	if at.Src != nil && at.Src.Profile {
		return
	}
	if at.Src == nil {
		at = &tree.Node{Src: &tree.Source{Label: "config"}}
	}
	e.Warn(at, "", "not exported: "+path, "")
}

// entries calls do for each entry of a section, in file order.
func (e *export) entries(section string, do func(k, v *tree.Node, path string)) {
	list, _ := e.root.Get(section)
	if list == nil || list.Kind != tree.Map {
		return
	}
	for i, k := range list.Keys {
		if list.Vals[i].Kind == tree.Map {
			do(k, list.Vals[i], section+"."+k.Val)
		}
	}
}

// restore puts what an import kept back in its place.
func (e *export) restore(into, from *tree.Node) {
	x, _ := from.Get("x-" + e.kind)
	if x == nil || x.Kind != tree.Map {
		return
	}
	for i, k := range x.Keys {
		if v, _ := into.Get(k.Val); v == nil {
			into.Put(k.Val, x.Vals[i])
		}
	}
}

// shown is the name of a server: the one that an import had to change.
func shown(k, v *tree.Node) string {
	if title, _ := v.Get("title"); title != nil && title.Kind == tree.Scalar && !tree.IsName(title.Val) {
		c := &conversion{Sink: &tree.Sink{}, out: &tree.Node{Kind: tree.Map}}
		at := tree.TextAt(&tree.Node{Src: &tree.Source{}}, title.Val)
		if c.server(at, &tree.Node{Kind: tree.Map}, "") != nil {
			if list, _ := c.out.Get("servers"); list.Keys[0].Val == k.Val {
				return title.Val
			}
		}
	}
	return k.Val
}

// server writes the keys that all formats share. rename maps our keys to the format's; "" means that the format has
// no such key. The caller has written the keys in done in another form.
func (e *export) server(k, v, into *tree.Node, path string, rename map[string]string, done ...string) {
	for i, key := range v.Keys {
		val := v.Vals[i]
		if val.Src != nil && val.Src.Profile || slices.Contains(done, key.Val) || key.Val == "x-"+e.kind {
			continue
		}
		if theirs := rename[key.Val]; theirs != "" {
			into.Put(theirs, e.text(val, path+"."+key.Val))
			continue
		}
		if key.Val == "title" && shown(k, v) == val.Val || key.Val == "enabled" && val.Val == "true" {
			continue
		}
		e.missing(key, path+"."+key.Val)
	}
	e.restore(into, v)
}

// transport is the transport of an entry, written or implied.
func (e *export) transport(name string) string {
	s := e.c.Servers[name]
	return s.InferTransport()
}

var (
	plainVariable  = lazyregexp.New(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)
	secretVariable = lazyregexp.New(`\$\{secret:([A-Za-z0-9_.-]+)\}`)
)

// text writes variables as the editors have them.
func (e *export) text(v *tree.Node, path string) *tree.Node {
	if e.kind != kindVSCode && e.kind != kindCursor {
		if v.Kind == tree.Scalar && secretVariable().MatchString(v.Val) {
			e.missing(v, path)
		}
		return v
	}
	out := *v
	out.Vals = make([]*tree.Node, len(v.Vals))
	for i, x := range v.Vals {
		out.Vals[i] = e.text(x, path)
	}
	if v.Kind == tree.Scalar {
		out.Val = plainVariable().ReplaceAllString(v.Val, "$${env:$1}")
		if e.kind == kindVSCode {
			out.Val = secretVariable().ReplaceAllString(out.Val, "$${input:$1}")
		} else if secretVariable().MatchString(out.Val) {
			e.missing(v, path)
		}
	}
	return &out
}

// auth writes how to sign in as a header, which is what the other forms know, or
// gives back false.
func (e *export) auth(v, into *tree.Node, path string) bool {
	auth, _ := v.Get("auth")
	if auth == nil || auth.Kind != tree.Map {
		return auth == nil
	}
	kind, _ := auth.Get("type")
	secret, _ := auth.Get("secret")
	header, _ := auth.Get("header")
	if kind == nil || secret == nil {
		return kind != nil && kind.Val == servers.AuthNone
	}
	value := e.reference(secret)
	name := "X-API-Key"
	switch kind.Val {
	case servers.AuthBearer:
		name, value = "Authorization", prefixed("Bearer ", value)
	case servers.AuthAPIKey, servers.AuthHeader:
		if header != nil {
			name = header.Val
		}
	default:
		return false
	}
	if value == "" {
		return false
	}
	headers, _ := into.Get("headers")
	if headers == nil {
		headers = &tree.Node{Kind: tree.Map}
		into.Put("headers", headers)
	}
	headers.Put(name, tree.Text(value))
	return true
}

func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

// reference writes a secret as a variable; "" where the form has no word for it.
func (e *export) reference(secret *tree.Node) string {
	name := ""
	if secret.Kind == tree.Scalar {
		name = secret.Val
		list, _ := e.root.Get("secrets")
		if secret, _ = list.Get(name); secret == nil {
			return ""
		}
	}
	if env, _ := secret.Get("env"); env != nil {
		if e.kind == kindVSCode || e.kind == kindCursor {
			return "${env:" + env.Val + "}"
		}
		return "${" + env.Val + "}"
	}
	if prompt, _ := secret.Get("prompt"); prompt != nil && name != "" && e.kind == kindVSCode {
		return "${input:" + name + "}"
	}
	return ""
}
