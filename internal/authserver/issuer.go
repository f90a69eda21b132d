package authserver

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"
)

// Issuer is an authorization server that signs access tokens (RFC 9068) and publishes its keys, for tests of a resource
// server. It signs by itself, without the library that the product checks with, and signs wrong tokens on demand.
type Issuer struct {
	URL string
	// Metadata are changes to the metadata; nil values remove a key. Set it before the first request.
	Metadata map[string]any
	// Redirect, if set, is where requests for the keys are sent.
	Redirect string
	// JWKS, if set, is the answer to requests for the keys.
	JWKS string
	// Down makes the keys unavailable.
	Down bool

	http    *httptest.Server
	mu      sync.Mutex
	rsa     *rsa.PrivateKey
	ec      *ecdsa.PrivateKey
	ed      ed25519.PrivateKey
	version int
	fetched int
}

// StartIssuer starts an issuer with new keys. The caller must call Close.
func StartIssuer() *Issuer {
	i := &Issuer{}
	i.Rotate()
	i.http = httptest.NewServer(i)
	i.URL = i.http.URL
	return i
}

// Close stops the server.
func (i *Issuer) Close() { i.http.Close() }

// Rotate replaces the keys. Their ids end in the number of the generation.
func (i *Issuer) Rotate() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.version++
	i.rsa, _ = rsa.GenerateKey(rand.Reader, 2048)
	i.ec, _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	_, i.ed, _ = ed25519.GenerateKey(rand.Reader)
}

// Set changes a field between requests.
func (i *Issuer) Set(change func(*Issuer)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	change(i)
}

// Fetched returns the number of requests for the keys.
func (i *Issuer) Fetched() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.fetched
}

// Claims returns the claims of a token that is valid for an hour from now.
func (i *Issuer) Claims(subject, audience string, more map[string]any) map[string]any {
	now := time.Now().Unix()
	return changed(map[string]any{"iss": i.URL, "sub": subject, "aud": audience, "iat": now, "nbf": now,
		"exp": now + 3600}, more)
}

// Token returns a token with an algorithm of the keys: RS256, ES256 or EdDSA.
func (i *Issuer) Token(subject, audience string, more map[string]any) string {
	return i.Sign("ES256", i.Claims(subject, audience, more), nil)
}

// Sign signs claims. Header are changes to the header; nil values remove a member. Besides the algorithms of the keys,
// it knows none, and HS256 with the public RSA key in PEM as its secret.
func (i *Issuer) Sign(alg string, claims, header map[string]any) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	head, _ := json.Marshal(changed(map[string]any{"alg": alg, "typ": "at+jwt", "kid": i.kid(alg)}, header))
	body, _ := json.Marshal(claims)
	text := b64(head) + "." + b64(body)
	sum := sha256.Sum256([]byte(text))
	var sig []byte
	switch alg {
	case "RS256":
		sig, _ = rsa.SignPKCS1v15(rand.Reader, i.rsa, crypto.SHA256, sum[:])
	case "ES256":
		r, s, _ := ecdsa.Sign(rand.Reader, i.ec, sum[:])
		sig = make([]byte, 64)
		r.FillBytes(sig[:32])
		s.FillBytes(sig[32:])
	case "EdDSA":
		sig = ed25519.Sign(i.ed, []byte(text))
	case "HS256":
		der, _ := x509.MarshalPKIXPublicKey(&i.rsa.PublicKey)
		mac := hmac.New(sha256.New, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
		_, _ = mac.Write([]byte(text))
		sig = mac.Sum(nil)
	}
	return text + "." + b64(sig)
}

func (i *Issuer) kid(alg string) string {
	if alg == "HS256" || alg == "none" {
		alg = "RS256"
	}
	return fmt.Sprintf("%s-%d", alg, i.version)
}

// PublicKey returns the public key of ES256 as a JWK.
func (i *Issuer) PublicKey() map[string]any {
	b, _ := i.ec.PublicKey.Bytes()
	return map[string]any{"kty": "EC", "crv": "P-256", "x": b64(b[1:33]), "y": b64(b[33:]), "kid": i.kid("ES256")}
}

// ServeHTTP implements [http.Handler].
func (i *Issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch r.URL.Path {
	case "/.well-known/oauth-authorization-server":
		reply(w, http.StatusOK, changed(map[string]any{"issuer": i.URL, "jwks_uri": i.URL + "/keys"}, i.Metadata))
	case "/keys":
		i.fetched++
		switch {
		case i.Down:
			http.Error(w, "down", http.StatusBadGateway)
		case i.Redirect != "":
			http.Redirect(w, r, i.Redirect, http.StatusFound)
		case i.JWKS != "":
			_, _ = w.Write([]byte(i.JWKS))
		default:
			reply(w, http.StatusOK, map[string]any{"keys": i.keys()})
		}
	default:
		http.NotFound(w, r)
	}
}

func (i *Issuer) keys() []map[string]any {
	list := []map[string]any{
		{"kty": "RSA", "n": b64(i.rsa.N.Bytes()), "e": "AQAB", "kid": i.kid("RS256"), "use": "sig"},
		i.PublicKey(),
		{"kty": "OKP", "crv": "Ed25519", "x": b64(i.ed.Public().(ed25519.PublicKey)), "kid": i.kid("EdDSA")},
		{"kty": "oct", "k": b64([]byte("a secret that does not belong here")), "kid": "secret"},
		{"kty": "FUTURE", "kid": "future"},
	}
	enc := maps.Clone(list[1])
	enc["use"], enc["kid"] = "enc", "encryption"
	return append(list, enc)
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
