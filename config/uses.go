package config

import (
	"maps"
	"slices"
	"strings"
)

// SecretUse is a place in the project's configuration that uses a secret.
type SecretUse struct {
	Path   string // such as servers.github.auth.secret
	Name   string // name of the entry of secrets; "" for an inline source
	Source SecretSource
	User   bool // the entry is in the user's own file
}

// SecretUses returns the places where the project uses a secret, with its source, sorted by path. It leaves out
// places in the user's own file and in request templates. It reads no secret.
func (c *Config) SecretUses() []SecretUse {
	var list []SecretUse
	add := func(path, name string, s SecretSource) {
		list = append(list, SecretUse{Path: path, Name: name, Source: s, User: name != "" &&
			c.Layer("secrets."+name) == LayerUser})
	}
	for _, path := range slices.Sorted(maps.Keys(c.secrets)) {
		if !c.inUse(path) {
			continue
		}
		s := c.secrets[path]
		if name := s.name; name != "" {
			add(path, name, c.Secrets[name])
		} else {
			add(path, "", s)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(c.late)) {
		if !c.inUse(path) {
			continue
		}
		for _, name := range c.SecretRefs(path) {
			add(path, name, c.Secrets[name])
		}
	}
	for _, name := range c.ModelNames() {
		path := "models." + name + ".api_key"
		if _, said := c.secrets[path]; !said && c.own("models."+name) {
			if s, ok := c.SecretAt(path); ok {
				add(path, "", s)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b SecretUse) int { return strings.Compare(a.Path, b.Path) })
	return list
}

// inUse reports whether the project sets the value at a path, and not for a disabled server. The credential of a
// server from a table counts as set by the project.
func (c *Config) inUse(path string) bool {
	if rest, ok := strings.CutPrefix(path, "servers."); ok {
		for i := range len(rest) { // a name may hold dots
			if rest[i] != '.' {
				continue
			}
			name := rest[:i]
			if s, ok := c.Servers[name]; ok && !s.IsEnabled() {
				return false
			}
			if c.added["servers."+name] {
				return true
			}
		}
	}
	return c.own(path)
}

// EnvFileNames returns the names of the variables in the env_file of a server, sorted.
func (c *Config) EnvFileNames(server string) []string {
	return slices.Sorted(maps.Keys(c.envs[server]))
}
