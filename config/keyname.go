package config

import (
	"slices"
	"strings"
)

// Other programs' files are used as they are, and refuse keys of tenon.yaml or call them otherwise. A remedy that names
// a key of tenon.yaml would send the user of agent.yaml to a section that this file cannot have. Therefore each message
// about a key of a server asks KeyName how the file with the server's entry calls it.

// editorKeys are keys of a server that files of Claude, Cursor and VS Code call the same.
var editorKeys = []string{"command", "args", "env", "cwd", "url", "headers"}

// KeyName returns how the file that has a server's entry names a key of it: servers.NAME.KEY in tenon.yaml, and
// KEY of 'NAME', with its place, in another program's file. Where that file cannot have the key, the name says where it
// can be written. Any other path is returned unchanged.
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
	case kindClaude, kindCursor, kindVSCode:
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
