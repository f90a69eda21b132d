package gateway

import (
	"context"
	"encoding/json"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/jsonrpc"
	"github.com/tenonhq/tenon/mcp"
)

// reply is answer for a call that may fail because its principal has not signed in to a server.
func (d *door) reply(ctx context.Context, r *mcp.ToolRequest, result *tenon.Result, err error) (json.RawMessage,
	error) {
	if tenon.ErrorCode(err) != tenon.CodeAuth {
		return d.answer(r, result, err)
	}
	needed, err := d.signInFor(ctx, r, host.SignsInItself(ctx, d.g.current(), d.key.who, r.Name), err)
	if needed != nil {
		return needed, nil
	}
	return d.answer(r, nil, err)
}

// signInFor tells a client whose request failed because its principal has not signed in to a server the address of a
// page for that, in the way that the client understands: as a result, or as an error. The server is "" if the principal
// does not sign in there for itself; then the error stays as it is.
func (d *door) signInFor(ctx context.Context, r *mcp.ToolRequest, server string, err error) (json.RawMessage, error) {
	origin, web := ctx.Value(originKey{}).(string)
	if server == "" || !web {
		return nil, err
	}
	if origin == "" {
		return nil, tenon.Errorf(tenon.CodeAuth, "%w. tenon gives no link for it, because the request's "+
			"Host is not an address that tenon knows as its own: set serve.origins to the origin of tenon for browsers",
			err)
	}
	answered := rawjson.String(rawjson.Field(rawjson.Field(r.Responses, signInKey), "action"))
	if answered != "" && answered != "accept" {
		return nil, tenon.Errorf(tenon.CodeAuth, "%w; the client did not open the page for it", err)
	}
	one := d.g.signIns.link(host.SignInLink{Principal: d.key.who, Endpoint: d.key.endpoint, Server: server,
		Origin: origin})
	address := one.Origin + signInPath + one.ticket
	message := "Sign in to the MCP server '" + server + "' as '" + tenon.Visible(string(d.key.who)) + "' of tenon."
	params := text(text(text([]byte(`{"mode":"url"`), "message", message), "url", address), "elicitationId", one.id)
	params = append(params, '}')
	switch can := d.caller(r).CanAnswer(mcp.MethodElicit, params); {
	case can && r.Modern:
		request := append(member(text([]byte{'{'}, "method", mcp.MethodElicit), "params",
			without(params, "elicitationId")), '}')
		requests := append(member([]byte{'{'}, signInKey, request), '}')
		return append(append([]byte(`{"resultType":"input_required","inputRequests":`), requests...), '}'), nil
	case can:
		d.g.signIns.tell(one, r.Session())
		e := jsonrpc.Errorf(mcp.CodeURLElicitation, "%s", message)
		e.Data = append(append([]byte(`{"elicitations":[`), params...), "]}"...)
		return nil, e
	}
	return nil, tenon.Errorf(tenon.CodeAuth, "%w. Open %s in a browser, as '%s' and within ten minutes, "+
		"and then repeat the request", err, address, d.key.who)
}

// ofAccount is an error of a request to a server that failed because the principal has not signed in there.
type ofAccount struct {
	server string
	error
}

func (e ofAccount) Unwrap() error { return e.error }

// atServer marks an error about the principal's own sign-in at a server.
func (d *door) atServer(h *host.Host, server string, err error) error {
	if tenon.ErrorCode(err) == tenon.CodeAuth && host.SignsIn(h, d.key.who, server) {
		return ofAccount{server, err}
	}
	return err
}
