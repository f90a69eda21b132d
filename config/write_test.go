package config

import (
	"reflect"
	"strings"
	"testing"
)

// TestEncode holds that what is written is read as the same.
func TestEncode(t *testing.T) {
	values := []string{"", " ", "a", "true", "null", "1", "0x1", "1e3", "-y", "~", "a: b", "a #b", "'", `"`, `\`, "é", "a\tb", "a\nb", "a\nb\n", "a\n\nb\n", " a\nb", "\na\n", "a\nb\n\n",
		"a \nb", "- a\n- b", "# a\nb", "a\r\nb", "\u2028", "x\x7fy", "\u0085\n\u0085", "<&>", "{a: b}", "[a]", "2026-01-01", ".5", "=", "<<", "@a", "`", "%", "!a", "*a", "&a", "|", ">",
		"${VAR}", "a\nb: |\n c", "emoji 🙂", strings.Repeat("long ", 60)}
	root := &node{kind: mapNode}
	list, named := &node{kind: listNode}, &node{kind: mapNode}
	for i, v := range values {
		list.vals = append(list.vals, text(v))
		entry := &node{kind: mapNode}
		entry.put("command", text(v))
		entry.put("args", &node{kind: listNode, vals: []*node{text(v), text("x")}})
		entry.put("env", &node{kind: mapNode, keys: []*node{text("K" + v)}, vals: []*node{text(v)}})
		deep := &node{kind: listNode}
		deep.vals = append(deep.vals, entry, &node{kind: mapNode}, &node{kind: listNode}, &node{tag: "!!null"}, &node{tag: "!!bool", val: "true"}, &node{tag: "!!int", val: "12"})
		entry = &node{kind: mapNode, keys: entry.keys, vals: entry.vals}
		entry.put("deep", deep)
		named.put(strings.Repeat("n", i+1), entry)
	}
	root.put("version", &node{tag: "!!int", val: "1"})
	root.put("servers", named)
	root.put("x-list", list)
	s := &sink{}
	data := encode(root)
	back := parse(&source{label: "written"}, data, s)
	if len(s.errs) > 0 {
		t.Fatalf("%v\n%s", Errors(s.errs), data)
	}
	if !reflect.DeepEqual(strip(root), strip(back)) {
		t.Errorf("not the same:\n%s\n%s", inline(root), inline(back))
	}
}

// strip makes plain values of a tree, with the tags of its scalars.
func strip(n *node) any {
	switch n.kind {
	case mapNode:
		out := []any{}
		for i, k := range n.keys {
			out = append(out, k.val, strip(n.vals[i]))
		}
		return out
	case listNode:
		out := []any{"list"}
		for _, e := range n.vals {
			out = append(out, strip(e))
		}
		return out
	}
	if n.tag == "!!null" {
		return nil
	}
	return n.tag + " " + n.val
}
