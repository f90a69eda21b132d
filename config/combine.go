package config

import (
	"fmt"
	"slices"

	"github.com/tenonhq/tenon/config/tree"
)

// merger lays the tree of one layer over the tree of a more trusted one, as the table of
// directions says.
type merger struct{ *tree.Sink }

// oneLayer are objects whose keys belong together, so that they come from one layer: a
// token is never sent to another layer's address.
var oneLayer = map[string]bool{"registry": true}

// judgedApart are the keys of which every layer has its own: see [Config.Rules].
var judgedApart = map[string]bool{"policy.rules": true, "policy.defaults": true, "policy.groups": true}

// merge returns the tree that holds for both layers; top is the less trusted one.
func (m merger) merge(top, below *tree.Node, p place) *tree.Node {
	switch {
	case below == nil || judgedApart[p.pattern]:
		return top
	case top == nil || top.IsNull() && below.Kind == tree.Map:
		return withoutRules(below, p)
	case oneLayer[p.pattern] && !below.IsNull():
		return below
	}
	k, ok := declared().byPath[p.pattern]
	switch {
	case !ok && (top.Kind != tree.Map || below.Kind != tree.Map):
		return top // an error that the decoder reports
	case ok && k.Combine != CombineEntry:
		return m.combine(k, top, below, p)
	case top.Kind != tree.Map || below.Kind != tree.Map:
		return top
	}
	out := tree.MapAt(top)
	for i, key := range top.Keys {
		v, at := top.Vals[i], p.key(key.Val)
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

// withoutRules returns what a project has of a tree of a more trusted layer: all but the
// rules, which are judged apart.
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

// shadows warns of an entry that has the name of another layer's entry.
func (m merger) shadows(key, other *tree.Node, path string) {
	m.Warn(key, path, fmt.Sprintf("is used in place of the entry of the same name in %s, line %d; the rules of that "+
		"entry hold for it as well", other.Src.Label, other.Line),
		"give one of them another name")
}

// combine returns the value of one key that holds for both layers.
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

// union returns the list of the entries of both lists.
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

// intersection returns the list of the entries that are in both lists.
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

// withoutForeignTools returns a tree without the tools of servers that the less trusted
// tree defines under the same name. Entries of one layer never describe the server of a less trusted
// one.
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

// withoutLoosened returns a tree without the values that a project writes as well and may
// loosen.
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
	for i, key := range below.Keys {
		v := below.Vals[i]
		if other, _ := project.Get(key.Val); other != nil && !other.IsNull() {
			v = withoutLoosened(v, other, globs, tree.Join(path, key.Val))
		}
		if v != nil {
			out.Keys, out.Vals = append(out.Keys, key), append(out.Vals, v)
		}
	}
	return out
}

// onlyLimits returns the part of a tree that bounds what a program may do.
func onlyLimits(root *tree.Node) *tree.Node {
	out := tree.MapAt(root)
	for i, key := range root.Keys {
		v := root.Vals[i]
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
