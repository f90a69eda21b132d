package config

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/policy"
)

// Ruled is one value of the rules that hold for a tool, and where it comes from.
type Ruled struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	From   string `json:"from"`   // path of the value in the file; "" where it is built in
	Origin string `json:"origin"` // "FILE:LINE" or "default"
}

// Explain returns each value of the rules that hold for a tool of a server, used by
// an agent, with the place where it is said. What the file does not say is built in.
func (c *Config) Explain(server, remote, agent string) []Ruled {
	type level struct {
		path   string
		leaves []leaf
	}
	var levels []level
	add := func(path string, b policy.Block) { levels = append(levels, level{path, leaves(b)}) }
	groups := []string{tenon.DefaultGroup}
	for _, name := range c.ToolNames() {
		if t := c.Tools[name].WithDefaults(name); t.Server == server && t.RemoteName == remote {
			if add("tools."+name+".policy", t.Policy); t.Groups != nil {
				groups = t.Groups
			}
		}
	}
	add("agents."+agent+".policy", c.Agents[agent].Policy)
	for _, g := range groups {
		add("policy.groups."+g, c.Policy.Groups[g])
	}
	add("servers."+server+".policy", c.Servers[server].Policy)
	add("policy.defaults", c.Policy.Defaults)
	var out []Ruled
	for _, f := range blockFields(reflect.TypeFor[policy.Block](), "") {
		r := Ruled{Key: f.key, Value: f.def, Origin: "default"}
		if s, ok := c.Servers[server]; ok && f.key == "timeout" {
			at := "servers." + server + ".request_timeout"
			r.Value = short(s.WithDefaults().RequestTimeout)
			if r.Origin = c.Origin(at); r.Origin != "default" {
				r.From = at
			}
		}
	found:
		for _, l := range levels {
			for _, leaf := range l.leaves {
				if leaf.key == f.key {
					r.Value, r.From = leaf.text, l.path+"."+leaf.key
					if r.Origin = c.Origin(r.From); r.Origin == "default" && c.nodes == nil {
						r.Origin = l.path // a Go program said it
					} else if r.Origin == "default" {
						r.From = ""
					}
					break found
				}
			}
		}
		out = append(out, r)
	}
	for i, rule := range c.Policy.Rules {
		at := index("policy.rules", i)
		out = append(out, Ruled{Key: fmt.Sprintf("rule %d", i+1), Value: rule.Verdict + " when " + rule.When, From: at, Origin: c.Origin(at)})
	}
	return out
}

// leaf is one value that a block says.
type leaf struct{ key, text, def string }

// leaves returns what a block says, in the order of its keys.
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

// blockFields returns the values of a block: those of its objects one by one, but
// for approval, which is one value.
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
	case policy.Size:
		for _, u := range units[:3] {
			if n := int(u.bytes); int(x)%n == 0 && int(x)/n < 1024 {
				return fmt.Sprint(int(x)/n, u.suffix)
			}
		}
	}
	return fmt.Sprint(v.Interface())
}

// Place returns "FILE:LINE:COL" of the value at a path, or of the nearest that it is
// a part of; "" for a configuration that was not read from a file.
func (c *Config) Place(path string) string {
	for ; path != ""; path = path[:max(0, strings.LastIndexAny(path, ".["))] {
		if n := c.nodes[path]; n != nil {
			return fmt.Sprintf("%s:%d:%d", n.src.label, n.line, n.col)
		}
	}
	return ""
}
