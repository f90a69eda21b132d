package config

import (
	"fmt"
	"slices"
)

// merger lays the tree of one layer over the tree of a more trusted one, as the table of
// directions says.
type merger struct{ *sink }

// oneLayer are objects whose keys belong together, so that they come from one layer: a
// token is never sent to another layer's address.
var oneLayer = map[string]bool{"registry": true}

// judgedApart are the keys of which every layer has its own: see [Config.Rules].
var judgedApart = map[string]bool{"policy.rules": true, "policy.defaults": true, "policy.groups": true}

// merge returns the tree that holds for both layers; top is the less trusted one.
func (m merger) merge(top, below *node, p place) *node {
	switch {
	case below == nil || judgedApart[p.pattern]:
		return top
	case top == nil || top.isNull() && below.kind == mapNode:
		return withoutRules(below, p)
	case oneLayer[p.pattern] && !below.isNull():
		return below
	}
	k, ok := declared().byPath[p.pattern]
	switch {
	case !ok && (top.kind != mapNode || below.kind != mapNode):
		return top // an error that the decoder reports
	case ok && k.Combine != CombineEntry:
		return m.combine(k, top, below, p)
	case top.kind != mapNode || below.kind != mapNode:
		return top
	}
	out := emptyMap(top)
	for i, key := range top.keys {
		v, at := top.vals[i], p.key(key.val)
		other, first := below.get(key.val)
		switch {
		case !ok:
			v = m.merge(v, other, at)
		case other != nil:
			m.shadows(key, first, join(p.path, key.val))
		}
		if v != nil {
			out.keys, out.vals = append(out.keys, key), append(out.vals, v)
		}
	}
	for i, key := range below.keys {
		if v, _ := top.get(key.val); v != nil {
			continue
		}
		if v := withoutRules(below.vals[i], p.key(key.val)); v != nil {
			out.keys, out.vals = append(out.keys, key), append(out.vals, v)
		}
	}
	return out
}

// withoutRules returns what a project has of a tree of a more trusted layer: all but the
// rules, which are judged apart.
func withoutRules(n *node, p place) *node {
	if judgedApart[p.pattern] {
		return nil
	}
	if p.pattern != "policy" || n.kind != mapNode {
		return n
	}
	out := emptyMap(n)
	for i, key := range n.keys {
		if !judgedApart[p.key(key.val).pattern] {
			out.keys, out.vals = append(out.keys, key), append(out.vals, n.vals[i])
		}
	}
	return out
}

// shadows warns of an entry that has the name of another layer's entry.
func (m merger) shadows(key, other *node, path string) {
	m.warn(key, path, fmt.Sprintf("is used in place of the entry of the same name in %s, line %d; the rules of that "+
		"entry hold for it as well", other.src.label, other.line),
		"give one of them another name")
}

// combine returns the value of one key that holds for both layers.
func (m merger) combine(k Key, top, below *node, p place) *node {
	if top.isNull() || below.isNull() {
		if top.isNull() {
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
func union(top, below *node) *node {
	if top.kind != listNode || below.kind != listNode {
		return top
	}
	out := emptyList(top, slices.Clone(top.vals)...)
	for _, v := range below.vals {
		if !slices.ContainsFunc(out.vals, func(o *node) bool { return same(o, v) }) {
			out.vals = append(out.vals, v)
		}
	}
	return out
}

// intersection returns the list of the entries that are in both lists.
func (m merger) intersection(k Key, top, below *node, p place) *node {
	switch {
	case top.kind != listNode || below.kind != listNode:
		return top
	case k.Unlimited && len(below.vals) == 0:
		return top
	case k.Unlimited && len(top.vals) == 0:
		return below
	}
	out := emptyList(top)
	for _, v := range top.vals {
		if slices.ContainsFunc(below.vals, func(o *node) bool { return same(o, v) }) {
			out.vals = append(out.vals, v)
		}
	}
	if k.Unlimited && len(out.vals) == 0 {
		m.add(top, p.path, fmt.Sprintf("allows nothing that %s, line %d allows", below.src.label, below.line),
			"a list without entries would be no limit; name one that is in both lists")
	}
	return out
}

// withoutForeignTools returns a tree without the tools of servers that the less trusted
// tree defines under the same name. Entries of one layer never describe the server of a less trusted
// one.
func withoutForeignTools(below, top *node) *node {
	tools, _ := below.get("tools")
	if tools == nil || tools.kind != mapNode || top == nil {
		return below
	}
	servers, _ := top.get("servers")
	kept := emptyMap(tools)
	for i, key := range tools.keys {
		server, _ := tools.vals[i].get("server")
		if server != nil {
			if other, _ := servers.get(server.val); other != nil {
				continue
			}
		}
		kept.keys, kept.vals = append(kept.keys, key), append(kept.vals, tools.vals[i])
	}
	out := *below
	out.vals = slices.Clone(below.vals)
	out.vals[slices.Index(below.vals, tools)] = kept
	return &out
}

// withoutLoosened returns a tree without the values that a project writes as well and may
// loosen.
func withoutLoosened(below, project *node, globs []string, path string) *node {
	if below == nil || project == nil || len(globs) == 0 {
		return below
	}
	if below.kind != mapNode || project.kind != mapNode {
		if matchesKey(globs, path) {
			return nil
		}
		return below
	}
	out := emptyMap(below)
	for i, key := range below.keys {
		v := below.vals[i]
		if other, _ := project.get(key.val); other != nil && !other.isNull() {
			v = withoutLoosened(v, other, globs, join(path, key.val))
		}
		if v != nil {
			out.keys, out.vals = append(out.keys, key), append(out.vals, v)
		}
	}
	return out
}

// onlyLimits returns the part of a tree that bounds what a program may do.
func onlyLimits(tree *node) *node {
	out := emptyMap(tree)
	for i, key := range tree.keys {
		v := tree.vals[i]
		switch key.val {
		case "policy", "limits", "budgets", "trust":
			out.keys, out.vals = append(out.keys, key), append(out.vals, v)
		case "store":
			if redact, at := v.get("redact"); redact != nil {
				store := &node{kind: mapNode, line: v.line, col: v.col, src: v.src, keys: []*node{at},
					vals: []*node{redact}}
				out.keys, out.vals = append(out.keys, key), append(out.vals, store)
			}
		}
	}
	return out
}
