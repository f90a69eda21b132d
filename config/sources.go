package config

import (
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config/tree"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/servers"
)

// SecretAt returns the source of the secret at a path, such as models.m.api_key or servers.s.auth.secret. For a name,
// that is the source in the entry of secrets. For a model without a key at its provider's own address, it is the
// provider's usual variable, as in [Config.Model]. SecretAt reads no secret.
func (c *Config) SecretAt(path string) (SecretSource, bool) {
	if s, ok := c.secrets[path]; ok {
		if s.name != "" {
			s, ok = c.secretFor(s.name, s.from)
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

// SecretName returns the name of the entry of secrets that the value at a path refers to, or "" if it refers to none.
func (c *Config) SecretName(path string) string { return c.secrets[path].name }

// AddServer adds a server that is in no file, such as a server from a table. credential names an entry of secrets for
// auth.secret, or is empty. Errors: not_found for an unknown secret, conflict for a name that is taken, and the
// errors of [Config.GuardServer].
func (c *Config) AddServer(name string, s servers.Config, credential string) error {
	if _, ok := c.Servers[name]; ok {
		return tenon.Errorf(tenon.CodeConflict, "there is a server '%s' already", name)
	}
	if why := c.forbidden(append([]string{s.Command}, s.Args...)); s.Command != "" && why != "" {
		return tenon.Errorf(tenon.CodeDenied, "server '%s': %s", tenon.Visible(name), why)
	}
	if err := c.GuardServer(name, s); err != nil {
		return err
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
	c.add("servers." + name)
	c.Servers[name] = c.Narrowed(name, s.WithDefaults())
	return nil
}

// SetTools adds tools that are in no file, such as tools from a table. They replace tools of the same names.
func (c *Config) SetTools(tools map[string]catalog.Tool) {
	all := maps.Clone(c.Tools) // a copy, because other goroutines may read the map
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

// Added reports whether the server or tool at a path ("servers.NAME") was added by [Config.AddServer] or
// [Config.SetTools], so that no file asks for it.
func (c *Config) Added(path string) bool { return c.added[path] }

// Written returns the text at a path as written in the file, before variables are expanded. It returns "" if the file
// has no text there.
func (c *Config) Written(path string) string {
	if n := c.nodes[path]; n != nil && n.Kind == tree.Scalar {
		return n.Val
	}
	return ""
}

// Variables returns the names of the variables in the values at and below a path, sorted. They include the variables
// of the environment to which a .env file refers.
func (c *Config) Variables(path string) []string {
	found := map[string]bool{}
	var walk func(n *tree.Node)
	walk = func(n *tree.Node) {
		if n == nil {
			return
		}
		for s := strings.ReplaceAll(n.Val, "$$", ""); ; {
			_, rest, ok := strings.Cut(s, "${")
			if !ok {
				break
			}
			inner, after, _ := strings.Cut(rest, "}")
			if name, _, _ := strings.Cut(inner, ":-"); tree.IsVariable(name) {
				for _, name := range c.behind(n, name) {
					found[name] = true
				}
			}
			s = after
		}
		for _, v := range n.Vals {
			walk(v)
		}
	}
	walk(c.nodes[path])
	return slices.Sorted(maps.Keys(found))
}

// behind calls [tree.Variables.Behind] for a variable in a value.
func (c *Config) behind(n *tree.Node, name string) []string {
	vars := c.vars
	if n.Src != nil && n.Src.Vars != nil {
		vars = n.Src.Vars
	}
	if vars == nil {
		return []string{name}
	}
	return vars.Behind([]string{name})
}

// EnvFileTakes returns the names of the variables of the environment to which the env_file of a server refers, sorted.
func (c *Config) EnvFileTakes(server string) []string {
	return slices.Compact(slices.Sorted(slices.Values(c.envTakes[server])))
}

// Files returns the paths of the files from which the configuration is read, existing or not: the file itself, the
// user's own, the .env files next to them, the files that env_file, instructions, prompts, data_inputs, workflows,
// models and tool_tables name, and the scripts of commands. It is empty if the configuration is only from stdin.
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
		list = append(list, a.DataInputs...)
	}
	for _, t := range c.ToolTables {
		list = append(list, t.Path)
	}
	list = append(list, c.Prices)
	for key, cmd := range c.commands() {
		list = append(list, c.load(key, cmd)...)
	}
	for _, flow := range c.flowed {
		list = slices.AppendSeq(list, maps.Keys(flow.sums))
	}
	list = append(list, c.tableReads...)
	for _, m := range c.Models {
		if m.Provider == "script" {
			list = append(list, m.Path)
		}
	}
	slices.Sort(list)
	return slices.DeleteFunc(slices.Compact(list), func(f string) bool { return f == "" })
}

// SecretRefs returns the names of the secrets in the text at a path.
func (c *Config) SecretRefs(path string) []string {
	var names []string
	if n := c.late[path]; n != nil {
		names = secretsIn(n.Val)
	}
	return names
}

// SecretRefsBelow returns the names of the secrets in the texts at a path and below it, sorted.
func (c *Config) SecretRefsBelow(path string) []string {
	found := map[string]bool{}
	for at := range c.late {
		if rest, ok := strings.CutPrefix(at, path); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			for _, name := range c.SecretRefs(at) {
				found[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// URLTransports returns the values of servers.NAME.transport for servers with a URL.
func URLTransports() []string {
	f, _ := reflect.TypeFor[servers.Config]().FieldByName("Transport") // a test checks the tag
	return strings.Split(strings.TrimPrefix(f.Tag.Get("enum"), servers.TransportStdio+","), ",")
}

// Protocols returns the values of servers.NAME.protocol.
func Protocols() []string {
	f, _ := reflect.TypeFor[servers.Config]().FieldByName("Protocol") // a test checks the tag
	return strings.Split(f.Tag.Get("enum"), ",")
}
