package compat

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/tenonhq/tenon/config/tree"
)

// Conversion converts another program's file to tenon.yaml. It reports each key without an equivalent; an import
// keeps it under x-KIND.
type Conversion struct {
	*tree.Sink
	Kind      string // the program
	Direct    bool   // the file is used without an import
	Home, Dir string // values of the format's folder variables
	Out       *tree.Node
	Tokens    map[*tree.Node]bool // values that are secrets, even if they do not look like secrets
	Enabled   []string            // researchai: the enabled servers; nil: all
	// Refused maps the paths of entries that are left out to the reasons. A bad entry never prevents the conversion
	// of the others.
	Refused map[string]string
	// Retry adds the entries that cause errors in the converted file to Refused. It reports whether a second
	// conversion without these entries makes sense. If Retry is nil, there is no second conversion.
	Retry func(errs []tree.Error) bool
}

// Section returns a section of tenon.yaml. It adds the section if it is missing.
func (c *Conversion) Section(name string, at *tree.Node) *tree.Node {
	return c.Out.Child(name, at)
}

// Unknown reports a key that the other program does not know either.
func (c *Conversion) Unknown(k *tree.Node, path string) {
	if c.Direct {
		c.Remark(k, path, "unknown key; it is not used", "")
		return
	}
	c.Add(k, path, "unknown key", "no key of "+c.Kind+"; remove it, or write it under x-"+c.Kind+" after the import")
}

// Keep stores a value without an equivalent under x-KIND of an entry or of the file, and reports it.
func (c *Conversion) Keep(into, k, v *tree.Node, path string) {
	message := "kept, not used: " + path
	if c.Direct {
		message = "not used: " + path
	}
	c.Remark(k, "", message, "")
	c.Store(into, k, k.Val, v)
}

// Store stores a value under x-KIND and does not report it.
func (c *Conversion) Store(into, at *tree.Node, key string, v *tree.Node) {
	into.Child("x-"+c.Kind, at).Append(key, at, v)
}

// Note reports a difference that the user may not expect.
func (c *Conversion) Note(at *tree.Node, path, format string, args ...any) {
	c.Remark(at, path, fmt.Sprintf(format, args...), "")
}

// Remark is a warning about the format of the file. For a file that is used without an import, it is shown at most
// once a day.
func (c *Conversion) Remark(at *tree.Node, path, message, hint string) {
	before := len(c.Warns)
	c.Warn(at, path, message, hint)
	if len(c.Warns) > before {
		c.Warns[before].Daily = c.Direct
	}
}

// IsMap reports whether a value is a map. If it is not, IsMap adds a warning.
func (c *Conversion) IsMap(n *tree.Node, path string) bool {
	if n.Kind != tree.Map {
		c.Add(n, path, "must be a map, is "+n.Form(), "")
	}
	return n.Kind == tree.Map
}

// Server adds a server, under a name that is valid in tenon.yaml, and returns its entry. It returns nil if the value
// is not a map, or if the name is taken.
func (c *Conversion) Server(k, v *tree.Node, path string) *tree.Node {
	if !c.IsMap(v, path) {
		return nil
	}
	name := EntryName(k.Val)
	list := c.Section("servers", k)
	if _, other := list.Get(name); other != nil {
		hint := ""
		if name != k.Val {
			hint = "characters that a name cannot have are replaced by -"
		}
		c.Add(k, path, "there is a server '"+name+"' already", hint)
		return nil
	}
	e := tree.MapAt(k)
	list.Append(name, k, e)
	if name != k.Val {
		e.Append("title", k, tree.TextAt(k, k.Val))
	}
	return e
}

// OnlyVariable returns the name of the variable if a text consists only of one variable.
func OnlyVariable(s string) string {
	inner, ok := strings.CutPrefix(s, "${")
	if !ok || !strings.HasSuffix(inner, "}") {
		return ""
	}
	name, _, _ := strings.Cut(strings.TrimSuffix(inner, "}"), ":-")
	if !tree.IsVariable(name) {
		return ""
	}
	return name
}

// EntryName converts a text to a valid name of an entry, of at most 64 characters.
func EntryName(s string) string { return cmp.Or(SecretName(s), "-") }

// SecretName converts a text to a valid name of an entry of secrets. It returns "" for an empty text.
func SecretName(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < 0x80 && tree.IsName(string(r)) {
			return r
		}
		return '-'
	}, s)
	return s[:min(len(s), 64)]
}

// Transport converts the usual names of transports. VS Code falls back to the older one by itself if http fails.
func (c *Conversion) Transport(v *tree.Node) *tree.Node {
	ours := map[string]string{"streamable-http": "http", "streamableHttp": "http", "streamable_http": "http",
		"ws": "websocket"}[v.Val]
	if c.Kind == VSCode && (v.Val == "http" || ours == "http") {
		ours = "auto"
	}
	if v.Kind != tree.Scalar || ours == "" {
		return v
	}
	return tree.TextAt(v, ours)
}
