package oauth

import (
	"net/http"
	"slices"
	"strings"
)

// challenge is the content of a WWW-Authenticate header for bearer tokens (RFC 6750, RFC 9728 section 5.1).
type challenge struct {
	Metadata string   // URL of the protected resource's metadata
	Scope    []string // nil: the header has no scope
	Error    string
}

// maxChallenge is the maximum number of bytes that are read of each header.
const maxChallenge = 16 << 10

// bearer reads the first Bearer challenge of an answer; ok is false if there is none. It skips unreadable parts,
// because a malformed header of a server must not prevent the sign-in.
func bearer(h http.Header) (c challenge, ok bool) {
	for _, v := range h.Values("WWW-Authenticate") {
		for _, p := range parseChallenges(v[:min(len(v), maxChallenge)]) {
			if p.scheme != "bearer" {
				continue
			}
			if m := p.params["resource_metadata"]; m != "" && c.Metadata == "" {
				c.Metadata = m
			}
			if s, said := p.params["scope"]; said && c.Scope == nil {
				c.Scope = scopes(s)
			}
			if e := p.params["error"]; e != "" && c.Error == "" {
				c.Error = e
			}
			ok = true
		}
	}
	return c, ok
}

type parsed struct {
	scheme string // lower case
	params map[string]string
}

// parseChallenges reads the challenges of one header (RFC 9110, section 11.6.1):
// a word that is followed by = is a parameter of the scheme before it.
func parseChallenges(h string) []parsed {
	var list []parsed
	skip := func(i int, set string) int {
		for i < len(h) && strings.IndexByte(set, h[i]) >= 0 {
			i++
		}
		return i
	}
	for i := skip(0, " \t,"); i < len(h); i = skip(i, " \t,") {
		start := i
		for i < len(h) && strings.IndexByte(" \t,=\"", h[i]) < 0 {
			i++
		}
		word := strings.ToLower(h[start:i])
		if word == "" { // malformed
			i++
			continue
		}
		if j := skip(i, " \t"); j >= len(h) || h[j] != '=' || len(list) == 0 {
			list = append(list, parsed{word, map[string]string{}})
			continue
		} else {
			i = skip(j+1, " \t")
		}
		var value string
		value, i = readValue(h, i)
		params := list[len(list)-1].params
		if value != "" {
			if _, twice := params[word]; !twice {
				params[word] = value
			}
		}
	}
	return list
}

// readValue reads a token or a quoted string, and returns the position after it.
func readValue(h string, i int) (string, int) {
	if i >= len(h) || h[i] != '"' {
		start := i
		for i < len(h) && strings.IndexByte(" \t,", h[i]) < 0 {
			i++
		}
		return h[start:i], i
	}
	var b strings.Builder
	for i++; i < len(h) && h[i] != '"'; i++ {
		if h[i] == '\\' && i+1 < len(h) {
			i++
		}
		b.WriteByte(h[i])
	}
	return b.String(), i + 1
}

// maxScopes is the maximum number of scopes that are accepted from a server.
const maxScopes = 200

// scopes parses a space-separated list (RFC 6749, section 3.3). The result is never nil.
func scopes(text string) []string { return union(nil, strings.Fields(text)) }

// union returns the valid scopes of both lists, in order and without duplicates.
func union(a, b []string) []string {
	list := []string{}
	for _, s := range append(slices.Clone(a), b...) {
		ok := s != "" && len(s) <= 500 &&
			!strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '"' || r == '\\' })
		if ok && !slices.Contains(list, s) && len(list) < maxScopes {
			list = append(list, s)
		}
	}
	return list
}
