package httpapi

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
)

const (
	// maxBody is the largest body of a request, in bytes.
	maxBody = 16 << 20
	// maxDepth is the deepest nesting of a body's JSON.
	maxDepth = 256
	// bodyTime is the default of [Config.BodyTime].
	bodyTime = 30 * time.Second
)

// check makes all checks before a route: host and origin, authentication, size, load, body, credentials. leave frees
// the request's slot among the concurrent requests; it is nil if no slot was taken.
func (c *call) check() (leave func(), err error) {
	if c.cfg.Guarded {
		if err := c.checkHost(); err != nil {
			return nil, err
		}
		if err := c.checkOrigin(); err != nil {
			return nil, err
		}
		c.allowOrigin()
	}
	if !c.route.is(public) {
		if c.caller, err = c.who(); err != nil {
			if tenon.ErrorCode(err) == tenon.CodeAuth {
				err = refuse(http.StatusUnauthorized, tenon.CodeAuth, "%w", err)
			}
			return nil, err
		}
		if c.route.is(ownerOnly) && !c.caller.Owner {
			return nil, tenon.Errorf(tenon.CodeDenied, "only the owner of this tenon may do this; '%s' is not",
				c.caller.Principal)
		}
	}
	if c.route.is(noBody) {
		c.w.Header().Set("Connection", "close") // the connection cannot be reused, because the body is not read
		return nil, nil
	}
	checkLength := c.checkLength
	if c.route.is(rawBody) {
		checkLength = c.checkRaw
	}
	if err := checkLength(); err != nil {
		return nil, err
	}
	g := c.requests
	if c.route.is(streaming) {
		g = c.streams
	}
	if !g.enter(c.caller.Principal) {
		return nil, tenon.Errorf(tenon.CodeLimit, "'%s' has too many concurrent requests; try again in a moment",
			c.caller.Principal)
	}
	leave = func() { g.leave(c.caller.Principal) }
	if !c.route.is(rawBody) {
		if err := c.readBody(); err != nil {
			return leave, err
		}
	}
	if c.route.is(public) {
		return leave, nil
	}
	return leave, c.checkCredentials()
}

// checkHost refuses a request whose Host header is not a name of this listener. This prevents DNS rebinding: an
// attacker makes the host name of a web page resolve to our address, so that the browser allows the page to read our
// answers.
func (c *call) checkHost() error {
	name, ok := hostname(c.req.Host)
	ip, err := netip.ParseAddr(name)
	switch {
	case !ok:
	case name == "localhost" || err == nil && ip.IsLoopback(), slices.ContainsFunc(c.cfg.Hosts,
		func(h string) bool { return strings.EqualFold(h, name) }), err == nil && slices.Contains(c.cfg.Hosts, "*"):
		return nil
	default:
		for _, o := range c.cfg.Origins {
			if u, err := url.Parse(o); err == nil && u.Hostname() == name {
				return nil
			}
		}
	}
	return refuse(http.StatusForbidden, tenon.CodeDenied, "the header Host is not a name of this tenon; behind a "+
		"proxy, add its origin to serve.origins")
}

// hostname returns the name in a Host header without the port, in lower case. ok is false if the header is empty or its
// port is not a number.
func hostname(host string) (name string, ok bool) {
	switch name, port, err := net.SplitHostPort(host); {
	case err == nil:
		n, err := strconv.Atoi(port)
		return strings.ToLower(name), name != "" && err == nil && n > 0 && n < 1<<16
	case strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]"):
		host = host[1 : len(host)-1]
	}
	return strings.ToLower(host), host != ""
}

// checkOrigin refuses requests from web pages of other origins. Browsers send the header Origin with every request that
// could change something or whose answer the page could read. Other programs send none. A page from another port of
// the same machine has another origin, too.
func (c *call) checkOrigin() error {
	origins := c.req.Header.Values("Origin")
	if len(origins) > 1 {
		return refuse(http.StatusForbidden, tenon.CodeDenied, "the request has %d Origin headers; a browser "+
			"sends one", len(origins))
	}
	site := c.req.Header.Get("Sec-Fetch-Site")
	if len(origins) == 0 && (site == "cross-site" || site == "same-site") &&
		c.req.Header.Get("Sec-Fetch-Mode") != "navigate" {
		return refuse(http.StatusForbidden, tenon.CodeDenied, "pages of other sites may not send requests")
	}
	for _, o := range origins {
		if !c.isOwnOrigin(o) && !slices.Contains(c.cfg.Origins, o) && !c.isSignInOrigin(o) {
			return refuse(http.StatusForbidden, tenon.CodeDenied, "pages of origin '%s' may not send requests; "+
				"serve.origins lists the allowed origins", o)
		}
	}
	return nil
}

// isOwnOrigin reports whether an origin has the scheme, host and port to which the request was sent. It returns false
// for the origin of a proxy that terminates TLS. Such an origin must be listed in [Config.Origins].
func (c *call) isOwnOrigin(o string) bool {
	scheme := "http"
	if c.req.TLS != nil {
		scheme = "https"
	}
	u, err := url.Parse(o)
	return err == nil && u.Scheme == scheme && u.Host != "" && strings.EqualFold(u.Host, c.req.Host) &&
		o == u.Scheme+"://"+u.Host
}

// who authenticates the request and returns its caller.
func (c *call) who() (Caller, error) {
	if c.cfg.Authenticate == nil {
		return local, nil
	}
	req := c.req
	if token := req.URL.Query().Get("access_token"); token != "" && c.route.is(streaming) && c.route.api != MCP &&
		c.req.Method == http.MethodGet && req.Header.Get("Authorization") == "" {
		req = req.Clone(req.Context()) // a browser's EventSource cannot set headers
		req.Header.Set("Authorization", "Bearer "+token)
	}
	caller, err := c.authenticate(req)
	if o := c.oauth(); err != nil && o != nil {
		caller, err = c.accessToken(o, err)
	}
	var known *tenon.Error
	if err != nil && !errors.As(err, &known) {
		err = tenon.Errorf(tenon.CodeAuth, "%w", err)
	}
	switch {
	case err != nil:
	case caller.Principal == "": // it must not become the local user, or see the runs of everybody
		err = tenon.Errorf(tenon.CodeAuth, "the authentication of this server named no principal for the request")
	case caller.Principal == tenon.PrincipalLocal && !caller.self: // it would decide the program's approvals
		c.h.Service().Info().Logger.Warn("a request is refused, because its user has the name of the program "+
			"itself: return httpapi.User with another name, such as \"user:\" and the name, or httpapi.LocalUser if "+
			"the sender is the person who runs the program", "principal", string(caller.Principal))
		err = tenon.Errorf(tenon.CodeAuth, "no user of this server can have the name '%s', which is reserved; sign in "+
			"with another name", caller.Principal)
	}
	return caller, err
}

// authenticate calls [Config.Authenticate], which is code of the program. A panic in it fails the request.
func (c *call) authenticate(req *http.Request) (caller Caller, err error) {
	defer func() {
		p := recover()
		switch {
		case p == nil:
		case p == http.ErrAbortHandler: // which ends the connection, as in every handler
			panic(p)
		default:
			c.h.Service().Info().Logger.Error("a function of the program panicked", "function", "Authenticate",
				"panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			caller, err = Caller{}, tenon.Errorf(tenon.CodeInternal, "the authentication of this server failed; see "+
				"its log")
		}
	}()
	return c.cfg.Authenticate(req)
}

// Tokens returns a function for [Config.Authenticate] that checks bearer tokens (RFC 6750). own is the token of the
// local user; if zero, the local user has none. others are the tokens of the other principals. A token of a principal
// with the name "local" is refused, as in serve.auth.tokens.
func Tokens(own tenon.Secret, others map[tenon.Principal]tenon.Secret) func(*http.Request) (Caller, error) {
	type entry struct {
		sum    [sha256.Size]byte
		caller Caller
	}
	var entries []entry
	if !own.IsZero() {
		entries = append(entries, entry{sha256.Sum256([]byte(own.Reveal())), LocalUser()})
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
		for i, e := range entries { // compare all entries, so that the duration reveals nothing
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

// checkLength refuses a body by its headers, before it is read: a body that is too large, that is not JSON, or that
// the method does not allow.
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
			return refuse(http.StatusUnsupportedMediaType, tenon.CodeInvalid,
				"the content type must be application/json, not '%s'", kind)
		}
	}
	return nil
}

// readBody reads the body into c.body and checks it. Size, time and nesting are limited.
func (c *call) readBody() error {
	if c.req.ContentLength == 0 || c.req.Body == nil || c.req.Body == http.NoBody {
		return nil
	}
	control := http.NewResponseController(c.w)
	_ = control.SetReadDeadline(time.Now().Add(c.cfg.BodyTime)) // fails only if the writer has no deadlines
	b, err := io.ReadAll(http.MaxBytesReader(c.w, c.req.Body, maxBody))
	if err == nil { // after an error the deadline stays, so that the server does not wait for the rest of the body
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
	case len(b) == 0:
		return nil
	}
	if err := checkBody(b); err != nil {
		return err
	}
	c.body = b
	return nil
}

// checkBody checks that a body is one JSON value within the limits.
func checkBody(b []byte) error {
	err := rawjson.Check(b, rawjson.Rules{Depth: maxDepth, UTF8: true})
	var syntax *rawjson.SyntaxError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &syntax) && syntax.Reason == rawjson.ReasonUTF8:
		return tenon.Errorf(tenon.CodeInvalid, "the body is not UTF-8")
	case errors.As(err, &syntax) && syntax.Reason == rawjson.ReasonDeep:
		return tenon.Errorf(tenon.CodeInvalid, "the body is nested deeper than %d levels", maxDepth)
	}
	var value json.RawMessage
	if plain := json.Unmarshal(b, &value); plain != nil { // its message names the character
		err = plain
	}
	return tenon.Errorf(tenon.CodeInvalid, "the body is not one JSON value: %s", err)
}
