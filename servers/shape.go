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

// maxFetched bounds how many links of one result are read.
const maxFetched = 16

// shape changes a result as configured: it reads links, and then converts the result to the configured form. Error
// results, and results that need input, stay unchanged.
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

// fetchLinks puts what links lead to in their place. A link that cannot be read
// stays, and the log says why: the call itself went well.
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

// onlyText is a result of one text, with what other kinds of content there are
// behind it, since nothing of a result is lost.
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

// settings is `config` as one JSON object, nil for none.
func (c Config) settings() json.RawMessage {
	if len(c.Settings) == 0 {
		return nil
	}
	b, err := json.Marshal(c.Settings)
	if err != nil {
		return nil // cannot be: it was read from JSON
	}
	return b
}
