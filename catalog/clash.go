package catalog

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
)

// claim is a tool that cannot have the name that it wants and gets another one.
type claim struct {
	item *item
	name string
	out  string // why the tool is left out; "" if it is not
}

// contested splits tools into claims and the rest, both in order. A tool is a claim if another tool wants the same
// name, or if the name is too long. Tools in a clash get their first new name here. Names from the configuration
// stay, since they are unique.
func contested(base []*item) (claims []claim, rest []*item) {
	done := 0 // number of tools of base that are in rest or in claims
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
		group := base[from:to]
		holder := holderOf(group)
		for _, it := range group {
			if it.fixed || it == holder {
				rest = append(rest, it)
			} else {
				claims = append(claims, claim{item: it, name: it.tool.Name})
			}
		}
		if to-from > 1 {
			rename(claims[before:], holder)
		}
		done = to
	}
	if claims == nil {
		return nil, base
	}
	return claims, append(rest, base[done:]...)
}

// holderOf returns the tool of a clash that keeps its name: the one whose server joined the running program before the
// servers of all others. It returns nil if there is no clash, if several joined first together (for example, all were
// there at the start), or if the name is too long to be kept.
func holderOf(group []*item) *item {
	if len(group) < 2 {
		return nil
	}
	var holder *item
	for _, it := range group {
		if holder == nil || it.src.Joined < holder.src.Joined {
			holder = it
		}
	}
	for _, it := range group {
		if it != holder && it.src.Joined == holder.src.Joined {
			return nil
		}
	}
	if holder.src.Naming.isLong(holder.tool.Name) {
		return nil // it needs another name anyway
	}
	return holder
}

// rename renames the members of a clash according to their servers' on_collision. The holder, if not nil, keeps the
// name and is not among the members. A server that joined later changes nothing about the tools that were there before
// it: its on_collision: error leaves them their names, and its tools get the last numbers.
func rename(clash []claim, holder *item) {
	slices.SortStableFunc(clash, func(a, b claim) int { return cmp.Compare(a.item.src.Joined, b.item.src.Joined) })
	// Tools are left out from the first one on that refuses, also if they joined at the same time.
	refuser := holder
	if holder == nil || !holder.refuses() {
		refuser = nil
		if i := slices.IndexFunc(clash, func(c claim) bool { return c.item.refuses() }); i >= 0 {
			refuser = clash[i].item
		}
	}
	counter := 0
	for i := range clash {
		c := &clash[i]
		switch naming := &c.item.src.Naming; {
		case refuser != nil && c.item.src.Joined >= refuser.src.Joined:
			c.out = "the name '" + c.name + "' is wanted by more than one tool, and on_collision is error"
		case naming.OnCollision == CollisionSuffix:
			counter++
			c.name += "_" + strconv.Itoa(counter)
		default:
			c.name = c.item.apart()
		}
	}
}

// refuses reports whether a tool is left out in a clash, with the tools that joined at the same time or later.
func (it *item) refuses() bool { return it.src.Naming.OnCollision == CollisionError && !it.src.gone }

// settle appends a hash of the identity to names that still clash or are too long. The hash is the same in all runs and
// does not depend on the rest of the list. A tool loses the name that it wants if a claim leads to the same name. plain
// reports that nothing clashed.
func settle(claims []claim, rest []*item) (_ []claim, _ []*item, plain bool) {
	plain = true
	for _, digits := range []int{8, 24} {
		taken := make(map[string]int, len(claims))    // name → number of tools that want it
		earliest := make(map[string]int, len(claims)) // name → the least Joined of the claims
		for i := range claims {
			if c := &claims[i]; c.out == "" {
				if first, ok := earliest[c.name]; !ok || c.item.src.Joined < first {
					earliest[c.name] = c.item.src.Joined
				}
				taken[c.name]++
			}
		}
		gives := func(it *item) bool { return !it.fixed && it.src.Joined >= earliest[it.tool.Name] }
		var drawn []*item
		for name := range taken {
			for _, it := range wanting(rest, name) {
				taken[name]++
				if gives(it) {
					drawn = append(drawn, it)
				}
			}
		}
		if len(drawn) > 0 {
			rest = slices.DeleteFunc(rest, func(it *item) bool { return taken[it.tool.Name] > 0 && gives(it) })
			slices.SortFunc(drawn, before)
			for _, it := range drawn {
				claims = append(claims, claim{item: it, name: it.tool.Name})
			}
		}
		for i := range claims {
			c := &claims[i]
			shared := taken[c.name] > 1
			plain = plain && !shared
			if c.out == "" && (shared || c.item.src.Naming.isLong(c.name)) {
				c.name = c.item.hashed(c.name, digits)
			}
		}
	}
	return claims, rest, plain
}

// settled returns the tools of the claims under their names, in order. It reuses tools that the last snapshot has under
// the same name.
func settled(claims []claim, last *Snapshot) []*item {
	list := make([]*item, 0, len(claims))
	for i := range claims {
		c := &claims[i]
		if c.out != "" {
			continue
		}
		var it *item
		if last != nil {
			it = find(last.items, c.item, c.name)
		}
		if it == nil {
			it = c.item.as(c.name)
		}
		list = append(list, it)
	}
	slices.SortFunc(list, before)
	return list
}

// plainly returns the name of a tool in the usual case: clash says whether other tools want the same name, and the
// result clashes with no name.
func (it *item) plainly(clash bool) string {
	name := it.tool.Name
	switch {
	case it.fixed:
		return name
	case clash:
		name = it.apart()
	}
	if it.src.Naming.isLong(name) {
		return it.hashed(name, 8)
	}
	return name
}

// apart returns the name of a clashing tool under on_collision: server_prefix.
func (it *item) apart() string { return it.src.Naming.safe(it.src.Server + "_" + it.tool.Name) }

// as returns the tool with another exposed name.
func (it *item) as(name string) *item {
	if it.tool.Name == name {
		return it
	}
	as := &item{tool: it.tool, of: it, src: it.src, fixed: it.fixed}
	as.tool.Name, as.tool.Rules.Wanted = name, it.tool.Name
	return as
}

// wanting returns the tools with a name from an ordered list.
func wanting(list []*item, name string) []*item {
	return ofName(list[search(list, name):], name)
}

// find returns the item of a tool under a name in an ordered list, or nil if the list has none.
func find(list []*item, it *item, name string) *item {
	for _, as := range wanting(list, name) {
		if as == it || as.of == it {
			return as
		}
	}
	return nil
}

// hashed appends a hash of the tool's identity to a name.
func (it *item) hashed(name string, digits int) string {
	t, most := &it.tool, it.src.Naming.max()
	sum := sha256.Sum256([]byte(t.Server + "\x00" + t.Remote))
	suffix := "_" + hex.EncodeToString(sum[:])[:min(digits, most-8)]
	if len(name) > most-len(suffix) {
		name = strings.TrimRight(name[:most-len(suffix)], "-_")
	}
	name = cmp.Or(name, "_")
	return name + suffix
}

// Kept returns the listing of a server that was removed. It has only what names its tools, so that [Merge] reserves
// their names. The caller removes the tools with [Snapshot.Without].
func (s *Listing) Kept() *Listing {
	kept := &Listing{source: Source{Server: s.source.Server, Naming: s.source.Naming, Joined: s.source.Joined,
		gone: true}, items: make([]*item, len(s.items))}
	for i, it := range s.items {
		kept.items[i] = &item{src: &kept.source, fixed: it.fixed,
			tool: tenon.Tool{Server: it.tool.Server, Remote: it.tool.Remote, Name: it.tool.Name}}
	}
	return kept
}

// Len returns the number of tools that are not left out by themselves.
func (s *Listing) Len() int { return len(s.items) }

// Joined returns [Source.Joined].
func (s *Listing) Joined() int { return s.source.Joined }
