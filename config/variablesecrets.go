package config

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config/tree"
)

// Many files of other programs, and many of tenon's, write a key as ${API_KEY} and not as ${secret:NAME}. Such a value
// is masked like a secret. Other variables are not: an output in which ${HOME} or ${CITY} is masked is useless.

// minVariable is the minimum length of a value that is masked in outputs, which is also the minimum of
// [tenon.Redactor]: shorter values occur in ordinary words.
const minVariable = 6

// VariableSecrets returns the values of variables that are secrets by the name of the variable, by the key under which
// the file has it, or by their form; values of env_file of the servers; and literals of the file. One function judges
// all of them: [servers.SecretParts]. The path of an existing file is no secret. The values are sorted.
func (c *Config) VariableSecrets() []tenon.Secret {
	found := map[string]bool{}
	keep := func(part string) {
		if len(part) >= minVariable {
			found[part] = true
		}
	}
	add := func(value string, names ...string) {
		for _, part := range literalParts(value, names...) {
			keep(part)
		}
	}
	var walk func(n *tree.Node, key string)
	walk = func(n *tree.Node, key string) {
		for i, v := range n.Vals {
			below := key
			if n.Kind == tree.Map {
				below = n.Keys[i].Val
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
		writtenSecrets(c.tree, "", false, keep)
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
