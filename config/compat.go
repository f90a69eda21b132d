package config

import (
	"slices"

	"github.com/tenonhq/tenon/config/tree"
)

// The programs whose files are read.
const (
	kindClaude     = "claude"
	kindCursor     = "cursor"
	kindVSCode     = "vscode"
	kindHoloDeck   = "holodeck"
	kindTrustGraph = "trustgraph"
	kindAIDK       = "aidk"
	kindResearchAI = "researchai"
	kindKNIME      = "knime" // tables of tools
)

// format is the form of a program's files.
type format interface {
	// recognise says how surely a file is the program's. The file may be empty.
	recognise(root *tree.Node) certainty
	// convert fills c.Out with a tenon.yaml that says what the file says.
	convert(c *conversion, root *tree.Node)
}

// exporter is a form in which a configuration can be written.
type exporter interface {
	// export returns the file, and reports what it cannot hold.
	export(e *export) *tree.Node
}

// certainty says how surely a file is a program's.
type certainty int

// The degrees of certainty.
const (
	unlike  certainty = iota
	byEntry           // an entry has keys of the program
	byKeys            // the file has keys of the program, and may have sections of tenon.yaml
	surely            // the file has keys that no other program's file has
)

// hasKey reports whether a map has one of the keys.
func hasKey(root *tree.Node, keys ...string) bool {
	return slices.ContainsFunc(keys, func(k string) bool { v, _ := root.Get(k); return v != nil })
}

// hasEntry reports whether an entry of a list or a map has a key.
func hasEntry(list *tree.Node, key string) bool {
	return list != nil && slices.ContainsFunc(list.Vals, func(e *tree.Node) bool { return hasKey(e, key) })
}

// isList reports whether a file is a list.
func isList(root *tree.Node) bool { return root != nil && root.Kind == tree.List }

// ofEntry tells whether the entries of a list or a map are AIDK's or TrustGraph's. The first entry that is one decides;
// "" is neither.
func ofEntry(list ...*tree.Node) string {
	for _, e := range list {
		if hasKey(e, "connection", "serverName") {
			return kindAIDK
		}
		if t, _ := e.Get("type"); hasKey(e, "mcp-tool") ||
			t != nil && slices.Contains([]string{"mcp-tool", "mcp", "tool"}, t.Val) {
			return kindTrustGraph
		}
	}
	return ""
}
