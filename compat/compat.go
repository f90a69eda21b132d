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

// Format is the file format of a program.
type Format interface {
	// Recognise returns the certainty that a file belongs to the program. The file may be empty.
	Recognise(root *tree.Node) Certainty
	// Convert fills c.Out with a tenon.yaml of the same meaning as the file.
	Convert(c *Conversion, root *tree.Node)
}

// Exporter is a format to which a configuration can also be exported.
type Exporter interface {
	Format
	// Export returns the file, and reports the parts of the configuration that the format cannot express.
	Export(e *Export) *tree.Node
}

// Certainty is the certainty that a file belongs to a program.
type Certainty int

// The degrees of certainty.
const (
	Unlike  Certainty = iota
	ByEntry           // an entry has keys of the program
	ByKeys            // the file has keys of the program, and may have sections of tenon.yaml
	Surely            // the file has keys that decide, even if it has others
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

// OfEntry returns AIDK or TrustGraph, whichever has the entries of a list or a map. The first entry with a key of one
// of them decides. It returns "" if no entry has such a key.
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
