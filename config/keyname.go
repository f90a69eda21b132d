package config

import (
	"slices"
	"strings"

	"github.com/tenonhq/tenon/compat"
)

// Files of other programs are used unchanged. They do not allow keys of tenon.yaml, or use other names. A remedy that
// names a key of tenon.yaml would send the user of agent.yaml to a section that this file cannot have. So each
// message about a key of a server gets the key's name in the server's file from KeyName.

// editorKeys are keys of a server that have the same names in files of Claude, Cursor and VS Code.
var editorKeys = []string{"command", "args", "env", "cwd", "url", "headers"}

// KeyName returns the name of a key of a server in the file that contains the server's entry: servers.NAME.KEY in
// tenon.yaml, and KEY of 'NAME', with its place, in another program's file. If that file cannot have the key, the
// result says where to write it. Any other path is returned unchanged.
func (c *Config) KeyName(path string) string {
	rest, ok := strings.CutPrefix(path, "servers.")
	name, key, deep := strings.Cut(rest, ".")
	n := c.node("servers." + name)
	if !ok || !deep || n == nil || n.Src == nil {
		return path
	}
	top, _, _ := strings.Cut(key, ".")
	switch n.Src.Program {
	case "":
		return path
	case compat.Claude, compat.Cursor, compat.VSCode:
		if slices.Contains(editorKeys, top) {
			break
		}
		return path + " of a tenon.yaml, which 'tenon config import " + n.Src.Label + "' writes"
	}
	if origin := c.Origin(path); origin != "default" {
		return key + " of '" + name + "' (" + origin + ")"
	}
	return key + " of '" + name + "' in " + n.Src.Label
}
