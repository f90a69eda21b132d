package gateway

import (
	"context"
	"errors"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/servers"
)

// The pauses before a subscription is renewed whose server was closed, for example by a reload of the configuration.
const (
	renewFirst = 100 * time.Millisecond // doubled up to renewLast
	renewLast  = 30 * time.Second
)

// watch subscribes to a resource at its server for a client, with the principal's credentials, if the rules let the
// principal read it. See [mcp.ServerConfig.Watch].
func (d *door) watch(ctx context.Context, uri string) (stop func(), err error) {
	h := d.g.current()
	own, server, s, err := d.watchable(ctx, h, uri)
	if err == nil {
		stop, err = d.follow(own, uri, server, s, func(server, updated string) {
			if err := d.allow(d.g.current(), resourceTool(server, uri), uriArguments(uri)); err != nil {
				return // the rules changed
			}
			params := append(text([]byte{'{'}, "uri", updated), '}')
			d.server.ResourceUpdated(uri, d.shown(params))
		})
	}
	if err == nil {
		return stop, nil
	}
	var account ofAccount
	if r := mcp.RequestOf(ctx); r != nil && !r.Modern && errors.As(d.atServer(h, server, err), &account) {
		_, err = d.signInFor(ctx, r, account.server, err)
	}
	return nil, d.refusal(ctx, h, append(text([]byte{'{'}, "uri", uri), '}'), err)
}

// watchable returns the server of a resource that the principal may read, and a context with the principal's
// credentials at that server.
func (d *door) watchable(ctx context.Context, h *host.Host, uri string) (own context.Context, server string,
	s *servers.Server, err error) {
	if h.Service().Info().Replays {
		return nil, "", nil, tenon.Errorf(tenon.CodeInvalid, "a replay has no servers, so no resource can be watched")
	}
	server, from, err := d.findResource(ctx, h, uri, func(r mcp.Resource) bool {
		return r.URI == uri || r.Template != "" && matches(r.Template, uri)
	})
	if err == nil {
		s = from.server
		err = d.allow(h, resourceTool(server, uri), uriArguments(uri))
	}
	if err == nil {
		own, err = d.as(ctx, h, server)
	}
	return own, server, s, err
}

// follow subscribes to a resource at its server, and calls updated with the name of the server and the URI of each
// update until stop is called. A renewed subscription counts as an update, because updates may have been missed; it may
// be at another server. It returns when the server has accepted the subscription.
func (d *door) follow(ctx context.Context, uri, server string, s *servers.Server,
	updated func(server, uri string)) (stop func(), err error) {
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	accepted, ended := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		first, refused := true, false
		for u, err := range s.Watch(lasting, uri) {
			switch {
			case err != nil && first:
				refused = true
				accepted <- err
			case first:
				accepted <- nil
			case err == nil:
				updated(server, u.URI)
			}
			first = false
		}
		switch {
		case first:
			accepted <- context.Cause(lasting)
		case !refused:
			d.renew(lasting, uri, server, updated)
		}
	}()
	stop = func() {
		cancel()
		<-ended
	}
	select {
	case err = <-accepted:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		stop()
		return nil, err
	}
	return stop, nil
}

// renew continues a subscription whose server was closed, until ctx or the gateway ends. It subscribes at the server
// that has the resource now. While there is none, the client is notified of one update, so that it reads the resource
// and learns why. The rules decide about that update as about one of the last server.
func (d *door) renew(ctx context.Context, uri, last string, updated func(server, uri string)) {
	told := false
	for pause := renewFirst; ; pause = min(2*pause, renewLast) {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		case <-d.g.closed.Done():
			return
		}
		own, server, s, err := d.watchable(ctx, d.g.current(), uri)
		if err == nil {
			last = server
			for u, err := range s.Watch(own, uri) {
				if err == nil {
					pause, told = renewFirst, false
					updated(server, u.URI)
				}
			}
		}
		if !told && ctx.Err() == nil && d.g.closed.Err() == nil {
			told = true
			updated(last, uri)
		}
	}
}

// observe records the lists to which a client subscribes, so that the first change after that is detected. See
// [mcp.ServerConfig.Observe].
func (d *door) observe(ctx context.Context, method string, params []byte) error {
	if method != "subscriptions/listen" {
		return nil
	}
	filter := rawjson.Field(params, "notifications")
	for _, list := range []string{"tools", "prompts", "resources"} {
		d.mu.Lock()
		_, known := d.seen[list]
		d.mu.Unlock()
		if !known && string(rawjson.Field(filter, list+"ListChanged")) == "true" {
			d.look(ctx, list)
		}
	}
	return nil
}
