package config

import (
	"slices"
	"strings"

	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/policy"
)

// Scope is the set of entries to which an entry of a trusted layer may refer: the entries of its layer and of more
// trusted ones. A nil Scope contains all entries.
type Scope struct {
	c      *Config
	layer  Layer
	groups map[policy.ID][]string
}

// Scope returns the scope of the entry at a path, such as agents.ops or tools.flow. It is nil for an entry of the
// least trusted layer, and for an entry that is in no file.
func (c *Config) Scope(path string) *Scope {
	if c.node(path) == nil {
		return nil // a built-in default, or set by a Go program
	}
	layer := c.Layer(path)
	if layer.Rank() >= c.topLayer().Rank() {
		return nil
	}
	s := &Scope{c: c, layer: layer, groups: map[policy.ID][]string{}}
	for i := range c.floors {
		if f := &c.floors[i]; f.layer.Rank() <= layer.Rank() {
			for name, t := range f.c.Tools {
				s.add(f.toolID(c, name, t), t.Groups)
			}
		}
	}
	for name, t := range c.Tools {
		if s.includes("tools." + name) {
			s.add(c.toolID(name, t), t.Groups)
		}
	}
	return s
}

func (s *Scope) add(id policy.ID, groups []string) {
	if groups != nil {
		s.groups[id] = groups
	}
}

// includes reports whether the entry at a path belongs to the scope's layer or to a more trusted one.
func (s *Scope) includes(path string) bool {
	layer := s.c.Layer(path)
	return layer != LayerNone && layer.Rank() <= s.layer.Rank()
}

// Groups returns the groups of a tool that the scope's layers set, or nil if they set none.
func (s *Scope) Groups(id policy.ID) []string { return s.groups[id] }

// HasServer reports whether a server, by its name and its identity, belongs to the scope.
func (s *Scope) HasServer(name, identity string) bool {
	switch {
	case s == nil:
		return true
	case slices.Contains(catalog.OwnServers(), name):
		layer, _, _ := strings.Cut(identity, ":")
		return Layer(layer) != LayerProject && !IsTarget(identity)
	}
	return s.includes("servers."+name) || s.c.Layer("servers."+name) == LayerNone // the person named it
}

// HasAgent reports whether an agent belongs to the scope.
func (s *Scope) HasAgent(name string) bool { return s == nil || s.includes("agents."+name) }
