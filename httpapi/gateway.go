package httpapi

import (
	"net/http"

	"github.com/tenonhq/tenon/jsonrpc"
)

// gateway passes a request of an MCP client, which has passed all checks, to the gateway. HEAD is refused, because it
// has no meaning there.
func (c *call) gateway() error {
	if c.req.Method == http.MethodHead {
		c.w.Header().Set("Allow", "GET, POST, DELETE")
		c.w.WriteHeader(http.StatusMethodNotAllowed)
		return nil
	}
	defer c.untilExpiry()()
	c.cfg.Gateway.ServeMCP(c.w, c.req, c.body, c.caller.Principal, c.brought)
	return nil
}

// mcpError converts a problem to a JSON-RPC error. The error has no id, because the checks are made before the message
// is read.
func mcpError(p Problem) any {
	code := jsonrpc.CodeInvalidRequest
	switch {
	case p.Status == http.StatusBadRequest:
		code = jsonrpc.CodeParse
	case p.Status >= http.StatusInternalServerError:
		code = jsonrpc.CodeInternal
	}
	return map[string]any{"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": code, "message": p.Detail,
		"data": map[string]any{"code": p.Code}}}
}
