package config

import (
	"strings"

	"github.com/tenonhq/tenon/config/tree"
	"github.com/tenonhq/tenon/model"
)

// This file reports literal tokens in a configuration, as policy.literal_secrets says.

// literal warns of a value that looks like a token and is written in the file.
func (k *checker) literal(p, expanded string) {
	n := k.nodes[p]
	if n == nil || k.typed || n.Val != expanded || !LooksLikeToken(n.Val) {
		return
	}
	k.writtenToken(p, n)
}

// writtenToken reports a token that is written into the file.
func (k *checker) writtenToken(p string, n *tree.Node) {
	before := len(k.Warns)
	k.graded(k.c.Policy.LiteralSecrets, p, "put it into a variable and write ${NAME}", literalToken)
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
