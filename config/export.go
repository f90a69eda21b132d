package config

import (
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/lazyregexp"
	"github.com/tenonhq/tenon/servers"
)

// exporters turn our tree into another program's.
var exporters = map[string]func(*export) *node{
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
	tree := c.tree
	if tree == nil {
		tree = &node{kind: mapNode}
	}
	e := &export{kind: kind, c: c, sink: &sink{}}
	e.root = e.unquoted(tree)
	out := do(e)
	for i, k := range tree.keys {
		known := []string{"$schema", "version", "name", "servers", "secrets", "x-" + kind}
		switch kind {
		case kindHoloDeck:
			known = append(known, "models", "agents")
		case kindTrustGraph:
			known = append(known, "tools")
		}
		v := tree.vals[i]
		switch {
		case slices.Contains(known, k.val), v.src != nil && v.src.profile:
		case k.val == "profile" && (v.val == kind || v.val == "default"):
		default:
			e.missing(k, k.val)
		}
	}
	data := out.json()
	if kind == kindHoloDeck {
		data = encode(out)
	}
	return data, sorted(e.warns), nil
}

// export is one export under way.
type export struct {
	*sink
	kind string
	c    *Config
	root *node
}

// missing notes what has no place.
func (e *export) missing(at *node, path string) {
	if at.src != nil && at.src.profile {
		return
	}
	if at.src == nil {
		at = &node{src: &source{label: "config"}}
	}
	e.warn(at, "", "not exported: "+path, "")
}

// entries calls do for each entry of a section, in file order.
func (e *export) entries(section string, do func(k, v *node, path string)) {
	list, _ := e.root.get(section)
	if list == nil || list.kind != mapNode {
		return
	}
	for i, k := range list.keys {
		if list.vals[i].kind == mapNode {
			do(k, list.vals[i], section+"."+k.val)
		}
	}
}

// restore puts what an import kept back in its place.
func (e *export) restore(into, from *node) {
	x, _ := from.get("x-" + e.kind)
	if x == nil || x.kind != mapNode {
		return
	}
	for i, k := range x.keys {
		if v, _ := into.get(k.val); v == nil {
			into.put(k.val, x.vals[i])
		}
	}
}

// shown is the name of a server: the one that an import had to change.
func shown(k, v *node) string {
	if title, _ := v.get("title"); title != nil && title.kind == scalarNode && !validName(title.val) {
		c := &conversion{sink: &sink{}, out: &node{kind: mapNode}}
		at := like(&node{src: &source{}}, title.val)
		if c.server(at, &node{kind: mapNode}, "") != nil {
			if list, _ := c.out.get("servers"); list.keys[0].val == k.val {
				return title.val
			}
		}
	}
	return k.val
}

// server writes the keys that all formats share. rename maps our keys to the format's; "" means that the format has
// no such key. The caller has written the keys in done in another form.
func (e *export) server(k, v, into *node, path string, rename map[string]string, done ...string) {
	for i, key := range v.keys {
		val := v.vals[i]
		if val.src != nil && val.src.profile || slices.Contains(done, key.val) || key.val == "x-"+e.kind {
			continue
		}
		if theirs := rename[key.val]; theirs != "" {
			into.put(theirs, e.text(val, path+"."+key.val))
			continue
		}
		if key.val == "title" && shown(k, v) == val.val || key.val == "enabled" && val.val == "true" {
			continue
		}
		e.missing(key, path+"."+key.val)
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
func (e *export) text(v *node, path string) *node {
	if e.kind != kindVSCode && e.kind != kindCursor {
		if v.kind == scalarNode && secretVariable().MatchString(v.val) {
			e.missing(v, path)
		}
		return v
	}
	out := *v
	out.vals = make([]*node, len(v.vals))
	for i, x := range v.vals {
		out.vals[i] = e.text(x, path)
	}
	if v.kind == scalarNode {
		out.val = plainVariable().ReplaceAllString(v.val, "$${env:$1}")
		if e.kind == kindVSCode {
			out.val = secretVariable().ReplaceAllString(out.val, "$${input:$1}")
		} else if secretVariable().MatchString(out.val) {
			e.missing(v, path)
		}
	}
	return &out
}

// auth writes how to sign in as a header, which is what the other forms know, or
// gives back false.
func (e *export) auth(v, into *node, path string) bool {
	auth, _ := v.get("auth")
	if auth == nil || auth.kind != mapNode {
		return auth == nil
	}
	kind, _ := auth.get("type")
	secret, _ := auth.get("secret")
	header, _ := auth.get("header")
	if kind == nil || secret == nil {
		return kind != nil && kind.val == servers.AuthNone
	}
	value := e.reference(secret)
	name := "X-API-Key"
	switch kind.val {
	case servers.AuthBearer:
		name, value = "Authorization", prefixed("Bearer ", value)
	case servers.AuthAPIKey, servers.AuthHeader:
		if header != nil {
			name = header.val
		}
	default:
		return false
	}
	if value == "" {
		return false
	}
	headers, _ := into.get("headers")
	if headers == nil {
		headers = &node{kind: mapNode}
		into.put("headers", headers)
	}
	headers.put(name, text(value))
	return true
}

func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

// reference writes a secret as a variable; "" where the form has no word for it.
func (e *export) reference(secret *node) string {
	name := ""
	if secret.kind == scalarNode {
		name = secret.val
		list, _ := e.root.get("secrets")
		if secret, _ = list.get(name); secret == nil {
			return ""
		}
	}
	if env, _ := secret.get("env"); env != nil {
		if e.kind == kindVSCode || e.kind == kindCursor {
			return "${env:" + env.val + "}"
		}
		return "${" + env.val + "}"
	}
	if prompt, _ := secret.get("prompt"); prompt != nil && name != "" && e.kind == kindVSCode {
		return "${input:" + name + "}"
	}
	return ""
}
