package mcp

import (
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tenonhq/tenon/internal/rawjson"
)

// freshness is how long the pages of a list may be used, according to the server: the shortest ttlMs of all pages
// (revision 2026-07-28, "Caching"), 0 without one.
type freshness time.Duration

// stale is the freshness of a list with a ttlMs of 0 or less, which is stale at once.
const stale freshness = 1

// maxFresh bounds what a server may ask for.
const maxFresh = 24 * time.Hour

// page adds the ttlMs of a page.
func (f *freshness) page(raw []byte) {
	ms, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || math.IsNaN(ms) {
		return
	}
	ttl := max(freshness(max(0, min(ms*float64(time.Millisecond), float64(maxFresh)))), stale)
	if *f == 0 || ttl < *f {
		*f = ttl
	}
}

// hints are the hints of a server, by list method. Most servers give none that counts, so it is small without them.
type hints struct {
	mu     sync.Mutex
	ttl    map[string]time.Duration
	public map[string]bool // the lists that callers with other credentials may get
}

func (h *hints) set(method string, f freshness, public bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case !public:
		delete(h.public, method)
	case h.public == nil:
		h.public = map[string]bool{method: true}
	default:
		h.public[method] = true
	}
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
// It is 0 if the server gave no such hint, or said 0 of tools whose changes it announces, as SDKs do by default: then
// the list, which each run needs, is valid until the server announces a change. It is 1 ns for a list that is stale at
// once.
func (c *Client) Fresh(method string) time.Duration {
	c.fresh.mu.Lock()
	defer c.fresh.mu.Unlock()
	return c.fresh.ttl[method]
}

// announced reports whether the server declares that it announces changes of the lists of a method.
func (i Info) announced(method string) bool {
	list, _, _ := strings.Cut(method, "/")
	return string(rawjson.Field(rawjson.Field(i.Capabilities, list), "listChanged")) == "true"
}
