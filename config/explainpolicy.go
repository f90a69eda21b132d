package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config/tree"
	"github.com/tenonhq/tenon/policy"
)

// Ruled is one value of the rules for a tool, with its origin.
type Ruled struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	From   string `json:"from"`   // path of the value in the file; "" for a built-in value
	Origin string `json:"origin"` // "FILE:LINE" or "default"
	Layer  string `json:"layer"`  // the layer that sets it, or "default"
}

// Explain returns each value of the rules for a tool of a server, used by an agent, with its layer and place. For a
// limit, it returns the strictest value of all layers. Approval and conditions are evaluated for each layer
// separately, so it returns the values of each layer. A value that no file sets is the built-in default.
func (c *Config) Explain(server, remote, agent string) []Ruled {
	said := map[string][]Ruled{}
	for i := range c.floors {
		f := &c.floors[i]
		names := []string{server}
		if entry, ok := c.Servers[server]; ok && c.Layer("servers."+server).Rank() > f.layer.Rank() {
			names = append(names, f.aliases(server, entry)...)
		}
		for _, name := range names {
			for _, r := range f.c.explain(name, remote, agent, string(f.layer), nil) {
				said[r.Key] = append(said[r.Key], r)
			}
		}
	}
	for _, r := range c.explain(server, remote, agent, string(c.topLayer()), c.isOwn) {
		said[r.Key] = append(said[r.Key], r)
	}
	var out []Ruled
	for _, f := range blockFields(reflect.TypeFor[policy.Block](), "") {
		switch list := said[f.key]; {
		case len(list) == 0:
			out = append(out, c.builtIn(server, f))
		case f.key == "approval":
			out = append(out, slices.CompactFunc(list, func(a, b Ruled) bool { return a == b })...)
		default:
			out = append(out, strictest(f.key, list))
		}
	}
	for _, f := range c.floors {
		out = append(out, f.c.explainRules(string(f.layer))...)
	}
	return append(out, c.explainRules(string(c.topLayer()))...)
}

// isOwn reports whether the entry at a path belongs to the least trusted layer.
func (c *Config) isOwn(path string) bool {
	return len(c.floors) == 0 || c.Layer(path).Rank() > c.floors[len(c.floors)-1].layer.Rank()
}

// builtIn returns the default of a value that no block sets.
func (c *Config) builtIn(server string, f blockField) Ruled {
	r := Ruled{Key: f.key, Value: f.def, Origin: "default", Layer: "default"}
	if s, ok := c.Servers[server]; ok && f.key == "timeout" {
		at := "servers." + server + ".request_timeout"
		r.Value = short(s.WithDefaults().RequestTimeout)
		if r.Origin = c.Origin(at); r.Origin != "default" {
			r.From, r.Layer = at, c.layerName(at)
		}
	}
	return r
}

// strictest returns the effective one of several layers' values.
func strictest(key string, list []Ruled) Ruled {
	k, _ := DirectionOf("policy.defaults." + key)
	out := list[0]
	for _, r := range list[1:] {
		switch {
		case k.Combine == CombineUnion:
			var all []string
			for _, v := range union(flowNode(out.Value), flowNode(r.Value)).Vals {
				all = append(all, v.Val)
			}
			if text := flow(all); text != out.Value {
				out.Value, out.Layer = text, out.Layer+", "+r.Layer
			}
		case k.Effect(r.Value, out.Value) == Loosens:
			out = r
		}
	}
	return out
}

// explain returns the rules of one layer for a tool: for each key, the value of the most specific block. own reports
// whether an entry belongs to the layer; if nil, every entry does.
func (c *Config) explain(server, remote, agent, layer string, own func(path string) bool) []Ruled {
	type level struct {
		path   string
		leaves []leaf
	}
	var levels []level
	add := func(entry, path string, b policy.Block) {
		if entry == "" || own == nil || own(entry) {
			levels = append(levels, level{path, leaves(b)})
		}
	}
	groups := []string{tenon.DefaultGroup}
	for _, name := range c.ToolNames() {
		if t := c.Tools[name].WithDefaults(name); t.Server == server && t.RemoteName == remote {
			add("tools."+name, "tools."+name+".policy", t.Policy)
			if t.Groups != nil {
				groups = t.Groups
			}
		}
	}
	add("agents."+agent, "agents."+agent+".policy", c.Agents[agent].Policy)
	for _, g := range groups {
		add("", "policy.groups."+g, c.Policy.Groups[g])
	}
	add("servers."+server, "servers."+server+".policy", c.Servers[server].Policy)
	add("", "policy.defaults", c.Policy.Defaults)
	var out []Ruled
	for _, f := range blockFields(reflect.TypeFor[policy.Block](), "") {
	found:
		for _, l := range levels {
			for _, leaf := range l.leaves {
				if leaf.key != f.key {
					continue
				}
				r := Ruled{Key: f.key, Value: leaf.text, From: l.path + "." + leaf.key, Layer: layer}
				if r.Origin = c.Origin(r.From); r.Origin == "default" && c.nodes == nil {
					r.Origin = l.path // a Go program set it
				}
				if r.Origin != "default" {
					out = append(out, r)
				}
				break found
			}
		}
	}
	return out
}

// explainRules returns the conditions of one layer, in their order.
func (c *Config) explainRules(layer string) []Ruled {
	var out []Ruled
	for i, rule := range c.Policy.Rules {
		at := tree.Index("policy.rules", i)
		out = append(out, Ruled{Key: fmt.Sprintf("rule %d", i+1), Value: rule.Verdict + " when " + rule.When,
			From: at, Origin: c.Origin(at), Layer: layer})
	}
	return out
}

// leaf is a single value of a block, with its default.
type leaf struct{ key, text, def string }

// leaves returns the values that a block sets, in the order of its keys.
func leaves(b policy.Block) []leaf {
	var out []leaf
	for _, f := range blockFields(reflect.TypeFor[policy.Block](), "") {
		v := reflect.ValueOf(b).FieldByIndex(f.index)
		switch a, isApproval := v.Interface().(policy.Approval); {
		case v.IsZero():
			continue
		case isApproval && a.If != "":
			out = append(out, leaf{f.key, "{if: " + scalar(a.If) + "}", f.def})
		case isApproval:
			out = append(out, leaf{f.key, a.Mode, f.def})
		default:
			out = append(out, leaf{f.key, leafText(v), f.def})
		}
	}
	return out
}

type blockField struct {
	key, def string
	index    []int
}

// blockFields returns the keys of a block that have values. The keys of a nested object are listed instead of the
// object, except for approval, which is one value.
func blockFields(t reflect.Type, prefix string) []blockField {
	var out []blockField
	for _, f := range fields(t) {
		switch {
		case f.typ == reflect.TypeFor[policy.Approval]():
			out = append(out, blockField{f.name, policy.ApprovalDestructive, []int{f.index}})
		case f.typ.Kind() == reflect.Struct:
			for _, in := range blockFields(f.typ, f.name+".") {
				in.index = append([]int{f.index}, in.index...)
				out = append(out, in)
			}
		default:
			out = append(out, blockField{prefix + f.name, f.def, []int{f.index}})
		}
	}
	return out
}

func leafText(v reflect.Value) string {
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	switch x := v.Interface().(type) {
	case time.Duration:
		return short(x)
	case []string:
		return flow(x)
	case tenon.Size:
		for _, u := range units[:3] {
			if n := int(u.bytes); int(x)%n == 0 && int(x)/n < 1024 {
				return fmt.Sprint(int(x)/n, u.suffix)
			}
		}
	}
	return fmt.Sprint(v.Interface())
}

// Place returns "FILE:LINE:COL" of the value at a path, or of the nearest value that contains it. It returns "" for a
// configuration that was not read from a file.
func (c *Config) Place(path string) string {
	for ; path != ""; path = path[:max(0, strings.LastIndexAny(path, ".["))] {
		if n := c.nodes[path]; n != nil {
			return fmt.Sprintf("%s:%d:%d", n.Src.Label, n.Line, n.Col)
		}
	}
	return ""
}
