package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/exactjson"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/servers"
)

// CredentialsHeader is the request header that contains the caller's own credentials for servers. Its value is a JSON
// object that maps names of servers to {bearer}, {headers: {NAME: VALUE}} or {env: {NAME: VALUE}}. The configuration
// key caller_credentials of a server determines which of them the server accepts. The credentials are kept only in
// memory, and only until the run ends.
const CredentialsHeader = "Tenon-Server-Credentials"

const (
	maxCredentials = 32 << 10 // bytes of the header
	maxServers     = 64       // maximum number of servers in the header of one request
)

// checkCredentials parses the header Tenon-Server-Credentials. Its errors never quote the header, because the header
// contains secrets.
func (c *call) checkCredentials() error {
	values := c.req.Header.Values(CredentialsHeader)
	if len(values) == 0 {
		return nil
	}
	c.carried = values
	c.req.Header.Del(CredentialsHeader) // so that nothing later logs or forwards it
	text := values[0]
	bad := func(why string) error {
		return tenon.Errorf(tenon.CodeInvalid,
			`the header %s %s; it must be one JSON object such as {"github": {"bearer": "…"}}`, CredentialsHeader, why)
	}
	switch {
	case len(values) > 1:
		return bad("is there twice")
	case len(text) > maxCredentials:
		return refuse(http.StatusRequestHeaderFieldsTooLarge, tenon.CodeTooLarge,
			"the header %s has more than %d bytes", CredentialsHeader, maxCredentials)
	}
	err := rawjson.Check([]byte(text), rawjson.Rules{Depth: 4, UniqueKeys: true})
	var syntax *rawjson.SyntaxError
	switch {
	case errors.As(err, &syntax) && syntax.Reason == rawjson.ReasonDeep:
		return bad("is nested too deep")
	case errors.As(err, &syntax) && syntax.Reason == rawjson.ReasonDuplicate:
		return bad("has a key twice")
	}
	var brought map[string]servers.Brought
	if exactjson.Decode([]byte(text), &brought) != nil || brought == nil {
		return bad("cannot be read")
	}
	if len(brought) > maxServers {
		return bad("names too many servers")
	}
	c.brought, err = c.h.Service().Callers().Accept(brought)
	return err
}

// give passes the caller's credentials of this request to a run that is about to start or resume.
func (c *call) give(run string) error {
	return c.h.Service().Callers().SetCredentials(c.ctx(), run, c.brought)
}

// asCaller returns a context in which requests to the server use the caller's own credentials.
func (c *call) asCaller(server string) (context.Context, error) {
	return c.h.Service().Callers().Context(c.ctx(), c.caller.Principal, c.brought, server)
}
