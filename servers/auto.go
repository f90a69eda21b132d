package servers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/jsonrpc"
	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/transport"
)

// find detects the transport of a URL and connects: Streamable HTTP in either era, the older HTTP+SSE, or plain
// JSON-RPC. The next connection only tries the detected transport.
func (s *Server) find(ctx context.Context, cfg Config, client mcp.ClientConfig, attempt int, on listener) (*mcp.Client,
	error) {
	s.mu.Lock()
	known := s.found
	s.mu.Unlock()
	order := []string{TransportHTTP, TransportSSE, TransportJSONRPC}
	if known != "" {
		order = []string{known}
	}
	var tried []string
	var steps []mcp.Step
	var first error
	for i := 0; i < len(order); i++ {
		kind := order[i]
		c, err := s.try(ctx, cfg, client, kind, attempt, on)
		if err == nil {
			s.mu.Lock()
			s.found = kind
			s.mu.Unlock()
			return c, nil
		}
		var at *mcp.ConnectError
		if errors.As(err, &at) {
			steps = append(steps, at.Steps...)
		}
		tried = append(tried, kind+": "+err.Error())
		if first == nil {
			first = err
		}
		if i == 0 && known == "" {
			if !isOther(err) || ctx.Err() != nil {
				return nil, err
			}
			if noMethod(err) { // it speaks JSON-RPC and no more
				slices.Reverse(order[1:])
			}
		}
	}
	if len(order) == 1 {
		return nil, first
	}
	err := fmt.Errorf("nothing at this URL speaks MCP; transport auto tried %s", strings.Join(tried, "; "))
	return nil, &tenon.Error{Code: tenon.ErrorCode(first), Message: err.Error(), Err: &mcp.ConnectError{
		Step: steps[len(steps)-1].Name, Steps: steps, Err: first}}
}

// try connects over one transport.
func (s *Server) try(ctx context.Context, cfg Config, client mcp.ClientConfig, kind string, attempt int,
	on listener) (*mcp.Client, error) {
	cfg.Transport = kind
	client.Dial = func(ctx context.Context) (mcp.Stream, error) { return s.stream(ctx, cfg, attempt, on) }
	if kind == TransportSSE {
		client.Protocol = legacyOf(client.Protocol)
	}
	c, err := mcp.Connect(ctx, client)
	if err != nil || kind != TransportJSONRPC {
		return c, err
	}
	// Plain JSON-RPC has no handshake, so a request tests the connection.
	if err := c.Probe(ctx); err != nil {
		_ = c.Close() // the first error says more
		steps := []mcp.Step{{Name: "tools/list"}}
		return nil, &tenon.Error{Code: tenon.ErrorCode(err), Message: err.Error(),
			Err: &mcp.ConnectError{Step: steps[0].Name, Steps: steps, Err: err}}
	}
	return c, nil
}

// isOther reports whether an error shows that the server does not speak Streamable HTTP: an HTTP status for that, or
// a JSON-RPC error.
func isOther(err error) bool {
	var status *transport.StatusError
	if errors.As(err, &status) {
		switch status.Status {
		case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotAcceptable,
			http.StatusUnsupportedMediaType, http.StatusGone, http.StatusOK, http.StatusNotImplemented:
			return true
		}
		return false
	}
	return noMethod(err)
}

func noMethod(err error) bool {
	var rpc *jsonrpc.Error
	return errors.As(err, &rpc) && rpc.Code == jsonrpc.CodeMethodNotFound
}
