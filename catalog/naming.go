package catalog

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
)

// maxName is the longest tool name that every provider takes (OpenAI: 64).
const maxName = 64

// named is a tool on its way to its final name.
type named struct {
	item *item
	src  *Source
	name string
	out  string // why it is left out, for a name that clashes
}

// clash reports whether two of the tools, which are sorted by the names that they
// want, want the same one, or a name is too long.
func clash(order []*named) bool {
	for i, n := range order {
		if i > 0 && order[i-1].name == n.name || len(n.name) > n.src.Naming.max() {
			return true
		}
	}
	return false
}

// unique gives every tool a name of its own. Names that the configuration gave
// are kept, since nothing else may have them.
func unique(list []named) {
	taken := make(map[string]int, len(list)) // name → number of tools that want it
	for i := range list {
		taken[list[i].name]++
		if list[i].item.fixed {
			taken[list[i].name]++ // makes every other claim to the name a clash
		}
	}
	rename(list, taken)
	// What still clashes, or is too long, is told apart by a hash of the
	// identity: stable from run to run, whatever else is in the list.
	for _, digits := range []int{8, 24} {
		taken := make(map[string]int, len(list))
		for i := range list {
			if list[i].out == "" {
				taken[list[i].name]++
			}
		}
		for i := range list {
			if n := &list[i]; !n.item.fixed && n.out == "" && (taken[n.name] > 1 || len(n.name) > n.src.Naming.max()) {
				n.name = hashed(n, digits)
			}
		}
	}
}

// rename treats all members of a clash as their servers' on_collision says.
func rename(list []named, taken map[string]int) {
	order := make([]int, 0, len(list))
	refuse := map[string]bool{}
	for i := range list {
		if n := &list[i]; !n.item.fixed && taken[n.name] > 1 {
			order = append(order, i)
			refuse[n.name] = refuse[n.name] || n.src.Naming.OnCollision == CollisionError
		}
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(list[a].src.Server, list[b].src.Server), cmp.Compare(list[a].item.tool.Remote, list[b].item.tool.Remote))
	})
	counter := map[string]int{}
	for _, i := range order {
		n := &list[i]
		switch want := n.name; {
		case refuse[want]:
			n.out = "the name '" + want + "' is wanted by more than one tool, and on_collision is error"
		case n.src.Naming.OnCollision == CollisionSuffix:
			counter[want]++
			n.name = want + "_" + strconv.Itoa(counter[want])
		default:
			n.name = n.src.Naming.safe(n.src.Server + "_" + want)
		}
	}
}

// safe replaces what is not allowed. It does not shorten.
func (n *Naming) safe(s string) string {
	replace := "-"
	if n.Replace != nil {
		replace = *n.Replace
	}
	var b strings.Builder
	for _, r := range []byte(s) {
		if n.allows(r) {
			b.WriteByte(r)
		} else {
			b.WriteString(replace)
		}
	}
	s = b.String()
	if s == "" || !isLetter(s[0]) && s[0] != '_' {
		s = "_" + s
	}
	return s
}

// Exposed is the name that the model sees for a tool that has a name at its server:
// that of the only tool of that name, else the name itself, as far as providers
// take it. The snapshot may be nil.
func (s *Snapshot) Exposed(remote string) string {
	name, found := "", 0
	if s != nil {
		for _, t := range s.tools {
			if t.Remote == remote {
				name, found = t.Name, found+1
			}
		}
		if _, ok := s.Lookup(remote); ok && found != 1 {
			return remote
		}
	}
	if found != 1 {
		name = (&Naming{}).safe(remote)
		name = name[:min(len(name), maxName)]
	}
	return name
}

func (n *Naming) max() int {
	if n.MaxLen > 0 && n.MaxLen < maxName {
		return n.MaxLen
	}
	return maxName
}

// allows reports whether a byte may stand in a name: Allow is a set of
// characters and ranges, within what every provider takes.
func (n *Naming) allows(c byte) bool {
	if c != '_' && c != '-' && !isLetter(c) && (c < '0' || c > '9') {
		return false
	}
	set := n.Allow
	if set == "" {
		return true
	}
	for i := 0; i < len(set); i++ {
		if i+2 < len(set) && set[i+1] == '-' {
			if set[i] <= c && c <= set[i+2] {
				return true
			}
			i += 2
		} else if set[i] == c {
			return true
		}
	}
	return false
}

func isLetter(c byte) bool { return c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' }

// fits reports whether every provider takes a name:
// [A-Za-z_][A-Za-z0-9_-]{0,63}.
func fits(name string) bool {
	n := Naming{}
	return name != "" && len(name) <= maxName && n.safe(name) == name
}

func hashed(n *named, digits int) string {
	t := &n.item.tool
	sum := sha256.Sum256([]byte(t.Server + "\x00" + t.Remote))
	suffix := "_" + hex.EncodeToString(sum[:])[:min(digits, n.src.Naming.max()-8)]
	name := n.name
	if len(name) > n.src.Naming.max()-len(suffix) {
		name = strings.TrimRight(name[:n.src.Naming.max()-len(suffix)], "-_")
	}
	if name == "" {
		name = "_"
	}
	return name + suffix
}
