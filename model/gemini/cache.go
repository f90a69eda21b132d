package gemini

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/model"
)

// Gemini's models from 2.5 on use caches by themselves, at the price of cached tokens but without a promise. With
// `quirks.cache: true`, tenon also makes a cache of the tools and the system prompt, which always hits. Making and
// keeping it costs money. Therefore it is made with the second request that begins in the same way within five minutes,
// and lives as long as such requests come. At Vertex AI, a cache belongs to the project and location of the model. Keys
// of express mode have none, so there are no caches. Source: CachedContent of the references of the Gemini API and of
// Vertex AI, and package caches of go-genai.

// The bounds of caches.
const (
	cacheMin  = 16 << 10 // bytes of a prefix; the API refuses caches of fewer than 1,024 to 4,096 tokens
	cacheLife = 5 * time.Minute
	cacheRest = 30 * time.Second // a cache that expires sooner is not used
	maxCaches = 32               // prefixes that are remembered
)

// caches remembers the prefixes of a model's requests.
type caches struct {
	mu sync.Mutex
	of map[[sha256.Size]byte]*cache
}

// cache is a prefix, and perhaps the provider's cache of it.
type cache struct {
	name    string    // cachedContents/ID; "" if there is none
	expires time.Time // of the provider's cache
	seen    time.Time // the last request with the prefix
	busy    bool      // somebody makes or extends it
	refused bool      // the provider does not cache this prefix
}

// mayCache returns the function for a cache of the request's prefix, or nil if there may be none.
func (m *Model) mayCache(f func([]byte) string) func([]byte) string {
	google := m.cfg.Provider == "gemini" || m.cfg.Provider == "vertex"
	if f == nil || !m.quirks.Cache || !google || rawjson.Field(m.cfg.Extra, "toolConfig") != nil ||
		rawjson.Field(m.cfg.Extra, "cachedContent") != nil {
		return nil
	}
	return f
}

// cached returns the name of the cache of a prefix. It makes the cache, or extends its life, if that pays.
func (m *Model) cached(ctx context.Context, prefix []byte) string {
	if len(prefix) < cacheMin {
		return ""
	}
	now := time.Now()
	c := m.caches.claim(sha256.Sum256(prefix), now)
	if c == nil {
		return ""
	}
	name, expires, refused := c.name, c.expires, false
	switch {
	case name != "" && expires.Sub(now) > cacheLife/2:
	case name != "" && expires.Sub(now) > cacheRest:
		if m.extend(ctx, name) == nil {
			expires = now.Add(cacheLife)
		}
	default:
		var err error
		if name, err = m.make(ctx, prefix); err != nil {
			name, refused = "", ctx.Err() == nil
		}
		expires = now.Add(cacheLife)
	}
	m.caches.mu.Lock()
	defer m.caches.mu.Unlock()
	c.name, c.expires, c.busy, c.refused = name, expires, false, refused
	return name
}

// claim returns the record of a prefix whose cache can be used or made, and marks it busy. It returns nil if the
// request is sent without a cache.
func (s *caches) claim(key [sha256.Size]byte, now time.Time) *cache {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.of[key]
	if c == nil {
		if len(s.of) >= maxCaches {
			for k, old := range s.of {
				if now.Sub(old.seen) > cacheLife && !old.busy {
					delete(s.of, k) // the provider's cache has expired
				}
			}
		}
		if s.of == nil {
			s.of = map[[sha256.Size]byte]*cache{}
		}
		if len(s.of) < maxCaches {
			s.of[key] = &cache{seen: now}
		}
		return nil
	}
	again := now.Sub(c.seen) <= cacheLife
	c.seen = now
	if c.busy || c.refused || !again {
		return nil
	}
	c.busy = true
	return c
}

// drop forgets a cache that the provider does not know.
func (s *caches) drop(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.of {
		if c.name == name {
			c.name = ""
		}
	}
}

// call calls a route of caches. The path is below the version of the API; at Vertex AI, the names of caches begin with
// their location.
func (m *Model) call(ctx context.Context, method, path string, body []byte, answer any) error {
	x := model.Exchange{Path: "/v1beta/" + path, Key: setKey}
	if m.cfg.Provider == "vertex" {
		base, _, err := m.client.VertexParent(ctx)
		if err != nil {
			return err
		}
		x.Base, x.Path = base, "/v1/"+path
	}
	return m.client.Call(ctx, method, x, body, answer)
}

// errNoProject refuses caches with a key of Vertex AI's express mode.
var errNoProject = errors.New("caches need a project")

// make makes a cache of a prefix and returns its name.
func (m *Model) make(ctx context.Context, prefix []byte) (string, error) {
	route, name := "cachedContents", "models/"+m.cfg.Model
	if m.cfg.Provider == "vertex" {
		_, parent, err := m.client.VertexParent(ctx)
		if err != nil {
			return "", err
		}
		if parent == "" {
			return "", errNoProject
		}
		route, name = parent+"/cachedContents", parent+"/publishers/google/models/"+m.cfg.Model
	}
	b := rawjson.AppendString([]byte(`{"model":`), name)
	b = append(append(b, `,"displayName":"tenon","ttl":"300s"`...), prefix...)
	var made struct {
		Name string `json:"name"`
	}
	err := m.call(ctx, http.MethodPost, route, append(b, '}'), &made)
	return made.Name, err
}

// extend makes a cache live longer.
func (m *Model) extend(ctx context.Context, name string) error {
	return m.call(ctx, http.MethodPatch, name+"?updateMask=ttl", []byte(`{"ttl":"300s"}`), &json.RawMessage{})
}

// uncached sends the request without its cache if the provider does not know the cache any more.
func (m *Model) uncached(ctx context.Context, req *tenon.Request, name string, answer iter.Seq2[tenon.Delta, error],
) iter.Seq2[tenon.Delta, error] {
	return func(yield func(tenon.Delta, error) bool) {
		for d, err := range answer {
			if err != nil && isLost(err) && ctx.Err() == nil {
				m.caches.drop(name)
				m.generate(ctx, req, nil)(yield)
				return
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// isLost reports whether an error says that a cache does not exist. Vertex AI writes "cached content".
func isLost(err error) bool {
	text := strings.ReplaceAll(strings.ToLower(err.Error()), " ", "")
	return strings.Contains(text, "cachedcontent")
}

// Close deletes the caches that would still live for a while.
func (m *Model) Close(ctx context.Context) error {
	m.caches.mu.Lock()
	var names []string
	for _, c := range m.caches.of {
		if c.name != "" && time.Until(c.expires) > cacheRest {
			names = append(names, c.name)
		}
		c.name = ""
	}
	m.caches.mu.Unlock()
	var last error
	for _, name := range names {
		if err := m.call(ctx, http.MethodDelete, name, nil, nil); err != nil {
			last = err
		}
	}
	return last
}
