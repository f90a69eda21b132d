package config

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config/tree"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/servers"
)

// NamesDiffer returns the reason why the exposed name of a tool can differ from its remote name: a setting of a
// server, an entry of tools, or a second source of tools. It returns "" if they cannot differ. more is the number of
// sources of tools that a program adds. If the names can differ, tool.name is ambiguous in a rule.
func (c *Config) NamesDiffer(more int) string {
	sources := make(map[string]bool, len(c.Servers))
	renamed := c.renamingTools()
	for _, name := range slices.Sorted(maps.Keys(c.Servers)) {
		if !c.Servers[name].IsEnabled() {
			continue
		}
		sources[name] = true
		if why := namesOf(name, c.Servers[name], renamed); why != "" {
			return why
		}
	}
	for name, t := range c.Tools {
		sources[t.WithDefaults(name).Server] = true
	}
	if len(c.flows) > 0 {
		sources[catalog.WorkflowServer] = true
	}
	if len(sources)+more > 1 {
		return "where two servers have a tool of one name, both get another exposed name"
	}
	return ""
}

// NamesDifferWith is NamesDiffer for a configuration to which a program adds an entry of servers.
func (c *Config) NamesDifferWith(more int, name string, entry servers.Config) string {
	if why := namesOf(name, entry, c.renamingTools()); why != "" {
		return why
	}
	return c.NamesDiffer(more)
}

// renamingTools returns, by server, the first entry of tools that renames one of the server's tools.
func (c *Config) renamingTools() map[string]string {
	first := map[string]string{}
	for name, t := range c.Tools {
		t = t.WithDefaults(name)
		if known, ok := first[t.Server]; t.RemoteName != name && (!ok || name < known) {
			first[t.Server] = name
		}
	}
	return first
}

// namesOf returns the reason why a server's tools can get exposed names that differ from their own names, apart from
// name clashes. It returns "" if they cannot. renamed is the result of renamingTools.
func namesOf(server string, s servers.Config, renamed map[string]string) string {
	if t := s.Naming.Template; t != "" && t != "{tool}" {
		return fmt.Sprintf("servers.%s.naming.template gives tools other names", server)
	}
	for i, t := range s.Transform {
		if t.Prefix != "" || len(t.Rename) > 0 || t.Func != nil {
			return fmt.Sprintf("%s gives tools other names", tree.Index("servers."+server+".transform", i))
		}
	}
	if name, ok := renamed[server]; ok {
		return fmt.Sprintf("tools.%s gives a tool another name", name)
	}
	return ""
}

// differ is NamesDiffer for the file that is checked. It computes the result once, because the entries do not change
// after the tables have been read.
func (k *checker) differ() string {
	if k.names == nil {
		why := k.c.NamesDiffer(0)
		k.names = &why
	}
	return *k.names
}

// ambiguous reports tool.name in a condition as an error if why is set. The hint is the condition with
// tool.remote_name, whose meaning does not depend on other servers.
func (k *checker) ambiguous(p string, c *policy.Condition, why string) {
	if c == nil || why == "" || !c.UsesName() {
		return
	}
	k.bad(p, "write "+scalar(c.WithName("remote_name"))+", or tool.exposed for the name that the model sees",
		"tool.name is ambiguous: %s", why)
}
