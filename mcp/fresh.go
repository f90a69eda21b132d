package mcp

import (
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tenonhq/tenon/internal/rawjson"
)

// freshness is how long a list may be used according to the server: the shortest ttlMs of its pages (revision
// 2026-07-28, "Caching"), or 0 if no page has one.
type freshness time.Duration

// stale is the freshness of a list with a ttlMs of 0 or less, which is stale at once.
const stale freshness = 1

// maxFresh is the maximum validity that a server can set.
const maxFresh = 24 * time.Hour

// page takes the ttlMs of a page into account.
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

// hints contains the validity of lists, by list method. Most servers set none, so the map is only made when needed.
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

// Fresh returns how long the last result of a list method, such as tools/list, may be used without a new request. It
// returns 0 if the server set no validity. It also returns 0 if the server set a validity of 0 for tools and
// announces their changes, as SDKs do by default: the list of tools is needed for each run, and is then valid until
// the server announces a change. It returns 1 ns for a list that is outdated at once.
func (c *Client) Fresh(method string) time.Duration {
	c.fresh.mu.Lock()
	defer c.fresh.mu.Unlock()
	return c.fresh.ttl[method]
}

// announced reports whether the server declares that it announces changes of a method's list.
func (i Info) announced(method string) bool {
	list, _, _ := strings.Cut(method, "/")
	return string(rawjson.Field(rawjson.Field(i.Capabilities, list), "listChanged")) == "true"
}
