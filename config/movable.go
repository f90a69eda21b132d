package config

import (
	"slices"
	"strings"

	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config/tree"
	"github.com/tenonhq/tenon/internal/lazyregexp"
)

// numbered matches exposed names that only a name clash produces: on_collision: suffix appends a number, or a hash if
// a clash remains.
var numbered = lazyregexp.New(`^(.+)_(?:[0-9]{1,3}|[0-9a-f]{8}|[0-9a-f]{24})$`)

// movable reports globs on exposed names that may match a different tool when another server is added, because name
// clashes change the appended number. The hint is a glob SERVER/TOOL, which always matches the same tool. A glob of
// the form {server}_{tool} is allowed for the same reason; see [catalog.Excludes].
func (k *checker) movable(p string, globs []string) {
	var from []string // servers whose tools are numbered
	sources := 0
	for _, name := range k.order["servers"] {
		s := k.c.Servers[name]
		if !s.IsEnabled() {
			continue
		}
		sources++
		if s.Naming.OnCollision == catalog.CollisionSuffix {
			from = append(from, name)
		}
	}
	if sources < 2 || len(from) == 0 {
		return
	}
	for i, g := range globs {
		m := numbered().FindStringSubmatch(g)
		_, own := k.c.Tools[g]
		if m == nil || own || strings.ContainsAny(g, `/*?[\`) || !k.mayNumber(from, m[1]) {
			continue
		}
		servers := from[:min(len(from), 3)]
		k.bad(tree.Index(p, i), "write "+strings.Join(rewritten(servers, m[1]), " or ")+" for a tool '"+m[1]+"', or "+
			strings.Join(rewritten(servers, g), " or ")+" for a tool '"+g+"'",
			"'%s' is ambiguous: on_collision: suffix numbers tools of one name, and another server can move "+
				"the numbers", g)
	}
}

// mayNumber reports whether one of the servers may have a tool with this name: it includes all tools, or this one.
func (k *checker) mayNumber(servers []string, tool string) bool {
	return slices.ContainsFunc(servers, func(name string) bool {
		s := k.c.Servers[name]
		return len(s.Include) == 0 || catalog.Match(s.Include, tool)
	})
}

// rewritten returns the globs SERVER/TOOL for a tool of each server.
func rewritten(servers []string, tool string) []string {
	out := make([]string, len(servers))
	for i, s := range servers {
		out[i] = s + "/" + tool
	}
	return out
}
