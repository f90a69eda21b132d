package httpapi

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tenonhq/tenon"
)

const (
	// maxBody bounds the body of a request, in bytes.
	maxBody = 16 << 20
	// maxDepth bounds how deep the JSON of a body is nested.
	maxDepth = 256
	// bodyTime is how long a body may take to arrive where the configuration says
	// nothing else.
	bodyTime = 30 * time.Second
)

// check lets a request pass or says why not: where from, who, what, how much. Leave
// gives back the place among those that are under way.
func (c *call) check() (leave func(), err error) {
	if c.cfg.Guarded {
		if err := c.checkHost(); err != nil {
			return nil, err
		}
		if err := c.checkOrigin(); err != nil {
			return nil, err
		}
	}
	if !c.route.open {
		if c.caller, err = c.who(); err != nil {
			if tenon.ErrorCode(err) == tenon.CodeAuth {
				err = refuse(http.StatusUnauthorized, tenon.CodeAuth, "%w", err)
			}
			return nil, err
		}
		if c.route.owner && !c.caller.Owner {
			return nil, tenon.Errorf(tenon.CodeDenied, "only the owner of this tenon may do this; '%s' is not", c.caller.Principal)
		}
	}
	if c.route.none {
		c.w.Header().Set("Connection", "close") // a body is not read
		return nil, nil
	}
	if err := c.checkLength(); err != nil {
		return nil, err
	}
	g := c.requests
	if c.route.stream {
		g = c.streams
	}
	if !g.enter(c.caller.Principal) {
		return nil, tenon.Errorf(tenon.CodeLimit, "there is too much at a time from '%s'; try again in a moment", c.caller.Principal)
	}
	leave = func() { g.leave(c.caller.Principal) }
	if err := c.readBody(); err != nil {
		return leave, err
	}
	if c.route.open {
		return leave, nil
	}
	return leave, c.checkCredentials()
}

// checkHost refuses a request that reached us under a foreign name, as a page can have
// a browser send it (DNS rebinding).
func (c *call) checkHost() error {
	name := hostname(c.req.Host)
	ip, err := netip.ParseAddr(name)
	switch {
	case name == "localhost" || err == nil && ip.IsLoopback(), slices.ContainsFunc(c.cfg.Hosts, func(h string) bool { return strings.EqualFold(h, name) }), err == nil && slices.Contains(c.cfg.Hosts, "*"):
		return nil
	}
	for _, o := range c.cfg.Origins {
		if u, err := url.Parse(o); err == nil && u.Hostname() == name {
			return nil
		}
	}
	return refuse(http.StatusForbidden, tenon.CodeDenied, "the header Host is no name of this tenon; behind a proxy, add its origin to serve.origins")
}

// hostname is the name of a Host header without its port, in lower case.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.Trim(host, "[]"))
}

// checkOrigin refuses what pages of others send. Who is no browser sends no origin.
func (c *call) checkOrigin() error {
	if site := c.req.Header.Get("Sec-Fetch-Site"); site == "cross-site" && c.req.Header.Get("Origin") == "" && c.req.Header.Get("Sec-Fetch-Mode") != "navigate" {
		return refuse(http.StatusForbidden, tenon.CodeDenied, "a page of another site may not ask")
	}
	for _, o := range c.req.Header.Values("Origin") {
		u, err := url.Parse(o)
		own := err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && strings.EqualFold(u.Host, c.req.Host) && o == u.Scheme+"://"+u.Host
		if !own && !slices.Contains(c.cfg.Origins, o) {
			return refuse(http.StatusForbidden, tenon.CodeDenied, "pages of origin '%s' may not ask; serve.origins names those that may", o)
		}
	}
	return nil
}

// who finds out who sends a request.
func (c *call) who() (Caller, error) {
	if c.cfg.Authenticate == nil {
		return local, nil
	}
	req := c.req
	if token := req.URL.Query().Get("access_token"); token != "" && c.route.stream && c.req.Method == http.MethodGet && req.Header.Get("Authorization") == "" {
		req = req.Clone(req.Context()) // an EventSource of a browser sends no header
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return c.cfg.Authenticate(req)
}

// Tokens authenticates by bearer tokens (RFC 6750): own is that of the local user, the
// others those of principals. An own that is zero is nobody's.
func Tokens(own tenon.Secret, others map[tenon.Principal]tenon.Secret) func(*http.Request) (Caller, error) {
	type entry struct {
		sum    [sha256.Size]byte
		caller Caller
	}
	var entries []entry
	if !own.IsZero() {
		entries = append(entries, entry{sha256.Sum256([]byte(own.Reveal())), Caller{Principal: tenon.PrincipalLocal, Owner: true}})
	}
	for who, token := range others {
		entries = append(entries, entry{sha256.Sum256([]byte(token.Reveal())), Caller{Principal: who}})
	}
	return func(req *http.Request) (Caller, error) {
		scheme, token, _ := strings.Cut(req.Header.Get("Authorization"), " ")
		if !strings.EqualFold(scheme, "Bearer") || token == "" {
			return Caller{}, tenon.Errorf(tenon.CodeAuth, "a bearer token is needed: Authorization: Bearer TOKEN")
		}
		sum := sha256.Sum256([]byte(token))
		found := -1
		for i, e := range entries { // all of them, so that the time says nothing
			if subtle.ConstantTimeCompare(sum[:], e.sum[:]) == 1 {
				found = i
			}
		}
		if found < 0 {
			return Caller{}, tenon.Errorf(tenon.CodeAuth, "the bearer token is not known here")
		}
		return entries[found].caller, nil
	}
}

// checkLength refuses, before anything of it is read, a body that is too large, of
// another type than JSON, or not expected.
func (c *call) checkLength() error {
	kind := c.req.Header.Get("Content-Type")
	there := c.req.ContentLength != 0 && c.req.Body != nil && c.req.Body != http.NoBody
	switch safe := c.req.Method == http.MethodGet || c.req.Method == http.MethodHead; {
	case there && c.req.ContentLength > maxBody:
		return tenon.Errorf(tenon.CodeTooLarge, "the body has more than %d bytes", maxBody)
	case there && safe:
		return tenon.Errorf(tenon.CodeInvalid, "%s takes no body", c.req.Method)
	case there || kind != "" && !safe:
		if t, _, err := mime.ParseMediaType(kind); err != nil || t != "application/json" {
			return refuse(http.StatusUnsupportedMediaType, tenon.CodeInvalid, "the content type must be application/json, not '%s'", kind)
		}
	}
	return nil
}

// readBody reads the body within its bounds of size, time and depth.
func (c *call) readBody() error {
	if c.req.ContentLength == 0 || c.req.Body == nil || c.req.Body == http.NoBody {
		return nil
	}
	control := http.NewResponseController(c.w)
	_ = control.SetReadDeadline(time.Now().Add(c.cfg.BodyTime)) // not every writer has one
	b, err := io.ReadAll(http.MaxBytesReader(c.w, c.req.Body, maxBody))
	if err == nil { // else the rest of the body is given no more time
		_ = control.SetReadDeadline(time.Time{})
	}
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return tenon.Errorf(tenon.CodeTooLarge, "the body has more than %d bytes", maxBody)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return refuse(http.StatusRequestTimeout, tenon.CodeTimeout, "the body did not arrive within %s", c.cfg.BodyTime)
	case err != nil:
		return tenon.Errorf(tenon.CodeInvalid, "the body cannot be read: %w", err)
	case !utf8.Valid(b):
		return tenon.Errorf(tenon.CodeInvalid, "the body is not UTF-8")
	case deeper(b, maxDepth):
		return tenon.Errorf(tenon.CodeInvalid, "the body is nested deeper than %d levels", maxDepth)
	}
	var any json.RawMessage
	if err := json.Unmarshal(b, &any); err != nil && len(b) > 0 {
		return tenon.Errorf(tenon.CodeInvalid, "the body is not one JSON value: %s", err)
	}
	c.body = b
	return nil
}

// deeper reports whether brackets are nested deeper than so many levels.
func deeper(b []byte, levels int) bool {
	depth, text, escaped := 0, false, false
	for _, r := range b {
		switch {
		case escaped:
			escaped = false
		case text:
			escaped, text = r == '\\', r != '"'
		case r == '"':
			text = true
		case r == '{' || r == '[':
			if depth++; depth > levels {
				return true
			}
		case r == '}' || r == ']':
			depth--
		}
	}
	return false
}
