package catalog

import (
	"strconv"
	"strings"
)

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
	base := PlainName(s, '_')
	if base == "" || base[0] != '_' && (base[0] < 'A' || base[0] > 'Z') && (base[0] < 'a' || base[0] > 'z') {
		base = "_" + base
	}
	base = base[:min(len(base), maxName)]
	name := base
	for i := 1; n.taken[name]; i++ {
		end := "_" + strconv.Itoa(i)
		name = base[:min(len(base), maxName-len(end))] + end
	}
	n.Take(name)
	return name
}

// PlainName replaces the characters that names of tools cannot have with another one.
func PlainName(s string, other rune) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return other
	}, s)
}

// Made reports whether [ToolNames.Make] can have made a name of a text.
func Made(name, text string) bool {
	base := (&ToolNames{}).Make(text)
	if name == base {
		return true
	}
	at := strings.LastIndexByte(name, '_')
	return at > 0 && strings.HasPrefix(base, name[:at]) && strings.Trim(name[at+1:], "0123456789") == "" &&
		(name[:at] == base || len(name) == maxName)
}
