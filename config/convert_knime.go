package config

// knime takes what the command line has made of a tool table: a tenon.yaml as JSON.
// Tables are binary, so their rows have no lines that errors could name.
func (c *conversion) knime(root *node) {
	c.out.set("profile", like(root, KindKNIME))
	for i, k := range root.keys {
		taken(c.out, k.val, k, root.vals[i])
	}
}
