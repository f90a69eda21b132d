package tree

import "slices"

// Layer names the author of a part of the configuration. The layers form a floor:
// a lower one is judged alone, and the strictest verdict of all layers wins.
type Layer string

// The layers, the most trusted first.
const (
	LayerAdmin   Layer = "admin"   // the administrator's file
	LayerUser    Layer = "user"    // the user's own file
	LayerProject Layer = "project" // the project's file, whether it was found or named with -c
	LayerProgram Layer = "program" // a Go program that filled in the Config itself
	LayerNone    Layer = ""        // a built-in default
)

// Rank orders the layers: 0 is the most trusted one.
func (l Layer) Rank() int {
	if i := slices.Index([]Layer{LayerAdmin, LayerUser}, l); i >= 0 {
		return i
	}
	return 2
}

// Source is one file that was read.
type Source struct {
	Label   string // as errors name it
	Path    string // absolute; empty for stdin
	Dir     string // what relative paths in it are relative to
	Order   int
	Program string // of the program that the file belongs to, such as holodeck; empty: tenon
	Layer   Layer
	Profile bool       // no file: the defaults of a profile, which the layer's file names
	Vars    *Variables // of the layer; nil: the decoder's
	Values  int        // the bound of its values; 0: maxNodes
}

// maxValues bounds the values of the file after the expansion of aliases.
func (s *Source) maxValues() int {
	if s.Values > 0 {
		return s.Values
	}
	return maxNodes
}
