package config

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config/tree"
	"github.com/tenonhq/tenon/servers"
)

// Many files of other programs, and many of tenon's, write a key as ${API_KEY} and not as ${secret:NAME}. Such a value
// is masked like a secret. Other variables are not: an output in which ${HOME} or ${CITY} is masked is useless.

// minVariable is the minimum length of a variable's value that is masked. A secret of an entry in secrets may be
// shorter, because a person said there that it is one.
const minVariable = 8

// holdsLiterals reports whether the values under a key are texts for a server or a provider, in which a file may have a
// key itself.
func holdsLiterals(key string) bool { return key == "headers" || key == "env" }

// VariableSecrets returns the values of variables that are secrets by the name of the variable, by the key under which
// the file has it, or by their form; and values of env_file of the servers, and values that the file itself has in
// headers and env, that are secrets by name or form. The path of an existing file is no secret. The values are sorted.
func (c *Config) VariableSecrets() []tenon.Secret {
	found := map[string]bool{}
	add := func(value string, names ...string) {
		secret := servers.LooksLikeToken(value) || slices.ContainsFunc(names, servers.NamesSecret)
		if secret && len(value) >= minVariable && !(filepath.IsAbs(value) && isFile(value)) {
			found[value] = true
		}
	}
	var walk func(n *tree.Node, key string)
	walk = func(n *tree.Node, key string) {
		for i, v := range n.Vals {
			below := key
			if n.Kind == tree.Map {
				below = n.Keys[i].Val
				if holdsLiterals(key) && v.Kind == tree.Scalar && !strings.Contains(v.Val, "${") {
					add(v.Val, below)
					if _, token, ok := strings.Cut(v.Val, " "); ok { // after Bearer
						add(token, below)
					}
				}
			}
			walk(v, below)
		}
		if n.Kind != tree.Scalar || !strings.Contains(n.Val, "${") {
			return
		}
		before, _, _ := strings.Cut(n.Val, "${")
		flag, _ := strings.CutSuffix(before, "=")
		for _, r := range referencesIn(n) {
			if value, ok := n.Src.Vars.Get(r.Name); ok { // a default is in the file, and is no secret
				add(value, r.Name, key, cmp.Or(flag, key))
			}
		}
	}
	if c.tree != nil {
		walk(c.tree, "")
	}
	for _, file := range c.envs {
		for name, value := range file {
			add(value, name)
		}
	}
	var list []tenon.Secret
	for _, value := range slices.Sorted(maps.Keys(found)) {
		list = append(list, tenon.NewSecret(value))
	}
	return list
}
