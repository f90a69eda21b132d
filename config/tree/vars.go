package tree

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/tenonhq/tenon/internal/lazyregexp"
)

// Variables looks up names in the environment of the process, then in the .env file next to a layer's file. A layer
// never sees the .env file of another layer.
type Variables struct {
	Lookup func(string) (string, bool)
	Dotenv map[string]string
	Takes  map[string][]string // variable of the .env file → environment variables that its value contains
	Home   string
	Lax    bool // replace an unset variable by "" and add a warning
	Keep   bool // keep variables as they are written
	// KeepUnset keeps references to unset variables as they are written.
	KeepUnset bool
	// Secret returns the value for ${secret:NAME}. If it is nil, the reference is kept.
	Secret func(name string) string
}

// Get returns the value of a variable.
func (v *Variables) Get(name string) (string, bool) {
	if s, ok := v.Lookup(name); ok {
		return s, true
	}
	s, ok := v.Dotenv[name]
	return s, ok
}

// Behind returns the names, together with the names of environment variables that their values in the .env file
// contain.
func (v *Variables) Behind(names []string) []string {
	out := slices.Clone(names)
	for _, name := range names {
		if _, ok := v.Lookup(name); !ok {
			out = append(out, v.Takes[name]...)
		}
	}
	return out
}

// Expand replaces ${VAR}, ${VAR:-default} and $$ in one pass. It keeps any other $. It returns "" if a variable cannot
// be resolved.
func (v *Variables) Expand(s string, n *Node, path string, sink *Sink) string {
	if v.Keep || !strings.Contains(s, "$") {
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
			sink.Add(n, path, "${ without }", "write $$ for a dollar sign")
			return ""
		}
		name, def, hasDef := strings.Cut(s[2:end], ":-")
		s = s[end+1:]
		if secret, ok := strings.CutPrefix(name, "secret:"); ok && IsName(secret) && !hasDef {
			if v.Secret == nil {
				b.WriteString("${" + name + "}")
			} else {
				b.WriteString(v.Secret(secret))
			}
			continue
		}
		val, ok := v.Get(name)
		switch {
		case !IsVariable(name):
			sink.Add(n, path, fmt.Sprintf("'${%s}' does not name a variable", name),
				"write ${NAME} or ${NAME:-default}, and $$ for a dollar sign")
			failed = true
		case hasDef && val == "":
			b.WriteString(def)
		case ok:
			b.WriteString(val)
		case v.KeepUnset:
			b.WriteString("${" + name + "}")
		case v.Lax:
			sink.Warn(n, path, fmt.Sprintf("environment variable '%s' not found; it is empty", name), "")
		default:
			sink.Add(n, path, fmt.Sprintf("environment variable '%s' not found", name),
				fmt.Sprintf("set it, or write ${%s:-default}", name))
			failed = true
		}
	}
}

// Resolve makes a path absolute. A relative path refers to the folder of its file.
func (v *Variables) Resolve(p string, src *Source) string {
	switch {
	case p == "":
		return ""
	case p == "~" || strings.HasPrefix(p, "~/"):
		return filepath.Join(v.Home, p[1:])
	case filepath.IsAbs(p):
		return filepath.Clean(p)
	}
	return filepath.Join(src.Dir, p)
}

// IsVariable reports whether s matches [A-Za-z_][A-Za-z0-9_]*.
func IsVariable(s string) bool {
	for i, r := range s {
		if !(r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || i > 0 && '0' <= r && r <= '9') {
			return false
		}
	}
	return s != ""
}

// IsName reports whether a text is a valid name for an entry of a section.
func IsName(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("_.-", r))
	}) < 0
}

var secretVariable = lazyregexp.New(`\$\{secret:([A-Za-z0-9_.-]+)\}`)

// SecretVariable matches a reference to a secret in a text.
func SecretVariable() *regexp.Regexp { return secretVariable() }
