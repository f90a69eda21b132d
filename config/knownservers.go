package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// knownServer says how an npm package of an MCP server takes its settings. It does not read MCP_CONFIG.
type knownServer struct {
	args string            // setting whose values are its arguments
	env  map[string]string // setting → environment variable
	// needs says what it cannot do without args.
	needs string
}

// knownServers are packages that HoloDeck's agents name. The sources are the README files of the packages in version
// 2026.8.31 (github.com/modelcontextprotocol/servers, src/NAME/README.md):
//
//   - server-filesystem: "Method 1: Command-line Arguments", and "Server requires at least ONE allowed directory"
//   - server-memory: "Custom Setting", MEMORY_FILE_PATH
//   - server-sequential-thinking: DISABLE_THOUGHT_LOGGING
var knownServers = map[string]knownServer{
	"@modelcontextprotocol/server-filesystem": {args: "allowed_directories",
		needs: "it refuses every path without a folder"},
	"@modelcontextprotocol/server-memory": {env: map[string]string{"memory_file_path": "MEMORY_FILE_PATH"}},
	"@modelcontextprotocol/server-sequential-thinking": {
		env: map[string]string{"disable_thought_logging": "DISABLE_THOUGHT_LOGGING"}},
}

// packageName returns the name of an npm package without its version.
func packageName(spec string) string {
	if i := strings.LastIndexByte(spec, '@'); i > 0 {
		return spec[:i]
	}
	return spec
}

// packageArgs returns the arguments that a known package takes from its settings.
func packageArgs(spec string, settings *node) []*node {
	values, _ := settings.get(knownServers[packageName(spec)].args)
	switch {
	case values == nil || values.kind == mapNode:
		return nil
	case values.kind == listNode:
		return slices.Clone(values.vals)
	}
	return []*node{values}
}

// knownServer gives a known package its settings as environment variables, and warns of settings that it would not
// get. Explicit arguments stay as they are written.
func (c *conversion) knownServer(t, e *node, path string) {
	spec, at := packageOf(e)
	known, ok := knownServers[packageName(spec)]
	if !ok {
		return
	}
	settings, _ := t.get("config")
	for _, key := range slices.Sorted(maps.Keys(known.env)) {
		if v, k := settings.get(key); v != nil {
			c.settingVariable(e, k, v, known.env[key])
		}
	}
	args, _ := e.get("args")
	values, key := settings.get(known.args)
	roots, _ := e.get("roots")
	short, _ := t.get("server")
	switch given := len(args.vals) - at - 1; {
	case known.args == "" || roots != nil:
	case values != nil && short == nil:
		for _, want := range packageArgs(spec, settings) {
			if !slices.ContainsFunc(args.vals[at+1:], func(n *node) bool { return n.val == want.val }) {
				c.note(key, path+".config."+known.args, "%s does not read this setting: write '%s' into args",
					packageName(spec), want.val)
				return
			}
		}
	case given == 0:
		c.remark(args, path, fmt.Sprintf("%s has no folder: %s", packageName(spec), known.needs),
			fmt.Sprintf("write config: {%s: [./data]}", known.args))
	}
}

// packageOf returns the npm package that npx starts for an entry, and its index in args.
func packageOf(e *node) (spec string, at int) {
	command, _ := e.get("command")
	args, _ := e.get("args")
	if command == nil || command.val != "npx" || args == nil || args.kind != listNode {
		return "", 0
	}
	for i, a := range args.vals {
		if !strings.HasPrefix(a.val, "-") {
			return a.val, i
		}
	}
	return "", 0
}

// settingVariable sets an environment variable of an entry, unless the file sets it.
func (c *conversion) settingVariable(e, k, v *node, name string) {
	if v.kind != scalarNode {
		return
	}
	env, _ := e.get("env")
	if env == nil {
		env = emptyMap(k)
		taken(e, "env", k, env)
	}
	if set, _ := env.get(name); set == nil && env.kind == mapNode {
		out := *env // others may have the map
		out.keys, out.vals = slices.Clone(env.keys), slices.Clone(env.vals)
		taken(&out, name, k, like(v, v.val))
		e.put("env", &out)
	}
}
