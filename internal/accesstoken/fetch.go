package accesstoken

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/tenonhq/tenon"
)

const (
	// fetchTime bounds a fetch of an issuer's metadata and keys.
	fetchTime = 10 * time.Second
	// maxDocument bounds metadata and keys in bytes.
	maxDocument = 512 << 10
	// maxRedirects bounds redirects within an origin.
	maxRedirects = 3
)

// CheckURL describes what is wrong with the address of an issuer, of its keys or of a protected resource. It returns ""
// for a valid address. The address must be https, or http on loopback, without user, query and fragment (RFC 8414,
// section 2).
func CheckURL(text string) string {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Opaque != "" || u.User != nil || u.RawQuery != "" || u.ForceQuery ||
		strings.Contains(text, "#"):
		return "it must be an https address without user, query and fragment"
	case u.Scheme == "https", u.Scheme == "http" && isLoopback(u.Hostname()):
		return ""
	}
	return "it must begin with https://; http is for loopback only"
}

func isLoopback(name string) bool {
	ip, err := netip.ParseAddr(name)
	return name == "localhost" || err == nil && ip.IsLoopback()
}

func newClient() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxConnsPerHost, t.DisableKeepAlives, t.MaxResponseHeaderBytes = 4, true, 64<<10
	return &http.Client{Transport: t, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		first := via[0].URL
		if len(via) > maxRedirects || req.URL.Scheme != first.Scheme || req.URL.Host != first.Host {
			return errors.New("redirects to other origins are not followed")
		}
		return nil
	}}
}

// fetchKeys fetches the keys of an issuer.
func fetchKeys(ctx context.Context, client *http.Client, i Issuer) (keys []jose.JSONWebKey, err error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	address := i.JWKS
	if address == "" {
		if address, err = discover(ctx, client, i.URL); err != nil {
			return nil, err
		}
	}
	if why := CheckURL(strings.SplitN(address, "?", 2)[0]); why != "" { // the address of keys may have a query
		return nil, tenon.Errorf(tenon.CodeProtocol, "jwks_uri: %s", why)
	}
	if strings.HasPrefix(i.URL, "https:") && !strings.HasPrefix(address, "https:") {
		return nil, tenon.Errorf(tenon.CodeProtocol, "jwks_uri is http, and the issuer https")
	}
	text, err := fetch(ctx, client, address)
	if err != nil {
		return nil, err
	}
	return parseKeys(text)
}

// discover returns the jwks_uri in an issuer's metadata. It tries the metadata of OAuth (RFC 8414), and then both
// places of OpenID Connect.
func discover(ctx context.Context, client *http.Client, issuer string) (string, error) {
	u, err := url.Parse(issuer)
	if err != nil {
		return "", tenon.Errorf(tenon.CodeConfig, "its address cannot be read")
	}
	root, path := u.Scheme+"://"+u.Host, strings.TrimSuffix(u.EscapedPath(), "/")
	places := []string{root + "/.well-known/oauth-authorization-server" + path,
		root + path + "/.well-known/openid-configuration"}
	if path != "" {
		places = append(places, root+"/.well-known/openid-configuration"+path)
	}
	var problems []error
	for _, place := range places {
		text, err := fetch(ctx, client, place)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		var doc struct {
			Issuer string `json:"issuer"`
			JWKS   string `json:"jwks_uri"`
		}
		switch err := json.Unmarshal(text, &doc); {
		case err != nil:
			problems = append(problems, tenon.Errorf(tenon.CodeProtocol, "%s is no JSON object", place))
		case doc.Issuer != issuer: // RFC 8414, section 3.3: another server's metadata
			problems = append(problems, tenon.Errorf(tenon.CodeProtocol, "%s names another issuer", place))
		case doc.JWKS == "":
			problems = append(problems, tenon.Errorf(tenon.CodeProtocol, "%s has no jwks_uri", place))
		default:
			return doc.JWKS, nil
		}
	}
	return "", errors.Join(problems...)
}

// fetch reads a document.
func fetch(ctx context.Context, client *http.Client, address string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, tenon.Errorf(tenon.CodeUnreachable, "%s answered %d", address, res.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, maxDocument+1))
	if err == nil && len(text) > maxDocument {
		err = tenon.Errorf(tenon.CodeTooLarge, "%s has more than %d bytes", address, maxDocument)
	}
	return text, err
}
