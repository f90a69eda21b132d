package config

import (
	"regexp"
	"slices"
	"strings"

	"github.com/tenonhq/tenon/compat"
	"github.com/tenonhq/tenon/config/tree"
	"github.com/tenonhq/tenon/internal/lazyregexp"
)

// Dollar signs in files of other programs. In tenon.yaml, $$ is a dollar sign and ${NAME} a variable, but only in the
// values of [expands] and [expandsJSON]. Other programs have no escape: a dollar sign is a dollar sign unless it
// begins a variable. So an import doubles the dollar signs in these values, and an export undoes that.

var (
	// anyVariable matches the text that other programs, or tenon when it loads their files, treat as a variable.
	anyVariable = lazyregexp.New(`^\$\{[^{}]*\}`)
	// namedVariable matches only variables of tenon. It is used for TrustGraph, which has no variables: an export
	// writes tenon's variables unchanged, and other texts that begin with ${ are plain texts.
	namedVariable = lazyregexp.New(`^\$\{[A-Za-z_][A-Za-z0-9_]*(:-[^{}]*)?\}`)
)

// quote doubles the dollar signs of a converted file that are not part of a variable.
func quote(c *compat.Conversion) {
	if c.Kind == KindKNIME {
		return // the file is in tenon's own format already; see [Literal]
	}
	c.Out = withTexts(c.Out, func(v *tree.Node, _ string) *tree.Node {
		s := quoteDollars(v.Val, variablesOf(c.Kind))
		if s == v.Val {
			return v
		}
		out := tree.TextAt(v, s)
		if c.Tokens[v] {
			c.Tokens[out] = true
		}
		return out
	})
}

// variablesOf returns a pattern for a variable of a program at the beginning of a text.
func variablesOf(kind string) *regexp.Regexp {
	if kind == compat.TrustGraph {
		return namedVariable()
	}
	return anyVariable()
}

// Literal escapes a text for a value of tenon.yaml in which variables are expanded.
func Literal(s string) string { return strings.ReplaceAll(s, "$", "$$") }

// quoteDollars doubles dollar signs that tenon would expand or unescape. It leaves variables unchanged.
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

// unquoteDollars is the reverse of [quoteDollars]. isVariable says that the result contains a literal text that
// quoteDollars would treat as a variable.
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

// unquotedTree returns a tree for another program, with single dollar signs. It reports literal texts that the
// program would treat as variables.
func unquotedTree(e *compat.Export, root *tree.Node) *tree.Node {
	return withTexts(root, func(v *tree.Node, path string) *tree.Node {
		s, isVariable := unquoteDollars(v.Val)
		if isVariable && e.Kind != compat.TrustGraph {
			e.Missing(v, path)
		}
		if s == v.Val {
			return v
		}
		out := *v
		out.Val = s
		return &out
	})
}

// withTexts returns a tree in which do has replaced each text that can contain variables. It changes no node of the
// given tree, because nodes are shared.
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

// replaced replaces the values that one pattern matches. In the pattern, NAME matches each key of a map, [] each item
// of a list, and ** everything below.
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
