package compat

import (
	"slices"
	"time"

	"github.com/tenonhq/tenon/config/tree"
	"github.com/tenonhq/tenon/internal/lazyregexp"
	"github.com/tenonhq/tenon/servers"
)

// Export is the state of one export.
type Export struct {
	*tree.Sink
	Kind     string // the program
	Root     *tree.Node
	Servers  map[string]servers.Config // with their defaults
	Name     string                    // name of the configuration
	Dir      string                    // folder of the configuration
	Model    string                    // the default model; "" if there is none
	Duration func(string) (time.Duration, error)

	// The exporter sets the other fields.
	Holds []string // sections that it can express, besides servers and secrets
	YAML  bool     // the file is YAML, not JSON
}

// Missing reports a part of the configuration that the format cannot express.
func (e *Export) Missing(at *tree.Node, path string) {
	if at.Src != nil && at.Src.Profile {
		return
	}
	if at.Src == nil {
		at = &tree.Node{Src: &tree.Source{Label: "config"}}
	}
	e.Warn(at, "", "not exported: "+path, "")
}

// Entries calls do for each entry of a section, in the order of the file.
func (e *Export) Entries(section string, do func(k, v *tree.Node, path string)) {
	list, _ := e.Root.Get(section)
	if list == nil || list.Kind != tree.Map {
		return
	}
	for i, k := range list.Keys {
		if list.Vals[i].Kind == tree.Map {
			do(k, list.Vals[i], section+"."+k.Val)
		}
	}
}

// Restore adds the values that an import kept in from to the exported map.
func (e *Export) Restore(into, from *tree.Node) {
	x, _ := from.Get("x-" + e.Kind)
	if x == nil || x.Kind != tree.Map {
		return
	}
	for i, k := range x.Keys {
		if v, _ := into.Get(k.Val); v == nil {
			into.Put(k.Val, x.Vals[i])
		}
	}
}

// Shown returns the name of a server in the other program, which an import may have changed.
func Shown(k, v *tree.Node) string {
	if title, _ := v.Get("title"); title != nil && title.Kind == tree.Scalar && !tree.IsName(title.Val) &&
		EntryName(title.Val) == k.Val {
		return title.Val
	}
	return k.Val
}

// Server writes the keys that all formats share. rename maps keys of tenon.yaml to keys of the format; "" means that
// the format has no such key. done lists the keys that the caller has already written in another form.
func (e *Export) Server(k, v, into *tree.Node, path string, rename map[string]string, done ...string) {
	for key, val := range v.All() {
		if val.Src != nil && val.Src.Profile || slices.Contains(done, key.Val) || key.Val == "x-"+e.Kind {
			continue
		}
		if theirs := rename[key.Val]; theirs != "" {
			into.Put(theirs, e.written(val, path+"."+key.Val))
			continue
		}
		if key.Val == "title" && Shown(k, v) == val.Val || key.Val == "enabled" && val.Val == "true" {
			continue
		}
		e.Missing(key, path+"."+key.Val)
	}
	e.Restore(into, v)
}

// Transport returns the transport of an entry, whether the entry sets it or implies it.
func (e *Export) Transport(name string) string {
	s := e.Servers[name]
	return s.InferTransport()
}

var plainVariable = lazyregexp.New(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// VariableIn returns the first variable of tenon in a text, or "" if there is none.
func VariableIn(s string) string { return plainVariable().FindString(s) }

// written returns a value with its variables in the syntax of editors.
func (e *Export) written(v *tree.Node, path string) *tree.Node {
	if e.Kind != VSCode && e.Kind != Cursor {
		if v.Kind == tree.Scalar && tree.SecretVariable().MatchString(v.Val) {
			e.Missing(v, path)
		}
		return v
	}
	out := *v
	out.Vals = make([]*tree.Node, len(v.Vals))
	for i, x := range v.Vals {
		out.Vals[i] = e.written(x, path)
	}
	if v.Kind == tree.Scalar {
		out.Val = plainVariable().ReplaceAllString(v.Val, "$${env:$1}")
		if e.Kind == VSCode {
			out.Val = tree.SecretVariable().ReplaceAllString(out.Val, "$${input:$1}")
		} else if tree.SecretVariable().MatchString(out.Val) {
			e.Missing(v, path)
		}
	}
	return &out
}

// Auth writes the authentication of a server as a header, since other programs only know headers. It returns false if
// it cannot.
func (e *Export) Auth(v, into *tree.Node, path string) bool {
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
	name, value := "X-API-Key", e.Reference(secret)
	if value == "" {
		return false
	}
	switch kind.Val {
	case servers.AuthBearer:
		name, value = "Authorization", "Bearer "+value
	case servers.AuthAPIKey, servers.AuthHeader:
		if header != nil {
			name = header.Val
		}
	default:
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

// Reference returns a secret as a variable in the syntax of the format, or "" if the format has no syntax for it.
func (e *Export) Reference(secret *tree.Node) string {
	name := ""
	if secret.Kind == tree.Scalar {
		name = secret.Val
		list, _ := e.Root.Get("secrets")
		if secret, _ = list.Get(name); secret == nil {
			return ""
		}
	}
	if env, _ := secret.Get("env"); env != nil {
		if e.Kind == VSCode || e.Kind == Cursor {
			return "${env:" + env.Val + "}"
		}
		return "${" + env.Val + "}"
	}
	if prompt, _ := secret.Get("prompt"); prompt != nil && name != "" && e.Kind == VSCode {
		return "${input:" + name + "}"
	}
	return ""
}
