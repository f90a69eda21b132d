package catalog

import (
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
)

// Merge makes a snapshot of what several servers offer. The order of the shelves
// does not matter, but that problems are told in it.
func Merge(shelves []*Shelf) (*Snapshot, []error) { return (*Snapshot)(nil).Merge(shelves) }

// Merge is the function [Merge], with less work where the snapshot, which may be nil, was
// merged of some of the same shelves: their tools are in order already, and what does not
// clash with the others is named without a look at these. What comes out is the same.
func (s *Snapshot) Merge(shelves []*Shelf) (*Snapshot, []error) {
	n := &Snapshot{shelves: shelves}
	var problems []error
	for _, shelf := range shelves {
		n.withheld = append(n.withheld, shelf.withheld...)
		problems = append(problems, shelf.problems...)
	}
	for _, c := range n.arrange(s) {
		if c.out != "" {
			server, remote := c.item.src.Server, c.item.tool.Remote
			n.withheld = append(n.withheld, Withheld{server, remote, c.out})
			problems = append(problems, tenon.Errorf(tenon.CodeConfig, "tool '%s' of server '%s' is left out: %s", remote, server, c.out))
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

// arrange names the tools of the shelves and puts them in order. It returns those that have
// a name which they did not want, where these were all looked at.
func (s *Snapshot) arrange(last *Snapshot) []claim {
	if !areDistinct(s.shelves) {
		return s.name(joinAll(s.shelves), last)
	}
	if last == nil || last.base == nil {
		s.base = joinAll(s.shelves)
		return s.name(s.base, last)
	}
	gone, fresh := joinAll(others(last.shelves, s.shelves)), joinAll(others(s.shelves, last.shelves))
	base, groups := exchange(last.base, gone, fresh)
	s.base = base
	if last.plain && areAlike(s.shelves) {
		if items, ok := last.patch(base, groups); ok {
			s.items, s.plain = items, true
			return nil
		}
	}
	return s.name(base, last)
}

// name looks at all tools of a list in order.
func (s *Snapshot) name(base []*item, last *Snapshot) []claim {
	claims, rest := contested(base)
	s.items, s.plain = rest, areAlike(s.shelves)
	if len(claims) > 0 {
		plain := true
		claims, rest, plain = settle(claims, rest)
		s.items, s.plain = join(rest, settled(claims, last)), s.plain && plain
	}
	return claims
}

// group is the tools that want one name, before a change and after it. Of these some are
// gone and some are fresh.
type group struct {
	was, is, gone, fresh []*item
	clashed, clashes     bool
}

// exchange returns a list in order without some of its tools and with others, and the
// groups that this touches.
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

// patch returns the tools of base in order under their names, which are those that they had
// but in some groups, and there those of the others in a group as long as it is one of a clash,
// or none, before and after. That is so as long as a name depends on nothing else
// ([item.plainly]); ok is false where one that came clashes in another way.
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

// areAlike reports whether servers treat clashes and long names alike, so that the name of
// a tool does not depend on who else wants it, only on whether somebody does.
func areAlike(shelves []*Shelf) bool {
	for _, s := range shelves {
		n := &s.source.Naming
		if n.OnCollision == CollisionSuffix || n.OnCollision == CollisionError || n.max() != shelves[0].source.Naming.max() {
			return false
		}
	}
	return true
}

// areDistinct reports whether no two shelves are of the same server, so that the order of
// their tools depends on nothing else.
func areDistinct(shelves []*Shelf) bool {
	seen := make(map[string]bool, len(shelves))
	for _, s := range shelves {
		if seen[s.source.Server] {
			return false
		}
		seen[s.source.Server] = true
	}
	return true
}

// others returns the shelves that are not among some.
func others(shelves, some []*Shelf) []*Shelf {
	set := make(map[*Shelf]bool, len(some))
	for _, s := range some {
		set[s] = true
	}
	return slices.DeleteFunc(slices.Clone(shelves), func(s *Shelf) bool { return set[s] })
}

// before is the order of tools: by name and, where that does not tell, by identity.
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

// joinAll puts the tools of shelves in order, which those of each are.
func joinAll(shelves []*Shelf) []*item {
	switch n := len(shelves); n {
	case 0:
		return nil
	case 1:
		return shelves[0].items
	default:
		return join(joinAll(shelves[:n/2]), joinAll(shelves[n/2:]))
	}
}

// join makes one list in order of two. It is quick where one of them is short: what stands
// between two tools of it is not looked at one by one.
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

// ahead returns how many tools of a list in order have a name before one. It is looked for in
// steps that double, since it is mostly near.
func ahead(list []*item, name string) int {
	from, to := 0, 1
	for to <= len(list) && list[to-1].tool.Name < name {
		from, to = to, 2*to
	}
	return from + search(list[from:min(to-1, len(list))], name)
}

// search is ahead for a place that may be anywhere.
func search(list []*item, name string) int {
	n, _ := slices.BinarySearchFunc(list, name, func(it *item, name string) int { return strings.Compare(it.tool.Name, name) })
	return n
}

// without returns a list without some of its elements, which stand in the same order.
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

// ofName returns the tools of a name with which a list in order begins.
func ofName(list []*item, name string) []*item {
	n := 0
	for n < len(list) && list[n].tool.Name == name {
		n++
	}
	return list[:n]
}
