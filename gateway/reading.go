package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/internal/lazyregexp"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/mcp"
)

// read answers resources/read with the contents as the server sent them. The client answers questions of the server.
func (d *door) read(ctx context.Context, h *host.Host, params []byte) (json.RawMessage, error) {
	uri := rawjson.String(rawjson.Field(params, "uri"))
	if at, ok := strings.CutPrefix(uri, agent.ArtifactURI); ok {
		return d.artifact(ctx, h, uri, at)
	}
	server, s, err := d.findResource(ctx, h, uri, func(r mcp.Resource) bool {
		return r.URI == uri || r.Template != "" && matches(r.Template, uri)
	})
	if err != nil {
		return nil, err
	}
	if err := d.allow(h, resourceTool(server, uri), uriArguments(uri)); err != nil {
		return nil, err
	}
	if ctx, err = d.as(ctx, h, server); err != nil {
		return nil, d.atServer(h, server, err)
	}
	raw, err := d.askOffer(ctx, offerRequest{"resources/read", uri, func(ctx context.Context) (json.RawMessage, error) {
		return d.readAt(ctx, h, server, s, uri)
	}})
	return raw, d.atServer(h, server, err)
}

// readAt reads a resource of a server. The result is of type input_required if a modern server asks the client first.
func (d *door) readAt(ctx context.Context, h *host.Host, server string, s *serverOffer, uri string) (json.RawMessage,
	error) {
	var told mcp.Hint
	var asked atomic.Bool
	caller := mcp.CallerOf(ctx)
	if caller != nil && caller.Ask != nil {
		own := *caller
		own.Ask = func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
			asked.Store(true)
			return caller.Ask(ctx, method, params)
		}
		ctx = mcp.WithCaller(ctx, &own)
	}
	contents, err := s.Read(mcp.WithHint(ctx, &told), uri)
	if in := (*mcp.InputError)(nil); errors.As(err, &in) && caller != nil {
		return in.Raw, nil
	}
	if err != nil {
		return nil, err
	}
	var list []json.RawMessage
	for _, c := range contents {
		b, err := json.Marshal(c)
		if err != nil {
			return nil, tenon.Errorf(tenon.CodeInternal, "resource '%s': %w", tenon.Visible(uri), err)
		}
		list = append(list, rawjson.Field(b, "resource"))
	}
	hint := d.readHint(ctx, h, resourceTool(server, uri), uri, told)
	if asked.Load() || isRetried(caller) {
		hint = []byte(private) // it may depend on the answers (2026-07-28, MRTR)
	}
	b := append([]byte{'{'}, hint...)
	return append(member(b, "contents", joined(list)), '}'), nil
}

// isRetried reports whether a request repeats an earlier one with the answers of its client.
func isRetried(c *mcp.Caller) bool {
	return c != nil && c.Input != nil && (len(c.Input.Responses) > 0 || c.Input.State != "")
}

// findResource returns the first server with a resource or template for which is returns true. It looks at the
// resources of all servers before the templates.
func (d *door) findResource(ctx context.Context, h *host.Host, uri string, is func(mcp.Resource) bool) (string,
	*serverOffer, error) {
	o, err := d.ask(ctx, h, false)
	if err != nil {
		return "", nil, err
	}
	for _, template := range []bool{false, true} {
		for _, name := range o.names {
			if slices.ContainsFunc(o.of[name].resources, func(r mcp.Resource) bool {
				return (r.Template != "") == template && is(r)
			}) {
				return name, o.of[name], nil
			}
		}
	}
	return "", nil, tenon.Errorf(tenon.CodeNotFound, "there is no resource '%s'", tenon.Visible(uri))
}

// expression is an expression of a template of URIs (RFC 6570).
var expression = lazyregexp.New(`\\\{[^{}]*\\\}`)

// matches reports whether a URI can be an expansion of a template. An expression matches any text.
func matches(template, uri string) bool {
	if len(template) > 2048 || len(uri) > 8192 {
		return false
	}
	pattern := expression().ReplaceAllString(regexp.QuoteMeta(template), ".*")
	re, err := regexp.Compile("^(?s:" + pattern + ")$")
	return err == nil && re.MatchString(uri)
}
