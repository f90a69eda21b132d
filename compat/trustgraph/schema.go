package trustgraph

import (
	"slices"

	"github.com/tenonhq/tenon/config/tree"
)

// withArguments returns the entry of a tool with a flat schema as a list of arguments, the only form that TrustGraph
// has. Parts of the schema that arguments cannot express are reported. flat is false if the tool has no schema, or one
// that is not flat: an object of texts, numbers and booleans.
func (g *exporter) withArguments(v *tree.Node, path string) (out *tree.Node, flat bool) {
	schema, _ := v.Get("schema")
	if own, _ := v.Get("arguments"); own != nil || schema == nil || schema.Kind != tree.Map {
		return v, false
	}
	properties, at := schema.Get("properties")
	kind, _ := schema.Get("type")
	if properties == nil || properties.Kind != tree.Map || kind != nil && kind.Val != "object" {
		return v, false
	}
	required, _ := schema.Get("required")
	list := tree.ListAt(at)
	for name, p := range properties.All() {
		typ, _ := p.Get("type")
		if p.Kind != tree.Map || typ == nil || !slices.Contains([]string{"string", "number", "integer", "boolean"},
			typ.Val) {
			return v, false
		}
		arg := tree.MapAt(name)
		arg.Append("name", name, tree.TextAt(name, name.Val))
		arg.Append("type", name, typ)
		if d, _ := p.Get("description"); d != nil {
			arg.Append("description", name, d)
		}
		if required != nil && slices.ContainsFunc(required.Vals, func(n *tree.Node) bool { return n.Val == name.Val }) {
			arg.Append("required", name, &tree.Node{Tag: "!!bool", Val: "true", Line: name.Line, Col: name.Col,
				Src: name.Src})
		}
		list.Vals = append(list.Vals, arg)
	}
	for name, p := range properties.All() {
		for k := range p.All() {
			if k.Val != "type" && k.Val != "description" {
				g.Missing(k, path+".schema.properties."+name.Val+"."+k.Val)
			}
		}
	}
	for k := range schema.All() {
		if !slices.Contains([]string{"type", "properties", "required", "additionalProperties", "$schema", "title"},
			k.Val) {
			g.Missing(k, path+".schema."+k.Val)
		}
	}
	out = v.Clone()
	out.Append("arguments", at, list)
	return out, true
}
