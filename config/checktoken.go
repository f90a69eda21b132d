package config

import (
	"cmp"
	"strings"

	"github.com/tenonhq/tenon/config/tree"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/servers"
)

// This file reports literal tokens in a configuration, as policy.literal_secrets says.

// literal warns of a value that is a secret by its name or its form, or contains one, and is written in the file.
func (k *checker) literal(p, expanded string) {
	n := k.nodes[p]
	if n == nil || k.typed || n.Val != expanded || len(literalParts(n.Val, literalNames(p)...)) == 0 {
		return
	}
	k.writtenToken(p, n)
}

// literalArgs warns of arguments of a command that are or contain secrets.
func (k *checker) literalArgs(p string) {
	n := k.nodes[p]
	if n == nil || k.typed || n.Kind != tree.List {
		return
	}
	args := make([]string, len(n.Vals))
	for i, v := range n.Vals {
		args[i] = v.Val
	}
	masked := servers.MaskArgs(args)
	for i, v := range n.Vals {
		name := strings.Contains(v.Val, "${") && len(servers.ArgPlaces(args, i)) == 0 // its password is a variable
		if v.Kind == tree.Scalar && masked[i] != v.Val && !name && !isKeyFile(v.Val) {
			at := tree.Index(p, i)
			k.nodes[at] = v
			k.writtenToken(at, v)
		}
	}
}

// writtenToken reports a token that is written into the file. hint replaces the usual one.
func (k *checker) writtenToken(p string, n *tree.Node, hint ...string) {
	before := len(k.Warns)
	k.graded(k.c.Policy.LiteralSecrets, p, cmp.Or(strings.Join(hint, ""), "put it into a variable and write ${NAME}"),
		literalToken)
	for i := range k.Warns[before:] {
		k.Warns[before+i].Daily = true
	}
	if k.c.Policy.LiteralSecrets == "off" {
		return
	}
	if f := n.Src.Path; f != "" {
		if mode, wide := wideMode(f); wide {
			k.note(p, "chmod 600 "+n.Src.Label, wideToken+" (mode %04o)", mode)
		}
	}
}

// literalsIn warns of literal tokens in all texts of a value of any form.
func (k *checker) literalsIn(n *tree.Node, p place) {
	for i, v := range n.Vals {
		if n.Kind == tree.Map {
			k.literalsIn(v, p.key(n.Keys[i].Val))
		} else {
			k.literalsIn(v, p.at(i))
		}
	}
	if n.Kind == tree.Scalar && n.Tag == "!!str" {
		k.nodes[p.path] = n
		k.literal(p.path, n.Val)
	}
}

// providerTokens warns of literal tokens in the settings of a provider's tools. Every text under a key that
// [model.ToolSecrets] reads as a secret counts, also one that does not look like a token.
func (k *checker) providerTokens(path string) {
	n := k.nodes[path]
	if n == nil || n.Kind != tree.Map {
		return
	}
	for i, entry := range n.Vals {
		for j, v := range entry.Vals {
			at := place{path: path}.key(n.Keys[i].Val)
			if entry.Kind != tree.Map {
				k.literalsIn(v, at.at(j))
				continue
			}
			k.providerToken(v, at.key(entry.Keys[j].Val), model.IsToolSecret(entry.Keys[j].Val))
		}
	}
}

// providerToken warns of literal tokens in one setting of a provider's tool. secret says that all its texts are secret.
func (k *checker) providerToken(n *tree.Node, p place, secret bool) {
	for i, v := range n.Vals {
		if n.Kind == tree.Map {
			k.providerToken(v, p.key(n.Keys[i].Val), secret)
		} else {
			k.providerToken(v, p.at(i), secret)
		}
	}
	switch {
	case n.Kind != tree.Scalar || n.Tag != "!!str":
	case secret && n.Val != "" && !strings.Contains(n.Val, "${") && !LooksLikeToken(n.Val):
		k.nodes[p.path] = n
		k.writtenToken(p.path, n)
	default:
		k.literalsIn(n, p)
	}
}
