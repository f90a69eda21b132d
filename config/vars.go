package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// variables looks up names in the environment of the process, then in the .env file next to a layer's file. A layer
// never sees the .env file of another layer.
type variables struct {
	lookup func(string) (string, bool)
	dotenv map[string]string
	takes  map[string][]string // variable of the .env file → variables of the environment in its value
	home   string
	lax    bool // an unset variable is an empty text, with a warning
	keep   bool // variables stay as they are written
	// secret returns the value for ${secret:NAME}. If it is nil, the reference is kept.
	secret func(name string) string
}

func (v *variables) get(name string) (string, bool) {
	if s, ok := v.lookup(name); ok {
		return s, true
	}
	s, ok := v.dotenv[name]
	return s, ok
}

// behind returns the names together with the variables of the environment that the .env file puts into their values.
func (v *variables) behind(names []string) []string {
	out := slices.Clone(names)
	for _, name := range names {
		if _, ok := v.lookup(name); !ok {
			out = append(out, v.takes[name]...)
		}
	}
	return out
}

// expand replaces ${VAR}, ${VAR:-default} and $$ in one pass; a $ before
// anything else stays. It returns "" where a variable cannot be resolved.
func (v *variables) expand(s string, n *node, path string, sink *sink) string {
	if v.keep || !strings.Contains(s, "$") {
		return s
	}
	var b strings.Builder
	failed := false
	for {
		i := strings.IndexByte(s, '$')
		if i < 0 || i+1 == len(s) {
			if failed {
				return ""
			}
			return b.String() + s
		}
		b.WriteString(s[:i])
		s = s[i:]
		switch s[1] {
		case '$':
			b.WriteByte('$')
			s = s[2:]
			continue
		case '{':
		default:
			b.WriteByte('$')
			s = s[1:]
			continue
		}
		end := strings.IndexByte(s, '}')
		if end < 0 {
			sink.add(n, path, "${ without }", "write $$ for a dollar sign")
			return ""
		}
		name, def, hasDef := strings.Cut(s[2:end], ":-")
		s = s[end+1:]
		if secret, ok := strings.CutPrefix(name, "secret:"); ok && validName(secret) && !hasDef {
			if v.secret == nil {
				b.WriteString("${" + name + "}")
			} else {
				b.WriteString(v.secret(secret))
			}
			continue
		}
		val, ok := v.get(name)
		switch {
		case !varName(name):
			sink.add(n, path, fmt.Sprintf("'${%s}' does not name a variable", name),
				"write ${NAME} or ${NAME:-default}, and $$ for a dollar sign")
			failed = true
		case hasDef && val == "":
			b.WriteString(def)
		case ok:
			b.WriteString(val)
		case v.lax:
			sink.warn(n, path, fmt.Sprintf("environment variable '%s' not found; it is empty", name), "")
		default:
			sink.add(n, path, fmt.Sprintf("environment variable '%s' not found", name),
				fmt.Sprintf("set it, or write ${%s:-default}", name))
			failed = true
		}
	}
}

// resolve makes a path absolute, seen from the folder of its file.
func (v *variables) resolve(p string, src *source) string {
	switch {
	case p == "":
		return ""
	case p == "~" || strings.HasPrefix(p, "~/"):
		return filepath.Join(v.home, p[1:])
	case filepath.IsAbs(p):
		return filepath.Clean(p)
	}
	return filepath.Join(src.dir, p)
}

// varName reports whether s matches [A-Za-z_][A-Za-z0-9_]*.
func varName(s string) bool {
	for i, r := range s {
		if !(r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || i > 0 && '0' <= r && r <= '9') {
			return false
		}
	}
	return s != ""
}

// validName reports whether an entry of a section may have a name.
func validName(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("_.-", r))
	}) < 0
}
