package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/jsonrpc"
	"github.com/tenonhq/tenon/transport"
)

// listen follows the notifications of changed lists if they need a request: in the modern era subscriptions/listen,
// over legacy HTTP the stream of a GET, on which a server may also ask questions. Without Changed, notifications are
// not needed.
func (c *Client) listen() {
	info := c.Info()
	switch {
	case c.cfg.Changed == nil && (info.IsModern() || !c.cfg.Answers.any()):
	case info.IsModern():
		if filter := c.filter(info); len(filter) > 1 {
			filter = append(filter, '}')
			if c.http == nil {
				c.hold(filter, firstPause)
				return
			}
			c.wg.Go(func() { c.subscribe(filter) })
		}
	case c.http != nil && c.http.Session() != "":
		opened := make(chan struct{})
		c.opened = opened
		c.wg.Go(func() { c.follow(sync.OnceFunc(func() { close(opened) })) })
	}
}

// openTime is how long the first calls wait for the notification stream. Servers may use it for questions during a
// call.
const openTime = 500 * time.Millisecond

// awaitStream waits until the notification stream of a legacy session is open. If a server asks a question before
// that, it waits for the answer without end.
func (c *Client) awaitStream(ctx context.Context) {
	if c.opened == nil {
		return
	}
	select {
	case <-c.opened:
		return
	default:
	}
	t := time.NewTimer(openTime)
	defer t.Stop()
	select {
	case <-c.opened:
	case <-t.C:
	case <-ctx.Done():
	}
}

// filter returns the filter for the lists whose changes the server announces.
func (c *Client) filter(info Info) []byte {
	b := []byte{'{'}
	for _, list := range []string{"tools", "prompts", "resources"} {
		if info.announced(list) {
			b = member(b, list+"ListChanged", []byte("true"))
		}
	}
	return b
}

// The pause before a broken subscription is opened again. It doubles each time.
const (
	firstPause = time.Second
	lastPause  = time.Minute
)

// subscribe keeps one subscription open. After a broken subscription, the lists are treated as changed, because a
// change may have been missed.
func (c *Client) subscribe(filter []byte) {
	params := member(nil, "notifications", filter)
	for pause := firstPause; ; {
		begun := time.Now()
		_, err := c.peer.Call(c.ctx, c.subscription(params))
		if pause = c.again(err, pause, begun, filter); pause == 0 {
			return
		}
	}
}

// hold is subscribe over a stream. It needs no goroutine while the subscription is open.
func (c *Client) hold(filter []byte, pause time.Duration) {
	begun := time.Now()
	c.wg.Add(1)
	c.peer.Hold(c.subscription(member(nil, "notifications", filter)), func(err error) {
		defer c.wg.Done()
		if next := c.again(err, pause, begun, filter); next > 0 {
			c.hold(filter, next)
		}
	})
}

// subscription makes the request for a subscription. Its body is a copy, because borrowed buffers are larger and the
// body is kept all the time.
func (c *Client) subscription(params []byte) jsonrpc.Outgoing {
	id := c.peer.NextID()
	return jsonrpc.Outgoing{ID: id, Method: "subscriptions/listen",
		Body: c.appendRequest(nil, id, "subscriptions/listen", params, nil, c.meta)}
}

// again waits before a broken subscription is opened again, and returns the next pause, or 0 if the subscription
// should not be opened again.
func (c *Client) again(err error, pause time.Duration, begun time.Time, filter []byte) time.Duration {
	var rpc *jsonrpc.Error
	if c.ctx.Err() != nil || errors.As(err, &rpc) || c.peer.Err() != nil {
		return 0 // closed, refused, or lost as a whole
	}
	if time.Since(begun) > lastPause { // silence is not an error, and proxies cut silent streams
		pause = firstPause
	} else {
		c.healthy(errors.New("the subscription to changes ended: " + errText(err)))
	}
	c.cfg.Logger.Debug("the subscription to changes ended; it will be opened again", "error", errText(err), "in", pause)
	if !wait(c.ctx, pause) {
		return 0
	}
	for _, list := range []string{"tools", "prompts", "resources"} {
		if strings.Contains(string(filter), `"`+list+`ListChanged"`) {
			c.changed.call(list)
		}
	}
	return min(pause*2, lastPause)
}

// missed treats the lists of a confirmed subscription as changed if a tool was called before: the call may have
// changed the server's tools while no notification was sent.
func (c *Client) missed(params json.RawMessage) {
	if !c.called.Load() {
		return
	}
	agreed := rawjson.Field(params, "notifications")
	for _, list := range []string{"tools", "prompts", "resources"} {
		if string(rawjson.Field(agreed, list+"ListChanged")) == "true" {
			c.changed.call(list)
		}
	}
}

// healthy calls Health, if it is set.
func (c *Client) healthy(err error) {
	if c.cfg.Health != nil {
		c.cfg.Health(err)
	}
}

func errText(err error) string {
	if err == nil {
		return "the server ended it"
	}
	return err.Error()
}

// follow keeps the notification stream of a legacy HTTP session open. It calls opened when the stream is open, or
// when it is known that the server has none.
func (c *Client) follow(opened func()) {
	defer opened()
	stood := false
	state := func(err error) {
		opened()
		if err != nil {
			err = fmt.Errorf("the stream of notices ended: %w", err)
		}
		stood = stood || err == nil
		c.healthy(err)
	}
	for pause := firstPause; c.ctx.Err() == nil; {
		err := c.http.Listen(c.ctx, state, func(b []byte) bool { c.peer.Deliver(b); return false })
		opened()
		if !errors.Is(err, transport.ErrSession) {
			if stood && c.ctx.Err() == nil {
				c.healthy(fmt.Errorf("the stream of notices cannot be opened again: %w", err))
			}
			return // the server has no such stream, or the client is closed
		}
		t := time.NewTimer(pause)
		select {
		case <-c.ctx.Done():
		case <-c.renewed: // a call has begun a new session
			pause = firstPause
		case <-t.C:
			pause = min(2*pause, lastPause)
		}
		t.Stop()
	}
}

func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
