package compat

import (
	"slices"

	"github.com/tenonhq/tenon/config/tree"
)

// The programs whose files are read.
const (
	Claude     = "claude"
	Cursor     = "cursor"
	VSCode     = "vscode"
	HoloDeck   = "holodeck"
	TrustGraph = "trustgraph"
	AIDK       = "aidk"
	ResearchAI = "researchai"
	KNIME      = "knime" // tables of tools
)

// Format is the form of a program's files.
type Format interface {
	// Recognise says how surely a file is the program's. The file may be empty.
	Recognise(root *tree.Node) Certainty
	// Convert fills c.Out with a tenon.yaml that says what the file says.
	Convert(c *Conversion, root *tree.Node)
}

// Exporter is a form in which a configuration can be written, too.
type Exporter interface {
	Format
	// Export returns the file, and reports what it cannot hold.
	Export(e *Export) *tree.Node
}

// Certainty says how surely a file is a program's.
type Certainty int

// The degrees of certainty.
const (
	Unlike  Certainty = iota
	ByEntry           // an entry has keys of the program
	ByKeys            // the file has keys of the program, and may have sections of tenon.yaml
	Surely            // the file has keys that decide, whatever else it has
)

// HasKey reports whether a map has one of the keys.
func HasKey(root *tree.Node, keys ...string) bool {
	return slices.ContainsFunc(keys, func(k string) bool { v, _ := root.Get(k); return v != nil })
}

// HasEntry reports whether an entry of a list or a map has a key.
func HasEntry(list *tree.Node, key string) bool {
	return list != nil && slices.ContainsFunc(list.Vals, func(e *tree.Node) bool { return HasKey(e, key) })
}

// IsList reports whether a file is a list.
func IsList(root *tree.Node) bool { return root != nil && root.Kind == tree.List }

// OfEntry returns whose entries a list or a map has, AIDK's or TrustGraph's. The first entry with a key of one of them
// decides; "" is neither.
func OfEntry(list ...*tree.Node) string {
	for _, e := range list {
		if HasKey(e, "connection", "serverName") {
			return AIDK
		}
		if t, _ := e.Get("type"); HasKey(e, "mcp-tool") ||
			t != nil && slices.Contains([]string{"mcp-tool", "mcp", "tool"}, t.Val) {
			return TrustGraph
		}
	}
	return ""
}
