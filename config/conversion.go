package config

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/tenonhq/tenon/config/tree"
)

// conversion converts another program's file to tenon.yaml. It reports each key without an equivalent; an import
// keeps it under x-KIND.
type conversion struct {
	*tree.Sink
	kind      string // the program
	direct    bool   // the file is loaded as it is
	home, dir string // values of the format's folder variables
	out       *tree.Node
	tokens    map[*tree.Node]bool // values that are secrets, whatever they look like
	enabled   []string            // researchai: the enabled servers; nil: all
	// refused has entries that are left out, by their paths → why. One bad tool never loses the others.
	refused map[string]string
	// retry adds the entries that errors of the converted file are about to refused. It reports whether another
	// conversion without them makes sense; nil: it does not.
	retry func(errs []tree.Error) bool
}

// section returns a section of our file, which is made where it is not there yet.
func (c *conversion) section(name string, at *tree.Node) *tree.Node {
	v, _ := c.out.Get(name)
	if v == nil {
		v = tree.MapAt(at)
		c.out.Append(name, v, v)
	}
	return v
}

// unknown reports a key that the other program does not have either.
func (c *conversion) unknown(k *tree.Node, path string) {
	if c.direct {
		c.remark(k, path, "unknown key; it is not used", "")
		return
	}
	c.Add(k, path, "unknown key", "no key of "+c.kind+"; remove it, or write it under x-"+c.kind+" after the import")
}

// keep puts what has no place into x-KIND of an entry or of the file.
func (c *conversion) keep(into, k, v *tree.Node, path string) {
	message := "kept, not used: " + path
	if c.direct {
		message = "not used: " + path
	}
	c.remark(k, "", message, "")
	c.store(into, k, k.Val, v)
}

// store puts a value into x-KIND without a word.
func (c *conversion) store(into, at *tree.Node, key string, v *tree.Node) {
	x, _ := into.Get("x-" + c.kind)
	if x == nil {
		x = tree.MapAt(at)
		into.Append("x-"+c.kind, at, x)
	}
	x.Append(key, at, v)
}

// note reports a difference that the user may not expect.
func (c *conversion) note(at *tree.Node, path, format string, args ...any) {
	c.remark(at, path, fmt.Sprintf(format, args...), "")
}

// remark is a warning about the format of the file. Of a file that is used as it is, it is repeated only once a day.
func (c *conversion) remark(at *tree.Node, path, message, hint string) {
	before := len(c.Warns)
	c.Warn(at, path, message, hint)
	if len(c.Warns) > before {
		c.Warns[before].Daily = c.direct
	}
}

// isMap reports whether a value is a map, and says so where it is not.
func (c *conversion) isMap(n *tree.Node, path string) bool {
	if n.Kind != tree.Map {
		c.Add(n, path, "must be a map, is "+n.Form(), "")
	}
	return n.Kind == tree.Map
}

// server adds a server under a name that ours may have, and returns its entry, or
// nil where what is said about it is no map, or the name is taken.
func (c *conversion) server(k, v *tree.Node, path string) *tree.Node {
	if !c.isMap(v, path) {
		return nil
	}
	name := entryName(k.Val)
	list := c.section("servers", k)
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

// onlyVariable returns the name in a text that is one variable and nothing else.
func onlyVariable(s string) string {
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

// entryName makes a text a name of at most 64 characters that an entry may have.
func entryName(s string) string { return cmp.Or(secretName(s), "-") }

// secretName makes a name that an entry of secrets may have; "" is none.
func secretName(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < 0x80 && tree.IsName(string(r)) {
			return r
		}
		return '-'
	}, s)
	return s[:min(len(s), 64)]
}

// transport converts the usual names of transports. VS Code falls back to the older one by itself if http fails.
func (c *conversion) transport(v *tree.Node) *tree.Node {
	ours := map[string]string{"streamable-http": "http", "streamableHttp": "http", "streamable_http": "http",
		"ws": "websocket"}[v.Val]
	if c.kind == kindVSCode && (v.Val == "http" || ours == "http") {
		ours = "auto"
	}
	if v.Kind != tree.Scalar || ours == "" {
		return v
	}
	return tree.TextAt(v, ours)
}
