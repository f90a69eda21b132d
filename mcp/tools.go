package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/internal/spread"
	"github.com/tenonhq/tenon/jsonrpc"
)

// Tools asks for all pages of the server's tools. A tool that cannot be read is
// left out with a warning, never the list. Remote names are set, exposed names
// are not. Errors have code unreachable, auth_required, timeout, protocol (a
// cursor that repeats, a list without end), too_large or cancelled.
func (c *Client) Tools(ctx context.Context) ([]tenon.Tool, error) {
	var raws [][]byte
	var kept []byte // what raws are parts of: one piece of memory for many of them
	err := c.list(ctx, "tools/list", "tools", func(raw []byte) {
		if len(raw) > cap(kept)-len(kept) {
			kept = make([]byte, 0, max(len(raw), min(2*cap(kept), maxKept)))
		}
		from := len(kept)
		kept = append(kept, raw...)
		raws = append(raws, kept[from:len(kept):len(kept)])
	})
	if err != nil {
		return nil, err
	}
	parsed, errs := parseTools(raws)
	tools := parsed[:0]
	seen, params := make(map[string]bool, len(parsed)), map[string][]mirrored{}
	for i, t := range parsed {
		switch err := errs[i]; {
		case err != nil:
			c.cfg.Logger.Warn("left out a tool that cannot be read", "reason", err.Error())
		case seen[t.Remote]:
			c.cfg.Logger.Warn("left out a second tool of the same name", "tool", strconv.QuoteToASCII(t.Remote))
		default:
			seen[t.Remote] = true
			if err := c.learn(t, params); err != nil {
				c.cfg.Logger.Warn("left out a tool that must not be used", "tool", strconv.QuoteToASCII(t.Remote), "reason", err.Error())
				continue
			}
			if len(tools) == i {
				tools = parsed[:i+1] // it is there already
			} else {
				tools = append(tools, t)
			}
		}
	}
	clear(parsed[len(tools):])
	c.params.Store(&params)
	return tools, nil
}

// worthCore is how many definitions are worth a core.
const worthCore = 512

// parseTools reads definitions, each by itself and so on all cores. What it is given
// stays with the tools.
func parseTools(raws [][]byte) ([]tenon.Tool, []error) {
	tools := make([]tenon.Tool, len(raws))
	errs := spread.Map(raws, worthCore, func(from int, part [][]byte) []error {
		errs := make([]error, len(part))
		for i, raw := range part {
			tools[from+i], errs[i] = parseTool(raw)
		}
		return errs
	})
	return tools, slices.Concat(errs...)
}

// maxKept bounds what is kept together of definitions, in bytes.
const maxKept = 256 << 10

// Probe asks for the first page of the tools and looks only whether it is one:
// how a plain JSON-RPC endpoint, which has no handshake, is told from others.
func (c *Client) Probe(ctx context.Context) error {
	result, err := c.request(ctx, "tools/list", nil, nil, "")
	if err != nil {
		return c.explain(ctx, "tools/list", err, false)
	}
	if list := jsonrpc.Field(result, "tools"); len(list) == 0 || list[0] != '[' {
		return tenon.Errorf(tenon.CodeProtocol, "tools/list gives no array \"tools\"")
	}
	return nil
}

// maxCursor bounds a cursor, of which all of a list are kept, in bytes.
const maxCursor = 16 << 10

// list walks the pages of a list.
func (c *Client) list(ctx context.Context, method, key string, each func(raw []byte)) error {
	cursors := map[string]bool{}
	var params []byte
	items := 0
	for page := 1; ; page++ {
		result, err := c.request(ctx, method, params, nil, "")
		var rpc *jsonrpc.Error
		if errors.As(err, &rpc) && rpc.Code == jsonrpc.CodeMethodNotFound && page == 1 {
			return nil // the server has no such list
		}
		if err != nil {
			return c.explain(ctx, method, err, false)
		}
		over := false
		ok := jsonrpc.Elements(jsonrpc.Field(result, key), func(v []byte) bool {
			if items++; items > c.cfg.MaxItems {
				over = true
				return false
			}
			each(v)
			return true
		})
		switch next := jsonrpc.Field(result, "nextCursor"); {
		case over:
			return tenon.Errorf(tenon.CodeTooLarge, "%s gives more than %d items; that is over the limit", method, c.cfg.MaxItems)
		case !ok:
			return tenon.Errorf(tenon.CodeProtocol, "%s gives no array %q", method, key)
		case len(next) == 0 || string(next) == "null":
			return nil
		case len(next) > maxCursor:
			return tenon.Errorf(tenon.CodeTooLarge, "%s gives a cursor of more than %d bytes", method, maxCursor)
		case cursors[string(next)]:
			return tenon.Errorf(tenon.CodeProtocol, "%s repeats the cursor %s; the list has no end", method, clip(next))
		case page >= c.cfg.MaxPages:
			return tenon.Errorf(tenon.CodeTooLarge, "%s gives more than %d pages; that is over the limit", method, c.cfg.MaxPages)
		default:
			cursors[string(next)] = true
			params = member(nil, "cursor", next)
		}
	}
}

// ParseTool reads a tool's definition, whose bytes stay with it.
func ParseTool(raw []byte) (tenon.Tool, error) { return parseTool(bytes.Clone(raw)) }

// parseTool is ParseTool of bytes that nobody else has.
func parseTool(raw []byte) (tenon.Tool, error) {
	t := tenon.Tool{Raw: raw}
	named := false
	object := jsonrpc.Fields(t.Raw, func(k, v []byte) bool {
		switch string(k) {
		case "name":
			t.Remote, named = jsonrpc.String(v)
		case "title":
			t.Title, _ = jsonrpc.String(v)
		case "description":
			t.Description, _ = jsonrpc.String(v)
		case "inputSchema":
			t.Input = v
		case "outputSchema":
			t.Output = v
		case "annotations":
			t.Annotations = parseAnnotations(v)
		}
		return true
	})
	if !object || !named || t.Remote == "" || len(t.Remote) > 1024 {
		return t, fmt.Errorf("no usable name in %s", clip(raw))
	}
	return t, nil
}

func parseAnnotations(raw []byte) tenon.Annotations {
	var a tenon.Annotations
	jsonrpc.Fields(raw, func(k, v []byte) bool {
		b := string(v) == "true"
		if !b && string(v) != "false" {
			return true // not a hint
		}
		switch string(k) {
		case "readOnlyHint":
			a.ReadOnly = &b
		case "destructiveHint":
			a.Destructive = &b
		case "idempotentHint":
			a.Idempotent = &b
		case "openWorldHint":
			a.OpenWorld = &b
		}
		return true
	})
	return a
}

// Call runs a tool by its remote name. See [tenon.Toolset]. A JSON-RPC error
// of the server has code tool_error and wraps the *jsonrpc.Error. Nothing is
// ever sent twice, but for a call that was refused because the server had
// forgotten the session, or because its headers were not those that the tool's
// newest definition asks for. A task (extension of 2026-07-28) is asked after when
// the call is made again with the state that came for it.
func (c *Client) Call(ctx context.Context, call tenon.Call) (*tenon.Result, error) {
	if st := taskOf(call.Input); st != nil && c.cfg.Tasks && c.isModern() {
		return c.task(ctx, call, st)
	}
	params := make([]byte, 0, len(call.Arguments)+len(call.Tool)+64)
	params = text(params, "name", call.Tool)
	args := call.Arguments
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	params = member(params, "arguments", args)
	if call.Input != nil && !c.isModern() {
		// A legacy server that wanted a person to visit a URL is asked again and
		// told nothing.
		if !accepted(call.Input.Responses) {
			return nil, tenon.Errorf(tenon.CodeDenied, "the server wants a URL visited first, which was declined")
		}
	} else if call.Input != nil {
		if len(call.Input.Responses) > 0 {
			params = member(params, "inputResponses", call.Input.Responses)
		}
		if call.Input.State != "" {
			params = text(params, "requestState", call.Input.State)
		}
	}
	var extra []byte
	if call.Key != "" {
		extra = text(extra, metaKey, call.Key)
	}
	if call.Trace != "" { // SEP-414: unprefixed
		extra = text(extra, "traceparent", call.Trace)
	}
	if call.Progress != nil {
		token := strconv.FormatInt(c.tokens.Add(1), 10)
		c.progress.Store(token, call.Progress)
		defer c.progress.Delete(token)
		extra = member(extra, "progressToken", []byte(token))
	}
	if call.Ask != nil {
		c.awaitStream(ctx)
	}
	raw, err := c.ask(ctx, "tools/call", params, extra, call.Tool, c.paramHeaders(call.Tool, args), call.Ask)
	if c.isHeaderMismatch(err) { // refused, not carried out: our list of tools is old, or there is none
		if _, listErr := c.Tools(ctx); listErr == nil {
			raw, err = c.ask(ctx, "tools/call", params, extra, call.Tool, c.paramHeaders(call.Tool, args), call.Ask)
		}
	}
	if in := c.urlRequired(err); in != nil {
		return &tenon.Result{Input: in}, nil
	}
	if err != nil {
		return nil, c.explain(ctx, "tools/call", err, true)
	}
	if c.isPlain() {
		raw = dress(raw)
	}
	if kind := jsonrpc.Field(raw, "resultType"); c.cfg.Tasks && c.isModern() && string(kind) == `"task"` {
		return newTask(raw)
	}
	r, err := ParseResult(raw, c.isModern())
	if err != nil {
		return nil, err
	}
	return r, nil
}

// dress makes a tool result of what a plain JSON-RPC server answers, which may be
// any value: {"result": 5}. A result with content is one already.
func dress(raw []byte) []byte {
	if jsonrpc.Field(raw, "content") != nil {
		return raw
	}
	b := append([]byte(`{"content":[{"type":"text","text":`), rawjson.AppendString(nil, string(raw))...)
	return append(append(append(b, `}],"structuredContent":`...), raw...), '}')
}

// ParseResult reads the result of tools/call. Its bytes stay with it. Only the
// modern era knows results that are not complete.
func ParseResult(raw []byte, modern bool) (*tenon.Result, error) {
	r := &tenon.Result{Raw: raw}
	kind, array := "complete", true
	object := jsonrpc.Fields(raw, func(k, v []byte) bool {
		switch string(k) {
		case "resultType":
			kind, _ = jsonrpc.String(v)
		case "content":
			array = jsonrpc.Elements(v, func(e []byte) bool {
				r.Content = append(r.Content, parseContent(e))
				return true
			})
		case "structuredContent":
			r.Structured = v
		case "isError":
			r.IsError = string(v) == "true"
		case "_meta":
			r.Meta = v
		}
		return true
	})
	switch {
	case !object:
		return nil, tenon.Errorf(tenon.CodeProtocol, "the result of tools/call is no object: %s", clip(raw))
	case !array:
		return nil, tenon.Errorf(tenon.CodeProtocol, "the result of tools/call has no array as its content: %s", clip(raw))
	case kind == "complete":
		return r, nil
	case kind == "input_required" && modern:
		return r, readInput(r, raw)
	}
	return nil, tenon.Errorf(tenon.CodeProtocol, "tools/call gave a result of the unsupported resultType %q", kind)
}

// readInput reads what a server wants before it goes on: requests, a state, or
// both.
func readInput(r *tenon.Result, raw []byte) error {
	r.Input = &tenon.InputRequired{Requests: jsonrpc.Field(raw, "inputRequests")}
	r.Input.State, _ = jsonrpc.String(jsonrpc.Field(raw, "requestState"))
	if q := r.Input.Requests; len(q) > 0 && q[0] != '{' || len(q) == 0 && r.Input.State == "" {
		return tenon.Errorf(tenon.CodeProtocol, "tools/call wants input and does not say which: %s", clip(raw))
	}
	return nil
}

// parseContent reads a block by hand: results are the hottest path there is.
func parseContent(raw []byte) tenon.Content {
	c := tenon.Content{Raw: raw}
	jsonrpc.Fields(raw, func(k, v []byte) bool {
		switch string(k) {
		case "type":
			c.Type, _ = jsonrpc.String(v)
		case "text":
			c.Text, _ = jsonrpc.String(v)
		case "data":
			c.Data, _ = jsonrpc.String(v)
		case "mimeType":
			c.MimeType, _ = jsonrpc.String(v)
		case "uri":
			c.URI, _ = jsonrpc.String(v)
		case "name":
			c.Name, _ = jsonrpc.String(v)
		case "resource":
			c.URI, _ = jsonrpc.String(jsonrpc.Field(v, "uri"))
			c.MimeType, _ = jsonrpc.String(jsonrpc.Field(v, "mimeType"))
			c.Text, _ = jsonrpc.String(jsonrpc.Field(v, "text"))
			c.Data, _ = jsonrpc.String(jsonrpc.Field(v, "blob"))
		}
		return true
	})
	return c
}

// explain gives an error of a request its code. Effect says that the request may
// have had one.
func (c *Client) explain(ctx context.Context, method string, err error, effect bool) error {
	var e *tenon.Error
	var rpc *jsonrpc.Error
	var lost *jsonrpc.LostError
	var size *jsonrpc.SizeError
	switch {
	case errors.As(err, &e):
		return err
	case errors.As(err, &rpc):
		return &tenon.Error{Code: tenon.CodeTool, Message: fmt.Sprintf("%d: %s", rpc.Code, rpc.Message), Data: rpc.Data, Err: err}
	case errors.As(err, &size):
		return &tenon.Error{Code: tenon.CodeTooLarge, Message: fmt.Sprintf("the answer to %s is larger than the limit of %d bytes", method, size.Limit), Err: err}
	case errors.As(err, &lost) && lost.Sent && effect:
		return &tenon.Error{Code: tenon.CodeUnknown, Message: fmt.Sprintf("the connection was lost during %s: %v", method, err), Err: err}
	case errors.As(err, &lost):
		return &tenon.Error{Code: tenon.CodeUnreachable, Message: fmt.Sprintf("the server is no longer available (%v)", err), Err: err}
	case errors.Is(err, jsonrpc.ErrSyntax):
		return &tenon.Error{Code: tenon.CodeProtocol, Message: fmt.Sprintf("the answer to %s cannot be read: %s", method,
			strings.TrimPrefix(err.Error(), "the answer cannot be read: ")), Err: err}
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &tenon.Error{Code: tenon.CodeTimeout, Message: method + " timed out", Err: err}
	case ctx.Err() != nil:
		return &tenon.Error{Code: tenon.CodeCancelled, Message: method + " was cancelled", Err: err}
	case errors.Is(err, context.DeadlineExceeded): // so it was our own limit
		return &tenon.Error{Code: tenon.CodeTimeout, Message: fmt.Sprintf("%s timed out after %s", method, c.cfg.RequestTimeout), Err: err}
	}
	return &tenon.Error{Code: tenon.CodeProtocol, Message: fmt.Sprintf("%s: %v", method, err), Err: err}
}

// clip makes bytes of a peer safe and short enough for a message.
func clip(b []byte) string {
	const most = 120
	if len(b) > most {
		return strconv.QuoteToASCII(string(b[:most])) + "…"
	}
	return strconv.QuoteToASCII(string(b))
}

var _ tenon.Toolset = (*Client)(nil)
