package catalog

import (
	"strings"
	"unicode/utf8"
)

// maxName is the longest tool name that every provider accepts (OpenAI: 64).
const maxName = 64

// safe replaces characters that are not allowed in a name. It does not shorten the name.
func (n *Naming) safe(s string) string {
	if n.takes(s) {
		return s
	}
	replace := "-"
	if n.Replace != nil {
		replace = *n.Replace
	}
	var b strings.Builder
	for _, r := range s {
		if r < utf8.RuneSelf && n.allows(byte(r)) {
			b.WriteByte(byte(r))
		} else {
			b.WriteString(replace)
		}
	}
	s = b.String()
	if s == "" || !isLetter(s[0]) && s[0] != '_' {
		s = "_" + s
	}
	return s
}

// Fit returns a name in the form that providers accept, except for its length: `read.file` becomes `read-file`.
func (n Naming) Fit(name string) string { return n.safe(name) }

// takes reports whether a name is allowed unchanged, apart from its length. Nearly all names are.
func (n *Naming) takes(s string) bool {
	for i := range len(s) {
		if !n.allows(s[i]) {
			return false
		}
	}
	return s != "" && (isLetter(s[0]) || s[0] == '_')
}

// Exposed returns the name that the model sees for a tool with a remote name. If there is not exactly one such tool, it
// returns the remote name in the form that providers accept. The snapshot may be nil.
func (s *Snapshot) Exposed(remote string) string {
	name, found := "", 0
	if s != nil {
		for _, t := range s.tools {
			if t.Remote == remote {
				name, found = t.Name, found+1
			}
		}
		if _, ok := s.Lookup(remote); ok && found != 1 {
			return remote
		}
	}
	if found != 1 {
		name = (&Naming{}).safe(remote)
		name = name[:min(len(name), maxName)]
	}
	return name
}

func (n *Naming) max() int {
	if n.MaxLen > 0 && n.MaxLen < maxName {
		return n.MaxLen
	}
	return maxName
}

func (n *Naming) isLong(name string) bool { return len(name) > n.max() }

// allows reports whether a byte is allowed in a name. Allow is a set of characters and ranges, all of which every
// provider accepts.
func (n *Naming) allows(c byte) bool {
	if c != '_' && c != '-' && !isLetter(c) && (c < '0' || c > '9') {
		return false
	}
	set := n.Allow
	if set == "" {
		return true
	}
	for i := 0; i < len(set); i++ {
		if i+2 < len(set) && set[i+1] == '-' {
			if set[i] <= c && c <= set[i+2] {
				return true
			}
			i += 2
		} else if set[i] == c {
			return true
		}
	}
	return false
}

func isLetter(c byte) bool { return c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' }

// fits reports whether every provider accepts a name: [A-Za-z_][A-Za-z0-9_-]{0,63}.
func fits(name string) bool {
	n := Naming{}
	return len(name) <= maxName && n.takes(name)
}
