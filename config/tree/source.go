package tree

import "slices"

// Layer is the author of a part of the configuration. Each layer is judged separately, and the strictest verdict of all
// layers wins.
type Layer string

// The layers, from the most trusted to the least trusted.
const (
	LayerAdmin   Layer = "admin"   // the administrator's file
	LayerUser    Layer = "user"    // the user's own file
	LayerProject Layer = "project" // the project's file, whether it was found or named with -c
	LayerProgram Layer = "program" // a Go program that filled in the Config itself
	LayerNone    Layer = ""        // a built-in default
)

// Rank returns the position of a layer in this order. The most trusted layer has rank 0.
func (l Layer) Rank() int {
	if i := slices.Index([]Layer{LayerAdmin, LayerUser}, l); i >= 0 {
		return i
	}
	return 2
}

// Source is one file that was read.
type Source struct {
	Label   string // name in errors
	Path    string // absolute; empty for stdin
	Dir     string // folder to which relative paths in the file refer
	Order   int
	Program string // program to which the file belongs, such as holodeck; empty for tenon
	Layer   Layer
	Profile bool       // not a file: the defaults of a profile that a file of the layer names
	Vars    *Variables // variables of the layer; if nil, the decoder's
	Values  int        // bound of the number of values; if 0, maxNodes
}

// maxValues bounds the number of values in the file, after aliases are expanded.
func (s *Source) maxValues() int {
	if s.Values > 0 {
		return s.Values
	}
	return maxNodes
}
