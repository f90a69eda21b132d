package httpapi

import (
	"context"
	"net/http"

	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
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
	if done, err := c.forward(); done || err != nil {
		return err
	}
	brought := c.brought
	if !c.caller.access.IsZero() {
		brought = host.PresentToken(c.h, brought, c.caller.access, c.caller.issuer)
	}
	c.cfg.Gateway.ServeMCP(c.w, c.req, c.body, c.caller.Principal, brought)
	return nil
}

// forward passes a request to the replica that has its session. done is false if this process answers.
func (c *call) forward() (done bool, err error) {
	if c.cfg.Replicas == nil {
		return false, nil
	}
	r := c.req
	if len(c.carried) > 0 { // only the replica that answers needs it
		r = r.Clone(r.Context())
		r.Header[CredentialsHeader] = c.carried
	}
	return c.cfg.Replicas.Forward(c.w, r, c.body, c.caller.Principal)
}

// GatewayClients is the response of GET /api/v1/gateway/clients.
type GatewayClients struct {
	Endpoints []config.ServedEndpoint `json:"endpoints"` // where clients reach the gateway; empty if there is none
	Items     []host.GatewayClient    `json:"items"`
}

// gatewayClients lists the MCP clients that have used the gateway lately. Without a gateway there are none.
func (c *call) gatewayClients() error {
	var list []host.GatewayClient
	if c.cfg.Gateway != nil {
		list = c.cfg.Gateway.Clients()
	}
	out := GatewayClients{Endpoints: []config.ServedEndpoint{}, Items: items(list).Items}
	if c.cfg.Gateway != nil {
		out.Endpoints = c.h.Service().Info().Config.Gateway.Served()
	}
	return c.answer(http.StatusOK, out)
}

// GatewayClients returns the MCP clients that have used the gateway of the process lately, the latest first. Errors:
// denied (only the owner may), unreachable.
func (c *Client) GatewayClients(ctx context.Context) ([]host.GatewayClient, error) {
	l, err := fetch[GatewayClients](ctx, c, http.MethodGet, at("gateway", "clients"), nil, "")
	return l.Items, err
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
