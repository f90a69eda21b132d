package gateway

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/internal/lazyregexp"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/mcp"
)

// read answers resources/read with the contents as the server sent them.
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
	var told mcp.Hint
	contents, err := s.Read(mcp.WithHint(ctx, &told), uri)
	if err != nil {
		return nil, d.atServer(h, server, err)
	}
	var list []json.RawMessage
	for _, c := range contents {
		b, err := json.Marshal(c)
		if err != nil {
			return nil, tenon.Errorf(tenon.CodeInternal, "resource '%s': %w", tenon.Visible(uri), err)
		}
		list = append(list, rawjson.Field(b, "resource"))
	}
	b := append([]byte{'{'}, d.readHint(ctx, h, resourceTool(server, uri), uri, told)...)
	return append(member(b, "contents", joined(list)), '}'), nil
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
