package httpapi

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/url"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/exactjson"
	"github.com/tenonhq/tenon/internal/sse"
	"github.com/tenonhq/tenon/servers"
)

// watchResource streams the changes of a resource, ?server=&uri=, each as the data of an event. The first event has
// began: true. So does each event after which the client must read the resource again, because changes may have been
// missed. If the resource cannot be watched, the answer is a problem.
func (c *call) watchResource() error {
	name, uri := c.req.URL.Query().Get("server"), c.req.URL.Query().Get("uri")
	if name == "" || uri == "" {
		return tenon.Errorf(tenon.CodeInvalid, "name the server and the uri of the resource to watch, as "+
			"?server=NAME&uri=URI")
	}
	if err := c.usable(name); err != nil {
		return err
	}
	own, err := c.asCaller(name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(own)
	type item struct {
		u   servers.Update
		err error
	}
	items := make(chan item)
	go func() {
		defer close(items)
		for u, err := range c.h.Servers().Context().Watch(ctx, name, uri) {
			select {
			case items <- item{u, err}:
			case <-ctx.Done():
				return
			}
		}
	}()
	defer func() {
		cancel()
		for range items { // drains the channel until the goroutine has ended
		}
	}()
	first, ok := <-items
	if !ok || first.err != nil {
		return first.err
	}
	s, ok := c.stream("")
	if !ok {
		return nil
	}
	s.hold(c.updateText(first.u, nil))
	pulse := time.NewTicker(beat)
	defer pulse.Stop()
	for {
		if s.flush() != nil {
			return nil // the client has gone
		}
		select {
		case i, ok := <-items:
			if !ok {
				return nil
			}
			s.hold(c.updateText(i.u, i.err))
		case <-pulse.C:
			s.hold(":\n\n")
		case <-c.ctx().Done():
			return nil
		}
	}
}

// updateText formats a change, or the error that ends the stream, as a server-sent event.
func (c *call) updateText(u servers.Update, err error) string {
	if err != nil {
		return c.eventText(tenon.Event{}, err)
	}
	b, err := encode(u)
	if err != nil {
		return "" // our own type
	}
	return "data: " + string(c.h.Service().Callers().Mask(b)) + "\n\n"
}

// Watch implements [host.ServerContext].
func (c remoteContext) Watch(ctx context.Context, server, uri string) iter.Seq2[servers.Update, error] {
	return func(yield func(servers.Update, error) bool) {
		query := url.Values{"server": {server}, "uri": {uri}}
		none := servers.Update{Server: server, URI: uri}
		res, err := c.do(ctx, http.MethodGet, at("resources", "watch")+"?"+query.Encode(), nil, "", "text/event-stream")
		if err != nil {
			yield(none, err)
			return
		}
		defer res.Body.Close()
		r := sse.NewReader(res.Body, maxAnswer)
		defer r.Close()
		for {
			e, err := r.Next()
			switch {
			case ctx.Err() != nil:
				return
			case errors.Is(err, io.EOF):
				err = tenon.Errorf(tenon.CodeUnreachable, "%s ended the stream; watch again", c.whose)
			case err == nil && e.Type == "problem":
				err = readProblem(0, e.Data)
			}
			if err != nil {
				yield(none, err)
				return
			}
			var u servers.Update
			if err := exactjson.DecodeOpen(e.Data, &u); err != nil {
				yield(none, tenon.Errorf(tenon.CodeProtocol, "a change of resource '%s' cannot be read: %w",
					tenon.Visible(uri), err))
				return
			}
			if !yield(u, nil) {
				return
			}
		}
	}
}
