package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/jsonrpc"
)

// maxWatched is the maximum number of resources to which one connection subscribes.
const maxWatched = 1000

// WatchFunc begins to watch a resource for a client. stop is called once, when the client unsubscribes or is gone. An
// error refuses the subscription.
type WatchFunc func(ctx context.Context, uri string) (stop func(), err error)

// session returns the connection that keeps the state beyond a single request.
func (c *serverConn) session() *serverConn {
	return cmp.Or(c.parent, c)
}

// setLevel answers logging/setLevel.
func (c *serverConn) setLevel(params []byte) {
	level := rawjson.String(rawjson.Field(params, "level"))
	s := c.session()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.level = level
}

// watch answers resources/subscribe (legacy).
func (c *serverConn) watch(ctx context.Context, params []byte) ([]byte, error) {
	uri := rawjson.String(rawjson.Field(params, "uri"))
	if uri == "" {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "the uri of the resource is missing")
	}
	s := c.session()
	s.mu.Lock()
	known, full := s.watched[uri] != nil, len(s.watched) >= maxWatched
	s.mu.Unlock()
	switch {
	case known:
		return []byte("{}"), nil
	case full:
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "%d subscriptions are the limit", maxWatched)
	}
	stop, err := c.s.cfg.Watch(ctx, uri)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone || s.watched[uri] != nil {
		go stop()
		return []byte("{}"), nil
	}
	if s.watched == nil {
		s.watched = map[string]func(){}
	}
	s.watched[uri] = stop
	return []byte("{}"), nil
}

// unwatch answers resources/unsubscribe (legacy).
func (c *serverConn) unwatch(params []byte) []byte {
	uri := rawjson.String(rawjson.Field(params, "uri"))
	s := c.session()
	s.mu.Lock()
	stop := s.watched[uri]
	delete(s.watched, uri)
	s.mu.Unlock()
	if stop != nil {
		stop()
	}
	return []byte("{}")
}

// end ends the subscriptions of a connection that is gone.
func (c *serverConn) end() {
	c.mu.Lock()
	watched, id := c.watched, c.id
	c.watched, c.gone = nil, true
	c.mu.Unlock()
	if id.Protocol != "" && c.s.cfg.Left != nil {
		c.s.cfg.Left(id)
	}
	for _, stop := range watched {
		stop()
	}
}

// watchAll begins to watch the resources of a filter (modern), and returns the ones that the server accepts.
func (c *serverConn) watchAll(ctx context.Context, filter []byte) (uris []string, stop func()) {
	var stops []func()
	var want []string
	if c.s.cfg.Watch == nil || json.Unmarshal(rawjson.Field(filter, "resourceSubscriptions"), &want) != nil {
		return nil, func() {}
	}
	for _, uri := range want[:min(len(want), maxWatched)] {
		if slices.Contains(uris, uri) {
			continue
		}
		if stop, err := c.s.cfg.Watch(ctx, uri); err == nil {
			uris, stops = append(uris, uri), append(stops, stop)
		}
	}
	return uris, func() {
		for _, stop := range stops {
			stop()
		}
	}
}

// ResourceUpdated notifies the subscribers of a resource. params are the params of the notification
// (notifications/resources/updated), an object with the uri. If nil, they contain only the uri.
func (s *Server) ResourceUpdated(uri string, params json.RawMessage) {
	if params == nil {
		params = append(text([]byte{'{'}, "uri", uri), '}')
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		go c.updated(uri, params) // a slow client must not delay the others
	}
}

// updated notifies the client of an updated resource, in the form of the connection's era.
func (c *serverConn) updated(uri string, params json.RawMessage) {
	const method = "notifications/resources/updated"
	c.mu.Lock()
	watched := c.watched[uri] != nil
	c.mu.Unlock()
	if watched {
		c.notify(method, params)
	}
	for _, id := range c.listeners(func(filter []byte) bool {
		var uris []string
		return json.Unmarshal(rawjson.Field(filter, "resourceSubscriptions"), &uris) == nil &&
			slices.Contains(uris, uri)
	}) {
		b := subscription([]byte(id))
		for k, v := range rawjson.Members(params) {
			if string(k) != "_meta" {
				b = member(b, string(k), v)
			}
		}
		c.notify(method, append(b, '}'))
	}
}
