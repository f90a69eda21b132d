package accesstoken

import (
	"context"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/authserver"
)

const audience = "https://tools.example.com/mcp"

func start(t *testing.T) (*authserver.Issuer, []Issuer) {
	t.Helper()
	i := authserver.StartIssuer()
	t.Cleanup(i.Close)
	return i, []Issuer{{URL: i.URL}}
}

func TestAccept(t *testing.T) {
	i, issuers := start(t)
	tests := []struct {
		name, alg    string
		more, header map[string]any
		scopes       string
	}{
		{"GW-9_RS256", "RS256", nil, nil, ""},
		{"GW-9_ES256", "ES256", nil, nil, ""},
		{"GW-9_EdDSA", "EdDSA", nil, nil, ""},
		{"GW-9_without kid, one key of the type", "RS256", nil, map[string]any{"kid": nil}, ""},
		{"GW-9_without typ", "ES256", nil, map[string]any{"typ": nil}, ""},
		{"GW-9_typ JWT", "ES256", nil, map[string]any{"typ": "JWT"}, ""},
		{"GW-9_typ with application", "ES256", nil, map[string]any{"typ": "application/at+JWT"}, ""},
		{"GW-9_several audiences", "ES256", map[string]any{"aud": []string{"other", audience}}, nil, ""},
		{"GW-9_scope", "ES256", map[string]any{"scope": "read write"}, nil, "read write"},
		{"GW-9_scp list", "ES256", map[string]any{"scp": []string{"read", "write"}}, nil, "read write"},
		{"GW-9_scp text", "ES256", map[string]any{"scp": "read write"}, nil, "read write"},
		{"GW-9_clock a little ahead", "ES256", map[string]any{"nbf": time.Now().Unix() + 20}, nil, ""},
		{"GW-9_expired a moment ago", "ES256", map[string]any{"exp": time.Now().Unix() - 5}, nil, ""},
	}
	var keys Keys
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			token, err := keys.Check(t.Context(), issuers, i.Sign(tt.alg, i.Claims("anna", audience, tt.more), tt.header),
				audience)
			if err != nil {
				t.Fatal(err)
			}
			if token.Issuer != i.URL || token.Subject != "anna" || strings.Join(token.Scopes, " ") != tt.scopes {
				t.Errorf("got %+v", token)
			}
		})
	}
}

func TestAttacks(t *testing.T) {
	i, issuers := start(t)
	evil, _ := start(t)
	mine := func(more, header map[string]any) string {
		return i.Sign("ES256", i.Claims("anna", audience, more), header)
	}
	good := strings.Split(mine(nil, nil), ".")
	other := strings.Split(i.Token("bert", audience, nil), ".")
	now := time.Now().Unix()
	tests := []struct{ name, token, want string }{
		{"GW-9_no signature (none)", i.Sign("none", i.Claims("anna", audience, nil), nil), "signature"},
		{"GW-9_None in other letters", i.Sign("none", i.Claims("anna", audience, nil), map[string]any{"alg": "NoNe"}),
			"signature"},
		{"GW-9_HMAC with the public key", i.Sign("HS256", i.Claims("anna", audience, nil), nil), "signature"},
		{"GW-9_another algorithm than signed", i.Sign("ES256", i.Claims("anna", audience, nil),
			map[string]any{"alg": "RS256"}), "no key"},
		{"GW-9_PS256 named, RS256 signed", i.Sign("RS256", i.Claims("anna", audience, nil),
			map[string]any{"alg": "PS256"}), "signature is wrong"},
		{"GW-9_claims replaced", good[0] + "." + other[1] + "." + good[2], "signature is wrong"},
		{"GW-9_signature cut off", good[0] + "." + good[1] + ".", "signature"},
		{"GW-9_encryption key", mine(nil, map[string]any{"kid": "encryption"}), "no key"},
		{"GW-9_symmetric key of the set", mine(nil, map[string]any{"kid": "secret"}), "no key"},
		{"GW-9_key in the header", evil.Sign("ES256", i.Claims("anna", audience, nil),
			map[string]any{"jwk": evil.PublicKey(), "kid": "ES256-1"}), "signature is wrong"},
		{"GW-9_address of keys in the header", evil.Sign("ES256", i.Claims("anna", audience, nil),
			map[string]any{"jku": evil.URL + "/keys"}), "signature is wrong"},
		{"GW-9_critical extension", mine(nil, map[string]any{"crit": []string{"x"}, "x": 1}), "signature"},
		{"GW-9_issuer that is not configured", evil.Token("anna", audience, nil), "issuer"},
		{"GW-9_issuer mix-up", evil.Sign("ES256", i.Claims("anna", audience, nil), nil), "signature is wrong"},
		{"GW-9_issuer with a slash more", mine(map[string]any{"iss": i.URL + "/"}, nil), "issuer"},
		{"GW-9_issuer that is no text", mine(map[string]any{"iss": []string{i.URL}}, nil), "claims"},
		{"GW-9_no issuer", mine(map[string]any{"iss": nil}, nil), "issuer"},
		{"GW-9_wrong audience", mine(map[string]any{"aud": "https://other.example.com"}, nil), "audience"},
		{"GW-9_audience of another endpoint", mine(map[string]any{"aud": audience + "/coding"}, nil), "audience"},
		{"GW-9_audience that begins alike", mine(map[string]any{"aud": audience[:len(audience)-1]}, nil), "audience"},
		{"GW-9_no audience", mine(map[string]any{"aud": nil}, nil), "audience"},
		{"GW-9_expired", mine(map[string]any{"exp": now - 60}, nil), "expired"},
		{"GW-9_no expiry", mine(map[string]any{"exp": nil}, nil), "exp"},
		{"GW-9_expiry that is a text", mine(map[string]any{"exp": "9999999999"}, nil), "cannot be read"},
		{"GW-9_not valid yet", mine(map[string]any{"nbf": now + 120}, nil), "nbf"},
		{"GW-9_far away nbf", mine(map[string]any{"nbf": 1e300}, nil), "cannot be read"},
		{"GW-9_issued in the future", mine(map[string]any{"iat": now + 120}, nil), "iat"},
		{"GW-9_no subject", mine(map[string]any{"sub": nil}, nil), "sub"},
		{"GW-9_long subject", mine(map[string]any{"sub": strings.Repeat("a", 256)}, nil), "sub"},
		{"GW-9_bound to a key", mine(map[string]any{"cnf": map[string]any{"jkt": "x"}}, nil), "cnf"},
		{"GW-9_a logout token", mine(nil, map[string]any{"typ": "logout+jwt"}), "typ"},
		{"GW-9_a type that is no text", mine(nil, map[string]any{"typ": 7}), ""},
		{"GW-9_too large", mine(map[string]any{"x": strings.Repeat("a", maxToken)}, nil), "bytes"},
		{"GW-9_no token", "a.b.c", "signature"},
		{"GW-9_nothing", "", "signature"},
		{"GW-9_the claim iss twice", twice(i), "claims"},
	}
	var keys Keys
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := keys.Check(t.Context(), issuers, tt.token, audience)
			if tenon.ErrorCode(err) != tenon.CodeAuth || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %+v, %v; want a refusal with %q", got, err, tt.want)
			}
			if len(tt.token) > 20 && strings.Contains(err.Error(), tt.token[:20]) {
				t.Errorf("the error quotes the token: %v", err)
			}
		})
	}
	if n := evil.Fetched(); n != 0 {
		t.Errorf("the keys of an issuer that is not configured were fetched %d times", n)
	}
}

// twice returns a token that names another issuer first, and then the right one.
func twice(i *authserver.Issuer) string {
	parts := strings.Split(i.Token("anna", audience, nil), ".")
	body, _ := base64.RawURLEncoding.DecodeString(parts[1])
	body = []byte(`{"iss":"https://evil.example.com",` + string(body[1:]))
	return parts[0] + "." + base64.RawURLEncoding.EncodeToString(body) + "." + parts[2]
}

func TestAlgorithmsOfIssuer(t *testing.T) {
	i, issuers := start(t)
	issuers[0].Algorithms = []string{"RS256"}
	var keys Keys
	if _, err := keys.Check(t.Context(), issuers, i.Sign("RS256", i.Claims("a", audience, nil), nil), audience); err != nil {
		t.Fatal(err)
	}
	_, err := keys.Check(t.Context(), issuers, i.Sign("ES256", i.Claims("a", audience, nil), nil), audience)
	if tenon.ErrorCode(err) != tenon.CodeAuth {
		t.Fatalf("GW-9: ES256 is accepted: %v", err)
	}
	issuers[0].Algorithms = []string{"HS256", "none"} // a configuration refuses them already
	_, err = keys.Check(t.Context(), issuers, i.Sign("HS256", i.Claims("a", audience, nil), nil), audience)
	if tenon.ErrorCode(err) != tenon.CodeAuth {
		t.Fatalf("GW-9: HS256 is accepted: %v", err)
	}
}

func FuzzCheck(f *testing.F) {
	i := authserver.StartIssuer()
	f.Cleanup(i.Close)
	f.Add(i.Token("anna", audience, nil))
	f.Add(i.Sign("RS256", i.Claims("a", "other", nil), map[string]any{"kid": nil}))
	f.Add("a.b.c")
	var keys Keys
	f.Fuzz(func(t *testing.T, token string) {
		got, err := keys.Check(context.WithoutCancel(t.Context()), []Issuer{{URL: i.URL}}, token, audience)
		if err == nil && (got.Subject == "" || got.Issuer != i.URL) {
			t.Fatalf("accepted without a subject: %q", token)
		}
	})
}
