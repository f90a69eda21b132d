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

// document is the client id metadata document that the suite knows. It counts
// where an authorization server takes such; else tenon registers itself.
const document = "https://conformance-test.local/client-metadata.json"

// account is what a scenario of the suite wants to be signed in to with: what it
// writes down of a client, or nothing but the document.
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
	if given.Says != "" { // a workload's identity
		auth.Grant, auth.Assertion = servers.GrantJWTBearer, tenon.NewSecret(given.Says)
	}
	return auth, nil
}

// visitor is a person who signs in wherever it is asked: the suite's
// authorization servers send everybody back at once.
type visitor struct{}

// RedirectURI is an address to which nobody goes: where the answer would lead is
// enough.
func (visitor) RedirectURI() string { return "http://localhost:3000/callback" }

// Sign visits the address and reads where it sends the person back to.
func (visitor) Sign(ctx context.Context, address string) (url.Values, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	r, err := browser.Do(req)
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	back, err := r.Location()
	if err != nil {
		return nil, fmt.Errorf("HTTP %d, and nobody is sent back: %w", r.StatusCode, err)
	}
	return back.Query(), nil
}

var _ oauth.Signer = visitor{}
