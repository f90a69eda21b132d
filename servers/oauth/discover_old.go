package oauth

import (
	"context"
	"net/url"
	"strings"

	"github.com/tenonhq/tenon"
)

// maxBases is the maximum number of base URLs that are asked for metadata.
const maxBases = 5

// discoverOld finds the authorization server of an MCP server without resource metadata. In revision 2025-03-26
// (authorization, section 2.3) both are one server. The metadata are at the base URL, which is the server's URL
// without the path. Servers behind a path prefix have them at the prefix instead, so all prefixes of the path are
// asked, the root first. A server without any metadata has the endpoints /authorize, /token and /register at the base
// URL (section 2.3.3).
func (s *Source) discoverOld(ctx context.Context) (*resource, *authServer, error) {
	bases := s.bases()
	res := &resource{Resource: s.canonical(), Servers: bases}
	for _, base := range bases {
		as, place, _, err := s.metadata(ctx, base)
		switch {
		case err != nil:
			return nil, nil, err
		case as == nil:
			continue
		}
		// The metadata of a prefix may name the root as their issuer: prefix and root are the same server.
		if strings.TrimSuffix(as.Issuer, "/") == bases[0] {
			base = as.Issuer
		}
		return res, as, s.checkServer(base, place, as)
	}
	root := bases[0]
	as := &authServer{Issuer: root, Authorization: root + "/authorize", Token: root + "/token",
		Registration: root + "/register", PKCE: []string{"S256"}, isAssumed: true}
	return res, as, s.checkServer(root, "", as)
}

// bases returns the base URLs that may be the issuer: the root of the server's origin, then the prefixes of its path
// from the longest to the shortest.
func (s *Source) bases() []string {
	root := url.URL{Scheme: s.url.Scheme, Host: s.url.Host}
	list := []string{root.String()}
	path := strings.TrimRight(s.url.EscapedPath(), "/")
	for path != "" && len(list) < maxBases {
		list = append(list, root.String()+path)
		path = path[:strings.LastIndexByte(path, '/')]
	}
	return list
}

// assumed adds to a sign-in error that the endpoints were assumed, because no metadata name them.
func assumed(as *authServer, err error) error {
	if err == nil || as == nil || !as.isAssumed {
		return err
	}
	return wrapf(tenon.ErrorCode(err), err, "it publishes no OAuth metadata, so the endpoints of revision 2025-03-26 "+
		"at %s were tried: %s", as.Issuer, err)
}
