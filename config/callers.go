package config

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config/tree"
	"github.com/tenonhq/tenon/servers"
)

// Own returns a principal's own credentials at a server, with the secrets that they contain, for redaction. It
// returns a zero Overlay if the principal has none there. It returns the errors of [Config.Resolve].
func (c *Config) Own(ctx context.Context, server string, who tenon.Principal) (o servers.Overlay, used []tenon.Secret,
	err error) {
	own, ok := c.Servers[server].Principals[string(who)]
	if !ok {
		return o, nil, nil
	}
	base := "servers." + server + ".principals." + string(who)
	if ref, ok := c.secrets[base+".auth.secret"]; ok {
		if own.Auth.Secret, err = c.resolve(ctx, ref, base+".auth.secret"); err != nil {
			return o, nil, err
		}
	}
	f := c.filler(ctx)
	o = servers.Overlay{Auth: own.Auth, Headers: f.texts(base+".headers", own.Headers),
		Env: f.texts(base+".env", own.Env)}
	if o.Auth.Type == servers.AuthNone {
		o.Auth = servers.Auth{}
	}
	return o, append(f.used, o.Auth.Secret), f.err
}

// ownHeaders are headers that the transport sets, so an entry cannot set them.
var ownHeaders = []string{"Host", "Connection", "Content-Length", "Content-Type", "Content-Encoding",
	"Transfer-Encoding", "Accept", "Accept-Encoding", "Upgrade", "Cookie"}

// callers checks the settings of a server about credentials of its callers: caller_credentials and principals.
func (k *checker) callers(p, transport string, s servers.Config) {
	process := transport == servers.TransportStdio
	without := func(path string, ofProcess bool) {
		if k.has(path) && process != ofProcess {
			key := path[strings.LastIndexByte(path, '.')+1:]
			k.Add(k.keyed[path], path, "'"+key+"' has no effect for "+transport+" transport", "")
		}
	}
	at := p + ".caller_credentials"
	without(at+".bearer", false)
	without(at+".headers", false)
	without(at+".env", true)
	k.accounts(p, transport, s)
	for i, h := range s.CallerCredentials.Headers {
		where := tree.Index(at+".headers", i)
		switch {
		case !validHeader(h):
			k.bad(where, "", "'%s' is not the name of a header", h)
		case slices.ContainsFunc(ownHeaders, func(own string) bool { return strings.EqualFold(own, h) }),
			strings.HasPrefix(strings.ToLower(h), "mcp-"):
			k.bad(where, "", "tenon sets the header '%s' itself", h)
		}
	}
	for i, v := range s.CallerCredentials.Env {
		if !tree.IsVariable(v) {
			k.bad(tree.Index(at+".env", i), "", "'%s' is not the name of a variable", v)
		}
	}
	if a := s.CallerCredentials; a.Required && !a.Bearer && !a.SignIn && !a.Exchange &&
		len(a.Headers)+len(a.Env)+len(s.Principals) == 0 {
		k.bad(at+".required", "write bearer, headers, env, sign_in or exchange, or principals",
			"every caller would be refused: no credentials of callers are configured")
	}
	for _, name := range slices.Sorted(maps.Keys(s.Principals)) {
		own, where := s.Principals[name], p+".principals."+name
		_, known := k.c.Serve.Auth.Tokens[name]
		if name == string(tenon.PrincipalLocal) {
			k.bad(where, "write it as auth, headers and env of the server itself", "'local' is you")
		} else if !known && !k.isOfIssuer(name) {
			k.note(where, k.known("serve.auth.tokens"), "serve.auth.tokens names no principal '%s'", name)
		}
		without(where+".auth", false)
		without(where+".headers", false)
		without(where+".env", true)
		if own.Auth.Type == servers.AuthOAuth {
			k.bad(where+".auth.type", "types: bearer, basic, api_key, header, credential",
				"a principal cannot have its own oauth")
			continue
		}
		k.auth(where+".auth", transport, own.Auth)
		if !k.has(where+".auth") && len(own.Headers)+len(own.Env) == 0 {
			k.bad(where, "write auth, headers or env", "the principal has no credentials")
		}
		for v := range own.Env {
			if strings.ContainsAny(v, "=\x00") || v == "" {
				k.bad(where+".env."+v, "", "not the name of a variable")
			}
			k.literal(where+".env."+v, own.Env[v])
		}
		for h := range own.Headers {
			if !validHeader(h) {
				k.bad(where+".headers."+h, "", "not the name of a header")
			}
			k.literal(where+".headers."+h, own.Headers[h])
		}
	}
}

// accounts checks sign_in and exchange of a server.
func (k *checker) accounts(p, transport string, s servers.Config) {
	at, a := p+".caller_credentials", s.CallerCredentials
	for key, on := range map[string]bool{"sign_in": a.SignIn, "exchange": a.Exchange} {
		if on && (transport == servers.TransportStdio || transport == servers.TransportWebSocket) {
			k.bad(at+"."+key, "", "'%s' has no effect for %s transport", key, transport)
			return
		}
	}
	if a.ExchangeAudience != "" && !a.Exchange {
		k.bad(at+".exchange_audience", "", "'exchange_audience' has no effect without 'exchange'")
	}
	if !a.Exchange {
		return
	}
	if s.Auth.Type != servers.AuthOAuth || !k.has(p+".auth.issuer") || !k.has(p+".auth.client_id") {
		k.bad(at+".exchange", "the token of a client goes only to an authorization server that you name",
			"'exchange' needs auth with type oauth, issuer and client_id")
	}
	if !k.c.Serve.Auth.OAuth.IsOn() {
		k.note(at+".exchange", "", "'exchange' has no effect: without serve.auth.oauth no client presents an access "+
			"token")
	} else if i := s.Auth.Issuer; !strings.Contains(i, "${") && !slices.ContainsFunc(k.c.Serve.Auth.OAuth.Issuers,
		func(o OAuthIssuer) bool { return o.URL == i }) {
		k.note(at+".exchange", "", "'exchange' has no effect: a token is exchanged only at its own issuer, and "+
			"'%s' in %s.auth.issuer is not in serve.auth.oauth.issuers", i, p)
	}
}

// isOfIssuer reports whether a name can be a principal of serve.auth.oauth: a configured issuer, #, and a subject.
func (k *checker) isOfIssuer(name string) bool {
	issuer, subject, _ := strings.Cut(name, "#")
	return subject != "" && slices.ContainsFunc(k.c.Serve.Auth.OAuth.Issuers,
		func(i OAuthIssuer) bool { return i.URL == issuer })
}
