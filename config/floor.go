package config

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/tenonhq/tenon/agent"
)

// floor is a trusted layer that is read by itself, so that a project neither removes nor
// changes what it says.
type floor struct {
	layer Layer
	label string
	c     *Config // without the defaults
}

// alone reads the tree of one layer by itself. Mistakes in its values and policies are
// reported; entries that the project replaces need not be complete.
func alone(src *source, tree *node, s *sink) floor {
	d := &decoder{sink: s, vars: src.vars, nodes: map[string]*node{}, keyed: map[string]*node{},
		order:   map[string][]string{},
		secrets: map[string]SecretSource{}, late: map[string]*node{}, floor: true}
	c := &Config{tree: tree, File: src.label, Path: src.path, Dir: src.dir, vars: src.vars, nodes: d.nodes,
		order: d.order, secrets: d.secrets,
		late: d.late, envs: map[string]map[string]string{}}
	d.decode(tree, place{}, reflect.ValueOf(c).Elem(), field{})
	c.ownSecrets()
	k := &checker{decoder: d, c: c, root: tree, silent: true}
	k.policies()
	k.trust()
	return floor{src.layer, src.label, c}
}

// Forbids reports whether the administrator's file forbids a way to skip questions:
// trust_flag, trust_env or yes.
func (c *Config) Forbids(what string) bool { return c.ForbiddenBy(what) != "" }

// ForbiddenBy returns the file that forbids a way to skip questions, "" for none; see
// [Config.Forbids].
func (c *Config) ForbiddenBy(what string) string {
	if slices.Contains(c.Trust.Forbid, what) && len(c.floors) == 0 {
		return cmp.Or(c.File, "the configuration")
	}
	for _, f := range c.floors {
		if slices.Contains(f.c.Trust.Forbid, what) {
			return f.label
		}
	}
	return ""
}

// checkLeast refuses keys that a file of this layer cannot hold.
func checkLeast(tree *node, layer Layer, s *sink) {
	var walk func(n *node, p place)
	walk = func(n *node, p place) {
		least, ok := restricted()[p.pattern]
		if ok && least.rank() < layer.rank() {
			who := map[Layer]string{LayerUser: "the user's or the administrator's file",
				LayerAdmin: "the administrator's file"}[least]
			s.add(n, p.path, "only "+who+" can hold this key", "remove it here")
			return
		}
		if n.kind != mapNode {
			return
		}
		for i, key := range n.keys {
			walk(n.vals[i], p.key(key.val))
		}
	}
	walk(tree, place{})
}

// withOwnNames returns a tree whose keys have the names of the reference, and whose objects
// are not in their short form, so that the two spellings of a key are combined as one.
func withOwnNames(n *node, p place) *node {
	if short := declared().shorts[p.pattern]; short != "" && n.kind == scalarNode && !n.isNull() {
		whole := emptyMap(n)
		taken(whole, short, n, n)
		return whole
	}
	if n.kind != mapNode || p.pattern != "" && !declared().objects[p.pattern] {
		return n
	}
	if judgedApart[p.pattern] {
		return n
	}
	out := *n
	out.keys, out.vals = slices.Clone(n.keys), slices.Clone(n.vals)
	for i, key := range n.keys {
		if name := declared().aliases[p.key(key.val).pattern]; name != "" {
			if both, _ := n.get(name); both == nil {
				out.keys[i] = like(key, name)
			}
		}
		out.vals[i] = withOwnNames(n.vals[i], p.key(out.keys[i].val))
	}
	return &out
}

// loosened returns the globs of the keys that a project may loosen. trees are the trusted layers' trees.
func loosened(trees []*node, project *source) []string {
	if project.layer != LayerProject || project.path == "" {
		return nil
	}
	folder, err := filepath.EvalSymlinks(project.path)
	if err != nil {
		return nil
	}
	folder = workspace(filepath.Dir(folder))
	var globs []string
	for _, tree := range trees {
		trust, _ := tree.get("trust")
		list, _ := trust.get("projects")
		if list == nil {
			continue
		}
		for _, entry := range list.vals {
			at, keys := setting(entry, "path"), (*node)(nil)
			if keys, _ = entry.get("loosen"); at == "" || keys == nil {
				continue
			}
			real, err := filepath.EvalSymlinks(entry.src.vars.resolve(at, entry.src))
			if err != nil || real != folder {
				continue
			}
			for _, k := range keys.vals {
				globs = append(globs, k.val)
			}
		}
	}
	return globs
}

// matchesKey reports whether a glob matches a key, or a key that it is below.
func matchesKey(globs []string, key string) bool {
	for ; key != ""; key = key[:max(0, strings.LastIndexByte(key, '.'))] {
		for _, g := range globs {
			if ok, err := path.Match(g, key); ok && err == nil {
				return true
			}
		}
	}
	return false
}

// above returns the floors that are more trusted than a layer, the most trusted first.
func (c *Config) above(layer Layer) []floor {
	return slices.DeleteFunc(slices.Clone(c.floors), func(f floor) bool { return f.layer.rank() >= layer.rank() })
}

// agentLimits returns the limits of an agent: its own over the global ones, but none above a limit of a more trusted
// layer.
func (c *Config) agentLimits(name string, own agent.Limits) agent.Limits {
	out := own.Over(c.Limits)
	bare, _ := bareName(name)
	for _, f := range c.above(c.Layer("agents." + name)) {
		out = out.WithDefaults().Within(f.c.Agents[bare].Limits.Over(f.c.Limits))
	}
	return out
}

// ownSecrets notes for each entry of secrets which layer says it.
func (c *Config) ownSecrets() {
	for name, s := range c.Secrets {
		if n := c.nodes["secrets."+name]; n != nil {
			s.from = n.src
			c.Secrets[name] = s
		}
	}
}

// secretFor returns the entry of secrets for a name in a file: the entry in the file's layer, or in the next more
// trusted layer that has one. nil is a Go program.
func (c *Config) secretFor(name string, file *source) (SecretSource, bool) {
	s, ok := c.Secrets[name]
	if file == nil || ok && (s.from == nil || s.from.layer.rank() <= file.layer.rank()) {
		return s, ok
	}
	for i := len(c.floors) - 1; i >= 0; i-- {
		if f := c.floors[i]; f.layer.rank() <= file.layer.rank() {
			if s, ok := f.c.Secrets[name]; ok {
				return s, true
			}
		}
	}
	return SecretSource{}, false
}

// sourceAt returns the file that says what is at a path; nil for a Go program.
func (c *Config) sourceAt(path string) *source {
	if n := c.node(path); n != nil {
		return n.src
	}
	return nil
}

// variableOf looks a variable up for the file that names it.
func (c *Config) variableOf(s SecretSource, name string) (string, bool) {
	if s.from != nil && s.from.vars != nil {
		return s.from.vars.get(name)
	}
	return c.variable(name)
}

// keyOf tells an entry of secrets from the one of the same name in another layer.
func (c *Config) keyOf(name string, s SecretSource) string {
	if s.from == nil || len(c.floors) == 0 || s.from.layer == LayerProject {
		return "secrets." + name
	}
	return fmt.Sprintf("%s secrets.%s", s.from.layer, name)
}

// adminPath is where the administrator's file is.
func adminPath() string {
	if os.PathSeparator == '/' {
		return "/etc/tenon/config.yaml"
	}
	return ""
}

// HoldsPrice reports whether the price of a model must not be lower than the table's: a
// project says it, and a more trusted layer limits the cost of runs.
func (c *Config) HoldsPrice(model string) bool {
	if c.Layer("models."+model+".price") != LayerProject && c.Layer("prices") != LayerProject {
		return false
	}
	return slices.ContainsFunc(c.floors, func(f floor) bool {
		for _, a := range f.c.Agents {
			if a.Limits.Cost > 0 {
				return true
			}
		}
		b := f.c.Budgets
		return f.c.Limits.Cost > 0 || b.Session.Cost > 0 || b.Day.Cost > 0 || b.Principal.Cost > 0
	})
}
