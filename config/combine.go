package config

import (
	"fmt"
	"slices"

	"github.com/tenonhq/tenon/config/tree"
)

// merger merges the tree of a layer with the tree of a more trusted layer, as the table of directions declares.
type merger struct{ *tree.Sink }

// oneLayer contains objects whose keys must all come from the same layer, so that a token is never sent to an address
// of another layer.
var oneLayer = map[string]bool{"registry": true}

// judgedApart contains the keys that are not merged: the rules of each layer apply separately. See [Config.Rules].
var judgedApart = map[string]bool{"policy.rules": true, "policy.defaults": true, "policy.groups": true}

// merge returns the merged tree of two layers; top is the less trusted one.
func (m merger) merge(top, below *tree.Node, p place) *tree.Node {
	switch {
	case below == nil || judgedApart[p.pattern]:
		return top
	case top == nil || top.IsNull() && below.Kind == tree.Map:
		return withoutRules(below, p)
	case oneLayer[p.pattern] && !below.IsNull():
		return below
	}
	k, ok := declared().key(p.pattern)
	switch {
	case !ok && (top.Kind != tree.Map || below.Kind != tree.Map):
		return top // an error that the decoder reports
	case ok && k.Combine != CombineEntry:
		return m.combine(k, top, below, p)
	case top.Kind != tree.Map || below.Kind != tree.Map:
		return top
	}
	out := tree.MapAt(top)
	for key, v := range top.All() {
		at := p.key(key.Val)
		other, first := below.Get(key.Val)
		switch {
		case !ok:
			v = m.merge(v, other, at)
		case other != nil:
			m.shadows(key, first, tree.Join(p.path, key.Val))
		}
		if v != nil {
			out.Keys, out.Vals = append(out.Keys, key), append(out.Vals, v)
		}
	}
	for i, key := range below.Keys {
		if v, _ := top.Get(key.Val); v != nil {
			continue
		}
		if v := withoutRules(below.Vals[i], p.key(key.Val)); v != nil {
			out.Keys, out.Vals = append(out.Keys, key), append(out.Vals, v)
		}
	}
	return out
}

// withoutRules returns the tree of a more trusted layer without its rules, because the rules of each layer apply
// separately.
func withoutRules(n *tree.Node, p place) *tree.Node {
	if judgedApart[p.pattern] {
		return nil
	}
	if p.pattern != "policy" || n.Kind != tree.Map {
		return n
	}
	out := tree.MapAt(n)
	for i, key := range n.Keys {
		if !judgedApart[p.key(key.Val).pattern] {
			out.Keys, out.Vals = append(out.Keys, key), append(out.Vals, n.Vals[i])
		}
	}
	return out
}

// shadows warns of an entry with the same name as an entry of another layer.
func (m merger) shadows(key, other *tree.Node, path string) {
	m.Warn(key, path, fmt.Sprintf("is used in place of the entry of the same name in %s, line %d; the rules of that "+
		"entry hold for it as well", other.Src.Label, other.Line),
		"give one of them another name")
}

// combine returns the merged value of one key.
func (m merger) combine(k Key, top, below *tree.Node, p place) *tree.Node {
	if top.IsNull() || below.IsNull() {
		if top.IsNull() {
			return below
		}
		return top
	}
	switch k.Combine {
	case CombineMin, CombineMax, CombineStrictest:
		if k.effect(below, top) == Loosens {
			return below
		}
		return top
	case CombineFloor:
		return below
	case CombineUnion:
		return union(top, below)
	case CombineIntersection:
		return m.intersection(k, top, below, p)
	}
	return top
}

// union returns a list with the items of both lists.
func union(top, below *tree.Node) *tree.Node {
	if top.Kind != tree.List || below.Kind != tree.List {
		return top
	}
	out := tree.ListAt(top, slices.Clone(top.Vals)...)
	for _, v := range below.Vals {
		if !slices.ContainsFunc(out.Vals, func(o *tree.Node) bool { return tree.Same(o, v) }) {
			out.Vals = append(out.Vals, v)
		}
	}
	return out
}

// intersection returns a list with the items that both lists contain.
func (m merger) intersection(k Key, top, below *tree.Node, p place) *tree.Node {
	switch {
	case top.Kind != tree.List || below.Kind != tree.List:
		return top
	case k.Unlimited && len(below.Vals) == 0:
		return top
	case k.Unlimited && len(top.Vals) == 0:
		return below
	}
	out := tree.ListAt(top)
	for _, v := range top.Vals {
		if slices.ContainsFunc(below.Vals, func(o *tree.Node) bool { return tree.Same(o, v) }) {
			out.Vals = append(out.Vals, v)
		}
	}
	if k.Unlimited && len(out.Vals) == 0 {
		m.Add(top, p.path, fmt.Sprintf("allows nothing that %s, line %d allows", below.Src.Label, below.Line),
			"a list without entries would be no limit; name one that is in both lists")
	}
	return out
}

// withoutForeignTools returns the tree below without entries of tools for servers that the less trusted tree top
// defines under the same name. An entry of one layer never describes a server of a less trusted layer.
func withoutForeignTools(below, top *tree.Node) *tree.Node {
	tools, _ := below.Get("tools")
	if tools == nil || tools.Kind != tree.Map || top == nil {
		return below
	}
	servers, _ := top.Get("servers")
	kept := tree.MapAt(tools)
	for i, key := range tools.Keys {
		server, _ := tools.Vals[i].Get("server")
		if server != nil {
			if other, _ := servers.Get(server.Val); other != nil {
				continue
			}
		}
		kept.Keys, kept.Vals = append(kept.Keys, key), append(kept.Vals, tools.Vals[i])
	}
	out := *below
	out.Vals = slices.Clone(below.Vals)
	out.Vals[slices.Index(below.Vals, tools)] = kept
	return &out
}

// withoutLoosened returns the tree below without the values that the project also sets and is allowed to loosen.
func withoutLoosened(below, project *tree.Node, globs []string, path string) *tree.Node {
	if below == nil || project == nil || len(globs) == 0 {
		return below
	}
	if below.Kind != tree.Map || project.Kind != tree.Map {
		if matchesKey(globs, path) {
			return nil
		}
		return below
	}
	out := tree.MapAt(below)
	for key, v := range below.All() {
		if other, _ := project.Get(key.Val); other != nil && !other.IsNull() {
			v = withoutLoosened(v, other, globs, tree.Join(path, key.Val))
		}
		if v != nil {
			out.Keys, out.Vals = append(out.Keys, key), append(out.Vals, v)
		}
	}
	return out
}

// onlyLimits returns the sections of a tree that limit what a Go program can do.
func onlyLimits(root *tree.Node) *tree.Node {
	out := tree.MapAt(root)
	for key, v := range root.All() {
		switch key.Val {
		case "policy", "limits", "budgets", "trust":
			out.Keys, out.Vals = append(out.Keys, key), append(out.Vals, v)
		case "store":
			if redact, at := v.Get("redact"); redact != nil {
				store := &tree.Node{Kind: tree.Map, Line: v.Line, Col: v.Col, Src: v.Src, Keys: []*tree.Node{at},
					Vals: []*tree.Node{redact}}
				out.Keys, out.Vals = append(out.Keys, key), append(out.Vals, store)
			}
		}
	}
	return out
}
