package config

import (
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/compat"
	"github.com/tenonhq/tenon/config/tree"
)

// Export writes the configuration in another program's format, with unresolved variables and without defaults. The
// second result lists the values that the format cannot express, as `not exported: PATH` with the place. The error
// has code invalid if kind is not in [Kinds].
func (c *Config) Export(kind string) ([]byte, []Error, error) {
	do, ok := formatOf(kind).(compat.Exporter)
	if !ok {
		return nil, nil, tenon.Errorf(tenon.CodeInvalid, "there is no form '%s'; there are: %s", kind,
			strings.Join(Kinds(), ", "))
	}
	root := c.tree
	if root == nil {
		root = &tree.Node{Kind: tree.Map}
	}
	e := &compat.Export{Sink: &tree.Sink{}, Kind: kind, Servers: c.Servers, Dir: c.Dir, Name: c.Name,
		Duration: ParseDuration}
	if all := c.ModelNames(); len(all) > 0 {
		e.Model = all[0]
	}
	e.Root = unquotedTree(e, root)
	out := do.Export(e)
	known := append(e.Holds, "$schema", "version", "name", "servers", "secrets", "x-"+kind)
	for k, v := range root.All() {
		switch {
		case slices.Contains(known, k.Val), v.Src != nil && v.Src.Profile:
		case k.Val == "profile" && (v.Val == kind || v.Val == "default"):
		default:
			e.Missing(k, k.Val)
		}
	}
	data := out.JSON()
	if e.YAML {
		data = encode(out)
	}
	return data, tree.Sorted(e.Warns), nil
}
