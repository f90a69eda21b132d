package catalog

import (
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
)

// Merge returns a snapshot of the tools of several servers. Problems are in the order of the listings; otherwise the
// order does not matter.
func Merge(listings []*Listing) (*Snapshot, []error) { return (*Snapshot)(nil).Merge(listings) }

// Merge returns the same as the function [Merge], with less work if the snapshot was merged from some of the same
// listings: their tools are already in order, and only tools whose names are affected by the change get their names
// again. The snapshot may be nil. Figure P10.reshape needs this: without it, P10.reshape was 0.11 instead of 0.04
// (goal: at most 0.08; medians of 5 interleaved rounds).
func (s *Snapshot) Merge(listings []*Listing) (*Snapshot, []error) {
	n := &Snapshot{listings: listings, compiled: newCompiled()}
	if s != nil {
		n.compiled = s.compiled
	}
	var problems []error
	for _, listing := range listings {
		n.withheld = append(n.withheld, listing.withheld...)
		problems = append(problems, listing.problems...)
	}
	for _, c := range n.arrange(s) {
		if c.out != "" && !c.item.src.gone {
			server, remote := c.item.src.Server, c.item.tool.Remote
			n.withheld = append(n.withheld, Withheld{server, remote, c.out})
			problems = append(problems, tenon.Errorf(tenon.CodeConfig, "tool '%s' of server '%s' is left out: %s",
				remote, server, c.out))
		}
	}
	n.tools = make([]*tenon.Tool, len(n.items))
	for i, it := range n.items {
		n.tools[i] = &it.tool
	}
	if !slices.IsSortedFunc(n.withheld, byIdentity) {
		slices.SortStableFunc(n.withheld, byIdentity)
	}
	return n, problems
}

// arrange names the tools of the listings and sorts them. If it had to name all of them, it returns the claims: the
// tools that did not get the name that they want.
func (s *Snapshot) arrange(last *Snapshot) []claim {
	if !areDistinct(s.listings) {
		return s.name(joinAll(s.listings), last)
	}
	if last == nil || last.base == nil {
		s.base = joinAll(s.listings)
		return s.name(s.base, last)
	}
	gone, fresh := joinAll(others(last.listings, s.listings)), joinAll(others(s.listings, last.listings))
	base, groups := exchange(last.base, gone, fresh)
	s.base = base
	if last.plain && areAlike(s.listings) {
		if items, ok := last.patch(base, groups); ok {
			s.items, s.plain = items, true
			return nil
		}
	}
	return s.name(base, last)
}

// name names all tools of an ordered list.
func (s *Snapshot) name(base []*item, last *Snapshot) []claim {
	claims, rest := contested(base)
	s.items, s.plain = rest, areAlike(s.listings)
	if len(claims) > 0 {
		plain := true
		claims, rest, plain = settle(claims, rest)
		s.items, s.plain = join(rest, settled(claims, last)), s.plain && plain
	}
	return claims
}

// group is the set of tools that want one name, before and after a change. gone are the removed tools, fresh the
// added ones.
type group struct {
	was, is, gone, fresh []*item
	clashed, clashes     bool
}

// exchange returns an ordered list with gone removed and fresh added, and the groups that change.
func exchange(list, gone, fresh []*item) ([]*item, []group) {
	out := make([]*item, 0, len(list)-len(gone)+len(fresh))
	groups := make([]group, 0, max(len(gone), len(fresh)))
	for len(gone)+len(fresh) > 0 {
		next := gone
		if len(gone) == 0 || len(fresh) > 0 && fresh[0].tool.Name < gone[0].tool.Name {
			next = fresh
		}
		name := next[0].tool.Name
		g := group{gone: ofName(gone, name), fresh: ofName(fresh, name)}
		gone, fresh = gone[len(g.gone):], fresh[len(g.fresh):]
		n := ahead(list, name)
		out, list = append(out, list[:n]...), list[n:]
		g.was = ofName(list, name)
		list = list[len(g.was):]
		from := len(out)
		out = append(out, join(without(g.was, g.gone), g.fresh)...)
		g.is = out[from:]
		groups = append(groups, g)
	}
	return append(out, list...), groups
}

// patch returns the tools of base in order under their names. It only changes names in the given groups. If a group
// clashed both before and after the change, or neither, it only changes the names of removed and added tools. That is
// correct as long as a name depends only on whether there is a clash ([item.plainly]). ok is false if an added tool
// clashes in another way.
func (s *Snapshot) patch(base []*item, groups []group) (items []*item, ok bool) {
	var out, in []*item
	asWanted := len(s.items) > 0 && len(s.base) == len(s.items) && &s.base[0] == &s.items[0]
	for i := range groups {
		g := &groups[i]
		g.clashed, g.clashes = len(g.was) > 1, len(g.is) > 1
		if g.clashed == g.clashes {
			g.was, g.is = g.gone, g.fresh
		}
		for _, it := range g.is {
			as := it.as(it.plainly(g.clashes))
			in, asWanted = append(in, as), asWanted && as == it
		}
	}
	if asWanted {
		return base, true
	}
	for i := range groups {
		for _, it := range groups[i].was {
			as := find(s.items, it, it.plainly(groups[i].clashed))
			if as == nil {
				return nil, false
			}
			out = append(out, as)
		}
	}
	slices.SortFunc(out, before)
	slices.SortFunc(in, before)
	items, groups = exchange(s.items, out, in)
	for _, g := range groups {
		if len(g.is) > 1 && len(g.fresh) > 0 {
			return nil, false
		}
	}
	return items, true
}

// areAlike reports whether all servers treat clashes and long names in the same way, and none joined later. Then the
// name of a tool depends only on whether another tool wants it, not on which.
func areAlike(listings []*Listing) bool {
	for _, s := range listings {
		n := &s.source.Naming
		if s.source.Joined > 0 || n.OnCollision == CollisionSuffix || n.OnCollision == CollisionError ||
			n.max() != listings[0].source.Naming.max() {
			return false
		}
	}
	return true
}

// areDistinct reports whether all listings are of different servers. Then names and identities determine the order
// of their tools.
func areDistinct(listings []*Listing) bool {
	seen := make(map[string]bool, len(listings))
	for _, s := range listings {
		if seen[s.source.Server] {
			return false
		}
		seen[s.source.Server] = true
	}
	return true
}

// others returns the listings that are not in some.
func others(listings, some []*Listing) []*Listing {
	set := make(map[*Listing]bool, len(some))
	for _, s := range some {
		set[s] = true
	}
	return slices.DeleteFunc(slices.Clone(listings), func(s *Listing) bool { return set[s] })
}

// before compares two tools in the order of a list: by name, then by identity.
func before(a, b *item) int {
	if c := strings.Compare(a.tool.Name, b.tool.Name); c != 0 {
		return c
	}
	if c := strings.Compare(a.src.Server, b.src.Server); c != 0 {
		return c
	}
	return strings.Compare(a.tool.Remote, b.tool.Remote)
}

func byIdentity(a, b Withheld) int {
	if c := strings.Compare(a.Server, b.Server); c != 0 {
		return c
	}
	return strings.Compare(a.Remote, b.Remote)
}

// joinAll merges the tools of the listings into one ordered list. The tools of each listing are in order.
func joinAll(listings []*Listing) []*item {
	switch n := len(listings); n {
	case 0:
		return nil
	case 1:
		return listings[0].items
	default:
		return join(joinAll(listings[:n/2]), joinAll(listings[n/2:]))
	}
}

// join merges two ordered lists. If one of them is short, it copies the tools of the other in blocks.
func join(a, b []*item) []*item {
	if len(a) < len(b) {
		a, b = b, a
	}
	if len(b) == 0 {
		return a
	}
	out := make([]*item, 0, len(a)+len(b))
	for _, it := range b {
		n := ahead(a, it.tool.Name)
		for n < len(a) && before(a[n], it) < 0 {
			n++
		}
		out = append(append(out, a[:n]...), it)
		a = a[n:]
	}
	return append(out, a...)
}

// ahead returns the number of tools in an ordered list whose names come before a name. Its steps double, because the
// place is mostly near the beginning.
func ahead(list []*item, name string) int {
	from, to := 0, 1
	for to <= len(list) && list[to-1].tool.Name < name {
		from, to = to, 2*to
	}
	return from + search(list[from:min(to-1, len(list))], name)
}

// search returns the same as [ahead], but uses a binary search.
func search(list []*item, name string) int {
	n, _ := slices.BinarySearchFunc(list, name, func(it *item,
		name string) int {
		return strings.Compare(it.tool.Name, name)
	})
	return n
}

// without returns a list without the elements of gone. Both lists are in the same order.
func without(list, gone []*item) []*item {
	if len(gone) == 0 {
		return list
	}
	out := make([]*item, 0, len(list)-len(gone))
	start := 0
	for i, it := range list {
		if len(gone) > 0 && it == gone[0] {
			out = append(out, list[start:i]...)
			start, gone = i+1, gone[1:]
		}
	}
	return append(out, list[start:]...)
}

// ofName returns the tools at the beginning of an ordered list that have a name.
func ofName(list []*item, name string) []*item {
	n := 0
	for n < len(list) && list[n].tool.Name == name {
		n++
	}
	return list[:n]
}
