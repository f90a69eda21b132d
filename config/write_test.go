package config

import (
	"reflect"
	"strings"
	"testing"

	"github.com/tenonhq/tenon/config/tree"
)

// TestEncode checks that a written configuration is parsed as the same configuration.
func TestEncode(t *testing.T) {
	values := []string{"", " ", "a", "true", "null", "1", "0x1", "1e3", "-y", "~", "a: b", "a #b", "'", `"`, `\`, "é", "a\tb", "a\nb", "a\nb\n", "a\n\nb\n", " a\nb", "\na\n", "a\nb\n\n",
		"a \nb", "- a\n- b", "# a\nb", "a\r\nb", "\u2028", "x\x7fy", "\u0085\n\u0085", "<&>", "{a: b}", "[a]", "2026-01-01", ".5", "=", "<<", "@a", "`", "%", "!a", "*a", "&a", "|", ">",
		"${VAR}", "a\nb: |\n c", "emoji 🙂", strings.Repeat("long ", 60)}
	root := &tree.Node{Kind: tree.Map}
	list, named := &tree.Node{Kind: tree.List}, &tree.Node{Kind: tree.Map}
	for i, v := range values {
		list.Vals = append(list.Vals, tree.Text(v))
		entry := &tree.Node{Kind: tree.Map}
		entry.Put("command", tree.Text(v))
		entry.Put("args", &tree.Node{Kind: tree.List, Vals: []*tree.Node{tree.Text(v), tree.Text("x")}})
		entry.Put("env", &tree.Node{Kind: tree.Map, Keys: []*tree.Node{tree.Text("K" + v)}, Vals: []*tree.Node{tree.Text(v)}})
		deep := &tree.Node{Kind: tree.List}
		deep.Vals = append(deep.Vals, entry, &tree.Node{Kind: tree.Map}, &tree.Node{Kind: tree.List}, &tree.Node{Tag: "!!null"}, &tree.Node{Tag: "!!bool", Val: "true"}, &tree.Node{Tag: "!!int", Val: "12"})
		entry = &tree.Node{Kind: tree.Map, Keys: entry.Keys, Vals: entry.Vals}
		entry.Put("deep", deep)
		named.Put(strings.Repeat("n", i+1), entry)
	}
	root.Put("version", &tree.Node{Tag: "!!int", Val: "1"})
	root.Put("servers", named)
	root.Put("x-list", list)
	s := &tree.Sink{}
	data := encode(root)
	back := tree.Parse(&tree.Source{Label: "written"}, data, s)
	if len(s.Errs) > 0 {
		t.Fatalf("%v\n%s", Errors(s.Errs), data)
	}
	if !reflect.DeepEqual(strip(root), strip(back)) {
		t.Errorf("not the same:\n%s\n%s", inline(root), inline(back))
	}
}

// strip converts a tree to plain values, with the tags of its scalars.
func strip(n *tree.Node) any {
	switch n.Kind {
	case tree.Map:
		out := []any{}
		for i, k := range n.Keys {
			out = append(out, k.Val, strip(n.Vals[i]))
		}
		return out
	case tree.List:
		out := []any{"list"}
		for _, e := range n.Vals {
			out = append(out, strip(e))
		}
		return out
	}
	if n.Tag == "!!null" {
		return nil
	}
	return n.Tag + " " + n.Val
}
