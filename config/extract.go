package config

import (
	"fmt"
	"strings"
)

// extraction puts variables in the place of the literal tokens of a file that is imported.
type extraction struct {
	*conversion
	lines  []string          // that set the variables
	values map[string]string // of the variables
}

// extract does so and returns the lines that set the variables, and the tokens by variable.
func (c *conversion) extract() ([]string, map[string]string) {
	x := &extraction{conversion: c, values: map[string]string{}}
	x.each("servers", x.server)
	x.each("models", x.model)
	// A value that was moved to a variable is no longer a literal.
	c.warns = deleteLiteral(c.warns)
	return x.lines, x.values
}

// each goes through the entries of a section.
func (x *extraction) each(section string, do func(name string, e *node)) {
	list, _ := x.out.get(section)
	if list == nil || list.kind != mapNode {
		return
	}
	for i, k := range list.keys {
		if list.vals[i].kind == mapNode {
			do(k.val, list.vals[i])
		}
	}
}

func (x *extraction) isToken(v *node) bool {
	return v.kind == scalarNode && (x.tokens[v] || v.tag == "!!str" && looksLikeToken(v.val))
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
func unquoted(v *node) string {
	s, _ := unquoteDollars(v.val)
	return s
}

// variable is the reference to a variable of a token.
func (x *extraction) variable(v *node, name string) *node {
	return like(v, "${"+x.export(name, unquoted(v))+"}")
}

// secret makes an entry of secrets of a token and returns the reference to it.
func (x *extraction) secret(at *node, name, value string) *node {
	name = x.export(name, value)
	from := emptyMap(at)
	taken(from, "env", at, like(at, name))
	name = strings.ToLower(name)
	secrets := x.section("secrets", at)
	there, _ := secrets.get(name)
	for there != nil && !same(there, from) { // one that is asked for has the name
		name += "_"
		there, _ = secrets.get(name)
	}
	if there == nil {
		taken(secrets, name, at, from)
	}
	return like(at, name)
}

func (x *extraction) server(name string, e *node) {
	env, _ := e.get("env")
	for i := 0; env != nil && i < len(env.keys) && i < len(env.vals); i++ {
		if v := env.vals[i]; x.isToken(v) {
			key := env.keys[i].val
			if other, there := x.values[variableName(key)]; there && other != unquoted(v) {
				key = name + "_" + key // another server has one of that name
			}
			env.vals[i] = x.variable(v, key)
		}
	}
	headers, _ := e.get("headers")
	if headers == nil || headers.kind != mapNode {
		return
	}
	for i := 0; i < len(headers.vals); i++ {
		k, v := headers.keys[i], headers.vals[i]
		if !x.isToken(v) {
			continue
		}
		auth, _ := e.get("auth")
		token, bearer := strings.CutPrefix(unquoted(v), "Bearer ")
		switch {
		case auth != nil:
			headers.vals[i] = x.variable(v, name+"_"+k.val)
			continue
		case bearer && strings.EqualFold(k.val, "Authorization"):
			taken(e, "auth", k, authOf(v, "bearer", "", x.secret(v, name+"_token", token)))
		default:
			taken(e, "auth", k, authOf(v, "api_key", k.val, x.secret(v, name+"_token", unquoted(v))))
		}
		headers.keys, headers.vals = append(headers.keys[:i:i], headers.keys[i+1:]...),
			append(headers.vals[:i:i], headers.vals[i+1:]...)
		i--
	}
	if len(headers.keys) == 0 {
		e.remove("headers")
	}
}

func (x *extraction) model(name string, e *node) {
	if v, _ := e.get("api_key"); v != nil && x.isToken(v) {
		e.put("api_key", x.secret(v, name+"_key", v.val))
	}
	headers, _ := e.get("headers")
	if headers == nil || headers.kind != mapNode {
		return
	}
	for i, v := range headers.vals {
		if x.isToken(v) {
			headers.vals[i] = x.variable(v, name+"_"+headers.keys[i].val)
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
