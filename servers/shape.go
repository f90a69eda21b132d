package servers

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/tenonhq/tenon"
)

// The treatments of results.
const (
	FormatNative     = "native"
	FormatText       = "text"
	FormatStructured = "structured"

	LinksKeep  = "keep"
	LinksFetch = "fetch"
)

// maxFetched is the maximum number of links that are read for one result.
const maxFetched = 16

// shape changes a result as configured: it reads links, and then converts the result to the configured form. It does
// not change error results or results that need input.
func (s *Server) shape(ctx context.Context, c *link, r *tenon.Result) *tenon.Result {
	if r.Input != nil || r.IsError {
		return r
	}
	if s.cfg.ResourceLinks == LinksFetch {
		r = s.fetchLinks(ctx, c, r)
	}
	switch s.cfg.ResultFormat {
	case FormatText:
		return onlyText(r, joinText(r, "\n"))
	case FormatStructured:
		if len(r.Structured) > 0 {
			return onlyText(r, string(r.Structured))
		}
		return onlyText(r, joinText(r, ""))
	}
	return r
}

// fetchLinks replaces links to resources with the contents of the resources. If a link cannot be read, it stays and
// the log says why, because the call itself succeeded.
func (s *Server) fetchLinks(ctx context.Context, c *link, r *tenon.Result) *tenon.Result {
	out := *r
	out.Raw, out.Content = nil, nil
	fetched := 0
	for _, block := range r.Content {
		if block.Type != tenon.ContentLink || fetched >= maxFetched {
			out.Content = append(out.Content, block)
			continue
		}
		fetched++
		contents, err := c.Read(ctx, block.URI)
		if err != nil {
			s.log.Warn("a linked resource cannot be read", "uri", clean(block.URI), "error", err.Error())
			out.Content = append(out.Content, block)
			continue
		}
		out.Content = append(out.Content, contents...)
	}
	if fetched == 0 {
		return r
	}
	return &out
}

func joinText(r *tenon.Result, separator string) string {
	var parts []string
	for _, block := range r.Content {
		if block.Type == tenon.ContentText {
			parts = append(parts, block.Text)
		}
	}
	return strings.Join(parts, separator)
}

// onlyText returns a result with one text. Contents of other kinds follow it, so that nothing of the result is lost.
func onlyText(r *tenon.Result, text string) *tenon.Result {
	out := &tenon.Result{Meta: r.Meta, Declared: r.Structured}
	if text != "" || len(r.Content) == 0 {
		out.Content = []tenon.Content{tenon.Text(text)}
	}
	for _, block := range r.Content {
		if block.Type != tenon.ContentText {
			out.Content = append(out.Content, block)
		}
	}
	return out
}

// settings returns `config` as one JSON object, or nil if it is empty.
func (c Config) settings() json.RawMessage {
	if len(c.Settings) == 0 {
		return nil
	}
	b, err := json.Marshal(c.Settings)
	if err != nil {
		return nil // cannot happen: the values were parsed from JSON
	}
	return b
}
