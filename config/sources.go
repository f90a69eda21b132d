package config

import (
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/servers"
)

// SecretAt returns where the secret at a path, such as models.m.api_key or
// servers.s.auth.secret, is read; of a named one it is the entry of secrets. A
// model that names no key and is called at its provider's own address has the
// provider's usual variable, as in [Config.Model]. Nothing is read.
func (c *Config) SecretAt(path string) (SecretSource, bool) {
	if s, ok := c.secrets[path]; ok {
		if s.name != "" {
			s, ok = c.Secrets[s.name]
		}
		return s, ok
	}
	name, ok := strings.CutPrefix(path, "models.")
	if name, of := strings.CutSuffix(name, ".api_key"); ok && of {
		m, known := c.Models[name]
		p, _ := model.Lookup(m.Provider)
		if known && m.APIKey.IsZero() && p.KeyEnv != "" && m.WithDefaults().BaseURL == p.BaseURL {
			return SecretSource{Env: p.KeyEnv}, true
		}
	}
	return SecretSource{}, false
}

// SecretName returns the name of the entry of secrets that stands at a path; "": the
// secret has no name, or there is none.
func (c *Config) SecretName(path string) string { return c.secrets[path].name }

// AddServer adds a server that no file says, such as one that a table names. Where
// credential is not empty it names the entry of secrets that is its auth.secret. The
// error has code not_found for an unknown secret, conflict for a name that is taken.
func (c *Config) AddServer(name string, s servers.Config, credential string) error {
	if _, ok := c.Servers[name]; ok {
		return tenon.Errorf(tenon.CodeConflict, "there is a server '%s' already", name)
	}
	if credential != "" {
		if _, ok := c.Secrets[credential]; !ok {
			return noEntry("secret", credential, names(c, "secrets", c.Secrets))
		}
		if c.secrets == nil {
			c.secrets = map[string]SecretSource{}
		}
		c.secrets["servers."+name+".auth.secret"] = SecretSource{name: credential}
		s.Auth.Type = servers.AuthCredential
	}
	if c.Servers == nil {
		c.Servers = map[string]servers.Config{}
	}
	c.Servers[name] = s.WithDefaults()
	c.add("servers." + name)
	return nil
}

// SetTools puts tools in that no file says, such as those of a table, also in place of
// others of their names.
func (c *Config) SetTools(tools map[string]catalog.Tool) {
	all := maps.Clone(c.Tools) // others may have the map
	if all == nil {
		all = map[string]catalog.Tool{}
	}
	maps.Copy(all, tools)
	c.Tools = all
	for name := range tools {
		c.add("tools." + name)
	}
}

func (c *Config) add(path string) {
	if c.added == nil {
		c.added = map[string]bool{}
	}
	c.added[path] = true
}

// Added reports whether the server or tool at a path ("servers.NAME") is one of
// [Config.AddServer] or [Config.SetTools]: what it would start or reach is nothing that the
// configuration asks for.
func (c *Config) Added(path string) bool { return c.added[path] }

// SecretCommands returns the programs, with their arguments, that give secrets
// to what is in use, by the path of what needs the secret.
func (c *Config) SecretCommands() map[string][]string {
	paths := slices.Collect(maps.Keys(c.Models))
	for i, name := range paths {
		paths[i] = "models." + name + ".api_key"
	}
	for name, s := range c.Servers {
		if s.IsEnabled() && s.Auth.Type != "" && s.Auth.Type != servers.AuthNone {
			paths = append(paths, "servers."+name+".auth.secret", "servers."+name+".auth.client_secret",
				"servers."+name+".auth.private_key", "servers."+name+".auth.assertion")
		}
		for who := range s.Principals {
			paths = append(paths, "servers."+name+".principals."+who+".auth.secret")
		}
	}
	paths = append(paths, "serve.auth.secret")
	for name := range c.Serve.Auth.Tokens {
		paths = append(paths, "serve.auth.tokens."+name)
	}
	paths = append(paths, "registry.secret")
	found := map[string][]string{}
	for _, p := range paths {
		if s, ok := c.SecretAt(p); ok && len(s.Command) > 0 {
			found[p] = slices.Clone(s.Command)
		}
	}
	return found
}

// Written returns the text at a path as the file has it, before variables are
// expanded; "" where the file does not say it or it is not a text.
func (c *Config) Written(path string) string {
	if n := c.nodes[path]; n != nil && n.kind == scalarNode {
		return n.val
	}
	return ""
}

// Variables returns the names of the variables that are expanded in the value at
// a path and in everything below it, sorted.
func (c *Config) Variables(path string) []string {
	found := map[string]bool{}
	var walk func(n *node)
	walk = func(n *node) {
		if n == nil {
			return
		}
		for s := strings.ReplaceAll(n.val, "$$", ""); ; {
			_, rest, ok := strings.Cut(s, "${")
			if !ok {
				break
			}
			inner, after, _ := strings.Cut(rest, "}")
			if name, _, _ := strings.Cut(inner, ":-"); varName(name) {
				found[name] = true
			}
			s = after
		}
		for _, v := range n.vals {
			walk(v)
		}
	}
	walk(c.nodes[path])
	return slices.Sorted(maps.Keys(found))
}

// Files returns the paths of the files that the configuration was read from, whether
// or not they are all there: the file itself, the user's own, .env beside both, what
// env_file, instructions, prompts and tool_tables name. Empty where it came from stdin alone.
func (c *Config) Files() []string {
	list := slices.Clone(c.read)
	for _, s := range c.Servers {
		list = append(list, s.EnvFile)
	}
	for _, a := range c.Agents {
		list = append(list, a.Instructions.File, a.ResponseFormat.File)
		if filepath.IsAbs(a.Prompt) {
			list = append(list, a.Prompt)
		}
	}
	for _, t := range c.ToolTables {
		list = append(list, t.Path)
	}
	list = append(list, c.Prices)
	slices.Sort(list)
	return slices.DeleteFunc(slices.Compact(list), func(f string) bool { return f == "" })
}

// SecretRefs returns the names of the secrets that stand in the text at a path.
func (c *Config) SecretRefs(path string) []string {
	var names []string
	if n := c.late[path]; n != nil {
		for _, m := range secretVariable.FindAllStringSubmatch(n.val, -1) {
			names = append(names, m[1])
		}
	}
	return names
}

// URLTransports returns the values of servers.NAME.transport that go with a URL.
func URLTransports() []string {
	f, _ := reflect.TypeFor[servers.Config]().FieldByName("Transport") // a test holds it
	return strings.Split(strings.TrimPrefix(f.Tag.Get("enum"), servers.TransportStdio+","), ",")
}

// Protocols returns the values of servers.NAME.protocol.
func Protocols() []string {
	f, _ := reflect.TypeFor[servers.Config]().FieldByName("Protocol") // a test holds it
	return strings.Split(f.Tag.Get("enum"), ",")
}
