package config

import (
	"net/url"
	"strings"

	"github.com/tenonhq/tenon/config/tree"
	"github.com/tenonhq/tenon/servers"
)

// auth checks the authentication of a server: that required keys are present, and that present keys have an effect.
func (k *checker) auth(p, transport string, a servers.Auth) {
	if n := k.nodes[p]; n == nil || n.Kind != tree.Map || len(n.Keys) == 0 || a.Type == "" && k.has(p+".type") {
		return
	}
	if a.Type == "" {
		k.bad(p, "types: none, bearer, basic, api_key, header, oauth, credential", "'type' is required")
		return
	}
	oauth2 := a.Type == servers.AuthOAuth
	switch secret := k.has(p + ".secret"); {
	case secret && oauth2:
		k.bad(p+".secret", "the secret of a registered client is 'client_secret'",
			"'secret' has no effect for auth type oauth")
	case secret && a.Type == servers.AuthNone:
		k.bad(p+".secret", "", "'secret' has no effect for auth type none")
	case !secret && !oauth2 && a.Type != servers.AuthNone:
		k.bad(p, "", "'secret' is required for auth type %s", a.Type)
	}
	switch {
	case a.Type == servers.AuthHeader && !k.has(p+".header"):
		k.bad(p, "", "'header' is required for auth type header")
	case a.Type != servers.AuthHeader && a.Type != servers.AuthAPIKey && k.has(p+".header"):
		k.bad(p+".header", "", "'header' has no effect for auth type %s", a.Type)
	case a.Header != "" && !validHeader(a.Header) && !strings.Contains(a.Header, "${"):
		k.bad(p+".header", "", "'%s' is not the name of a header", a.Header)
	}
	if oauth2 {
		k.oauth(p, transport, a)
		return
	}
	for _, key := range []string{"grant", "client_id", "client_secret", "private_key", "key_id", "assertion",
		"scopes", "issuer", "callback_port"} {
		if k.has(p + "." + key) {
			k.bad(p+"."+key, "set 'type' to oauth", "'%s' has no effect for auth type %s", key, a.Type)
		}
	}
}

func (k *checker) oauth(p, transport string, a servers.Auth) {
	if transport == servers.TransportWebSocket {
		k.bad(p+".type", "use another type, or an http URL", "oauth is for servers over HTTP, not for websocket "+
			"transport")
	}
	credentials, bearer := a.Grant == servers.GrantClientCredentials, a.Grant == servers.GrantJWTBearer
	secret, key := k.has(p+".client_secret"), k.has(p+".private_key")
	if credentials && !k.has(p+".client_id") {
		k.bad(p, "", "'client_id' is required for the grant client_credentials")
	}
	if credentials && !secret && !key {
		k.bad(p, "", "'client_secret' is required for the grant client_credentials, or 'private_key'")
	}
	if secret && key {
		k.bad(p+".private_key", "keep one of them", "'client_secret' and 'private_key' together")
	}
	switch {
	case (credentials || bearer) && k.has(p+".callback_port"):
		k.bad(p+".callback_port", "", "'callback_port' has no effect for the grant %s", a.Grant)
	case bearer && !k.has(p+".assertion"):
		k.bad(p, "", "'assertion' is required for the grant jwt_bearer")
	case !bearer && k.has(p+".assertion"):
		k.bad(p+".assertion", "set 'grant' to jwt_bearer", "'assertion' has no effect for this grant")
	}
	if k.has(p+".key_id") && !key {
		k.bad(p+".key_id", "", "'key_id' has no effect without 'private_key'")
	}
	for _, proof := range []string{"client_secret", "private_key"} {
		if k.has(p+"."+proof) && !k.has(p+".client_id") && !credentials {
			k.bad(p+"."+proof, "", "'%s' has no effect without 'client_id'", proof)
		}
	}
	if a.Issuer != "" && !strings.Contains(a.Issuer, "${") {
		u, err := url.Parse(a.Issuer)
		if err != nil || u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !local(u.Hostname())) ||
			u.RawQuery != "" || u.Fragment != "" || u.User != nil {
			k.bad(p+".issuer", "it is the issuer's URL, without a query",
				"'issuer' must be an https URL (or http for localhost)")
		}
	}
}
