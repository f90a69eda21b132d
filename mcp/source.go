package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/jsonrpc"
)

// ToolSource offers tools that are computed for each request, instead of [ServerConfig.Tools].
type ToolSource interface {
	// List returns the definitions of all tools, objects with a name. Their order must be stable.
	List(ctx context.Context) ([]json.RawMessage, error)
	// Call calls a tool and returns the raw result object; see [ServerTool]. For an unknown name it returns a
	// *jsonrpc.Error.
	Call(ctx context.Context, r *ToolRequest) (json.RawMessage, error)
}

// definitions returns the definitions of all tools.
func (s *Server) definitions(ctx context.Context) ([]json.RawMessage, error) {
	if s.cfg.Source != nil {
		return s.cfg.Source.List(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]json.RawMessage, len(s.tools))
	for i, t := range s.tools {
		list[i] = t.Definition
	}
	return list, nil
}

// list returns a page of the tools. The cursor is the index of the first tool.
func (s *Server) list(ctx context.Context, params []byte, modern bool) ([]byte, error) {
	tools, err := s.definitions(ctx)
	if err != nil {
		return nil, err
	}
	from, to, err := s.page(params, len(tools))
	if err != nil {
		return nil, err
	}
	size := len(s.caching()) + 100
	for _, t := range tools[from:to] {
		size += len(t) + 1
	}
	b := append(make([]byte, 0, size), '{')
	if modern {
		b = append(b, resultComplete+","...) // first, where it is found at once
	}
	b = append(b, `"tools":[`...)
	for i, t := range tools[from:to] {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, t...)
	}
	b = append(b, ']')
	if to < len(tools) {
		b = text(b, "nextCursor", strconv.Itoa(to))
	}
	if modern {
		if hinted, ok := s.cfg.Source.(HintedSource); ok {
			b = hinted.Hint(ctx).Append(append(b, ','))
		} else {
			b = append(append(b, ','), s.caching()...)
		}
	}
	return append(b, '}'), nil
}

// page returns the bounds of the requested page of a list.
func (s *Server) page(params []byte, size int) (from, to int, err error) {
	if cursor, ok := rawjson.ParseString(rawjson.Field(params, "cursor")); ok {
		if from, err = strconv.Atoi(cursor); err != nil || from < 0 || from > size {
			return 0, 0, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "no such cursor")
		}
	}
	to = size
	if s.cfg.PageSize > 0 {
		to = min(to, from+s.cfg.PageSize)
	}
	return from, to, nil
}

// caching returns the members of a modern result that say how long it may be cached, and by whom.
func (s *Server) caching() string {
	if s.cfg.Private {
		return `"ttlMs":0,"cacheScope":"private"`
	}
	return `"ttlMs":0,"cacheScope":"public"`
}

// toolRequest converts a request for handlers.
func (c *serverConn) toolRequest(r *jsonrpc.Request, meta []byte, modern bool) *ToolRequest {
	t := &ToolRequest{Meta: meta, Modern: modern, Arguments: json.RawMessage("{}"), notify: c.notify, ask: c.ask,
		left: c.left, conn: c.session(), headers: c.headers}
	for k, v := range rawjson.Members(r.Params) {
		switch string(k) {
		case "name":
			t.Name = rawjson.String(v)
		case "arguments":
			t.Arguments = v
		case "inputResponses":
			t.Responses = v
		case "requestState":
			t.State = rawjson.String(v)
		case "task":
			t.Task = v
		}
	}
	t.Capabilities = rawjson.Field(meta, metaCapabilities)
	t.LogLevel = rawjson.String(rawjson.Field(meta, metaLogLevel))
	t.Client = clientID(rawjson.Field(meta, metaClient), Modern)
	if !modern {
		t.Client = c.named()
		s := c.session()
		s.mu.Lock()
		t.Capabilities, t.LogLevel = slices.Clone(s.can), s.level
		s.mu.Unlock()
	}
	if meta != nil {
		t.Key = rawjson.String(rawjson.Field(meta, metaKey))
	}
	return t
}

// call calls a tool.
func (c *serverConn) call(ctx context.Context, r *jsonrpc.Request, meta []byte, modern bool) ([]byte, error) {
	t := c.toolRequest(r, meta, modern)
	if t.Name == "" {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params name no tool")
	}
	run, err := c.s.tool(t)
	if err != nil {
		return nil, err
	}
	if len(t.Arguments) == 0 || t.Arguments[0] != '{' {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "arguments is no object")
	}
	result, err := run(ctx, t)
	var rpc *jsonrpc.Error
	switch {
	case err == nil:
		return result, nil
	case errors.As(err, &rpc):
		return nil, rpc
	}
	b := append(text([]byte(`{"content":[{"type":"text"`), "text", err.Error()), `}],"isError":true}`...)
	return b, nil
}

// tool returns the function that calls the tool of a request. A [ToolSource] checks the headers of the request by
// itself. The error is a *jsonrpc.Error.
func (s *Server) tool(r *ToolRequest) (func(context.Context, *ToolRequest) (json.RawMessage, error), error) {
	if s.cfg.Source != nil {
		return s.cfg.Source.Call, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i, ok := s.byName[r.Name]
	if !ok {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Unknown tool: %s", r.Name)
	}
	if r.headers.header != nil {
		if err := r.CheckHeaders(rawjson.Field(s.tools[i].Definition, "inputSchema")); err != nil {
			return nil, err
		}
	}
	return s.tools[i].Call, nil
}
