// Package outbound makes the HTTP requests that a configuration describes, such as
// those of http tools, on behalf of a model that fills in parts of them. What the
// model writes must not lead the request elsewhere, and what answers must not lead
// it into the network of whoever runs tenon.
//
// An address that is private (RFC 1918, 4193), of this machine, link-local or
// reserved is not connected to, whatever name led to it, unless the configuration
// itself names such an address or allows them. That is looked at when the
// connection is made, so that a name that means something else the second time
// does not help. Proxies of the environment are not used: they would connect
// unseen.
//
// Redirects are followed within one origin; to another one only for GET and HEAD,
// without the headers of the request, and never from https to http. Answers and
// times are bounded.
//
// It stands below host, which makes tools of it; it knows nothing of tools.
package outbound

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tenonhq/tenon"
)

// The bounds of a request.
const (
	MaxBody      = 4 << 20 // bytes of an answer, unpacked
	maxRedirects = 5
	maxHeader    = 1 << 20
	dialTimeout  = 10 * time.Second
)

// Request is what is sent.
type Request struct {
	Method  string
	URL     string // http or https
	Header  http.Header
	Body    []byte
	Private bool // private addresses may be connected to, after redirects too
	Public  bool // private addresses are not connected to, not even one that URL itself names
}

// Response is what came back.
type Response struct {
	Status int
	Text   string // such as "404 Not Found"
	Type   string // media type with its parameters
	Body   []byte
}

// Client makes requests. It is safe for concurrent use; its zero value is not ready.
type Client struct {
	guarded, open *http.Transport
}

// New returns a client.
func New() *Client {
	transport := func(control func(network, address string, c syscall.RawConn) error) *http.Transport {
		d := &net.Dialer{Timeout: dialTimeout, Control: control}
		return &http.Transport{DialContext: d.DialContext, ForceAttemptHTTP2: true, TLSHandshakeTimeout: dialTimeout,
			MaxResponseHeaderBytes: maxHeader, MaxIdleConnsPerHost: 4, MaxIdleConns: 32, IdleConnTimeout: 30 * time.Second}
	}
	return &Client{guarded: transport(func(_, address string, _ syscall.RawConn) error { return CheckAddress(address) }), open: transport(nil)}
}

// Close gives up the connections that wait for further requests.
func (c *Client) Close() {
	c.guarded.CloseIdleConnections()
	c.open.CloseIdleConnections()
}

// errPrivate is the reason why an address is not connected to.
var errPrivate = errors.New("is a private address")

// CheckAddress refuses an address, IP:port, that is not public: private, of this machine,
// link-local or reserved. It is what looks at a connection before it is made.
func CheckAddress(address string) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%s is no address: %w", address, err)
	}
	if !isPublic(ap.Addr()) {
		return fmt.Errorf("%s %w", ap.Addr(), errPrivate)
	}
	return nil
}

// reserved are the networks that are not public beside those that package netip
// knows: RFC 6890, 6598, 2544, 6052, 3056, 4380.
var reserved = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("240.0.0.0/4"), netip.MustParsePrefix("64:ff9b::/96"),
	netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("2001::/32"), netip.MustParsePrefix("2001:db8::/32"),
	netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("100::/64"), netip.MustParsePrefix("fec0::/10"),
}

func isPublic(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if !a.IsGlobalUnicast() || a.IsPrivate() || a.IsLoopback() {
		return false
	}
	for _, p := range reserved {
		if p.Contains(a) {
			return false
		}
	}
	return true
}

// NamesPrivate reports whether a URL itself names an address that is not public.
func NamesPrivate(u *url.URL) bool {
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && !isPublic(a)
}

// Do sends the request and reads the answer, whatever its status. Errors: invalid
// (the URL), denied (an address that must not be connected to, a redirect that must
// not be followed), unreachable, timeout, unknown_outcome (it may have taken
// effect), too_large, cancelled.
func (c *Client) Do(ctx context.Context, r Request) (*Response, error) {
	u, err := url.Parse(r.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		return nil, tenon.Errorf(tenon.CodeInvalid, "%s is no address of a request: it has to be a http or https URL without a user", tenon.Visible(r.URL))
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
	if h := req.Header.Get("Host"); h != "" {
		req.Host = h
	}
	literal := NamesPrivate(u) && !r.Public // whoever wrote it means it
	client := &http.Client{Transport: c.guarded, CheckRedirect: func(next *http.Request, via []*http.Request) error {
		return redirect(next, via, literal && !r.Private)
	}}
	if literal || r.Private && !r.Public {
		client.Transport = c.open
	}
	resp, err := client.Do(req)
	if errors.Is(err, errPrivate) && r.Public {
		return nil, tenon.Errorf(tenon.CodeDenied, "%s: %w, which is not connected to: policy.urls.allow_private is false", host(u), errors.Unwrap(err))
	}
	if err != nil {
		return nil, failed(ctx, u, r.Method, sent.Load(), err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, MaxBody+1))
	switch {
	case err != nil:
		return nil, failed(ctx, u, r.Method, true, err)
	case len(body) > MaxBody:
		return nil, tenon.Errorf(tenon.CodeTooLarge, "%s answers with more than %d bytes", host(u), MaxBody)
	}
	return &Response{Status: resp.StatusCode, Text: resp.Status, Type: resp.Header.Get("Content-Type"), Body: body}, nil
}

// errRedirect is the reason why a redirect is not followed.
type errRedirect string

func (e errRedirect) Error() string { return string(e) }

// redirect looks whether a redirect may be followed, and takes off what must not go
// along. Stay says that the origin must not change.
func redirect(next *http.Request, via []*http.Request, stay bool) error {
	first := via[0]
	switch {
	case len(via) > maxRedirects:
		return errRedirect(fmt.Sprintf("redirect %d in a row", maxRedirects+1))
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
	if next.Host = ""; accept != "" {
		next.Header.Set("Accept", accept)
	}
	return nil
}

// origin is scheme, host and port.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}

// host is what errors name: a query may hold what nobody should read.
func host(u *url.URL) string { return u.Scheme + "://" + tenon.Visible(u.Host) }

// failed explains why there is no answer.
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
		return tenon.Errorf(tenon.CodeDenied, "%s: %w, which is not connected to; request.allow_private: true allows it", host(u), cause)
	case sent && method != http.MethodGet && method != http.MethodHead:
		return tenon.Errorf(tenon.CodeUnknown, "%s gave no answer to a request that was sent: %w", host(u), cause)
	case ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled):
		return tenon.Errorf(tenon.CodeCancelled, "%s: %w", host(u), context.Cause(ctx))
	case timeout || ctx.Err() != nil:
		return tenon.Errorf(tenon.CodeTimeout, "%s did not answer in time", host(u))
	}
	return tenon.Errorf(tenon.CodeUnreachable, "%s: %w", host(u), cause)
}
