package oauth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
)

func pemOf(t *testing.T, kind string, der []byte, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// holds reports whether the signature was made with the key (RFC 7518, section 3).
func holds(key crypto.PublicKey, alg string, text, sig []byte) bool {
	if key, ok := key.(ed25519.PublicKey); ok {
		return ed25519.Verify(key, text, sig)
	}
	hash := map[string]crypto.Hash{"256": crypto.SHA256, "384": crypto.SHA384, "512": crypto.SHA512}[alg[2:]]
	h := hash.New()
	h.Write(text)
	digest := h.Sum(nil)
	switch key := key.(type) {
	case *ecdsa.PublicKey:
		n := len(sig) / 2
		return n == (key.Params().BitSize+7)/8 && ecdsa.Verify(key, digest, new(big.Int).SetBytes(sig[:n]), new(big.Int).SetBytes(sig[n:]))
	case *rsa.PublicKey:
		if alg[0] == 'P' {
			return rsa.VerifyPSS(key, hash, digest, sig, &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash}) == nil
		}
		return rsa.VerifyPKCS1v15(key, hash, digest, sig) == nil
	}
	return false
}

type assertionCase struct {
	name, pem string
	public    crypto.PublicKey
	takes     []string
	alg, want string // want is of an error
}

// TestAssertion checks the tokens with which a client authenticates itself. For each kind of key, the signature must be
// valid, and the algorithm must be one that the server accepts.
func TestAssertion(t *testing.T) {
	pkcs8 := func(key crypto.Signer) string {
		der, err := x509.MarshalPKCS8PrivateKey(key)
		return pemOf(t, "PRIVATE KEY", der, err)
	}
	ec := map[int]*ecdsa.PrivateKey{}
	for bits, curve := range map[int]elliptic.Curve{224: elliptic.P224(), 256: elliptic.P256(), 384: elliptic.P384(), 521: elliptic.P521()} {
		key, err := ecdsa.GenerateKey(curve, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		ec[bits] = key
	}
	big, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	sec1, err := x509.MarshalECPrivateKey(ec[256])
	withParameters := "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n" + pemOf(t, "EC PRIVATE KEY", sec1, err)
	for _, tt := range []assertionCase{
		{"P-256", pkcs8(ec[256]), ec[256].Public(), nil, "ES256", ""},
		{"P-384", pkcs8(ec[384]), ec[384].Public(), []string{"ES256", "ES384"}, "ES384", ""},
		{"P-521", pkcs8(ec[521]), ec[521].Public(), nil, "ES512", ""},
		{"openssl ecparam", withParameters, ec[256].Public(), nil, "ES256", ""},
		{"RSA", pkcs8(big), big.Public(), nil, "RS256", ""},
		{"RSA PKCS #1", pemOf(t, "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(big), nil), big.Public(), []string{"PS256"}, "PS256", ""},
		{"RSA 512", pkcs8(big), big.Public(), []string{"ES256", "RS512"}, "RS512", ""},
		{"Ed25519", pkcs8(edwards), edwards.Public(), nil, "EdDSA", ""},
		{"not taken", pkcs8(edwards), nil, []string{"ES256", "RS256"}, "", "takes signatures of 'ES256 RS256', and auth.private_key makes EdDSA"},
		{"a curve that has no name", pkcs8(ec[224]), nil, nil, "", "is of the curve P-224"},
		{"no PEM", "sk-secret", nil, nil, "", "is no private key in PEM"},
		{"a certificate", pemOf(t, "CERTIFICATE", []byte("x"), nil), nil, nil, "", "is no private key in PEM"},
		{"encrypted", pemOf(t, "ENCRYPTED PRIVATE KEY", []byte("x"), nil), nil, nil, "", "is encrypted"},
		{"broken", pemOf(t, "PRIVATE KEY", []byte("x"), nil), nil, nil, "", "cannot be read"},
	} {
		t.Run(tt.name, func(t *testing.T) { checkAssertion(t, tt) })
	}
}

// checkAssertion makes an assertion with the key of the case and verifies its header, claims and signature.
func checkAssertion(t *testing.T, tt assertionCase) {
	now := time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC)
	s := &Source{cfg: Config{PrivateKey: tenon.NewSecret(tt.pem), KeyID: "k1", Now: func() time.Time { return now }}}
	form := url.Values{}
	err := s.assert(&saved{Issuer: "https://as.example", Client: client{ID: "me", Method: methodKey, Algs: tt.takes}}, form)
	if tt.want != "" {
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "sk-secret") {
			t.Errorf("%v, want %s", err, tt.want)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(form.Get("client_assertion"), ".")
	if len(parts) != 3 || form.Get("client_assertion_type") != assertionType {
		t.Fatal(form)
	}
	var raw [3][]byte
	for i, p := range parts {
		if raw[i], err = base64.RawURLEncoding.DecodeString(p); err != nil {
			t.Fatal(err)
		}
	}
	var header map[string]string
	var claims struct {
		Iss, Sub, Aud, Jti string
		Iat, Exp           int64
	}
	if json.Unmarshal(raw[0], &header) != nil || json.Unmarshal(raw[1], &claims) != nil {
		t.Fatalf("%s %s", raw[0], raw[1])
	}
	if header["alg"] != tt.alg || header["kid"] != "k1" || !holds(tt.public, tt.alg, []byte(parts[0]+"."+parts[1]), raw[2]) {
		t.Errorf("the signature does not hold: %v", header)
	}
	if claims.Iss != "me" || claims.Sub != "me" || claims.Aud != "https://as.example" || claims.Jti == "" || claims.Iat != now.Unix() || claims.Exp != now.Unix()+60 {
		t.Errorf("%s", raw[1])
	}
}
