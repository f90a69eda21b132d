package conformance

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/servers"
	"github.com/tenonhq/tenon/servers/oauth"
)

// document is the URL of the client id metadata document that the suite knows. At authorization servers that do not
// support such documents, the client registers instead.
const document = "https://conformance-test.local/client-metadata.json"

// account returns the credentials that a scenario of the suite specifies. Without a specified client id, the client id
// is document.
func account(name string) (servers.Auth, error) {
	var given struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
		Issuer string `json:"issuer"`
		Key    string `json:"private_key_pem"`
		Says   string `json:"valid_jwt"`
	}
	if text := os.Getenv("MCP_CONFORMANCE_CONTEXT"); text != "" {
		if err := json.Unmarshal([]byte(text), &given); err != nil {
			return servers.Auth{}, err
		}
	}
	auth := servers.Auth{Type: servers.AuthOAuth, ClientID: cmp.Or(given.ID, document), Issuer: given.Issuer}
	if given.Secret != "" {
		auth.ClientSecret = tenon.NewSecret(given.Secret)
	}
	if strings.HasPrefix(name, "auth/client-credentials-") {
		auth.Grant = servers.GrantClientCredentials
	}
	if given.Key != "" {
		auth.PrivateKey = tenon.NewSecret(given.Key)
	}
	if given.Says != "" { // workload identity
		auth.Grant, auth.Assertion = servers.GrantJWTBearer, tenon.NewSecret(given.Says)
	}
	return auth, nil
}

// visitor is a person who always consents: the suite's authorization servers redirect back at once.
type visitor struct{}

// RedirectURI returns an address that is never visited. Only the redirect to it is read.
func (visitor) RedirectURI() string { return "http://localhost:3000/callback" }

// Sign visits the address and returns the query of the redirect.
func (visitor) Sign(ctx context.Context, address string) (url.Values, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	browser := &http.Client{CheckRedirect: func(*http.Request,
		[]*http.Request) error {
		return http.ErrUseLastResponse
	}}
	r, err := browser.Do(req)
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	back, err := r.Location()
	if err != nil {
		return nil, fmt.Errorf("HTTP %d, without a redirect: %w", r.StatusCode, err)
	}
	return back.Query(), nil
}

var _ oauth.Signer = visitor{}
