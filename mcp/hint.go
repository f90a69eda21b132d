package mcp

import (
	"context"
	"strconv"
	"time"

	"github.com/tenonhq/tenon/internal/rawjson"
)

// Hint says how long, and by whom, an answer may be kept (revision 2026-07-28, "Caching"). The zero value says that it
// must not be kept.
type Hint struct {
	TTL    time.Duration // ttlMs
	Public bool          // cacheScope: callers with other credentials may get it too
}

// Least returns the hint of an answer that consists of two others.
func (h Hint) Least(other Hint) Hint {
	return Hint{TTL: min(h.TTL, other.TTL), Public: h.Public && other.Public}
}

// Append appends the members ttlMs and cacheScope, without a comma before or after them.
func (h Hint) Append(b []byte) []byte {
	scope := `"private"`
	if h.Public {
		scope = `"public"`
	}
	ms := max(0, h.TTL.Milliseconds())
	return append(append(strconv.AppendInt(append(b, `"ttlMs":`...), ms, 10), `,"cacheScope":`...), scope...)
}

// HintedSource is a [ToolSource] that knows how long its list may be kept.
type HintedSource interface {
	ToolSource
	// Hint returns the hint of the list that List returned last for ctx.
	Hint(ctx context.Context) Hint
}

type hintKey struct{}

// WithHint has [Client.Read] write the hint of its result to h, before it returns.
func WithHint(ctx context.Context, h *Hint) context.Context {
	return context.WithValue(ctx, hintKey{}, h)
}

// readHint notes the hint of a result for WithHint.
func readHint(ctx context.Context, result []byte) {
	h, _ := ctx.Value(hintKey{}).(*Hint)
	if h == nil {
		return
	}
	var f freshness
	f.page(rawjson.Field(result, "ttlMs"))
	*h = Hint{TTL: f.told(), Public: rawjson.String(rawjson.Field(result, "cacheScope")) == "public"}
}

// told returns the ttlMs that a server gave, 0 without one.
func (f freshness) told() time.Duration {
	if f <= stale {
		return 0
	}
	return time.Duration(f)
}

// Hint returns the hint of the last result of a list method, such as tools/list; see [Client.Fresh].
func (c *Client) Hint(method string) Hint {
	c.fresh.mu.Lock()
	defer c.fresh.mu.Unlock()
	return Hint{TTL: freshness(c.fresh.ttl[method]).told(), Public: c.fresh.public[method]}
}
