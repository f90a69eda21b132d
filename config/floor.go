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
	"github.com/tenonhq/tenon/config/tree"
)

// floor is a trusted layer. It is read separately, so that a project can neither remove nor change its values.
type floor struct {
	layer Layer
	label string
	c     *Config // without defaults
}

// alone reads the tree of one layer separately. It reports mistakes in values and policies. Entries that the project
// replaces may be incomplete.
func alone(src *tree.Source, root *tree.Node, s *tree.Sink) floor {
	d := &decoder{Sink: s, vars: src.Vars, nodes: map[string]*tree.Node{}, keyed: map[string]*tree.Node{},
		order:   map[string][]string{},
		secrets: map[string]SecretSource{}, late: map[string]*tree.Node{}, floor: true}
	c := &Config{tree: root, File: src.Label, Path: src.Path, Dir: src.Dir, vars: src.Vars, nodes: d.nodes,
		order: d.order, secrets: d.secrets,
		late: d.late, envs: map[string]map[string]string{}}
	d.decode(root, place{}, reflect.ValueOf(c).Elem(), field{})
	c.ownSecrets()
	k := &checker{decoder: d, c: c, root: root, silent: true}
	k.policies()
	k.trust()
	return floor{src.Layer, src.Label, c}
}

// Forbids reports whether the administrator's file forbids a way to skip questions:
// trust_flag, trust_env or yes.
func (c *Config) Forbids(what string) bool { return c.ForbiddenBy(what) != "" }

// ForbiddenBy returns the file that forbids a way to skip questions, or "" if none does; see [Config.Forbids].
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

// checkLeast reports keys that files of this layer must not contain.
func checkLeast(root *tree.Node, layer Layer, s *tree.Sink) {
	var walk func(n *tree.Node, p place)
	walk = func(n *tree.Node, p place) {
		least, ok := restricted()[p.pattern]
		if ok && least.Rank() < layer.Rank() {
			who := map[Layer]string{LayerUser: "the user's or the administrator's file",
				LayerAdmin: "the administrator's file"}[least]
			s.Add(n, p.path, "only "+who+" can hold this key", "remove it here")
			return
		}
		if n.Kind != tree.Map {
			return
		}
		for i, key := range n.Keys {
			walk(n.Vals[i], p.key(key.Val))
		}
	}
	walk(root, place{})
}

// withOwnNames returns a tree with the names of keys as in the reference, and without short forms of objects.
// Different spellings of a key can then be merged.
func withOwnNames(n *tree.Node, p place) *tree.Node {
	if short := declared().shorts[p.pattern]; short != "" && n.Kind == tree.Scalar && !n.IsNull() {
		whole := tree.MapAt(n)
		whole.Append(short, n, n)
		return whole
	}
	if n.Kind != tree.Map || p.pattern != "" && !declared().object(p.pattern) {
		return n
	}
	if judgedApart[p.pattern] {
		return n
	}
	out := *n
	out.Keys, out.Vals = slices.Clone(n.Keys), slices.Clone(n.Vals)
	for i, key := range n.Keys {
		if name := declared().aliases[p.key(key.Val).pattern]; name != "" {
			if both, _ := n.Get(name); both == nil {
				out.Keys[i] = tree.TextAt(key, name)
			}
		}
		out.Vals[i] = withOwnNames(n.Vals[i], p.key(out.Keys[i].Val))
	}
	return &out
}

// loosened returns the globs of the keys that the project may loosen, from the trees of the trusted layers.
func loosened(trees []*tree.Node, project *tree.Source) []string {
	if project.Layer != LayerProject || project.Path == "" {
		return nil
	}
	folder, err := filepath.EvalSymlinks(project.Path)
	if err != nil {
		return nil
	}
	folder = workspace(filepath.Dir(folder))
	var globs []string
	for _, root := range trees {
		trust, _ := root.Get("trust")
		list, _ := trust.Get("projects")
		if list == nil {
			continue
		}
		for _, entry := range list.Vals {
			at, keys := setting(entry, "path"), (*tree.Node)(nil)
			if keys, _ = entry.Get("loosen"); at == "" || keys == nil {
				continue
			}
			real, err := filepath.EvalSymlinks(entry.Src.Vars.Resolve(at, entry.Src))
			if err != nil || real != folder {
				continue
			}
			for _, k := range keys.Vals {
				globs = append(globs, k.Val)
			}
		}
	}
	return globs
}

// matchesKey reports whether a glob matches a key or one of its parents.
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

// above returns the floors of layers that are more trusted than a layer, the most trusted first.
func (c *Config) above(layer Layer) []floor {
	return slices.DeleteFunc(slices.Clone(c.floors), func(f floor) bool { return f.layer.Rank() >= layer.Rank() })
}

// agentLimits returns the limits of an agent: its own limits applied over the global ones, but none beyond a limit of
// a more trusted layer.
func (c *Config) agentLimits(name string, own agent.Limits) agent.Limits {
	out := own.Over(c.Limits)
	bare, _ := bareName(name)
	for _, f := range c.above(c.Layer("agents." + name)) {
		out = out.WithDefaults().Within(f.c.Agents[bare].Limits.Over(f.c.Limits))
	}
	return out
}

// ownSecrets records for each entry of secrets which file contains it.
func (c *Config) ownSecrets() {
	for name, s := range c.Secrets {
		if n := c.nodes["secrets."+name]; n != nil {
			s.from = n.Src
			c.Secrets[name] = s
		}
	}
}

// secretFor returns the entry of secrets to which a name in a file refers: the entry of the file's own layer, or else
// of the next more trusted layer that has one. file is nil if a Go program uses the name.
func (c *Config) secretFor(name string, file *tree.Source) (SecretSource, bool) {
	s, ok := c.Secrets[name]
	if file == nil || ok && (s.from == nil || s.from.Layer.Rank() <= file.Layer.Rank()) {
		return s, ok
	}
	for i := len(c.floors) - 1; i >= 0; i-- {
		if f := c.floors[i]; f.layer.Rank() <= file.Layer.Rank() {
			if s, ok := f.c.Secrets[name]; ok {
				return s, true
			}
		}
	}
	return SecretSource{}, false
}

// sourceAt returns the file that sets the value at a path. It returns nil if a Go program has set it.
func (c *Config) sourceAt(path string) *tree.Source {
	if n := c.node(path); n != nil {
		return n.Src
	}
	return nil
}

// variableOf looks up a variable for a secret, with the variables of the file that contains the secret's entry.
func (c *Config) variableOf(s SecretSource, name string) (string, bool) {
	if s.from != nil && s.from.Vars != nil {
		return s.from.Vars.Get(name)
	}
	return c.variable(name)
}

// keyOf returns a key for an entry of secrets that is unique among the layers, which may have entries of the same
// name.
func (c *Config) keyOf(name string, s SecretSource) string {
	if s.from == nil || len(c.floors) == 0 || s.from.Layer == LayerProject {
		return "secrets." + name
	}
	return fmt.Sprintf("%s secrets.%s", s.from.Layer, name)
}

// adminPath returns the default path of the administrator's file, or "" if the system has none.
func adminPath() string {
	if os.PathSeparator == '/' {
		return "/etc/tenon/config.yaml"
	}
	return ""
}

// HoldsPrice reports whether the price of a model must not be below the price in the built-in table. This is the case
// if a project sets the price and a more trusted layer limits the cost of runs.
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
