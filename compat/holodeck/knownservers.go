package holodeck

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tenonhq/tenon/config/tree"
)

// knownServer says how an npm package of an MCP server gets its settings. Such a package does not read MCP_CONFIG.
type knownServer struct {
	args string            // name of the setting whose values become arguments
	env  map[string]string // setting → environment variable
	// needs describes what the server cannot do without arguments.
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
func packageArgs(spec string, settings *tree.Node) []*tree.Node {
	values, _ := settings.Get(knownServers[packageName(spec)].args)
	switch {
	case values == nil || values.Kind == tree.Map:
		return nil
	case values.Kind == tree.List:
		return slices.Clone(values.Vals)
	}
	return []*tree.Node{values}
}

// knownServer gives a known package its settings as environment variables, and warns of settings that it would not
// get. Explicit arguments stay as they are written.
func (c converter) knownServer(t, e *tree.Node, path string) {
	spec, at := packageOf(e)
	known, ok := knownServers[packageName(spec)]
	if !ok {
		return
	}
	settings, _ := t.Get("config")
	for _, key := range slices.Sorted(maps.Keys(known.env)) {
		if v, k := settings.Get(key); v != nil {
			c.settingVariable(e, k, v, known.env[key])
		}
	}
	args, _ := e.Get("args")
	values, key := settings.Get(known.args)
	roots, _ := e.Get("roots")
	short, _ := t.Get("server")
	switch given := len(args.Vals) - at - 1; {
	case known.args == "" || roots != nil:
	case values != nil && short == nil:
		for _, want := range packageArgs(spec, settings) {
			if !slices.ContainsFunc(args.Vals[at+1:], func(n *tree.Node) bool { return n.Val == want.Val }) {
				c.Note(key, path+".config."+known.args, "%s does not read this setting: write '%s' into args",
					packageName(spec), want.Val)
				return
			}
		}
	case given == 0:
		c.Remark(args, path, fmt.Sprintf("%s has no folder: %s", packageName(spec), known.needs),
			fmt.Sprintf("write config: {%s: [./data]}", known.args))
	}
}

// packageOf returns the npm package that npx starts for an entry, and its index in args.
func packageOf(e *tree.Node) (spec string, at int) {
	command, _ := e.Get("command")
	args, _ := e.Get("args")
	if command == nil || command.Val != "npx" || args == nil || args.Kind != tree.List {
		return "", 0
	}
	for i, a := range args.Vals {
		if !strings.HasPrefix(a.Val, "-") {
			return a.Val, i
		}
	}
	return "", 0
}

// settingVariable sets an environment variable of an entry, unless the file sets it.
func (c converter) settingVariable(e, k, v *tree.Node, name string) {
	if v.Kind != tree.Scalar {
		return
	}
	env := e.Child("env", k)
	if set, _ := env.Get(name); set == nil && env.Kind == tree.Map {
		out := *env // others may have the map
		out.Keys, out.Vals = slices.Clone(env.Keys), slices.Clone(env.Vals)
		out.Append(name, k, tree.TextAt(v, v.Val))
		e.Put("env", &out)
	}
}
