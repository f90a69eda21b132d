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

// NamesDiffer says why the exposed name of a tool can differ from its remote name, "" if
// neither a server's entry nor an entry of tools nor a second source of tools makes that
// possible. More counts sources of tools that a program adds. Where the names can differ,
// tool.name is ambiguous in a rule.
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

// NamesDifferWith is NamesDiffer with an entry of servers that a program adds.
func (c *Config) NamesDifferWith(more int, name string, entry servers.Config) string {
	if why := namesOf(name, entry, c.renamingTools()); why != "" {
		return why
	}
	return c.NamesDiffer(more)
}

// renamingTools returns, for each server, the first entry of tools that gives one of its tools
// another name.
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

// namesOf says why the exposed names of a server's tools can differ from their own names without a name clash. It
// returns "" if they cannot. renamed is the result of renamingTools.
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

// differ is NamesDiffer for the file that is checked: entries do not change after the tables
// are read.
func (k *checker) differ() string {
	if k.names == nil {
		why := k.c.NamesDiffer(0)
		k.names = &why
	}
	return *k.names
}

// ambiguous reports tool.name in a condition as an error if why is set. The hint is the condition with
// tool.remote_name, which cannot change with other servers.
func (k *checker) ambiguous(p string, c *policy.Condition, why string) {
	if c == nil || why == "" || !c.UsesName() {
		return
	}
	k.bad(p, "write "+scalar(c.WithName("remote_name"))+", or tool.exposed for the name that the model sees",
		"tool.name is ambiguous: %s", why)
}
