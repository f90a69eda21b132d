package gateway

import (
	"cmp"
	"encoding/json"
	"strconv"

	"github.com/tenonhq/tenon"
)

// Followers counts the clients that wait for parked calls.
func Followers(g *Gateway) (n int) {
	g.parked.mu.Lock()
	defer g.parked.mu.Unlock()
	for _, c := range g.parked.list {
		n += c.followers
	}
	return n
}

// MaxLists is the largest number of kept lists.
const MaxLists = maxLists

// FindsKeptList reports whether a list that anna got is found for something that differs: the values that are not zero.
func FindsKeptList(who tenon.Principal, endpoint, rules string, masks int, snapshot bool, down string) bool {
	var l lists
	l.keep(doorKey{who: "anna"}, &keptList{state: listState{snapshot: new(int)}})
	state := l.kept[doorKey{who: "anna"}].state
	state.rules, state.masks = rules, masks
	if snapshot {
		state.snapshot = new(int)
	}
	var lost map[string]string
	if down != "" {
		lost = map[string]string{down: "gone"}
	}
	return l.find(doorKey{cmp.Or(who, "anna"), endpoint}, state, lost) != nil
}

// KeepLists keeps the lists of n principals and returns how many are kept then, and whether the first and the last are.
func KeepLists(n int) (kept int, first, last bool) {
	var l lists
	key := func(i int) doorKey { return doorKey{who: tenon.Principal(strconv.Itoa(i))} }
	for i := range n {
		l.keep(key(i), &keptList{tools: make([]json.RawMessage, 1)})
	}
	return l.listed, l.kept[key(0)] != nil, l.kept[key(n-1)] != nil
}
