package config

// knime reads the tenon.yaml, as JSON, that the command line made of a tool table. Tables are binary, so errors
// cannot name lines of their rows.
func (c *conversion) knime(root *node) {
	taken(c.out, "profile", root, like(root, KindKNIME))
	for i, k := range root.keys {
		taken(c.out, k.val, k, root.vals[i])
	}
}
