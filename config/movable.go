package config

import (
	"slices"
	"strings"

	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config/tree"
	"github.com/tenonhq/tenon/internal/lazyregexp"
)

// numbered matches exposed names that only a name clash produces: on_collision: suffix appends numbers, and a clash
// that remains is resolved by a hash.
var numbered = lazyregexp.New(`^(.+)_(?:[0-9]{1,3}|[0-9a-f]{8}|[0-9a-f]{24})$`)

// movable refuses a glob on the exposed name of a tool that another server can move to
// another tool, and prints the glob that no server can move. A name of the form {server}_{tool}
// is none: it stays with its tool; see [catalog.Excludes].
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

// mayNumber reports whether any of the servers may have a tool of this name, because it includes all tools or this
// one.
func (k *checker) mayNumber(servers []string, tool string) bool {
	return slices.ContainsFunc(servers, func(name string) bool {
		s := k.c.Servers[name]
		return len(s.Include) == 0 || catalog.Match(s.Include, tool)
	})
}

// rewritten returns globs that name a tool by its server.
func rewritten(servers []string, tool string) []string {
	out := make([]string, len(servers))
	for i, s := range servers {
		out[i] = s + "/" + tool
	}
	return out
}
