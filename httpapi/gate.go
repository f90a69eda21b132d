package httpapi

import (
	"sync"

	"github.com/tenonhq/tenon"
)

// What may be under way at a time, for all principals together.
const (
	maxRequests = 2048
	maxStreams  = 4096
	maxRuns     = 2048
)

// share bounds what a principal may have of what there is: four times what is free.
// One alone gets four fifths; several get equal parts; something is always left for
// one who comes anew (dynamic thresholds, Choudhury and Hahne 1998).
func share(free int) int { return 4 * free }

// gate bounds how much is under way.
type gate struct {
	mu   sync.Mutex
	free int
	of   map[tenon.Principal]int
}

func newGate(size int) *gate { return &gate{free: size, of: map[tenon.Principal]int{}} }

// enter takes a place if there is one for the principal.
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

// leave gives it back.
func (g *gate) leave(who tenon.Principal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.free++
	if g.of[who]--; g.of[who] == 0 {
		delete(g.of, who)
	}
}

// admitRun refuses a run while there are too many at work.
func (c *call) admitRun() error {
	if own, all := c.h.AtWork(c.caller.Principal); own >= share(maxRuns-all) {
		return tenon.Errorf(tenon.CodeLimit, "'%s' has %d runs at work and there is no room for more; try again in a moment", c.caller.Principal, own)
	}
	return nil
}
