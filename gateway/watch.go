package gateway

import (
	"context"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/servers"
)

// watch subscribes to a resource at its server for a client, with the principal's credentials, if the rules let the
// principal read it. See [mcp.ServerConfig.Watch].
func (d *door) watch(ctx context.Context, uri string) (stop func(), err error) {
	h := d.g.current()
	refuse := func(err error) (func(), error) {
		return nil, d.refusal(ctx, h, append(text([]byte{'{'}, "uri", uri), '}'), err)
	}
	server, s, err := d.findResource(ctx, h, uri, func(r mcp.Resource) bool {
		return r.URI == uri || r.Template != "" && matches(r.Template, uri)
	})
	if err != nil {
		return refuse(err)
	}
	if err := d.allow(h, resourceTool(server, uri), uriArguments(uri)); err != nil {
		return refuse(err)
	}
	own, err := d.as(ctx, h, server)
	if err != nil {
		return refuse(err)
	}
	stop, err = d.follow(own, uri, s, func(updated string) {
		if err := d.allow(d.g.current(), resourceTool(server, uri), uriArguments(uri)); err != nil {
			return // the rules changed
		}
		params := append(text([]byte{'{'}, "uri", updated), '}')
		d.server.ResourceUpdated(uri, d.g.current().Service().Callers().Mask(tenon.VisibleJSON(params)))
	})
	if err != nil {
		return refuse(err)
	}
	return stop, nil
}

// follow subscribes to a resource at its server, and calls updated with the URI of each update until stop is called. A
// renewed subscription counts as an update, because updates may have been missed. It returns when the server has
// accepted the subscription.
func (d *door) follow(ctx context.Context, uri string, s *servers.Server, updated func(uri string)) (stop func(),
	err error) {
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	accepted, ended := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		first := true
		for u, err := range s.Watch(lasting, uri) {
			switch {
			case err != nil && first:
				accepted <- err
			case first:
				accepted <- nil
			case err == nil:
				updated(u.URI)
			}
			first = false
		}
		if first {
			accepted <- context.Cause(lasting)
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
