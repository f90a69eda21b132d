package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
)

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

// holderOf returns the tool of a clash that keeps the name: all others are of servers that joined the running program
// later. It returns nil if several were there at the same time, or if there is no clash.
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

// rename treats all members of a clash, which are in order, as their servers' on_collision
// says. The holder, if not nil, is no member: it keeps the name.
func rename(clash []claim, holder *item) {
	refuses := func(it *item) bool { return it.src.Naming.OnCollision == CollisionError }
	refuse := holder != nil && refuses(holder) ||
		slices.ContainsFunc(clash, func(c claim) bool { return refuses(c.item) })
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
			c.name = c.item.apart()
		}
	}
}

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

// plainly is the name of a tool, whether others want the one that it wants or not, where
// names of that kind clash with none.
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

// apart is the name of a tool that clashes, as on_collision: server_prefix has it.
func (it *item) apart() string { return it.src.Naming.safe(it.src.Server + "_" + it.tool.Name) }

// as returns the tool under a name.
func (it *item) as(name string) *item {
	if it.tool.Name == name {
		return it
	}
	as := &item{tool: it.tool, of: it, src: it.src, fixed: it.fixed}
	as.tool.Name, as.tool.Rules.Wanted = name, it.tool.Name
	return as
}

// wanting returns the tools of a name from a list in order.
func wanting(list []*item, name string) []*item {
	return ofName(list[search(list, name):], name)
}

// find returns a tool as a list in order has it under a name, nil if it does not.
func find(list []*item, it *item, name string) *item {
	for _, as := range wanting(list, name) {
		if as == it || as.of == it {
			return as
		}
	}
	return nil
}

// hashed ends a name with a hash of the tool's identity.
func (it *item) hashed(name string, digits int) string {
	t, most := &it.tool, it.src.Naming.max()
	sum := sha256.Sum256([]byte(t.Server + "\x00" + t.Remote))
	suffix := "_" + hex.EncodeToString(sum[:])[:min(digits, most-8)]
	if len(name) > most-len(suffix) {
		name = strings.TrimRight(name[:most-len(suffix)], "-_")
	}
	if name == "" {
		name = "_"
	}
	return name + suffix
}
