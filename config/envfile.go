package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tenonhq/tenon/config/tree"
)

// envFile is the content of a file of KEY=VALUE lines.
type envFile struct {
	values map[string]string
	// takes lists, for each variable, the variables of the environment that its value contains. A person who trusts
	// the file has to see them.
	takes map[string][]string
	bad   int // number of the first line that cannot be read; 0: none
	unset []unsetVariable
}

// unsetVariable is a reference to a variable that is not set.
type unsetVariable struct {
	line int
	name string
}

// parseEnv parses lines of the form KEY=VALUE. A line may begin with export, and # begins a comment. Quotes around a
// value are removed:
//
//	A=plain ${B}        # references are replaced
//	C="two\nlines ${B}" # so are they here, and \n \r \t \" \\ \$ are escapes
//	D='as ${it} is'
//
// A reference is ${NAME} or ${NAME:-default}. Its value is an earlier variable of the file, or else the result of
// lookup. If ambient is true, lookup comes first. All values together have at most tree.MaxBytes bytes.
func parseEnv(data []byte, ambient bool, lookup func(string) (string, bool)) *envFile {
	f := &envFile{values: map[string]string{}, takes: map[string][]string{}}
	r := envReader{envFile: f, ambient: ambient, lookup: lookup, room: tree.MaxBytes}
	for i, line := range strings.Split(strings.TrimPrefix(string(data), "\ufeff"), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if rest, ok := strings.CutPrefix(line, "export "); ok {
			line = strings.TrimSpace(rest)
		}
		r.line = i + 1
		name, val, ok := strings.Cut(line, "=")
		name, val = strings.TrimSpace(name), strings.TrimSpace(val)
		if !ok || !tree.IsVariable(name) || strings.ContainsRune(val, 0) || !r.read(name, val) {
			f.bad = cmp.Or(f.bad, i+1)
		}
	}
	return f
}

// envReader reads the lines of one file.
type envReader struct {
	*envFile
	ambient bool
	lookup  func(string) (string, bool)
	room    int // bytes that values may still have
	line    int
	taken   []string // variables of the environment in the value of the line
}

// read sets a variable. It returns false if the value cannot be read. A value with a reference that is not set is
// skipped.
func (r *envReader) read(name, val string) bool {
	r.taken = nil
	unset := len(r.unset)
	out, ok := r.value(val)
	if !ok || len(out) > r.room {
		return false
	}
	if len(r.unset) > unset {
		return true
	}
	r.room -= len(out)
	r.values[name] = out
	delete(r.takes, name)
	if len(r.taken) > 0 {
		r.takes[name] = r.taken
	}
	return true
}

// value reads the text after the equals sign.
func (r *envReader) value(val string) (string, bool) {
	if val == "" {
		return "", true
	}
	switch val[0] {
	case '\'':
		text, _, ok := strings.Cut(val[1:], "'")
		return text, ok
	case '"':
		return r.expand(val[1:], true)
	}
	if c := strings.Index(val, " #"); c >= 0 {
		val = strings.TrimSpace(val[:c])
	}
	return r.expand(val, false)
}

// expand replaces references and, in quotes, escapes. ok is false if the quote is not closed or the value is too long.
func (r *envReader) expand(s string, quoted bool) (_ string, ok bool) {
	var b strings.Builder
	for s != "" {
		if b.Len() > r.room {
			return "", false
		}
		switch {
		case quoted && s[0] == '"':
			return b.String(), true
		case quoted && s[0] == '\\' && len(s) > 1:
			b.WriteString(unescaped(s[1]))
			s = s[2:]
		case strings.HasPrefix(s, "${"):
			inner, rest, closed := strings.Cut(s[2:], "}")
			name, def, hasDef := strings.Cut(inner, ":-")
			if !closed || !tree.IsVariable(name) {
				b.WriteString("${")
				s = s[2:]
				continue
			}
			b.WriteString(r.reference(name, def, hasDef))
			s = rest
		default:
			b.WriteByte(s[0])
			s = s[1:]
		}
	}
	return b.String(), !quoted
}

// unescaped returns the text of an escape in double quotes. Any other character keeps its backslash.
func unescaped(c byte) string {
	switch c {
	case 'n':
		return "\n"
	case 'r':
		return "\r"
	case 't':
		return "\t"
	case '"', '\\', '$':
		return string(c)
	}
	return "\\" + string(c)
}

// reference returns the value of a variable, and records whether it comes from the environment.
func (r *envReader) reference(name, def string, hasDef bool) string {
	own, isOwn := r.values[name]
	val, found := own, isOwn
	if r.ambient || !isOwn {
		if v, ok := r.lookup(name); ok {
			val, found, isOwn = v, true, false
		}
	}
	from := []string{name}
	if isOwn {
		from = r.takes[name]
	}
	for _, v := range from {
		if !slices.Contains(r.taken, v) {
			r.taken = append(r.taken, v)
		}
	}
	switch {
	case hasDef && val == "":
		return def
	case !found:
		r.unset = append(r.unset, unsetVariable{r.line, name})
	}
	return val
}

// message describes the reference for errors.
func (u unsetVariable) message() string {
	return fmt.Sprintf("environment variable '%s' not found", u.name)
}
