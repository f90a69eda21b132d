package mcp

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/tenonhq/tenon/jsonrpc"
	"github.com/tenonhq/tenon/transport"
)

// listen follows the server's notices of changed lists where they do not come by
// themselves: in the modern era by subscriptions/listen, over legacy HTTP by
// the stream of a GET. Without Changed nobody wants them.
func (c *Client) listen() {
	if c.cfg.Changed == nil {
		return
	}
	info := c.Info()
	switch {
	case info.IsModern():
		if filter := c.filter(info); len(filter) > 1 {
			c.wg.Go(func() { c.subscribe(append(filter, '}')) })
		}
	case c.http != nil && c.http.Session() != "":
		c.wg.Go(func() { c.follow() })
	}
}

// filter asks for the lists that the server says it tells changes of.
func (c *Client) filter(info Info) []byte {
	b := []byte{'{'}
	for _, list := range []string{"tools", "prompts", "resources"} {
		if string(jsonrpc.Field(jsonrpc.Field(info.Capabilities, list), "listChanged")) == "true" {
			b = member(b, list+"ListChanged", []byte("true"))
		}
	}
	return b
}

// The pause before a subscription that broke is opened again; it doubles.
const (
	firstPause = time.Second
	lastPause  = time.Minute
)

// subscribe keeps one subscription open. After each one that broke the lists may
// have changed without a word, so they are taken as changed.
func (c *Client) subscribe(filter []byte) {
	params := member(nil, "notifications", filter)
	for pause := firstPause; ; pause = min(pause*2, lastPause) {
		begun := time.Now()
		_, err := c.send(c.ctx, "subscriptions/listen", params, nil, "", nil)
		var rpc *jsonrpc.Error
		if c.ctx.Err() != nil || errors.As(err, &rpc) || c.peer.Err() != nil {
			return // closed, refused, or lost as a whole
		}
		if time.Since(begun) > lastPause {
			pause = firstPause
		}
		if c.cfg.Health != nil {
			c.cfg.Health(errors.New("the subscription to changes ended: " + errText(err)))
		}
		c.cfg.Logger.Debug("the subscription to changes ended; it will be opened again", "error", errText(err), "in", pause)
		if !wait(c.ctx, pause) {
			return
		}
		for _, list := range []string{"tools", "prompts", "resources"} {
			if strings.Contains(string(filter), `"`+list+`ListChanged"`) {
				c.changed.call(list)
			}
		}
	}
}

func errText(err error) string {
	if err == nil {
		return "the server ended it"
	}
	return err.Error()
}

// follow keeps the stream of notices of a legacy HTTP session open.
func (c *Client) follow() {
	for c.ctx.Err() == nil {
		err := c.http.Listen(c.ctx, func(b []byte) bool { c.peer.Deliver(b); return false })
		if !errors.Is(err, transport.ErrSession) {
			return // the server has no such stream, or we are closed
		}
		if !wait(c.ctx, firstPause) { // the next call begins a new session
			return
		}
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
