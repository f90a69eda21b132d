package config

import (
	"fmt"
	"strings"

	"github.com/tenonhq/tenon/compat"
	"github.com/tenonhq/tenon/config/tree"
)

// extraction puts variables in the place of the literal tokens of a file that is imported.
type extraction struct {
	*compat.Conversion
	lines  []string          // that set the variables
	values map[string]string // of the variables
}

// extract does so and returns the lines that set the variables, and the tokens by variable.
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
	return v.Kind == tree.Scalar && (x.Tokens[v] || v.Tag == "!!str" && looksLikeToken(v.Val))
}

// export makes a variable of a token and returns its name. Of two tokens that would have one
// name the second gets another.
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

// unquoted returns the token of a value in which variables are expanded.
func unquoted(v *tree.Node) string {
	s, _ := unquoteDollars(v.Val)
	return s
}

// variable is the reference to a variable of a token.
func (x *extraction) variable(v *tree.Node, name string) *tree.Node {
	return tree.TextAt(v, "${"+x.export(name, unquoted(v))+"}")
}

// secret makes an entry of secrets of a token and returns the reference to it.
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
				key = name + "_" + key // another server has a variable of that name
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

// deleteLiteral takes the warnings about literal tokens out of a list.
func deleteLiteral(list []Error) []Error {
	var out []Error
	for _, w := range list {
		if !strings.HasPrefix(w.Message, "a literal token") {
			out = append(out, w)
		}
	}
	return out
}

// variableName makes the name of a variable.
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
