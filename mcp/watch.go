package mcp

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/jsonrpc"
)

// ErrUnsubscribed is returned if a subscription ended and its connection did not. Servers may end a subscription, and
// proxies cut silent streams.
var ErrUnsubscribed = errors.New("the subscription ended")

// maxWatches bounds the resources that one connection watches at a time.
const maxWatches = 256

// watches are the subscriptions to single resources.
type watches struct {
	turn chan struct{} // of capacity 1: one resources/subscribe or unsubscribe at a time (legacy era)
	mu   sync.Mutex
	all  map[*watch]bool
}

// watch is one call of [Client.Watch].
type watch struct {
	uri     string
	sub     string // id of the subscription; empty in the legacy era
	begun   func()
	updated func(uri string)
	opened  chan bool // modern era: whether the server accepted the resource
}

// Watch subscribes to the changes of one resource until ctx ends or the connection is lost, and returns why it ended.
// begun is called when the server has accepted the subscription, and again after a session over HTTP was renewed: a
// change before that moment is not reported. updated is called with the URI that the server names, which may be a part
// of the resource. Both are called by the reader of the connection, so they must not block. Errors: invalid (the server
// offers no subscriptions; too many are open), tool (it refuses this one), timeout, [ErrUnsubscribed], errors of the
// connection.
func (c *Client) Watch(ctx context.Context, uri string, begun func(), updated func(uri string)) error {
	w := &watch{uri: uri, begun: begun, updated: updated, opened: make(chan bool, 1)}
	if c.isModern() {
		return c.watchModern(ctx, w)
	}
	if string(rawjson.Field(rawjson.Field(c.Info().Capabilities, "resources"), "subscribe")) != "true" {
		return errNoWatching
	}
	if err := c.watches.add(w); err != nil {
		return err
	}
	err := c.inTurn(ctx, func() error { return c.subscribeResource(ctx, uri) })
	if err != nil {
		c.watches.remove(w)
		return err
	}
	begun()
	select {
	case <-ctx.Done():
		err = ctx.Err()
	case <-c.Done():
		err = c.Err()
	}
	if c.Err() == nil {
		c.unwatch(w)
	} else {
		c.watches.remove(w)
	}
	return err
}

var errNoWatching = tenon.Errorf(tenon.CodeInvalid, "the server does not report its changes (resources.subscribe)")

// subscribeResource sends resources/subscribe.
func (c *Client) subscribeResource(ctx context.Context, uri string) error {
	_, err := c.get(ctx, "resources/subscribe", text(nil, "uri", uri), uri, nil)
	return err
}

// unwatch ends a subscription of the legacy era, unless another caller watches the same resource.
func (c *Client) unwatch(w *watch) {
	ctx, cancel := context.WithTimeout(c.ctx, 2*time.Second)
	defer cancel()
	_ = c.inTurn(ctx, func() error { // without it, notifications arrive that nobody needs
		if left := c.watches.remove(w); left > 0 {
			return nil
		}
		_, err := c.request(ctx, "resources/unsubscribe", text(nil, "uri", w.uri), w.uri)
		return err
	})
	c.watches.remove(w)
}

// inTurn runs one resources/subscribe or unsubscribe at a time, so that a late unsubscribe cannot end a new watch.
func (c *Client) inTurn(ctx context.Context, f func() error) error {
	select {
	case c.watches.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-c.watches.turn }()
	return f()
}

// rewatch subscribes again in a new session (legacy HTTP).
func (c *Client) rewatch() {
	for uri, list := range c.watches.byURI() {
		err := c.inTurn(c.ctx, func() error { return c.subscribeResource(c.ctx, uri) })
		if err != nil {
			c.cfg.Logger.Warn("a resource is watched no longer: its server began a new session", "uri",
				tenon.Visible(uri), "error", err)
			continue
		}
		for _, w := range list {
			w.begun()
		}
	}
}

// watchModern holds one subscription of the modern era, which ends with its request.
func (c *Client) watchModern(ctx context.Context, w *watch) error {
	sub := c.subscription(member(nil, "notifications",
		append(rawjson.AppendString([]byte(`{"resourceSubscriptions":[`), w.uri), "]}"...)))
	w.sub = strconv.FormatInt(sub.ID, 10)
	if err := c.watches.add(w); err != nil {
		return err
	}
	defer c.watches.remove(w)
	own, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		_, err := c.peer.Call(own, sub)
		ended <- err
	}()
	t := time.NewTimer(c.cfg.RequestTimeout)
	defer t.Stop()
	var refused error
	for waiting := t.C; ; {
		select {
		case err := <-ended:
			cancel()
			return c.watchEnded(ctx, err, refused)
		case ok := <-w.opened:
			waiting = nil
			if ok {
				w.begun()
				continue
			}
			refused = errNoWatching
			cancel()
		case <-waiting:
			refused = &slowError{c.cfg.RequestTimeout}
			cancel()
		}
	}
}

// watchEnded returns why a subscription of the modern era has ended.
func (c *Client) watchEnded(ctx context.Context, err, refused error) error {
	var rpc *jsonrpc.Error
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case refused != nil:
		return refused
	case errors.As(err, &rpc) && rpc.Code == jsonrpc.CodeMethodNotFound:
		return errNoWatching
	case errors.As(err, &rpc):
		return c.explain(ctx, "subscriptions/listen", err, false)
	case c.Err() != nil:
		return c.Err()
	}
	return fmt.Errorf("%w: %s", ErrUnsubscribed, errText(err))
}

// add records a watch.
func (l *watches) add(w *watch) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.all) >= maxWatches {
		return tenon.Errorf(tenon.CodeInvalid, "%d resources are watched over one connection; that is the limit",
			maxWatches)
	}
	if l.all == nil {
		l.all = map[*watch]bool{}
	}
	l.all[w] = true
	return nil
}

// remove drops a watch and returns how many others watch its resource.
func (l *watches) remove(w *watch) (left int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.all, w)
	for other := range l.all {
		if other.uri == w.uri {
			left++
		}
	}
	return left
}

func (l *watches) byURI() map[string][]*watch {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := map[string][]*watch{}
	for w := range l.all {
		all[w.uri] = append(all[w.uri], w)
	}
	return all
}

// opened reports whether an acknowledged subscription belongs to a resource, and notifies the caller of Watch whether
// the server accepted the resource.
func (l *watches) opened(params []byte) bool {
	id := string(rawjson.Field(rawjson.Field(params, "_meta"), metaSubscription))
	l.mu.Lock()
	defer l.mu.Unlock()
	for w := range l.all {
		if w.sub == "" || w.sub != id {
			continue
		}
		accepted := false
		agreed := rawjson.Field(rawjson.Field(params, "notifications"), "resourceSubscriptions")
		if rawjson.IsArray(agreed) {
			for v := range rawjson.Elements(agreed) {
				accepted = accepted || rawjson.String(v) == w.uri
			}
		}
		select {
		case w.opened <- accepted:
		default: // a second acknowledgement
		}
		return true
	}
	return false
}

// told passes an update on to the callers of its subscription, or of its URI. If there are none, it passes the update
// to the callers of a resource whose URI is a prefix, since servers may name a part of a watched resource.
func (l *watches) told(params []byte) {
	uri := rawjson.String(rawjson.Field(params, "uri"))
	id := string(rawjson.Field(rawjson.Field(params, "_meta"), metaSubscription))
	l.mu.Lock()
	var exact, parts []*watch
	for w := range l.all {
		switch {
		case w.sub != "" && id != "" && w.sub != id:
		case w.uri == uri || w.sub != "" && w.sub == id:
			exact = append(exact, w)
		case strings.HasPrefix(uri, w.uri):
			parts = append(parts, w)
		}
	}
	l.mu.Unlock()
	if exact == nil {
		exact = parts
	}
	for _, w := range exact {
		w.updated(uri)
	}
}
