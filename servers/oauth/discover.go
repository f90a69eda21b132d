package oauth

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
)

// resource is the metadata of a protected resource (RFC 9728).
type resource struct {
	Resource string   `json:"resource"`
	Servers  []string `json:"authorization_servers"`
	Scopes   []string `json:"scopes_supported"`
}

// authServer is the metadata of an authorization server (RFC 8414, OpenID Connect Discovery 1.0), reduced to the
// members that are used.
type authServer struct {
	Issuer        string   `json:"issuer"`
	Authorization string   `json:"authorization_endpoint"`
	Token         string   `json:"token_endpoint"`
	Registration  string   `json:"registration_endpoint"`
	Revocation    string   `json:"revocation_endpoint"`
	Scopes        []string `json:"scopes_supported"`
	Grants        []string `json:"grant_types_supported"`
	Methods       []string `json:"token_endpoint_auth_methods_supported"`
	Algs          []string `json:"token_endpoint_auth_signing_alg_values_supported"`
	PKCE          []string `json:"code_challenge_methods_supported"`
	Documents     bool     `json:"client_id_metadata_document_supported"`
	NamesItself   bool     `json:"authorization_response_iss_parameter_supported"`

	isAssumed bool // the server has no metadata
}

// discover finds the authorization server of the MCP server: with the URL in the challenge, else with the well-known
// URLs (RFC 9728 section 3.1), else as in revision 2025-03-26.
func (s *Source) discover(ctx context.Context, c challenge, known string) (*resource, *authServer, error) {
	res, err := s.resource(ctx, c.Metadata)
	if err != nil {
		return nil, nil, err
	}
	if res == nil && s.cfg.Issuer == "" {
		return s.discoverOld(ctx)
	}
	if res == nil { // the configuration may name the authorization server that the missing metadata would name
		res = &resource{Resource: s.canonical(), Servers: []string{s.cfg.Issuer}}
	}
	issuer := ""
	switch {
	case len(res.Servers) == 0:
		return nil, nil, tenon.Errorf(tenon.CodeProtocol, "its metadata names no authorization server")
	case s.cfg.Issuer != "" && !slices.Contains(res.Servers, s.cfg.Issuer):
		return nil, nil, tenon.Errorf(tenon.CodeAuth,
			"it names the authorization server %s, and the configuration %s (auth.issuer); nothing was sent to either",
			quote(res.Servers[0]), quote(s.cfg.Issuer))
	case s.cfg.Issuer != "":
		issuer = s.cfg.Issuer
	case slices.Contains(res.Servers, known):
		issuer = known
	default:
		issuer = res.Servers[0]
	}
	as, err := s.authServer(ctx, issuer)
	return res, as, err
}

// resource reads the MCP server's own metadata. It returns nil if the server has none.
func (s *Source) resource(ctx context.Context, named string) (*resource, error) {
	var places []string
	if named != "" {
		if strings.HasPrefix(named, "/") { // some servers send only a path
			u := *s.url
			u.Path, u.RawPath, u.RawQuery = named, "", ""
			named = u.String()
		}
		places = append(places, named)
	}
	places = append(places, wellKnown(s.url, "oauth-protected-resource", false))
	if strings.Trim(s.url.Path, "/") != "" {
		root := *s.url
		root.Path, root.RawPath = "", ""
		places = append(places, wellKnown(&root, "oauth-protected-resource", false))
	}
	for _, place := range places {
		var res resource
		found, err := s.guard.get(ctx, place, &res)
		switch {
		case err != nil:
			return nil, err
		case !found:
			continue
		case !s.isOurs(res.Resource):
			return nil, tenon.Errorf(tenon.CodeAuth,
				"%s is the metadata of the resource %s, which is another server; a token for that is not asked for",
				place, quote(res.Resource))
		}
		return &res, nil
	}
	return nil, nil
}

// isOurs reports whether a resource identifier belongs to the server: it has the server's origin, and its path or a
// path above it. Servers commonly name their root.
func (s *Source) isOurs(identifier string) bool {
	u, err := url.Parse(identifier)
	if err != nil || !sameOrigin(u, s.url) || u.User != nil || u.RawQuery != "" && u.RawQuery != s.url.RawQuery {
		return false
	}
	above, path := strings.TrimRight(u.EscapedPath(), "/")+"/", strings.TrimRight(s.url.EscapedPath(), "/")+"/"
	return strings.HasPrefix(path, above)
}

// canonical returns the resource identifier of the MCP server (RFC 8707): its URL without a fragment.
func (s *Source) canonical() string {
	u := *s.url
	u.Fragment = ""
	return u.String()
}

// authServer reads and checks the metadata of an authorization server.
func (s *Source) authServer(ctx context.Context, issuer string) (*authServer, error) {
	as, place, places, err := s.metadata(ctx, issuer)
	switch {
	case err != nil:
		return nil, err
	case as == nil:
		return nil, tenon.Errorf(tenon.CodeProtocol, "the authorization server %s has no metadata (asked for %s)",
			issuer, strings.Join(places, ", "))
	}
	return as, s.checkServer(issuer, place, as)
}

// metadata reads the metadata of an authorization server. It returns the URL where it found them and all URLs that
// it asked for. as is nil if there are none.
func (s *Source) metadata(ctx context.Context, issuer string) (as *authServer, place string, places []string,
	err error) {
	u, err := s.guard.checkText(issuer)
	if err != nil {
		return nil, "", nil, wrapf(tenon.CodeAuth, err, "the authorization server %w", err)
	}
	places = []string{wellKnown(u, "oauth-authorization-server", false), wellKnown(u, "openid-configuration", false)}
	if strings.Trim(u.Path, "/") != "" {
		places = append(places, wellKnown(u, "openid-configuration", true),
			wellKnown(u, "oauth-authorization-server", true))
	}
	var last error
	for _, place := range places {
		var as authServer
		found, err := s.guard.get(ctx, place, &as)
		if err != nil {
			last = err
			continue
		}
		if found {
			return &as, place, places, nil
		}
	}
	return nil, "", places, last
}

func (s *Source) checkServer(issuer, place string, as *authServer) error {
	if as.Issuer != issuer && !sameRoot(as.Issuer, issuer) {
		return tenon.Errorf(tenon.CodeAuth,
			"%s is the metadata of the authorization server %s, not of %s; it is not used", place, quote(as.Issuer),
			quote(issuer))
	}
	if !slices.Contains(as.PKCE, "S256") && !s.cfg.isMachine() {
		return tenon.Errorf(tenon.CodeAuth,
			"the authorization server %s does not say that it supports PKCE with S256, without which a sign-in is "+
				"not safe", issuer)
	}
	for name, endpoint := range map[string]string{"authorization_endpoint": as.Authorization,
		"token_endpoint":        as.Token,
		"registration_endpoint": as.Registration, "revocation_endpoint": as.Revocation} {
		if endpoint == "" && (name == "token_endpoint" || name == "authorization_endpoint" && !s.cfg.isMachine()) {
			return tenon.Errorf(tenon.CodeProtocol, "the metadata of the authorization server %s has no %s", issuer,
				name)
		}
		if endpoint == "" {
			continue
		}
		if _, err := s.guard.checkText(endpoint); err != nil {
			return wrapf(tenon.CodeAuth, err, "the %s of the authorization server %s: %w", name, issuer, err)
		}
	}
	return nil
}

// sameRoot reports whether two issuers differ only in the slash of an empty path, and so are the same URL (RFC 3986,
// section 6.2.3).
func sameRoot(a, b string) bool {
	u, err := url.Parse(a)
	return err == nil && strings.Trim(u.Path, "/") == "" && strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/")
}

// wellKnown returns the URL of a metadata document: /.well-known/NAME before the path of u (RFC 8414 section 3.1, RFC
// 9728), or after it (OpenID Connect).
func wellKnown(u *url.URL, name string, appended bool) string {
	w := *u
	path := strings.TrimRight(u.EscapedPath(), "/")
	w.RawQuery, w.Fragment, w.RawPath = "", "", ""
	if appended {
		path += "/.well-known/" + name
	} else {
		path = "/.well-known/" + name + path
	}
	w.Path = ""
	return w.String() + path
}
