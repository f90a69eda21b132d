package config

import (
	"strconv"
	"strings"

	"github.com/tenonhq/tenon/config/tree"
	"github.com/tenonhq/tenon/servers"
)

// Reference is a variable in a value, written as ${NAME} or ${NAME:-default}.
type Reference struct {
	Name  string
	Value string // value of the variable; "" if it is not set
	// Project says that the project sets the value, in its .env file or as the default in its file. Otherwise the
	// value is from the person's environment.
	Project bool
}

// Rewrite returns the text at a path, such as servers.s.url or servers.s.args[0], with each variable replaced by the
// result of show. Secrets (${secret:NAME}) stay as they are. It returns false if the file has no text at the path.
func (c *Config) Rewrite(path string, show func(Reference) string) (string, bool) {
	n := c.textAt(path)
	if n == nil {
		return "", false
	}
	return rewrite(n, show), true
}

// rewrite is [Config.Rewrite] for the text of a node.
func rewrite(n *tree.Node, show func(Reference) string) string {
	var b strings.Builder
	for s := n.Val; ; {
		i := strings.IndexByte(s, '$')
		if i < 0 || i+1 == len(s) {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(s[:i])
		s = s[i:]
		end := strings.IndexByte(s, '}')
		switch {
		case s[1] == '$':
			b.WriteByte('$')
			s = s[2:]
			continue
		case s[1] != '{' || end < 0:
			b.WriteByte('$')
			s = s[1:]
			continue
		}
		if r, ok := referenceTo(n, s[2:end]); ok {
			b.WriteString(show(r))
		} else {
			b.WriteString(s[:end+1])
		}
		s = s[end+1:]
	}
}

// References returns the variables of the text at a path.
func (c *Config) References(path string) (list []Reference) {
	if n := c.textAt(path); n != nil {
		list = referencesIn(n)
	}
	return list
}

// referencesIn returns the variables of the text of a node.
func referencesIn(n *tree.Node) (list []Reference) {
	rewrite(n, func(r Reference) string {
		list = append(list, r)
		return ""
	})
	return list
}

// AllReferences returns the variables in all texts of the configuration, without duplicates.
func (c *Config) AllReferences() (list []Reference) {
	seen := map[Reference]bool{}
	for path := range c.nodes {
		for _, r := range c.References(path) {
			if !seen[r] {
				seen[r] = true
				list = append(list, r)
			}
		}
	}
	return list
}

// LooksLikeToken reports whether a literal is probably a secret; see [servers.LooksLikeToken].
func LooksLikeToken(s string) bool { return servers.LooksLikeToken(s) }

// textAt returns the text at a path, or nil if there is none. Items of some lists are not in c.nodes and are looked
// up in the node of the list.
func (c *Config) textAt(path string) *tree.Node {
	if n := c.node(path); n != nil {
		if n.Kind == tree.Scalar {
			return n
		}
		return nil
	}
	at := strings.LastIndexByte(path, '[')
	if at < 0 {
		return nil
	}
	n := c.node(path[:at])
	i, err := strconv.Atoi(strings.TrimSuffix(path[at+1:], "]"))
	if err != nil || n == nil || n.Kind != tree.List || i < 0 || i >= len(n.Vals) || n.Vals[i].Kind != tree.Scalar {
		return nil
	}
	return n.Vals[i]
}

// referenceTo resolves the text inside ${…}.
func referenceTo(n *tree.Node, inner string) (Reference, bool) {
	name, def, hasDefault := strings.Cut(inner, ":-")
	if !tree.IsVariable(name) || n.Src == nil || n.Src.Vars == nil {
		return Reference{}, false
	}
	r := Reference{Name: name}
	var known bool
	if r.Value, known = n.Src.Vars.Lookup(name); !known {
		r.Value, r.Project = n.Src.Vars.Dotenv[name], true
	}
	if r.Value == "" && hasDefault {
		r.Value, r.Project = def, true
	}
	return r, true
}
