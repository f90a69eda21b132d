package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/internal/spread"
	"github.com/tenonhq/tenon/jsonrpc"
)

// Tools requests all pages of the server's tools. A tool that cannot be read is left out with a warning. Remote names
// are set, exposed names are not. Errors have code unreachable, auth_required, timeout, protocol (a repeated cursor,
// a list without end), too_large or cancelled.
func (c *Client) Tools(ctx context.Context) ([]tenon.Tool, error) {
	var pages [][]tenon.Tool
	var errs []error
	var reading sync.WaitGroup
	err := c.list(ctx, "tools/list", "tools", func(result []byte, items [][]byte) {
		// While a page is parsed, the next one is requested. Only one page is parsed at a time.
		reading.Wait()
		reading.Go(func() {
			t, e := ParseTools(keep(result, items))
			pages, errs = append(pages, t), append(errs, e...)
		})
	})
	reading.Wait()
	if err != nil {
		return nil, err
	}
	all := []tenon.Tool{} // an empty list, not nil: the list is known
	if len(pages) == 1 {
		all = pages[0]
	} else if len(pages) > 1 {
		all = slices.Concat(pages...)
	}
	tools := all[:0]
	seen, params := make(map[string]bool, len(all)), map[string][]mirrored{}
	for i := range all {
		t := &all[i]
		switch err := errs[i]; {
		case err != nil:
			c.cfg.Logger.Warn("left out a tool that cannot be read", "reason", err.Error())
		case seen[t.Remote]:
			c.cfg.Logger.Warn("left out a second tool of the same name", "tool", strconv.QuoteToASCII(t.Remote))
		default:
			seen[t.Remote] = true
			if err := c.learn(t, params); err != nil {
				c.cfg.Logger.Warn("left out a tool that must not be used", "tool", strconv.QuoteToASCII(t.Remote),
					"reason", err.Error())
				continue
			}
			if len(tools) == i {
				tools = all[:i+1] // it was added before
			} else {
				tools = append(tools, *t)
			}
		}
	}
	clear(all[len(tools):])
	c.params.Store(&params)
	c.learnTasks(tools)
	return tools, nil
}

// keep returns the items of a page as bytes that the caller owns. If most of the page is items, they stay slices of
// the page. Otherwise they are copied, because slices would keep the rest of the page in memory.
func keep(result []byte, items [][]byte) [][]byte {
	size := 0
	for _, v := range items {
		size += len(v)
	}
	if size >= cap(result)/4*3 {
		return items
	}
	all := make([]byte, 0, size)
	for i, v := range items {
		from := len(all)
		all = append(all, v...)
		items[i] = all[from:len(all):len(all)]
	}
	return items
}

// worthCore is the number of definitions for which using another core pays off.
const worthCore = 512

// ParseTools parses definitions independently, and so on all cores. The error of a definition that cannot be read has
// the same index. The tools refer to the bytes of raws.
func ParseTools(raws [][]byte) ([]tenon.Tool, []error) {
	tools, errs := make([]tenon.Tool, len(raws)), make([]error, len(raws))
	spread.Map(raws, worthCore, func(from int, part [][]byte) struct{} {
		for i, raw := range part {
			errs[from+i] = parseTool(&tools[from+i], raw)
		}
		return struct{}{}
	})
	return tools, errs
}

// ParseTool parses a tool's definition. The tool refers to a copy of raw.
func ParseTool(raw []byte) (tenon.Tool, error) {
	var t tenon.Tool
	err := parseTool(&t, bytes.Clone(raw))
	return t, err
}

// parseTool parses a definition. The tool refers to raw, which the caller must not change.
func parseTool(t *tenon.Tool, raw []byte) error {
	t.Raw = raw
	named := false
	for k, v := range rawjson.Members(raw) {
		switch string(k) {
		case "name":
			t.Remote, named = rawjson.ParseString(v)
		case "title":
			t.Title = rawjson.String(v)
		case "description":
			t.Description = rawjson.String(v)
		case "inputSchema":
			t.Input = v
		case "outputSchema":
			t.Output = v
		case "annotations":
			t.Annotations = parseAnnotations(v)
		}
	}
	if !named || t.Remote == "" || len(t.Remote) > 1024 {
		return fmt.Errorf("no usable name in %s", clip(raw))
	}
	return nil
}

// maxCursor is the maximum size of a cursor in bytes. All cursors of a list are kept in memory.
const maxCursor = 16 << 10

// list requests the pages of a list. It calls page with each page and its items before it requests the next one. The
// callee owns the bytes and slices.
func (c *Client) list(ctx context.Context, method, key string, page func(result []byte, items [][]byte)) error {
	cursors := map[string]bool{}
	var params []byte
	left, size := c.cfg.MaxItems, 0
	var fresh freshness
	public := true // if all pages are
	for n := 1; ; n++ {
		result, err := c.request(ctx, method, params, "")
		var rpc *jsonrpc.Error
		if errors.As(err, &rpc) && rpc.Code == jsonrpc.CodeMethodNotFound && n == 1 {
			return nil // the server has no such list
		}
		if err != nil {
			return c.explain(ctx, method, err, false)
		}
		if size += len(result); size > c.cfg.MaxBytes {
			return tenon.Errorf(tenon.CodeTooLarge, "%s gives more than %d bytes; that is over the limit", method,
				c.cfg.MaxBytes)
		}
		var items [][]byte
		var next []byte
		over, shared := false, false
		ok := rawjson.List(result, key, func(v []byte) bool {
			if left--; left < 0 {
				over = true
				return false
			}
			if items == nil { // room for as many items as if all were like the first one
				items = make([][]byte, 0, min(len(result)/(len(v)+1)+1, left+1))
			}
			items = append(items, v[:len(v):len(v)])
			return true
		}, func(k, v []byte) {
			switch string(k) {
			case "nextCursor":
				next = v
			case "ttlMs":
				fresh.page(v)
			case "cacheScope":
				shared = rawjson.String(v) == "public"
			}
		})
		public = public && shared
		if ok && !over && len(items) > 0 {
			page(result, items)
		}
		switch {
		case over:
			return tenon.Errorf(tenon.CodeTooLarge, "%s gives more than %d items; that is over the limit", method,
				c.cfg.MaxItems)
		case !ok:
			return tenon.Errorf(tenon.CodeProtocol, "%s gives no array %q", method, key)
		case len(next) == 0 || string(next) == "null":
			if fresh == stale && method == "tools/list" && c.Info().announced(method) {
				fresh = 0
			}
			c.fresh.set(method, fresh, public)
			return nil
		case len(next) > maxCursor:
			return tenon.Errorf(tenon.CodeTooLarge, "%s gives a cursor of more than %d bytes", method, maxCursor)
		case cursors[string(next)]:
			return tenon.Errorf(tenon.CodeProtocol, "%s repeats the cursor %s; the list has no end", method, clip(next))
		case n >= c.cfg.MaxPages:
			return tenon.Errorf(tenon.CodeTooLarge, "%s gives more than %d pages; that is over the limit", method,
				c.cfg.MaxPages)
		default:
			cursors[string(next)] = true
			params = member(nil, "cursor", next)
		}
	}
}
