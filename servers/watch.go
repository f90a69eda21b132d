package servers

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/tenonhq/tenon"
)

// watchPause is the pause before a lost subscription to a resource is opened again.
const watchPause = time.Second

// Watch calls updated with the params of each notification that a resource was updated, until stop is called. Updated
// must not block. The subscription is opened again on a new connection; the resource then counts as updated. The
// credentials of ctx are used. Errors: as of [Server.Read].
func (s *Server) Watch(ctx context.Context, uri string, updated func(params json.RawMessage)) (stop func(), err error) {
	what := fmt.Sprintf("the subscription to '%s' of server '%s'", clean(uri), s.name)
	if s.cfg.Lifecycle == LifecyclePerCall {
		return nil, tenon.Errorf(tenon.CodeInvalid, "%s: it has no connection that stays (lifecycle: per_call)", what)
	}
	of, done, err := s.forCaller(ctx)
	switch {
	case err != nil:
		return nil, err
	case of == nil:
		of, done = s, func() {}
	}
	lost, end, err := of.watch(ctx, uri, what, updated)
	if err != nil {
		done()
		return nil, of.veiledError(err)
	}
	own, cancel := context.WithCancel(of.ctx)
	of.wg.Go(func() {
		defer done()
		for {
			select {
			case <-own.Done():
				end()
				return
			case <-lost:
				end() // a connection that is shared stays
			}
			if lost, end = of.watchAgain(own, uri, what, updated); end == nil {
				return
			}
		}
	})
	return cancel, nil
}

// watch subscribes on the current connection. Lost is closed when that ends.
func (s *Server) watch(ctx context.Context, uri, what string, updated func(json.RawMessage)) (lost <-chan struct{},
	end func(), err error) {
	err = s.use(ctx, what, func(c *link) error {
		var err error
		if end, err = c.Watch(ctx, uri, updated); err != nil {
			return s.failed(c, what, err, ofResources)
		}
		lost = c.Done()
		return nil
	})
	return lost, end, err
}

// watchAgain subscribes after the connection was lost. It returns no end if ctx has ended, or the server refuses.
func (s *Server) watchAgain(ctx context.Context, uri, what string, updated func(json.RawMessage)) (lost <-chan struct{},
	end func()) {
	for {
		select {
		case <-time.After(watchPause):
		case <-ctx.Done():
			return nil, nil
		}
		lost, end, err := s.watch(ctx, uri, what, updated)
		if err == nil {
			updated(tenon.EventData(map[string]string{"uri": uri}))
			return lost, end
		}
		if code := tenon.ErrorCode(err); ctx.Err() != nil || code == tenon.CodeNotFound {
			return nil, nil
		}
	}
}

// Watch watches a resource on the shared connection.
func (m *member) Watch(ctx context.Context, uri string, updated func(params json.RawMessage)) (stop func(), err error) {
	ctx, cancel := m.with(ctx)
	defer cancel()
	return m.l.d.conn.Watch(ctx, uri, updated)
}
