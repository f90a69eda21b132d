package config

import (
	"cmp"
	"path"
	"path/filepath"
	"strings"

	"github.com/tenonhq/tenon/catalog"
)

// EntryName converts a text to a valid name of an entry of servers or secrets.
func EntryName(s string) string {
	return cmp.Or(strings.Trim(catalog.PlainName(s, '-'), "-"), "server")
}

// runners are programs that start another program by its name. A server that is started by a runner is named after
// that program.
var runners = map[string]bool{"npx": true, "uvx": true, "bunx": true, "pipx": true, "node": true, "python": true,
	"python3": true, "deno": true}

// CommandName returns a name for a server that is known only by its command.
func CommandName(command []string) string {
	name := programName(command[0])
	if !runners[name] {
		return name
	}
	for _, arg := range command[1:] {
		if arg != "" && arg[0] != '-' && arg != "run" {
			return programName(arg)
		}
	}
	return name
}

// programName returns the last part of a path or package name, without version and extension.
func programName(s string) string {
	name := path.Base(filepath.ToSlash(s))
	if i := strings.LastIndexByte(name, '@'); i > 0 {
		name = name[:i]
	}
	return strings.TrimPrefix(strings.TrimSuffix(name, path.Ext(name)), "server-")
}
