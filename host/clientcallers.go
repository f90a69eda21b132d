package host

import (
	"sync"

	"github.com/tenonhq/tenon/mcp"
)

// clientCallers are the clients that wait for the calls of runs. Only clients that are connected have an entry.
type clientCallers struct {
	mu sync.Mutex
	of map[string]*mcp.Caller // by run
}

// hold has a server ask, and log to, a client during the call of a run, until release is called. The latest client that
// waits for a run counts.
func (k *clientCallers) hold(run string, c *mcp.Caller) (release func()) {
	if c == nil {
		return func() {}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.of == nil {
		k.of = map[string]*mcp.Caller{}
	}
	k.of[run] = c
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.of[run] == c {
			delete(k.of, run)
		}
	}
}

// find returns the client that waits for a run, nil if there is none.
func (k *clientCallers) find(run string) *mcp.Caller {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.of[run]
}

// FollowClientCall has servers ask, and log to, a client that waits for a run which [StartClientCall] began, also for
// another client. Call release when it does not wait any more.
func FollowClientCall(h *Host, run string, c *mcp.Caller) (release func()) {
	return h.serverPool.clients.hold(run, c)
}
