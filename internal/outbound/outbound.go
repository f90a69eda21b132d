// Package outbound sends the HTTP requests that a configuration describes, for example for http tools. A
// model fills in parts of them. The model's input must not redirect the request, and a response must not lead
// it into the private network of the host.
//
// By default, it does not connect to private addresses (RFC 1918, 4193), nor to loopback, link-local or
// reserved ones, whatever name resolved to them. The configuration can allow them, or contain such an address
// itself. The check happens when the connection is made, so a name that resolves differently the second time
// has no effect. Proxies of the environment are not used, because they would connect to unchecked addresses.
//
// Redirects are followed within one origin. Redirects to another origin are followed only for GET and HEAD,
// without the headers of the request, and never from https to http. Responses and times are bounded.
//
// Package host builds tools on it. The package itself does not depend on tools.
package outbound

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tenonhq/tenon"
)

// Limits of a request.
const (
	MaxBody      = 4 << 20 // bytes of a response, after decompression
	maxRedirects = 5
	maxHeader    = 1 << 20
	dialTimeout  = 10 * time.Second
)

// Request describes a request.
type Request struct {
	Method  string
	URL     string // http or https
	Header  http.Header
	Body    []byte
	Private bool // allow private addresses, also after redirects
	Public  bool // refuse private addresses, even if URL contains one
	// Why is the reason for Public in errors. If empty, it is that policy.urls.allow_private is false.
	Why string
	// Max bounds the response in bytes, after decompression. If 0, it is [MaxBody].
	Max int
}

// Response is the response to a request.
type Response struct {
	Status int
	Text   string // such as "404 Not Found"
	Type   string // media type with its parameters
	Body   []byte
}

// Client sends requests. It is safe for concurrent use. Use [New]; the zero value is not usable.
type Client struct {
	guarded, open *http.Transport
}

// New returns a client.
func New() *Client {
	transport := func(control func(network, address string, c syscall.RawConn) error) *http.Transport {
		d := &net.Dialer{Timeout: dialTimeout, Control: control}
		return &http.Transport{DialContext: d.DialContext, ForceAttemptHTTP2: true, TLSHandshakeTimeout: dialTimeout,
			MaxResponseHeaderBytes: maxHeader, MaxIdleConnsPerHost: 4, MaxIdleConns: 32,
			IdleConnTimeout: 30 * time.Second}
	}
	check := func(_, address string, _ syscall.RawConn) error { return CheckAddress(address) }
	return &Client{guarded: transport(check), open: transport(nil)}
}

// Close closes idle connections.
func (c *Client) Close() {
	c.guarded.CloseIdleConnections()
	c.open.CloseIdleConnections()
}

// errPrivate is the reason for refusing a private address.
var errPrivate = errors.New("is a private address")

// CheckAddress returns an error for an address, IP:port, that is not public: private, loopback, link-local or
// reserved. It is called before each connection.
func CheckAddress(address string) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%s is not an address: %w", address, err)
	}
	if !isPublic(ap.Addr()) {
		return fmt.Errorf("%s %w", ap.Addr(), errPrivate)
	}
	return nil
}

// reserved lists networks that are not public and that package netip does not recognize: RFC 6890, 6598, 2544, 6052,
// 3056, 4380.
var reserved = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"),
	netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("2001::/32"), netip.MustParsePrefix("2001:db8::/32"),
	netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("100::/64"), netip.MustParsePrefix("fec0::/10"),
}

func isPublic(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if !a.IsGlobalUnicast() || a.IsPrivate() || a.IsLoopback() {
		return false
	}
	return !slices.ContainsFunc(reserved, func(p netip.Prefix) bool { return p.Contains(a) })
}

// NamesPrivate reports whether the host of a URL is a literal address that is not public, or localhost.
func NamesPrivate(u *url.URL) bool {
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && !isPublic(a)
}

// Do sends the request and returns the response with any status. Errors: invalid (the URL), denied (a refused address
// or redirect), unreachable, timeout, unknown_outcome (the request may have taken effect), too_large, cancelled.
func (c *Client) Do(ctx context.Context, r Request) (*Response, error) {
	u, err := url.Parse(r.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		return nil, tenon.Errorf(tenon.CodeInvalid,
			"%s is not a valid request URL: it must be an http or https URL without a user", tenon.Visible(r.URL))
	}
	var sent atomic.Bool
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }})
	req, err := http.NewRequestWithContext(traced, r.Method, u.String(), bytes.NewReader(r.Body))
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeInvalid, "%s: %w", host(u), err)
	}
	req.Header = r.Header.Clone()
	if req.Header == nil {
		req.Header = http.Header{}
	}
	req.Host = cmp.Or(req.Header.Get("Host"), req.Host)
	literal := NamesPrivate(u) && !r.Public // an address in the URL itself was written on purpose
	client := &http.Client{Transport: c.guarded, CheckRedirect: func(next *http.Request, via []*http.Request) error {
		return redirect(next, via, literal && !r.Private)
	}}
	if literal || r.Private && !r.Public {
		client.Transport = c.open
	}
	resp, err := client.Do(req)
	if errors.Is(err, errPrivate) && r.Public {
		return nil, tenon.Errorf(tenon.CodeDenied,
			"%s: %w; %s", host(u), errors.Unwrap(err), cmp.Or(r.Why, "policy.urls.allow_private is false"))
	}
	if err != nil {
		return nil, failed(ctx, u, r.Method, sent.Load(), err)
	}
	defer func() { _ = resp.Body.Close() }()
	most := cmp.Or(r.Max, MaxBody)
	body, err := io.ReadAll(io.LimitReader(resp.Body, int64(most)+1))
	switch {
	case err != nil:
		return nil, failed(ctx, u, r.Method, true, err)
	case len(body) > most:
		return nil, tenon.Errorf(tenon.CodeTooLarge, "the response of %s exceeds %d bytes", host(u), most)
	}
	return &Response{Status: resp.StatusCode, Text: resp.Status, Type: resp.Header.Get("Content-Type"), Body: body}, nil
}

// errRedirect is the reason for refusing a redirect.
type errRedirect string

func (e errRedirect) Error() string { return string(e) }

// redirect decides whether a redirect may be followed, and removes headers that must not be sent to another origin. If
// stay is set, the origin must not change.
func redirect(next *http.Request, via []*http.Request, stay bool) error {
	first := via[0]
	switch {
	case len(via) > maxRedirects:
		return errRedirect(fmt.Sprintf("redirect number %d", maxRedirects+1))
	case next.URL.User != nil:
		return errRedirect("a redirect to a URL with a user")
	case next.URL.Scheme != "http" && next.URL.Scheme != "https":
		return errRedirect("a redirect to " + tenon.Visible(next.URL.Scheme))
	case first.URL.Scheme == "https" && next.URL.Scheme == "http":
		return errRedirect("a redirect from https to http")
	}
	if origin(next.URL) == origin(first.URL) {
		return nil
	}
	if stay || next.Method != http.MethodGet && next.Method != http.MethodHead {
		return errRedirect("a redirect to " + host(next.URL))
	}
	accept := next.Header.Get("Accept")
	next.Header = http.Header{}
	next.Host = ""
	if accept != "" {
		next.Header.Set("Accept", accept)
	}
	return nil
}

// origin returns scheme, host and port of a URL.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}

// host returns the part of a URL that errors show. It omits the query, which may contain secrets.
func host(u *url.URL) string { return u.Scheme + "://" + tenon.Visible(u.Host) }

// failed returns the error of a request without a response.
func failed(ctx context.Context, u *url.URL, method string, sent bool, err error) error {
	var refused errRedirect
	cause := errors.Unwrap(err)
	if cause == nil {
		cause = err
	}
	timeout := false
	if n := (net.Error)(nil); errors.As(err, &n) {
		timeout = n.Timeout()
	}
	switch {
	case errors.As(err, &refused):
		return tenon.Errorf(tenon.CodeDenied, "%s: %s is not followed", host(u), refused)
	case errors.Is(err, errPrivate):
		return tenon.Errorf(tenon.CodeDenied,
			"%s: %w; request.allow_private: true allows it", host(u), cause)
	case sent && method != http.MethodGet && method != http.MethodHead:
		return tenon.Errorf(tenon.CodeUnknown, "%s did not respond to a request that was sent: %w", host(u), cause)
	case ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled):
		return tenon.Errorf(tenon.CodeCancelled, "%s: %w", host(u), context.Cause(ctx))
	case timeout || ctx.Err() != nil:
		return tenon.Errorf(tenon.CodeTimeout, "%s did not respond in time", host(u))
	}
	return tenon.Errorf(tenon.CodeUnreachable, "%s: %w", host(u), cause)
}
