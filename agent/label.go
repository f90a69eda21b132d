package agent

import "strings"

// IdentityLabel returns the name of a server with a suffix that distinguishes it from another server of the same
// name: the layer of its entry, or the start of the digest of its target.
func IdentityLabel(name, identity string) string {
	kind, rest, _ := strings.Cut(identity, ":")
	if kind == "target" {
		_, digest, _ := strings.Cut(rest, ":")
		kind = digest[:min(len(digest), 8)]
	}
	if kind == "" {
		return name
	}
	return name + " (" + kind + ")"
}
