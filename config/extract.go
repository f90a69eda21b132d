package config

import (
	"fmt"
	"strings"

	"github.com/tenonhq/tenon/compat"
	"github.com/tenonhq/tenon/config/tree"
	"github.com/tenonhq/tenon/servers"
)

// extraction replaces literal tokens in an imported file by variables.
type extraction struct {
	*compat.Conversion
	lines  []string          // shell lines that set the variables
	values map[string]string // tokens, by variable
	// names maps the token and the URL of a server to the secret. A file may have several servers of one address.
	names map[[2]string]*tree.Node
}

// extract replaces the literal tokens of a converted file by variables. It returns the shell lines that set the
// variables, and the tokens by variable.
func extract(c *compat.Conversion) ([]string, map[string]string) {
	x := &extraction{Conversion: c, values: map[string]string{}, names: map[[2]string]*tree.Node{}}
	x.each("servers", x.server)
	x.each("models", x.model)
	x.kept(c.Out, "")
	// A value that was moved to a variable is no longer a literal.
	c.Warns = deleteLiteral(c.Warns)
	return x.lines, x.values
}

// each goes through the entries of a section.
func (x *extraction) each(section string, do func(name string, e *tree.Node)) {
	list, _ := x.Out.Get(section)
	if list == nil || list.Kind != tree.Map {
		return
	}
	for i, k := range list.Keys {
		if list.Vals[i].Kind == tree.Map {
			do(k.Val, list.Vals[i])
		}
	}
}

// kept replaces the tokens in values that the conversion keeps under x-KIND. at is the name of the entry.
func (x *extraction) kept(n *tree.Node, at string) {
	for i, v := range n.Vals {
		below := at
		if n.Kind == tree.Map && i < len(n.Keys) {
			key := n.Keys[i].Val
			if key == "x-"+x.Kind {
				n.Vals[i] = v.Clone() // the source is converted again if an entry is refused
				x.keptValue(n.Vals[i], at)
				continue
			}
			below = key
		}
		x.kept(v, below)
	}
}

// keptValue replaces the tokens below a value. A token gets the name of the entry and of its key.
func (x *extraction) keptValue(n *tree.Node, at string) {
	for i, v := range n.Vals {
		key := ""
		if n.Kind == tree.Map && i < len(n.Keys) {
			key = n.Keys[i].Val
		}
		if found := x.places(v, key); len(found) > 0 {
			n.Vals[i] = x.withVariables(v, found, strings.Trim(at+"_"+key, "_"))
			continue
		}
		x.keptValue(v, at)
	}
}

// places returns the places of the secrets in a value, by the names of its key or by their form.
func (x *extraction) places(v *tree.Node, names ...string) []servers.SecretPlace {
	if v.Kind != tree.Scalar || v.IsNull() || isKeyFile(v.Val) {
		return nil
	}
	found := servers.SecretPlaces(v.Val, names...)
	if len(found) == 0 && x.Tokens[v] {
		found = []servers.SecretPlace{{To: len(v.Val)}}
	}
	return found
}

// isToken reports whether a whole value is a secret.
func (x *extraction) isToken(v *tree.Node, names ...string) bool {
	return v.Kind == tree.Scalar && !v.IsNull() && !isKeyFile(v.Val) &&
		(x.Tokens[v] || servers.IsSecretValue(v.Val, names...))
}

// export defines a variable for a token and returns its name. If the name is taken by another token, it appends a
// number.
func (x *extraction) export(name, value string) string {
	name = variableName(name)
	for n, first := 2, name; ; n++ {
		other, there := x.values[name]
		if !there {
			break
		}
		if other == value {
			return name
		}
		name = fmt.Sprintf("%s_%d", first, n)
	}
	x.lines = append(x.lines, "export "+name+"='"+strings.ReplaceAll(value, "'", `'\''`)+"'")
	x.values[name] = value
	return name
}

// unquoted returns a token from a value in which variables are expanded, with its dollar signs unescaped.
func unquoted(v *tree.Node) string {
	s, _ := unquoteDollars(v.Val)
	return s
}

// secretAt returns a secret of a value, with its dollar signs unescaped.
func secretAt(v *tree.Node, p servers.SecretPlace) string {
	s, _ := unquoteDollars(v.Val[p.From:p.To])
	return s
}

// variable returns a reference to a new variable for a token.
func (x *extraction) variable(v *tree.Node, name string) *tree.Node {
	return tree.TextAt(v, "${"+x.export(name, unquoted(v))+"}")
}

// withVariables returns a value with references to variables in the places of its secrets. A variable has the name, and
// the name that the value itself gives the secret.
func (x *extraction) withVariables(v *tree.Node, found []servers.SecretPlace, name string) *tree.Node {
	var b strings.Builder
	at := 0
	for _, p := range found {
		variable := name
		if p.Name != "" {
			variable = strings.TrimLeft(name+"_"+p.Name, "_")
		}
		b.WriteString(v.Val[at:p.From] + "${" + x.export(variable, secretAt(v, p)) + "}")
		at = p.To
	}
	b.WriteString(v.Val[at:])
	return tree.TextAt(v, b.String())
}

// secret adds an entry of secrets for a token and returns the reference to it.
func (x *extraction) secret(at *tree.Node, name, value string) *tree.Node {
	name = x.export(name, value)
	from := tree.MapAt(at)
	from.Append("env", at, tree.TextAt(at, name))
	name = strings.ToLower(name)
	secrets := x.Section("secrets", at)
	there, _ := secrets.Get(name)
	for there != nil && !tree.Same(there, from) { // another secret has the name
		name += "_"
		there, _ = secrets.Get(name)
	}
	if there == nil {
		secrets.Append(name, at, from)
	}
	return tree.TextAt(at, name)
}

func (x *extraction) server(name string, e *tree.Node) {
	env, _ := e.Get("env")
	for i := 0; env != nil && i < len(env.Keys) && i < len(env.Vals); i++ {
		key, v := env.Keys[i].Val, env.Vals[i]
		found := x.places(v, key)
		if len(found) == 0 {
			continue
		}
		if len(found) > 1 || found[0].Name != "" {
			env.Vals[i] = x.withVariables(v, found, name+"_"+key)
			continue
		}
		if other, there := x.values[variableName(key)]; there && other != secretAt(v, found[0]) {
			key = name + "_" + key // another server uses a variable of this name
		}
		env.Vals[i] = x.withVariables(v, found, key)
	}
	if v, _ := e.Get("url"); v != nil {
		if found := x.places(v); len(found) > 0 {
			e.Put("url", x.withVariables(v, found, name))
		}
	}
	x.args(name, e)
	if n, _ := e.Get("config"); n != nil {
		x.settings(n, name)
	}
	x.headers(name, e)
}

// args replaces the secrets in the arguments of a command.
func (x *extraction) args(name string, e *tree.Node) {
	list, _ := e.Get("args")
	if list == nil || list.Kind != tree.List {
		return
	}
	words := make([]string, len(list.Vals))
	for i, v := range list.Vals {
		words[i] = v.Val
	}
	for i, v := range list.Vals {
		if v.Kind != tree.Scalar || v.IsNull() || isKeyFile(v.Val) {
			continue
		}
		if found := servers.ArgPlaces(words, i); len(found) > 0 {
			list.Vals[i] = x.withVariables(v, found, name)
		}
	}
}

// settings replaces the secrets in the settings of a server.
func (x *extraction) settings(n *tree.Node, name string) {
	for i, v := range n.Vals {
		var names []string
		below := name
		if n.Kind == tree.Map {
			names = []string{n.Keys[i].Val}
			below += "_" + n.Keys[i].Val
		}
		if found := x.places(v, names...); len(found) > 0 {
			n.Vals[i] = x.withVariables(v, found, below)
		} else {
			x.settings(v, below)
		}
	}
}

// headers moves the first header that is a secret to auth, and replaces the secrets in others.
func (x *extraction) headers(name string, e *tree.Node) {
	headers, _ := e.Get("headers")
	if headers == nil || headers.Kind != tree.Map {
		return
	}
	for i := 0; i < len(headers.Vals); i++ {
		k, v := headers.Keys[i], headers.Vals[i]
		if !x.isToken(v, k.Val) {
			if found := x.places(v, k.Val); len(found) > 0 {
				headers.Vals[i] = x.withVariables(v, found, name+"_"+k.Val)
			}
			continue
		}
		auth, _ := e.Get("auth")
		token, bearer := strings.CutPrefix(unquoted(v), "Bearer ")
		switch {
		case auth != nil:
			headers.Vals[i] = x.variable(v, name+"_"+k.Val)
			continue
		case bearer && strings.EqualFold(k.Val, "Authorization"):
			e.Append("auth", k, compat.AuthOf(v, "bearer", "", x.token(v, name, e, token)))
		default:
			e.Append("auth", k, compat.AuthOf(v, "api_key", k.Val, x.token(v, name, e, unquoted(v))))
		}
		headers.Keys, headers.Vals = append(headers.Keys[:i:i], headers.Keys[i+1:]...),
			append(headers.Vals[:i:i], headers.Vals[i+1:]...)
		i--
	}
	if len(headers.Keys) == 0 {
		e.Remove("headers")
	}
}

// token returns the secret for the token of a server, which servers with the same URL and token share.
func (x *extraction) token(at *tree.Node, name string, e *tree.Node, token string) *tree.Node {
	key := [2]string{token, ""}
	if url, _ := e.Get("url"); url != nil {
		key[1] = url.Val
	}
	if there := x.names[key]; there != nil && key[1] != "" {
		return tree.TextAt(at, there.Val)
	}
	x.names[key] = x.secret(at, name+"_token", token)
	return x.names[key]
}

func (x *extraction) model(name string, e *tree.Node) {
	if v, _ := e.Get("api_key"); v != nil && x.isToken(v) {
		e.Put("api_key", x.secret(v, name+"_key", v.Val))
	}
	if v, _ := e.Get("base_url"); v != nil {
		if found := x.places(v); len(found) > 0 {
			e.Put("base_url", x.withVariables(v, found, name))
		}
	}
	headers, _ := e.Get("headers")
	if headers == nil || headers.Kind != tree.Map {
		return
	}
	for i, v := range headers.Vals {
		if key := headers.Keys[i].Val; x.isToken(v, key) {
			headers.Vals[i] = x.variable(v, name+"_"+key)
		}
	}
}

// deleteLiteral returns a list without the warnings about literal tokens.
func deleteLiteral(list []Error) []Error {
	var out []Error
	for _, w := range list {
		if !strings.HasPrefix(w.Message, "a literal token") {
			out = append(out, w)
		}
	}
	return out
}

// variableName converts a text to the name of a variable.
func variableName(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < 0x80 && (r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z') {
			return r
		}
		return '_'
	}, strings.ToUpper(s))
	if s == "" || s[0] >= '0' && s[0] <= '9' {
		s = "_" + s
	}
	return s
}
