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
// merged of some of the same shelves: their tools are in order already. What comes out is
// the same.
func (s *Snapshot) Merge(shelves []*Shelf) (*Snapshot, []error) {
	n := &Snapshot{shelves: shelves}
	var base []*item
	if areDistinct(shelves) {
		base = s.arrange(shelves)
		n.base = base
	} else {
		base = joinAll(shelves)
	}
	var problems []error
	for _, shelf := range shelves {
		n.withheld = append(n.withheld, shelf.withheld...)
		problems = append(problems, shelf.problems...)
	}
	claims, rest := contested(base)
	if len(claims) > 0 {
		claims, rest = settle(claims, rest)
		rest = join(rest, n.named(claims, s))
	}
	for i := range claims {
		if c := &claims[i]; c.out != "" {
			server, remote := c.item.src.Server, c.item.tool.Remote
			n.withheld = append(n.withheld, Withheld{server, remote, c.out})
			problems = append(problems, tenon.Errorf(tenon.CodeConfig, "tool '%s' of server '%s' is left out: %s", remote, server, c.out))
		}
	}
	n.items, n.tools = rest, make([]*tenon.Tool, len(rest))
	for i, it := range rest {
		n.tools[i] = &it.tool
	}
	if !slices.IsSortedFunc(n.withheld, byIdentity) {
		slices.SortStableFunc(n.withheld, byIdentity)
	}
	return n, problems
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

// arrange returns the tools of shelves of different servers in order: those that the
// snapshot has, too, without those that it alone has, and the others put in.
func (s *Snapshot) arrange(shelves []*Shelf) []*item {
	if s == nil || s.base == nil {
		return joinAll(shelves)
	}
	had, has := setOf(s.shelves), setOf(shelves)
	var gone, fresh []*Shelf
	for _, shelf := range s.shelves {
		if !has[shelf] {
			gone = append(gone, shelf)
		}
	}
	for _, shelf := range shelves {
		if !had[shelf] {
			fresh = append(fresh, shelf)
		}
	}
	return join(without(s.base, joinAll(gone)), joinAll(fresh))
}

func setOf(shelves []*Shelf) map[*Shelf]bool {
	set := make(map[*Shelf]bool, len(shelves))
	for _, s := range shelves {
		set[s] = true
	}
	return set
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
		n := ahead(a, it)
		out = append(append(out, a[:n]...), it)
		a = a[n:]
	}
	return append(out, a...)
}

// ahead returns how many tools of a list in order stand before one. It is looked for in
// steps that double, since it is mostly near.
func ahead(list []*item, it *item) int {
	from, to := 0, 1
	for to <= len(list) && before(list[to-1], it) < 0 {
		from, to = to, 2*to
	}
	n, _ := slices.BinarySearchFunc(list[from:min(to-1, len(list))], it, before)
	return from + n
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
