package mcp

import (
	"strconv"
	"sync"
	"time"
)

// freshness is how long the pages of a list may be used, according to the server: the shortest positive ttlMs of all
// pages (revision 2026-07-28, "Caching"), 0 without one.
type freshness time.Duration

// maxFresh bounds what a server may ask for.
const maxFresh = 24 * time.Hour

// page adds the ttlMs of a page. A value that is not positive is no hint.
func (f *freshness) page(raw []byte) {
	ms, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || ms <= 0 {
		return
	}
	ttl := freshness(min(ms*float64(time.Millisecond), float64(maxFresh)))
	if *f == 0 || ttl < *f {
		*f = ttl
	}
}

// hints are the positive hints of a server, by list method. Most servers give none, so it is small without them.
type hints struct {
	mu  sync.Mutex
	ttl map[string]time.Duration
}

func (h *hints) set(method string, f freshness) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case f == 0:
		delete(h.ttl, method)
	case h.ttl == nil:
		h.ttl = map[string]time.Duration{method: time.Duration(f)}
	default:
		h.ttl[method] = time.Duration(f)
	}
}

// Fresh returns for how long the last result of a list method, such as tools/list, may be used without asking again.
// It is 0 if the server gave no such hint: then the list is valid until the server announces a change.
func (c *Client) Fresh(method string) time.Duration {
	c.fresh.mu.Lock()
	defer c.fresh.mu.Unlock()
	return c.fresh.ttl[method]
}
