package compat

import "github.com/tenonhq/tenon/config/tree"

// Credential adds a token to an entry. A variable becomes a secret. A literal token becomes a header, until it is
// extracted from the file.
func (c *Conversion) Credential(e, k, token *tree.Node, kind, header, path string) {
	if token.Kind != tree.Scalar || token.Tag != "!!str" || token.Val == "" {
		c.Add(token, path, "must be a text, is "+token.Form(), "")
		return
	}
	if name := OnlyVariable(token.Val); name != "" {
		secret := tree.MapAt(token)
		secret.Append("env", k, tree.TextAt(token, name))
		e.Append("auth", k, AuthOf(token, kind, header, secret))
		return
	}
	v := token
	if kind == "bearer" {
		v = tree.TextAt(token, "Bearer "+token.Val)
	}
	headers, _ := e.Get("headers")
	if headers == nil {
		headers = tree.MapAt(token)
		e.Append("headers", k, headers)
	}
	headers.Append(header, k, v)
	c.Tokens[v] = true
	c.Literal(token, path)
}

// AuthOf returns a block auth.
func AuthOf(at *tree.Node, kind, header string, secret *tree.Node) *tree.Node {
	auth := tree.MapAt(at)
	if kind == "custom" {
		kind = "header"
	}
	auth.Append("type", at, tree.TextAt(at, kind))
	if kind == "header" || kind == "api_key" && header != "X-API-Key" {
		auth.Append("header", at, tree.TextAt(at, header))
	}
	auth.Append("secret", at, secret)
	return auth
}

// Literal records a secret that is written in the file.
func (c *Conversion) Literal(v *tree.Node, path string) {
	c.Tokens[v] = true
	c.Warn(v, path, "a literal token in the file", "--extract-secrets puts a variable in its place")
}
