package servers

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/mcp"
)

// Update is a change of a watched resource.
type Update struct {
	Server string `json:"server"`
	// URI is the resource that the server names. It may be a part of the watched one.
	URI string `json:"uri"`
	// Began says that the watch begins now: at first, and after each reconnect. Earlier changes were not reported, so
	// a copy of the resource has to be read again.
	Began bool `json:"began,omitempty"`
}

// maxWaiting bounds the changes of different URIs that wait to be received. Further changes are reported as changes
// of the watched resource.
const maxWaiting = 64

// Watch subscribes to the changes of a resource and yields them until ctx ends. Changes that were not received yet
// are combined. The connection is kept open, and made again after it was lost. After an error, the sequence ends:
// invalid (the server offers no subscriptions, or has lifecycle: per_call), not_found, errors of the first connect.
func (s *Server) Watch(ctx context.Context, uri string) iter.Seq2[Update, error] {
	return func(yield func(Update, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		q := &updates{ready: make(chan struct{}, 1)}
		ended := make(chan error, 1)
		go func() { ended <- s.keepWatching(ctx, uri, q) }()
		done := false
		defer func() {
			cancel()
			if !done {
				<-ended
			}
		}()
		for {
			for _, u := range q.take() {
				u.Server = s.name
				if !yield(u, nil) {
					return
				}
			}
			select {
			case <-q.ready:
			case err := <-ended:
				done = true
				if ctx.Err() == nil {
					yield(Update{Server: s.name, URI: uri}, err)
				}
				return
			}
		}
	}
}

// keepWatching watches until ctx ends, again after each loss of the connection.
func (s *Server) keepWatching(ctx context.Context, uri string, q *updates) error {
	if s.cfg.Lifecycle == LifecyclePerCall {
		return tenon.Errorf(tenon.CodeInvalid, "server '%s' has no lasting connection (lifecycle: per_call), so its "+
			"resources cannot be watched", s.name)
	}
	for n := 0; ; n++ {
		began := time.Now()
		err := s.watchOnce(ctx, uri, q)
		code := tenon.ErrorCode(err)
		lost := code == tenon.CodeUnreachable || code == tenon.CodeTimeout || code == tenon.CodeUnknown
		if ctx.Err() != nil || !q.hasBegun() || !lost || s.ctx.Err() != nil {
			return err
		}
		if time.Since(began) > lastRetry {
			n = 0
		}
		t := time.NewTimer(pauseBefore(n))
		select {
		case <-ctx.Done():
		case <-s.ctx.Done():
		case <-t.C:
		}
		t.Stop()
	}
}

// watchOnce watches over one connection, and returns the reason of its end.
func (s *Server) watchOnce(ctx context.Context, uri string, q *updates) error {
	begun := func() { q.add(Update{URI: s.masked(uri), Began: true}, uri) }
	updated := func(of string) { q.add(Update{URI: s.masked(of)}, s.masked(uri)) }
	what := fmt.Sprintf("resource '%s' of server '%s'", clean(uri), s.name)
	if own, done, err := s.forCaller(ctx); err != nil || own != nil {
		if err != nil {
			return err
		}
		defer done()
		return own.veiledError(own.watching(ctx, what, uri, begun, updated))
	}
	return s.watching(ctx, what, uri, begun, updated)
}

func (s *Server) watching(ctx context.Context, what, uri string, begun func(), updated func(string)) error {
	return s.use(ctx, what, func(c *link) error {
		err := c.Watch(ctx, uri, begun, updated)
		var e *tenon.Error
		if lost := c.Err(); lost != nil && !errors.As(err, &e) {
			err = tenon.Errorf(tenon.CodeUnreachable, "the connection was lost: %w", lost)
		}
		if errors.Is(err, mcp.ErrUnsubscribed) {
			return tenon.Errorf(tenon.CodeUnreachable, "%s: %w", what, err)
		}
		return s.failed(c, what, err, ofResources)
	})
}

// updates are changes that were not received yet.
type updates struct {
	mu    sync.Mutex
	list  []Update
	begun bool
	ready chan struct{} // of capacity 1
}

// add records a change, unless an equal one is waiting. If too many are waiting, it records a change of the whole
// resource.
func (q *updates) add(u Update, whole string) {
	q.mu.Lock()
	q.begun = q.begun || u.Began
	if len(q.list) >= maxWaiting {
		u.URI = whole
	}
	if !slices.Contains(q.list, u) {
		q.list = append(q.list, u)
	}
	q.mu.Unlock()
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

func (q *updates) take() []Update {
	q.mu.Lock()
	defer q.mu.Unlock()
	list := q.list
	q.list = nil
	return list
}

func (q *updates) hasBegun() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.begun
}

// SetRoots replaces the roots of an entry whose other settings are unchanged. It sends
// notifications/roots/list_changed to connections of the legacy era; connections that are made later use the new
// roots. If the entry had no roots before, the capability was not declared on existing connections, so only later
// connections have it.
func (s *Server) SetRoots(ctx context.Context, roots []string) error {
	roots = slices.Clone(roots)
	s.roots.Store(&roots)
	list := Config{Roots: roots}.Answers().Roots
	var all []*Server
	s.overlaid.mu.Lock()
	for _, one := range s.overlaid.m {
		all = append(all, one.s)
	}
	s.overlaid.mu.Unlock()
	var errs []error
	for _, one := range append(all, s) {
		one.mu.Lock()
		c := one.conn
		one.mu.Unlock()
		if c == nil {
			continue
		}
		if r, ok := c.connection.(rooted); ok {
			errs = append(errs, r.SetRoots(ctx, list))
		}
	}
	return errors.Join(errs...)
}

// rooted is a connection whose roots can change.
type rooted interface {
	SetRoots(ctx context.Context, roots []mcp.Root) error
}

// withRoots returns the settings of a connection with the current roots.
func (s *Server) withRoots(cfg Config) Config {
	if roots := s.roots.Load(); roots != nil {
		cfg.Roots = *roots
	}
	return cfg
}

var _ rooted = (*mcp.Client)(nil)
