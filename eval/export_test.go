package eval

import "github.com/tenonhq/tenon/config"

// Parse reads an evaluation file from memory; see [Load]. name is used in errors, and relative
// paths are relative to dir.
func Parse(name string, data []byte, dir string) (*Suite, error) {
	s := &Suite{path: name}
	doc, err := config.ParseDocument(name, data, dir, s)
	if err != nil {
		return nil, err
	}
	return s, s.check(doc)
}
