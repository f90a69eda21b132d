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

// reply is answer for a call that may fail because its principal has not signed in to a server. run is the call's run.
func (d *door) reply(ctx context.Context, r *mcp.ToolRequest, run string, result *tenon.Result, err error) (
	json.RawMessage, error) {
	if tenon.ErrorCode(err) != tenon.CodeAuth {
		return d.answer(r, d.withLink(ctx, r.Name, run, result), err)
	}
	needed, err := d.signInFor(ctx, r, host.SignsInItself(ctx, d.g.current(), d.key.who, r.Name), err)
	if needed != nil {
		return needed, nil
	}
	return d.answer(r, nil, err)
}

// withLink adds the address of a page to the failure of a workflow or an agent with a call whose principal has not
// signed in to a server. The client is not asked to visit the page, because it would repeat the call by itself, and
// with it the steps that succeeded: the person who opens the page decides about that.
func (d *door) withLink(ctx context.Context, tool, run string, result *tenon.Result) *tenon.Result {
	if result == nil || !result.IsError || run == "" {
		return result
	}
	h := d.g.current()
	snapshot, _, err := host.ClientTools(ctx, h)
	if err != nil {
		return result
	}
	t, ok := snapshot.Lookup(tool)
	if !ok || t.Kind != tenon.KindWorkflow && t.Kind != tenon.KindAgent {
		return result
	}
	server := host.SignInNeeded(ctx, h, run)
	if server == "" {
		return result
	}
	return tenon.ErrorResult(d.linked(ctx, server, tenon.Errorf(tenon.CodeAuth, "%s", result.Text())).Error())
}

// linked adds the address of a page for a sign-in to an error, for a client that is not asked to visit it.
func (d *door) linked(ctx context.Context, server string, err error) error {
	one, err := d.link(ctx, server, mcp.Session{}, err)
	if one == nil {
		return err
	}
	return one.byHand(err)
}

// link returns a link for a sign-in of the principal to a server. client, unless it is the zero one, is notified of the
// end of the sign-in. The link is nil if the server is "", because the principal does not sign in there for itself, or
// if no address of tenon is known. The returned error is err, or says why there is no link.
func (d *door) link(ctx context.Context, server string, client mcp.Session, err error) (*signIn, error) {
	origin, web := ctx.Value(originKey{}).(string)
	if server == "" || !web {
		return nil, err
	}
	if origin == "" {
		return nil, tenon.Errorf(tenon.CodeAuth, "%w. tenon gives no link for it, because the request's "+
			"Host is not an address that tenon knows as its own: set serve.origins to the origin of tenon for browsers",
			err)
	}
	return d.g.signIns.link(host.SignInLink{Principal: d.key.who, Endpoint: d.key.endpoint, Server: server,
		Origin: origin}, client), err
}

// address returns the address of the page.
func (s *signIn) address() string { return s.Origin + signInPath + s.ticket }

// byHand returns an error that tells a person the address of the page.
func (s *signIn) byHand(err error) error {
	return tenon.Errorf(tenon.CodeAuth, "%w. Open %s in a browser, as '%s' and within ten minutes, "+
		"and then repeat the request", err, s.address(), s.Principal)
}

// signInFor tells a client whose request failed because its principal has not signed in to a server the address of a
// page for that, in the way that the client understands: as a result, or as an error. The server is "" if the principal
// does not sign in there for itself; then the error stays as it is.
func (d *door) signInFor(ctx context.Context, r *mcp.ToolRequest, server string, err error) (json.RawMessage, error) {
	answered := rawjson.String(rawjson.Field(rawjson.Field(r.Responses, signInKey), "action"))
	if answered != "" && answered != "accept" && server != "" {
		return nil, tenon.Errorf(tenon.CodeAuth, "%w; the client did not open the page for it", err)
	}
	can := d.caller(r).CanAnswer(mcp.MethodElicit, []byte(`{"mode":"url"}`))
	var client mcp.Session
	if can && !r.Modern {
		client = r.Session()
	}
	one, err := d.link(ctx, server, client, err)
	if one == nil {
		return nil, err
	}
	message := "Sign in to the MCP server '" + server + "' as '" + tenon.Visible(string(d.key.who)) + "' of tenon."
	params := text(text(text([]byte(`{"mode":"url"`), "message", message), "url", one.address()), "elicitationId",
		one.id)
	params = append(params, '}')
	switch {
	case can && r.Modern:
		request := append(member(text([]byte{'{'}, "method", mcp.MethodElicit), "params",
			without(params, "elicitationId")), '}')
		requests := append(member([]byte{'{'}, signInKey, request), '}')
		return append(append([]byte(`{"resultType":"input_required","inputRequests":`), requests...), '}'), nil
	case can:
		e := jsonrpc.Errorf(mcp.CodeURLElicitation, "%s", message)
		e.Data = append(append([]byte(`{"elicitations":[`), params...), "]}"...)
		return nil, e
	}
	return nil, one.byHand(err)
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
