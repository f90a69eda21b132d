package config

import (
	"cmp"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
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

// The bounds of a text about servers for a model.
const (
	aboutServers = 40 // servers
	aboutRunes   = 80 // characters for each server
)

// About names servers to a model, each with its title and description, from the number of tools of each. It returns the
// number of all tools, too. The text is bounded; it is "" if there are no servers.
func (c *Config) About(counts map[string]int) (tools int, text string) {
	var list []string
	for name, n := range counts {
		tools += n
		s := c.Servers[name]
		if about := strings.TrimSpace(s.Title + " " + s.Description); about != "" {
			name += " (" + tenon.Shorten(about, aboutRunes) + ")"
		}
		list = append(list, name)
	}
	slices.Sort(list)
	if more := len(list) - aboutServers; more > 0 {
		list = append(list[:aboutServers], fmt.Sprintf("and %d more", more))
	}
	return tools, strings.Join(list, ", ")
}
