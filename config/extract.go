package config

import (
	"fmt"
	"strings"

	"github.com/tenonhq/tenon/compat"
	"github.com/tenonhq/tenon/config/tree"
)

// extraction replaces literal tokens in an imported file by variables.
type extraction struct {
	*compat.Conversion
	lines  []string          // shell lines that set the variables
	values map[string]string // tokens, by variable
}

// extract replaces the literal tokens of a converted file by variables. It returns the shell lines that set the
// variables, and the tokens by variable.
func extract(c *compat.Conversion) ([]string, map[string]string) {
	x := &extraction{Conversion: c, values: map[string]string{}}
	x.each("servers", x.server)
	x.each("models", x.model)
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

func (x *extraction) isToken(v *tree.Node) bool {
	return v.Kind == tree.Scalar && (x.Tokens[v] || v.Tag == "!!str" && LooksLikeToken(v.Val))
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

// variable returns a reference to a new variable for a token.
func (x *extraction) variable(v *tree.Node, name string) *tree.Node {
	return tree.TextAt(v, "${"+x.export(name, unquoted(v))+"}")
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
		if v := env.Vals[i]; x.isToken(v) {
			key := env.Keys[i].Val
			if other, there := x.values[variableName(key)]; there && other != unquoted(v) {
				key = name + "_" + key // another server uses a variable of this name
			}
			env.Vals[i] = x.variable(v, key)
		}
	}
	headers, _ := e.Get("headers")
	if headers == nil || headers.Kind != tree.Map {
		return
	}
	for i := 0; i < len(headers.Vals); i++ {
		k, v := headers.Keys[i], headers.Vals[i]
		if !x.isToken(v) {
			continue
		}
		auth, _ := e.Get("auth")
		token, bearer := strings.CutPrefix(unquoted(v), "Bearer ")
		switch {
		case auth != nil:
			headers.Vals[i] = x.variable(v, name+"_"+k.Val)
			continue
		case bearer && strings.EqualFold(k.Val, "Authorization"):
			e.Append("auth", k, compat.AuthOf(v, "bearer", "", x.secret(v, name+"_token", token)))
		default:
			e.Append("auth", k, compat.AuthOf(v, "api_key", k.Val, x.secret(v, name+"_token", unquoted(v))))
		}
		headers.Keys, headers.Vals = append(headers.Keys[:i:i], headers.Keys[i+1:]...),
			append(headers.Vals[:i:i], headers.Vals[i+1:]...)
		i--
	}
	if len(headers.Keys) == 0 {
		e.Remove("headers")
	}
}

func (x *extraction) model(name string, e *tree.Node) {
	if v, _ := e.Get("api_key"); v != nil && x.isToken(v) {
		e.Put("api_key", x.secret(v, name+"_key", v.Val))
	}
	headers, _ := e.Get("headers")
	if headers == nil || headers.Kind != tree.Map {
		return
	}
	for i, v := range headers.Vals {
		if x.isToken(v) {
			headers.Vals[i] = x.variable(v, name+"_"+headers.Keys[i].Val)
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
