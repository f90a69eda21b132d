package gateway

import (
	"cmp"
	"encoding/json"
	"strconv"
	"time"

	"github.com/tenonhq/tenon"
)

// Followers counts the clients that wait for calls that need an approval.
func Followers(g *Gateway) (n int) {
	g.parked.mu.Lock()
	defer g.parked.mu.Unlock()
	for _, c := range g.parked.list {
		n += c.followers
	}
	return n
}

// SetSignInTime makes links for sign-ins expire by another clock.
func SetSignInTime(g *Gateway, now func() time.Time) { g.signIns.now = now }

// MaxLists is the largest number of cached lists of tools.
const MaxLists = maxLists

// FindsKeptList caches a list for the principal anna. It reports whether a request that differs from the first one in
// the given values finds this list. Zero values do not differ.
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

// KeepLists caches the lists of n principals. It returns how many are still cached then, and whether the first and the
// last one are.
func KeepLists(n int) (kept int, first, last bool) {
	var l lists
	key := func(i int) doorKey { return doorKey{who: tenon.Principal(strconv.Itoa(i))} }
	for i := range n {
		l.keep(key(i), &keptList{tools: make([]json.RawMessage, 1)})
	}
	return l.listed, l.kept[key(0)] != nil, l.kept[key(n-1)] != nil
}

// MaxTasksWatched is the largest number of tasks that the clients of a door watch.
const MaxTasksWatched = maxTasksWatched

// WatchTasks adds n to the tasks that the clients of a principal watch, and returns their number.
func WatchTasks(g *Gateway, who tenon.Principal, n int32) int32 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.doors[doorKey{who: who}].watching.Add(n)
}
