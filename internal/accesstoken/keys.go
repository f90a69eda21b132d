package accesstoken

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/tenonhq/tenon"
)

const (
	// fetchEvery is the shortest time between two fetches of an issuer's keys.
	fetchEvery = time.Minute
	// keysFresh is the age from which keys are fetched again, so that withdrawn keys lose their effect.
	keysFresh = 10 * time.Minute
	// keysValid is the age at which keys lose their effect if they cannot be fetched again.
	keysValid = time.Hour
	// maxKeys bounds the keys of an issuer that are kept.
	maxKeys = 64
	// minRSA is the smallest RSA key in bits (RFC 7518, section 3.3).
	minRSA = 2048
)

// Keys contains the public keys of issuers. The zero value is usable. It is safe for concurrent use.
type Keys struct {
	// Now returns the time. If nil, it is [time.Now].
	Now func() time.Time
	// Logger logs why keys are not available. Clients do not get this reason. If nil, nothing is logged.
	Logger *slog.Logger

	mu     sync.Mutex
	sets   map[source]*keySet
	client *http.Client
}

// source identifies a set of keys.
type source struct{ issuer, jwks string }

// keySet contains the keys of one issuer.
type keySet struct {
	mu      sync.Mutex
	keys    []jose.JSONWebKey
	loaded  time.Time // time when the keys arrived
	tried   time.Time // time when the last fetch began
	err     error     // of the last fetch
	loading chan struct{}
}

func (k *Keys) now() time.Time {
	if k.Now != nil {
		return k.Now()
	}
	return time.Now()
}

func (k *Keys) log(text, issuer string, err error) {
	if k.Logger != nil {
		k.Logger.Warn(text, "issuer", issuer, "error", err)
	}
}

// Keep drops the keys of all issuers that are not in the list. Call it when the configuration changes.
func (k *Keys) Keep(issuers []Issuer) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for s := range k.sets {
		if !slices.ContainsFunc(issuers, func(i Issuer) bool { return source{i.URL, i.JWKS} == s }) {
			delete(k.sets, s)
		}
	}
}

// set returns the keys of an issuer, and the client that fetches them.
func (k *Keys) set(i Issuer) (*keySet, *http.Client) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.sets == nil {
		k.sets, k.client = map[source]*keySet{}, newClient()
	}
	s := k.sets[source{i.URL, i.JWKS}]
	if s == nil {
		s = &keySet{}
		k.sets[source{i.URL, i.JWKS}] = s
	}
	return s, k.client
}

// find returns the keys of an issuer with which a token with this key id and algorithm may be signed. It fetches them
// if necessary. Errors: auth_required if the issuer has no such key, unreachable if its keys are not available.
func (k *Keys) find(ctx context.Context, i Issuer, id, algorithm string) ([]jose.JSONWebKey, error) {
	s, client := k.set(i)
	for {
		s.mu.Lock()
		now := k.now()
		age := now.Sub(s.loaded)
		var found []jose.JSONWebKey
		if age < keysValid {
			found = matching(s.keys, id, algorithm)
		}
		may := s.tried.IsZero() || now.Sub(s.tried) >= fetchEvery
		wait := s.loading
		switch {
		case len(found) > 0 && (age < keysFresh || !may || wait != nil):
			s.mu.Unlock()
			return found, nil
		case wait != nil:
			s.mu.Unlock()
			select {
			case <-wait:
				continue
			case <-ctx.Done():
				return nil, tenon.Errorf(tenon.CodeCancelled, "the client left: %w", context.Cause(ctx))
			}
		case !may:
			err := s.err
			s.mu.Unlock()
			if err == nil {
				err = refused("its issuer has no key for it; keys are fetched at most once a minute")
			}
			return nil, err
		}
		s.tried, s.loading = now, make(chan struct{})
		s.mu.Unlock()
		// The fetch serves all waiting requests, so it outlives this one; it has its own time limit.
		keys, err := fetchKeys(context.WithoutCancel(ctx), client, i)
		if err != nil {
			k.log("the keys of an issuer of access tokens are not available", i.URL, err)
			err = tenon.Errorf(tenon.CodeUnreachable, "the keys of issuer %s are not available; the log of tenon "+
				"has the cause; try again in a minute", tenon.Visible(i.URL))
		}
		s.mu.Lock()
		s.err = err
		if err == nil {
			s.keys, s.loaded = keys, now
		}
		close(s.loading)
		s.loading = nil
		s.mu.Unlock()
	}
}

// matching returns the keys with a key id that fit an algorithm. If the token has no key id, there must be only one
// such key.
func matching(keys []jose.JSONWebKey, id, algorithm string) []jose.JSONWebKey {
	var found []jose.JSONWebKey
	for _, key := range keys {
		if (id == "" || key.KeyID == id) && (key.Algorithm == "" || key.Algorithm == algorithm) &&
			fits(key, algorithm) {
			found = append(found, key)
		}
	}
	if id == "" && len(found) > 1 {
		return nil
	}
	return found
}

// fits reports whether the type of a key is right for an algorithm.
func fits(key jose.JSONWebKey, algorithm string) bool {
	switch pub := key.Key.(type) {
	case *rsa.PublicKey:
		return (strings.HasPrefix(algorithm, "RS") || strings.HasPrefix(algorithm, "PS")) && pub.N.BitLen() >= minRSA
	case *ecdsa.PublicKey:
		return algorithm == map[int]string{256: "ES256", 384: "ES384", 521: "ES512"}[pub.Curve.Params().BitSize]
	case ed25519.PublicKey:
		return algorithm == "EdDSA"
	}
	return false
}

// parseKeys reads a JSON Web Key Set. It omits keys of unknown types, keys for encryption, and keys that are not
// public.
func parseKeys(text []byte) ([]jose.JSONWebKey, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(text, &set); err != nil || set.Keys == nil {
		return nil, tenon.Errorf(tenon.CodeProtocol, "it is no JSON Web Key Set")
	}
	var keys []jose.JSONWebKey
	for _, raw := range set.Keys {
		var key jose.JSONWebKey
		if err := key.UnmarshalJSON(raw); err != nil || !key.IsPublic() || !key.Valid() ||
			key.Use != "" && key.Use != "sig" {
			continue
		}
		if keys = append(keys, key); len(keys) == maxKeys {
			break
		}
	}
	return keys, nil
}
