package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
)

// maxName is the longest tool name that every provider takes (OpenAI: 64).
const maxName = 64

// claim is a tool that cannot have the name that it wants, on its way to another one.
type claim struct {
	item *item
	name string
	out  string // why it is left out
}

// contested finds the tools that want a name which another one wants, too, or which is
// too long, and gives the first of them other names. It returns them and all others, both
// in order. Names that the configuration gave are kept, since nothing else may have them.
func contested(base []*item) (claims []claim, rest []*item) {
	done := 0 // of base
	for from, to := 0, 0; from < len(base); from = to {
		one := base[from]
		for to = from + 1; to < len(base) && base[to].tool.Name == one.tool.Name; to++ {
		}
		if to-from == 1 && (one.fixed || !one.src.Naming.isLong(one.tool.Name)) {
			continue
		}
		if rest == nil {
			rest = make([]*item, 0, len(base))
		}
		rest = append(rest, base[done:from]...)
		before := len(claims)
		for _, it := range base[from:to] {
			if it.fixed {
				rest = append(rest, it)
			} else {
				claims = append(claims, claim{item: it, name: it.tool.Name})
			}
		}
		if to-from > 1 {
			rename(claims[before:])
		}
		done = to
	}
	if claims == nil {
		return nil, base
	}
	return claims, append(rest, base[done:]...)
}

// rename treats all members of a clash, which are in order, as their servers' on_collision
// says.
func rename(clash []claim) {
	refuse := slices.ContainsFunc(clash, func(c claim) bool { return c.item.src.Naming.OnCollision == CollisionError })
	counter := 0
	for i := range clash {
		c := &clash[i]
		switch naming := &c.item.src.Naming; {
		case refuse:
			c.out = "the name '" + c.name + "' is wanted by more than one tool, and on_collision is error"
		case naming.OnCollision == CollisionSuffix:
			counter++
			c.name += "_" + strconv.Itoa(counter)
		default:
			c.name = naming.safe(c.item.src.Server + "_" + c.name)
		}
	}
}

// settle tells apart by a hash of the identity what still clashes, or is too long: stable
// from run to run, whatever else is in the list. A tool that had the name that it wants loses
// it where a claim has come to it.
func settle(claims []claim, rest []*item) ([]claim, []*item) {
	for _, digits := range []int{8, 24} {
		taken := make(map[string]int, len(claims)) // name → number of tools that want it
		for i := range claims {
			if claims[i].out == "" {
				taken[claims[i].name]++
			}
		}
		var drawn []*item
		for name := range taken {
			at, _ := slices.BinarySearchFunc(rest, name, func(it *item, name string) int { return strings.Compare(it.tool.Name, name) })
			for ; at < len(rest) && rest[at].tool.Name == name; at++ {
				taken[name]++
				if !rest[at].fixed {
					drawn = append(drawn, rest[at])
				}
			}
		}
		if len(drawn) > 0 {
			rest = slices.DeleteFunc(rest, func(it *item) bool { return !it.fixed && taken[it.tool.Name] > 0 })
			slices.SortFunc(drawn, before)
			for _, it := range drawn {
				claims = append(claims, claim{item: it, name: it.tool.Name})
			}
		}
		for i := range claims {
			if c := &claims[i]; c.out == "" && (taken[c.name] > 1 || c.item.src.Naming.isLong(c.name)) {
				c.name = c.hashed(digits)
			}
		}
	}
	return claims, rest
}

// named returns the tools of the claims under their names, in order. Those that the snapshot
// before has under the same names are the same.
func (s *Snapshot) named(claims []claim, last *Snapshot) []*item {
	s.renamed = make(map[*item]*item, len(claims))
	list := make([]*item, 0, len(claims))
	for i := range claims {
		c := &claims[i]
		if c.out != "" {
			continue
		}
		var it *item
		if last != nil {
			it = last.renamed[c.item]
		}
		if it == nil || it.tool.Name != c.name {
			it = &item{tool: c.item.tool, src: c.item.src, fixed: c.item.fixed}
			it.tool.Name = c.name
		}
		s.renamed[c.item] = it
		list = append(list, it)
	}
	slices.SortFunc(list, before)
	return list
}

// safe replaces what is not allowed. It does not shorten.
func (n *Naming) safe(s string) string {
	if n.takes(s) {
		return s
	}
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

// takes reports whether a name is allowed as it is, whatever its length: nearly all are.
func (n *Naming) takes(s string) bool {
	for i := range len(s) {
		if !n.allows(s[i]) {
			return false
		}
	}
	return s != "" && (isLetter(s[0]) || s[0] == '_')
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

func (n *Naming) isLong(name string) bool { return len(name) > n.max() }

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
	return len(name) <= maxName && n.takes(name)
}

func (c *claim) hashed(digits int) string {
	t, most := &c.item.tool, c.item.src.Naming.max()
	sum := sha256.Sum256([]byte(t.Server + "\x00" + t.Remote))
	suffix := "_" + hex.EncodeToString(sum[:])[:min(digits, most-8)]
	name := c.name
	if len(name) > most-len(suffix) {
		name = strings.TrimRight(name[:most-len(suffix)], "-_")
	}
	if name == "" {
		name = "_"
	}
	return name + suffix
}
