package config

import (
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// maxToolName is what every provider takes.
const maxToolName = 64

// ToolNames gives names to tools that models take; equal ones get a number. The zero
// value is ready.
type ToolNames struct{ taken map[string]bool }

// Take says that a name is in use.
func (n *ToolNames) Take(name string) {
	if n.taken == nil {
		n.taken = map[string]bool{}
	}
	n.taken[name] = true
}

// Make makes a name of a text and takes it.
func (n *ToolNames) Make(s string) string {
	base := strings.Map(func(r rune) rune {
		if isPlain(r) {
			return r
		}
		return '_'
	}, s)
	if base == "" || base[0] != '_' && (base[0] < 'A' || base[0] > 'Z') && (base[0] < 'a' || base[0] > 'z') {
		base = "_" + base
	}
	base = base[:min(len(base), maxToolName)]
	name := base
	for i := 1; n.taken[name]; i++ {
		end := "_" + strconv.Itoa(i)
		name = base[:min(len(base), maxToolName-len(end))] + end
	}
	n.Take(name)
	return name
}

func isPlain(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
}

// EntryName makes a name that an entry of servers or secrets can have.
func EntryName(s string) string {
	s = strings.Map(func(r rune) rune {
		if isPlain(r) {
			return r
		}
		return '-'
	}, s)
	if s = strings.Trim(s, "-"); s == "" {
		return "server"
	}
	return s
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
