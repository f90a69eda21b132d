package httpapi

import (
	"sync"

	"github.com/tenonhq/tenon"
)

// The largest numbers of concurrent requests, streams and runs of all principals together.
const (
	maxRequests = 2048
	maxStreams  = 4096
	maxRuns     = 2048
)

// share returns how many slots one principal may use: four times the number of free slots (dynamic thresholds,
// Choudhury and Hahne 1998). A single principal thus gets up to four fifths of all slots, several principals get equal
// parts, and a new principal always finds a free slot.
func share(free int) int { return 4 * free }

// gate limits concurrent requests fairly among principals.
type gate struct {
	mu   sync.Mutex
	free int                     // free slots
	of   map[tenon.Principal]int // used slots
}

func newGate(size int) *gate { return &gate{free: size, of: map[tenon.Principal]int{}} }

// enter takes a slot for the principal and reports true, or reports false if its share is used up.
func (g *gate) enter(who tenon.Principal) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.of[who] >= share(g.free) {
		return false
	}
	g.free--
	g.of[who]++
	return true
}

// leave frees a slot of the principal.
func (g *gate) leave(who tenon.Principal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.free++
	if g.of[who]--; g.of[who] == 0 {
		delete(g.of, who)
	}
}

// admitRun returns an error if the caller's share of concurrent runs is used up.
func (c *call) admitRun() error {
	if own, all := c.h.Service().Callers().Working(c.caller.Principal); own >= share(maxRuns-all) {
		return tenon.Errorf(tenon.CodeLimit, "'%s' has %d runs at work and there is no room for more; try again in "+
			"a moment", c.caller.Principal, own)
	}
	return nil
}
