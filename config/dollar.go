package config

import (
	"regexp"
	"slices"
	"strings"

	"github.com/tenonhq/tenon/config/tree"
	"github.com/tenonhq/tenon/internal/lazyregexp"
)

// Dollar signs in files of other programs. In tenon.yaml, $$ is a dollar sign and ${NAME} a variable, but only in the
// values of [expands] and [expandsJSON]. Other programs have no escape: a dollar sign is a dollar sign, except at the
// beginning of a variable. So an import doubles dollar signs, and an export undoes that, in exactly these values.

var (
	// anyVariable matches what the other programs, or tenon in their place, read as a variable.
	anyVariable = lazyregexp.New(`^\$\{[^{}]*\}`)
	// namedVariable matches the variables of tenon. It is for TrustGraph, which has no variables: an export writes
	// them, and other texts that begin with ${ are texts.
	namedVariable = lazyregexp.New(`^\$\{[A-Za-z_][A-Za-z0-9_]*(:-[^{}]*)?\}`)
)

// quote keeps the dollar signs of a converted file from being read as more than that.
func (c *conversion) quote() {
	if c.kind == KindKNIME {
		return // it is in tenon's own form; see [Literal]
	}
	c.out = withTexts(c.out, func(v *tree.Node, _ string) *tree.Node {
		s := quoteDollars(v.Val, c.variable())
		if s == v.Val {
			return v
		}
		out := tree.TextAt(v, s)
		if c.tokens[v] {
			c.tokens[out] = true
		}
		return out
	})
}

// variable matches a variable at the beginning of a text.
func (c *conversion) variable() *regexp.Regexp {
	if c.kind == kindTrustGraph {
		return namedVariable()
	}
	return anyVariable()
}

// Literal writes a text as a value of tenon.yaml in which variables are expanded, so that it has none.
func Literal(s string) string { return strings.ReplaceAll(s, "$", "$$") }

// quoteDollars doubles the dollar signs that tenon would read as more than a dollar sign. Variables stay.
func quoteDollars(s string, variable *regexp.Regexp) string {
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '$')
		if i < 0 {
			return b.String() + s
		}
		b.WriteString(s[:i])
		s = s[i:]
		if found := variable.FindString(s); found != "" {
			b.WriteString(found)
			s = s[len(found):]
			continue
		}
		b.WriteByte('$')
		if s = s[1:]; s != "" && (s[0] == '$' || s[0] == '{') {
			b.WriteByte('$')
		}
	}
}

// unquoteDollars is the reverse of [quoteDollars]. isVariable says that a text becomes what quoteDollars takes for a
// variable.
func unquoteDollars(s string) (text string, isVariable bool) {
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '$')
		if i < 0 {
			return b.String() + s, isVariable
		}
		b.WriteString(s[:i])
		s = s[i:]
		if found := anyVariable().FindString(s); found != "" {
			b.WriteString(found)
			s = s[len(found):]
			continue
		}
		b.WriteByte('$')
		if s = s[1:]; s != "" && s[0] == '$' {
			isVariable = isVariable || anyVariable().MatchString(s)
			s = s[1:]
		}
	}
}

// unquoted returns the tree with single dollar signs, as other programs write them. It reports texts that they would
// take for variables.
func (e *export) unquoted(root *tree.Node) *tree.Node {
	return withTexts(root, func(v *tree.Node, path string) *tree.Node {
		s, isVariable := unquoteDollars(v.Val)
		if isVariable && e.kind != kindTrustGraph {
			e.missing(v, path)
		}
		if s == v.Val {
			return v
		}
		out := *v
		out.Val = s
		return &out
	})
}

// withTexts returns a tree in which do has replaced each text with variables. It changes no node of the given tree,
// because nodes are shared.
func withTexts(root *tree.Node, do func(v *tree.Node, path string) *tree.Node) *tree.Node {
	steps := func(pattern string) []string {
		return strings.Split(strings.ReplaceAll(pattern, "[]", ".[]"), ".")
	}
	for pattern := range expands {
		root = replaced(root, steps(pattern), "", do)
	}
	for pattern := range expandsJSON {
		root = replaced(root, append(steps(pattern), "**"), "", do)
	}
	return root
}

// replaced does so for the values at one pattern: NAME is each key of a map, [] each value of a list, ** everything
// below.
func replaced(n *tree.Node, steps []string, path string, do func(v *tree.Node, path string) *tree.Node) *tree.Node {
	deep := len(steps) == 1 && steps[0] == "**"
	switch {
	case n.Kind == tree.Scalar && (len(steps) == 0 || deep):
		return do(n, path)
	case n.Kind == tree.Scalar, len(steps) == 0:
		return n
	}
	out, rest := *n, steps[1:]
	if deep {
		rest = steps
	}
	out.Vals = slices.Clone(n.Vals)
	for i, v := range n.Vals {
		at, hit := tree.Index(path, i), steps[0] == "[]"
		if n.Kind == tree.Map {
			at, hit = tree.Join(path, n.Keys[i].Val), steps[0] == "NAME" || steps[0] == n.Keys[i].Val
		}
		if hit || deep {
			out.Vals[i] = replaced(v, rest, at, do)
		}
	}
	return &out
}
