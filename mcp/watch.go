package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/jsonrpc"
)

// watches are the resources that a connection is subscribed to.
type watches struct {
	mu    sync.Mutex
	next  int
	byURI map[string]*watched
}

// watched is one resource, and who wants to know of its updates.
type watched struct {
	ready chan struct{} // closed when the server has accepted the subscription, or refused it
	err   error
	funcs map[int]func(params json.RawMessage)
	end   func() // ends the subscription
}

// unwatchTime bounds the request that ends a subscription.
const unwatchTime = 5 * time.Second

// Watch calls updated with the params of each notification that a resource was updated, until stop is called or the
// connection ends. Updated must not block. In the legacy era it subscribes to the resource (resources/subscribe), in
// the modern era it opens a subscription (subscriptions/listen).
// Errors: as of [Client.Call]; not_found (the server offers no subscriptions).
func (c *Client) Watch(ctx context.Context, uri string, updated func(params json.RawMessage)) (stop func(), err error) {
	info := c.Info()
	if string(rawjson.Field(rawjson.Field(info.Capabilities, "resources"), "subscribe")) != "true" && !info.IsModern() {
		return nil, tenon.Errorf(tenon.CodeNotFound, "the server offers no subscriptions to resources")
	}
	k := &c.watches
	k.mu.Lock()
	w := k.byURI[uri]
	first := w == nil
	if first {
		w = &watched{ready: make(chan struct{}), funcs: map[int]func(json.RawMessage){}}
		if k.byURI == nil {
			k.byURI = map[string]*watched{}
		}
		k.byURI[uri] = w
	}
	k.next++
	id := k.next
	w.funcs[id] = updated
	k.mu.Unlock()
	stop = sync.OnceFunc(func() { c.unwatch(uri, w, id) })
	if first {
		w.end, w.err = c.beginWatch(ctx, uri)
		close(w.ready)
	}
	select {
	case <-w.ready:
	case <-ctx.Done():
		go stop()
		return nil, c.explain(ctx, "resources/subscribe", ctx.Err(), false)
	}
	if w.err != nil {
		stop()
		return nil, w.err
	}
	return stop, nil
}

// unwatch removes a receiver of updates, and ends the subscription if it was the last one.
func (c *Client) unwatch(uri string, w *watched, id int) {
	<-w.ready
	k := &c.watches
	k.mu.Lock()
	delete(w.funcs, id)
	last := len(w.funcs) == 0
	if last && k.byURI[uri] == w {
		delete(k.byURI, uri)
	}
	k.mu.Unlock()
	if last && w.end != nil {
		w.end()
	}
}

// beginWatch subscribes to a resource.
func (c *Client) beginWatch(ctx context.Context, uri string) (end func(), err error) {
	if c.isModern() {
		own, cancel := context.WithCancel(c.ctx)
		c.wg.Go(func() { c.listenTo(own, uri) })
		return cancel, nil
	}
	if _, err := c.request(ctx, "resources/subscribe", text(nil, "uri", uri), nil, uri); err != nil {
		return nil, c.explain(ctx, "resources/subscribe", err, false)
	}
	return func() {
		c.wg.Go(func() {
			ctx, cancel := context.WithTimeout(c.ctx, unwatchTime)
			defer cancel()
			_, _ = c.request(ctx, "resources/unsubscribe", text(nil, "uri", uri), nil, uri) // a courtesy
		})
	}, nil
}

// listenTo keeps a subscription to a resource open (modern). After one that broke, the resource counts as updated.
func (c *Client) listenTo(ctx context.Context, uri string) {
	filter := []byte(`{"resourceSubscriptions":[`)
	filter = append(rawjson.AppendString(filter, uri), "]}"...)
	params := member(nil, "notifications", filter)
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		begun := time.Now()
		_, err := c.peer.Call(ctx, c.subscription(params))
		var rpc *jsonrpc.Error
		if ctx.Err() != nil || errors.As(err, &rpc) || c.peer.Err() != nil {
			return
		}
		if time.Since(begun) > lastPause {
			pause = firstPause
		}
		if !wait(ctx, pause) {
			return
		}
		c.updated(append(text([]byte{'{'}, "uri", uri), '}'))
	}
}

// updated passes on that a resource was updated. A server may name a part of the resource that was subscribed to.
func (c *Client) updated(params json.RawMessage) {
	uri := rawjson.String(rawjson.Field(params, "uri"))
	k := &c.watches
	k.mu.Lock()
	var funcs []func(json.RawMessage)
	for of, w := range k.byURI {
		if of == uri || strings.HasPrefix(uri, strings.TrimSuffix(of, "/")+"/") {
			for _, f := range w.funcs {
				funcs = append(funcs, f)
			}
		}
	}
	k.mu.Unlock()
	for _, f := range funcs {
		f(params)
	}
}
