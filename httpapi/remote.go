package httpapi

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
)

// The methods of Client in remote*.go implement the handles of [host.Host] with HTTP requests. They see the runs and
// sessions of the token's principal. Methods that only the owner may call return an error of code denied to others.

// at returns a path of the native API, with each part escaped.
func at(parts ...string) string {
	p := prefix
	for _, s := range parts {
		p += "/" + url.PathEscape(s)
	}
	return p
}

// maxPages bounds the pages that a client reads of one list.
const maxPages = 1 << 14

// pages reads the pages of a list and joins them. It stops after most items; 0 means all.
func pages[T any](ctx context.Context, c *Client, path string, q url.Values, most int) ([]T, error) {
	all := []T{}
	for range maxPages {
		n := maxPageSize
		if most > 0 {
			n = min(n, most-len(all))
		}
		q.Set("limit", strconv.Itoa(n))
		page, err := fetch[list[T]](ctx, c, http.MethodGet, path+"?"+q.Encode(), nil, "")
		if err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if page.Next == "" || most > 0 && len(all) >= most {
			return all, nil
		}
		if page.Next == q.Get("cursor") {
			return nil, tenon.Errorf(tenon.CodeProtocol, "the answer of %s cannot be read: the page after cursor "+
				"'%s' leads to itself", c.whose, tenon.Visible(page.Next))
		}
		q.Set("cursor", page.Next)
	}
	return nil, tenon.Errorf(tenon.CodeTooLarge, "the answer of %s cannot be read: the list has more than %d pages",
		c.whose, maxPages)
}

// Stats returns the usage counts of GET /api/v1/stats/{by}.
func (c *Client) Stats(ctx context.Context, q host.StatsQuery) ([]host.Stat, error) {
	path := at("stats", q.By)
	if !q.Since.IsZero() {
		path += "?since=" + url.QueryEscape(q.Since.UTC().Format(time.RFC3339Nano))
	}
	l, err := fetchBehind[list[host.Stat]](ctx, c, path, q.Behind)
	return l.Items, err
}

// done sends a request whose answer has no content.
func (c *Client) done(ctx context.Context, method, path string, body any) error {
	res, err := c.do(ctx, method, path, body, "", "application/json")
	if err != nil {
		return err
	}
	return res.Body.Close()
}
