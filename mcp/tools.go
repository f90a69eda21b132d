package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/jsonrpc"
)

// Probe requests the first page of the tools and checks the response. It tests a plain JSON-RPC endpoint, which has
// no handshake.
func (c *Client) Probe(ctx context.Context) error {
	result, err := c.request(ctx, "tools/list", nil, "")
	if err != nil {
		return c.explain(ctx, "tools/list", err, false)
	}
	if list := rawjson.Field(result, "tools"); len(list) == 0 || list[0] != '[' {
		return tenon.Errorf(tenon.CodeProtocol, "tools/list gives no array \"tools\"")
	}
	return nil
}

func parseAnnotations(raw []byte) tenon.Annotations {
	var a tenon.Annotations
	for k, v := range rawjson.Members(raw) {
		if string(k) == "title" {
			a.Title = rawjson.String(v)
			continue
		}
		b := string(v) == "true"
		if !b && string(v) != "false" {
			continue // not a hint
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
	}
	return a
}

// Call runs a tool by its remote name. See [tenon.Toolset]. A JSON-RPC error of the server has code tool_error and
// wraps the *jsonrpc.Error. A call is only sent again if it was refused because the server had forgotten the session,
// or because the tool's newest definition requires other headers. A task (extension of 2026-07-28) is polled when the
// call is made again with the state of the task.
func (c *Client) Call(ctx context.Context, call tenon.Call) (*tenon.Result, error) {
	c.called.Store(true)
	if st := taskOf(call.Input); st != nil && c.cfg.Tasks {
		switch {
		case st.Old && !c.isModern():
			return c.oldTask(ctx, call, st)
		case !st.Old && c.isModern():
			return c.task(ctx, call, st)
		}
		return nil, st.unknown("the server now speaks another revision of the protocol", nil)
	}
	params := make([]byte, 0, len(call.Arguments)+len(call.Tool)+64)
	params = text(params, "name", call.Tool)
	args := call.Arguments
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	params = member(params, "arguments", args)
	if call.Input != nil && !c.isModern() {
		// A legacy server does not learn that a person has visited the URL. The call is simply repeated.
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
	tasked := c.needsTask(ctx, call.Tool)
	if tasked {
		params = member(params, "task", fmt.Appendf(nil, `{"ttl":%d}`, oldTaskTTL.Milliseconds()))
	}
	var extra []byte
	if call.Key != "" {
		extra = text(extra, metaKey, call.Key)
	}
	if call.Trace != "" { // SEP-414: without a prefix
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
	if c.isHeaderMismatch(err) { // refused and not carried out: the list of tools is outdated or missing
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
	if kind := rawjson.Field(raw, "resultType"); c.cfg.Tasks && c.isModern() && string(kind) == `"task"` {
		return newTask(raw)
	}
	if tasked && rawjson.Field(raw, "task") != nil {
		return newOldTask(raw)
	}
	r, err := ParseResult(raw, c.isModern())
	if err != nil {
		return nil, tenon.Errorf(tenon.ErrorCode(err), "%w", answered(err))
	}
	return r, nil
}

// ErrAnswered is a cause of the error of a tool call that the server answered in a form that cannot be used: the answer
// is cut off, too large, or no result. The call may have taken effect.
var ErrAnswered = errors.New("the server answered")

// answeredError adds [ErrAnswered] to the causes of an error.
type answeredError struct{ error }

// Unwrap returns both causes.
func (e answeredError) Unwrap() []error { return []error{e.error, ErrAnswered} }

func answered(err error) error { return answeredError{err} }

// dress converts the result of a plain JSON-RPC server, which may be any value ({"result": 5}), to a tool result. A
// result with content is returned unchanged.
func dress(raw []byte) []byte {
	if rawjson.Field(raw, "content") != nil {
		return raw
	}
	b := append([]byte(`{"content":[{"type":"text","text":`), rawjson.AppendString(nil, string(raw))...)
	return append(append(append(b, `}],"structuredContent":`...), raw...), '}')
}

// ParseResult parses the result of tools/call. The result refers to the bytes of raw. Only the modern era has results
// that are not complete.
func ParseResult(raw []byte, modern bool) (*tenon.Result, error) {
	r := &tenon.Result{Raw: raw}
	kind, array := "complete", true
	for k, v := range rawjson.Members(raw) {
		switch string(k) {
		case "resultType":
			kind = rawjson.String(v)
		case "content":
			array = rawjson.IsArray(v)
			for e := range rawjson.Elements(v) {
				r.Content = append(r.Content, parseContent(e))
			}
		case "structuredContent":
			r.Structured = v
		case "isError":
			r.IsError = string(v) == "true"
		case "_meta":
			r.Meta = v
		}
	}
	switch {
	case !rawjson.IsObject(raw):
		return nil, tenon.Errorf(tenon.CodeProtocol, "the result of tools/call is no object: %s", clip(raw))
	case kind == "input_required" && modern: // SDKs write a null content beside it
		return r, readInput(r, raw)
	case !array:
		return nil, tenon.Errorf(tenon.CodeProtocol, "the result of tools/call has no array as its content: %s",
			clip(raw))
	case kind == "complete":
		return r, nil
	}
	return nil, tenon.Errorf(tenon.CodeProtocol, "tools/call gave a result of the unsupported resultType %q", kind)
}

// readInput reads the input that a server needs to continue: requests, a state, or both.
func readInput(r *tenon.Result, raw []byte) error {
	r.Input = &tenon.InputRequired{Requests: rawjson.Field(raw, "inputRequests")}
	r.Input.State = rawjson.String(rawjson.Field(raw, "requestState"))
	if string(r.Input.Requests) == "null" {
		r.Input.Requests = nil
	}
	if q := r.Input.Requests; len(q) > 0 && q[0] != '{' || len(q) == 0 && r.Input.State == "" {
		return tenon.Errorf(tenon.CodeProtocol, "tools/call wants input and does not say which: %s", clip(raw))
	}
	return nil
}

// parseContent reads a block like [tenon.Content.UnmarshalJSON], but without copying the bytes, because results are
// the most frequent case. The members of an embedded resource override the members next to it.
func parseContent(raw []byte) tenon.Content {
	c := tenon.Content{Raw: raw}
	var resource []byte
	for k, v := range rawjson.Members(raw) {
		switch string(k) {
		case "type":
			c.Type = rawjson.String(v)
		case "text":
			c.Text = textOf(v)
		case "data":
			c.Data = rawjson.String(v)
		case "mimeType":
			c.MimeType = rawjson.String(v)
		case "uri":
			c.URI = rawjson.String(v)
		case "name":
			c.Name = rawjson.String(v)
		case "resource":
			resource = v
		}
	}
	if resource != nil {
		c.URI = rawjson.String(rawjson.Field(resource, "uri"))
		c.MimeType = rawjson.String(rawjson.Field(resource, "mimeType"))
		c.Text = textOf(rawjson.Field(resource, "text"))
		c.Data = rawjson.String(rawjson.Field(resource, "blob"))
	}
	return c
}

// textOf returns a text, or the JSON of a value of another type, as [tenon.Content.UnmarshalJSON] does.
func textOf(v []byte) string {
	if len(v) > 0 && v[0] != '"' && string(v) != "null" {
		return string(v)
	}
	return rawjson.String(v)
}

// explain returns the error of a request with its code. effect says that the request may have had an effect.
func (c *Client) explain(ctx context.Context, method string, err error, effect bool) error {
	var e *tenon.Error
	var rpc *jsonrpc.Error
	var lost *jsonrpc.LostError
	var size *jsonrpc.SizeError
	var slow *slowError
	answer := func() error { // the cause, if the server answered
		if effect {
			return answered(err)
		}
		return err
	}
	switch {
	case errors.As(err, &e):
		return err
	case errors.As(err, &rpc):
		return &tenon.Error{Code: tenon.CodeTool, Message: fmt.Sprintf("%d: %s", rpc.Code, rpc.Message), Data: rpc.Data,
			Err: err}
	case errors.As(err, &size):
		return &tenon.Error{Code: tenon.CodeTooLarge,
			Message: fmt.Sprintf("the answer to %s is larger than the limit of %d bytes", method, size.Limit),
			Err:     answer()}
	case errors.As(err, &lost) && lost.Sent && effect:
		return &tenon.Error{Code: tenon.CodeUnknown,
			Message: fmt.Sprintf("the connection was lost during %s: %v", method, err), Err: err}
	case errors.As(err, &lost):
		return &tenon.Error{Code: tenon.CodeUnreachable,
			Message: fmt.Sprintf("the server is no longer available (%v)", err), Err: err}
	case errors.Is(err, jsonrpc.ErrSyntax):
		return &tenon.Error{Code: tenon.CodeProtocol,
			Message: fmt.Sprintf("the answer to %s cannot be read: %s", method,
				strings.TrimPrefix(err.Error(), "the answer cannot be read: ")), Err: answer()}
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &tenon.Error{Code: tenon.CodeTimeout, Message: method + " timed out", Err: err}
	case ctx.Err() != nil:
		return &tenon.Error{Code: tenon.CodeCancelled, Message: method + " was cancelled", Err: err}
	case errors.As(err, &slow):
		return &tenon.Error{Code: tenon.CodeTimeout,
			Message: fmt.Sprintf("%s timed out after %s", method, slow.after), Err: err}
	case errors.Is(err, context.DeadlineExceeded): // the timeout of a request that is not part of a call
		return &tenon.Error{Code: tenon.CodeTimeout,
			Message: fmt.Sprintf("%s timed out after %s", method, c.cfg.RequestTimeout), Err: err}
	}
	return &tenon.Error{Code: tenon.CodeProtocol, Message: fmt.Sprintf("%s: %v", method, err), Err: err}
}

// clip quotes and shortens bytes of a peer for a message.
func clip(b []byte) string {
	const most = 120
	if len(b) > most {
		return strconv.QuoteToASCII(string(b[:most])) + "…"
	}
	return strconv.QuoteToASCII(string(b))
}

var _ tenon.Toolset = (*Client)(nil)
