package config

import (
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config/tree"
)

// Export writes the configuration in another program's form, as it is written:
// variables unresolved, without defaults. The second result lists what that form
// cannot hold, `not exported: PATH` with the place. The error has code invalid for
// a kind that is none of [Kinds].
func (c *Config) Export(kind string) ([]byte, []Error, error) {
	do, ok := formatOf(kind).(exporter)
	if !ok {
		return nil, nil, tenon.Errorf(tenon.CodeInvalid, "there is no form '%s'; there are: %s", kind,
			strings.Join(Kinds(), ", "))
	}
	root := c.tree
	if root == nil {
		root = &tree.Node{Kind: tree.Map}
	}
	e := &export{Sink: &tree.Sink{}, kind: kind, servers: c.Servers, dir: c.Dir, name: c.Name, duration: ParseDuration}
	if all := c.ModelNames(); len(all) > 0 {
		e.model = all[0]
	}
	e.root = unquotedTree(e, root)
	out := do.export(e)
	known := append(e.holds, "$schema", "version", "name", "servers", "secrets", "x-"+kind)
	for i, k := range root.Keys {
		v := root.Vals[i]
		switch {
		case slices.Contains(known, k.Val), v.Src != nil && v.Src.Profile:
		case k.Val == "profile" && (v.Val == kind || v.Val == "default"):
		default:
			e.missing(k, k.Val)
		}
	}
	data := out.JSON()
	if e.yaml {
		data = encode(out)
	}
	return data, tree.Sorted(e.Warns), nil
}
