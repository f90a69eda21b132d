package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/servers"
)

// CredentialsHeader is the header in which a request brings credentials of its caller's
// own for servers: a JSON object, name of a server → {bearer}, {headers: {NAME: VALUE}} or
// {env: {NAME: VALUE}}. The server's caller_credentials says what it takes. They are kept
// in memory as long as the run is at work or waits, and nowhere else.
const CredentialsHeader = "Tenon-Server-Credentials"

const (
	maxCredentials = 32 << 10 // bytes of the header
	maxServers     = 64       // that one request has credentials for
)

// checkCredentials reads what the request brings. No error repeats any of it.
func (c *call) checkCredentials() error {
	values := c.req.Header.Values(CredentialsHeader)
	if len(values) == 0 {
		return nil
	}
	c.req.Header.Del(CredentialsHeader) // from here on nobody needs it
	text := values[0]
	bad := func(why string) error {
		return tenon.Errorf(tenon.CodeInvalid, `the header %s %s; it must be one JSON object such as {"github": {"bearer": "…"}}`, CredentialsHeader, why)
	}
	switch {
	case len(values) > 1:
		return bad("is there twice")
	case len(text) > maxCredentials:
		return refuse(http.StatusRequestHeaderFieldsTooLarge, tenon.CodeTooLarge, "the header %s has more than %d bytes", CredentialsHeader, maxCredentials)
	case deeper([]byte(text), 4):
		return bad("is nested too deep")
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	var brought map[string]servers.Brought
	if d.Decode(&brought) != nil || d.More() || brought == nil {
		return bad("cannot be read")
	}
	if _, twice := rawjson.Twice([]byte(text)); twice {
		return bad("has a key twice")
	}
	if len(brought) > maxServers {
		return bad("names too many servers")
	}
	var err error
	c.brought, err = c.h.Accept(brought)
	return err
}

// give gives a run that is to go on what the request brings for it.
func (c *call) give(run string) error { return c.h.Give(c.ctx(), run, c.brought) }

// asCaller has a server asked with what the caller has of its own there.
func (c *call) asCaller(server string) (context.Context, error) {
	return c.h.AsCaller(c.ctx(), c.caller.Principal, c.brought, server)
}
