package oauth

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	_ "crypto/sha256" // the hash functions of the signature algorithms
	_ "crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
)

// methodKey authenticates a client with a signed token (private_key_jwt: OpenID Connect Core, section 9; RFC 7523,
// section 2.2).
const methodKey = "private_key_jwt"

const (
	assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
	grantBearer   = "urn:ietf:params:oauth:grant-type:jwt-bearer"
	assertionLife = time.Minute
	minRSA        = 2048 // bits (RFC 7518, section 3.3)
)

// signing is a private key with its signature algorithms (RFC 7518, section 3.1; RFC 8037).
type signing struct {
	key  crypto.Signer
	algs []string // supported by the key; the first is used if the server names none
}

// readKey reads a private key in PEM: PKCS #8, or the forms that openssl writes for EC and RSA.
func readKey(text string) (*signing, error) {
	bad := func(why string) (*signing, error) {
		return nil, tenon.Errorf(tenon.CodeConfig, "auth.private_key %s", why)
	}
	var block *pem.Block
	for rest := []byte(text); ; { // openssl may write the parameters of a curve first
		if block, rest = pem.Decode(rest); block == nil {
			return bad("is no private key in PEM (-----BEGIN PRIVATE KEY-----)")
		}
		if strings.HasSuffix(block.Type, "PRIVATE KEY") {
			break
		}
	}
	var key any
	var err error
	switch block.Type {
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	default:
		return bad("is encrypted, or of a kind that cannot be used: write it with openssl pkey -in KEY")
	}
	if err != nil {
		return bad("cannot be read: " + err.Error())
	}
	switch key := key.(type) {
	case *ecdsa.PrivateKey:
		alg := map[int]string{256: "ES256", 384: "ES384", 521: "ES512"}[key.Curve.Params().BitSize]
		if alg == "" {
			return bad("is of the curve " + key.Curve.Params().Name + "; P-256, P-384 and P-521 can be used")
		}
		return &signing{key, []string{alg}}, nil
	case *rsa.PrivateKey:
		if key.N.BitLen() < minRSA {
			return bad("has fewer than 2048 bits")
		}
		return &signing{key, []string{"RS256", "PS256", "RS384", "PS384", "RS512", "PS512"}}, nil
	case ed25519.PrivateKey:
		return &signing{key, []string{"EdDSA"}}, nil
	}
	return bad("is of a kind that cannot sign; EC, RSA and Ed25519 can")
}

// sign returns a signed token in compact form (RFC 7515).
func (s *signing) sign(alg, id string, claims map[string]any) (string, error) {
	header := map[string]string{"alg": alg, "typ": "JWT"}
	if id != "" {
		header["kid"] = id
	}
	h, err := json.Marshal(header)
	if err != nil {
		return "", err
	}
	c, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	text := base64.RawURLEncoding.EncodeToString(h) + "." + base64.RawURLEncoding.EncodeToString(c)
	sig, err := s.signature(alg, []byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(sig), err
}

func (s *signing) signature(alg string, text []byte) ([]byte, error) {
	if alg == "EdDSA" {
		return s.key.Sign(rand.Reader, text, crypto.Hash(0))
	}
	hash := map[string]crypto.Hash{"256": crypto.SHA256, "384": crypto.SHA384, "512": crypto.SHA512}[alg[2:]]
	h := hash.New()
	h.Write(text)
	digest := h.Sum(nil)
	if key, ok := s.key.(*ecdsa.PrivateKey); ok {
		r, v, err := ecdsa.Sign(rand.Reader, key, digest)
		if err != nil {
			return nil, err
		}
		n := (key.Curve.Params().BitSize + 7) / 8
		return append(r.FillBytes(make([]byte, n)), v.FillBytes(make([]byte, n))...), nil
	}
	var opts crypto.SignerOpts = hash
	if alg[0] == 'P' {
		opts = &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: hash}
	}
	return s.key.Sign(rand.Reader, digest, opts)
}

// assert adds a client assertion to a token request: a JWT signed with the client's private key (RFC 7523).
func (s *Source) assert(t *saved, form url.Values) error {
	k, err := readKey(s.cfg.PrivateKey.Reveal())
	if err != nil {
		return err
	}
	alg := k.algs[0]
	if len(t.Client.Algs) > 0 {
		i := slices.IndexFunc(k.algs, func(a string) bool { return slices.Contains(t.Client.Algs, a) })
		if i < 0 {
			return tenon.Errorf(tenon.CodeAuth,
				"the authorization server %s takes signatures of %s, and auth.private_key makes %s", t.Issuer,
				quote(join(t.Client.Algs)), join(k.algs))
		}
		alg = k.algs[i]
	}
	now := s.now()
	claims := map[string]any{"iss": t.Client.ID, "sub": t.Client.ID, "aud": t.Issuer, "jti": token(),
		"iat": now.Unix(), "exp": now.Add(assertionLife).Unix()}
	text, err := k.sign(alg, s.cfg.KeyID, claims)
	if err != nil {
		return tenon.Errorf(tenon.CodeInternal, "auth.private_key cannot sign: %w", err)
	}
	form.Set("client_assertion_type", assertionType)
	form.Set("client_assertion", text)
	return nil
}

// machine returns the form of a token request without a user: with client credentials, or with an assertion of another
// issuer (RFC 7523, section 2.1).
func (s *Source) machine(ctx context.Context, as *authServer) (url.Values, error) {
	if s.cfg.Grant == GrantClientCredentials {
		return url.Values{"grant_type": {GrantClientCredentials}}, nil
	}
	if s.cfg.Assertion == nil {
		return nil, tenon.Errorf(tenon.CodeConfig, "auth.assertion is missing")
	}
	a, err := s.cfg.Assertion(ctx)
	if err != nil {
		return nil, err
	}
	text := strings.TrimSpace(a.Reveal())
	if text == "" || len(text) > maxToken || strings.ContainsFunc(text, notInHeader) {
		return nil, tenon.Errorf(tenon.CodeAuth, "auth.assertion holds no token to show to %s", as.Issuer)
	}
	s.learned(text)
	return url.Values{"grant_type": {grantBearer}, "assertion": {text}}, nil
}
