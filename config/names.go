package config

import (
	"cmp"
	"path"
	"path/filepath"
	"strings"

	"github.com/tenonhq/tenon/catalog"
)

// EntryName makes a name that an entry of servers or secrets can have.
func EntryName(s string) string {
	return cmp.Or(strings.Trim(catalog.PlainName(s, '-'), "-"), "server")
}

// runners start a program that they find by its name; the server is called after
// that program.
var runners = map[string]bool{"npx": true, "uvx": true, "bunx": true, "pipx": true, "node": true, "python": true,
	"python3": true, "deno": true}

// CommandName returns the name of a server that is known only by its command.
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

// programName is the last part of a path or package name, without version or extension.
func programName(s string) string {
	name := path.Base(filepath.ToSlash(s))
	if i := strings.LastIndexByte(name, '@'); i > 0 {
		name = name[:i]
	}
	return strings.TrimPrefix(strings.TrimSuffix(name, path.Ext(name)), "server-")
}
