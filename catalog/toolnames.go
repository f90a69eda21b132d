package catalog

import (
	"strconv"
	"strings"
)

// ToolNames makes different tool names that models accept. It appends a number to a name that is in use. The zero
// value is ready to use.
type ToolNames struct{ taken map[string]bool }

// Take records that a name is in use.
func (n *ToolNames) Take(name string) {
	if n.taken == nil {
		n.taken = map[string]bool{}
	}
	n.taken[name] = true
}

// Make returns a new name that is made from a text, and records that it is in use.
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

// PlainName returns a text with all characters that tool names must not have replaced by other.
func PlainName(s string, other rune) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return other
	}, s)
}

// Made reports whether [ToolNames.Make] can have made a name from a text.
func Made(name, text string) bool {
	base := (&ToolNames{}).Make(text)
	if name == base {
		return true
	}
	at := strings.LastIndexByte(name, '_')
	return at > 0 && strings.HasPrefix(base, name[:at]) && strings.Trim(name[at+1:], "0123456789") == "" &&
		(name[:at] == base || len(name) == maxName)
}
