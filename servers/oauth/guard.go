package oauth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/tenonhq/tenon"
)

const (
	maxDocument    = 256 << 10 // bytes of a document or a token answer
	requestTimeout = 15 * time.Second
	maxRedirects   = 3
)

// reach is the part of the network to which an address belongs.
type reach int

const (
	public reach = iota
	loopback
	private
	linkLocal
	never // addresses to which nobody connects on purpose
)

func (r reach) String() string {
	return [...]string{"public", "loopback", "private", "link-local", "reserved"}[r]
}

var (
	carrier = netip.MustParsePrefix("100.64.0.0/10") // RFC 6598
	nat64   = netip.MustParsePrefix("64:ff9b::/96")  // RFC 6052: IPv6 addresses that contain an IPv4 address
	sixTo4  = netip.MustParsePrefix("2002::/16")     // RFC 3056: also with an IPv4 address
	// reserved contains the special blocks of RFC 6890 that the standard library does not recognize.
	reserved = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("192.0.0.0/24"),
		netip.MustParsePrefix("192.0.2.0/24"),
		netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("198.51.100.0/24"),
		netip.MustParsePrefix("203.0.113.0/24"),
		netip.MustParsePrefix("240.0.0.0/4"), netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("::/96"),
		netip.MustParsePrefix("fec0::/10")}
)

func reachOf(ip netip.Addr) reach {
	ip = ip.WithZone("").Unmap()
	b := ip.As16()
	if ip.Is6() {
		switch {
		case nat64.Contains(ip):
			return reachOf(netip.AddrFrom4([4]byte(b[12:16])))
		case sixTo4.Contains(ip):
			return reachOf(netip.AddrFrom4([4]byte(b[2:6])))
		}
	}
	switch {
	case !ip.IsValid() || ip.IsUnspecified() || ip.IsMulticast():
		return never
	case ip.IsLoopback():
		return loopback
	case ip.IsPrivate() || carrier.Contains(ip):
		return private
	case ip.IsLinkLocalUnicast():
		return linkLocal
	}
	for _, p := range reserved {
		if p.Contains(ip) {
			return never
		}
	}
	return public
}

// guard requests the URLs that a server names. The decisive checks are made on the address that is dialed, so that
// neither a host name nor a redirect can bypass them.
type guard struct {
	server *url.URL          // the MCP server
	named  map[string]bool   // host:port of the URLs in the configuration
	peer   func() netip.Addr // the address of the MCP server; invalid if not known
	client *http.Client
	proxy  func(*http.Request) (*url.URL, error)
}

func newGuard(server *url.URL, named []string, peer func() netip.Addr) *guard {
	g := &guard{server: server, named: map[string]bool{}, peer: peer, proxy: http.ProxyFromEnvironment}
	for _, text := range named {
		if u, err := url.Parse(text); err == nil && u.Host != "" {
			g.named[hostPort(u)] = true
		}
	}
	direct := g.transport(nil)
	proxied := g.transport(func(r *http.Request) (*url.URL, error) { return g.proxy(r) })
	g.client = &http.Client{Timeout: requestTimeout,
		Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			if err := g.check(r.URL); err != nil {
				return nil, err
			}
			if p, err := g.proxy(r); err != nil || p == nil {
				return direct.RoundTrip(r)
			}
			// The proxy dials, so only the URL can be checked.
			if ip, err := netip.ParseAddr(r.URL.Hostname()); err == nil {
				if err := g.allow(hostPort(r.URL), ip); err != nil {
					return nil, err
				}
			}
			return proxied.RoundTrip(r)
		}), CheckRedirect: func(r *http.Request, via []*http.Request) error {
			// net/http would turn a POST into a GET without its body after a 301, 302 or 303. An endpoint that answers
			// so is not the configured one, and a person has to correct its URL.
			if r.Method != http.MethodGet || via[0].Method != http.MethodGet || len(via) > maxRedirects {
				return http.ErrUseLastResponse
			}
			return nil // transport and RoundTrip check each redirect
		}}
	return g
}

type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// transport keeps no idle connections, because a sign-in makes only a few requests.
func (g *guard) transport(proxy func(*http.Request) (*url.URL, error)) *http.Transport {
	t := &http.Transport{Proxy: proxy, DisableKeepAlives: true, TLSHandshakeTimeout: 10 * time.Second,
		MaxResponseHeaderBytes: 64 << 10}
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		d := net.Dialer{Timeout: 10 * time.Second}
		if proxy == nil {
			d.ControlContext = func(_ context.Context, _, to string, _ syscall.RawConn) error {
				at, err := netip.ParseAddrPort(to)
				if err != nil {
					return err
				}
				return g.allow(address, at.Addr())
			}
		}
		return d.DialContext(ctx, network, address)
	}
	return t
}

// blocked is the error of an address that the guard refuses.
type blocked struct{ text string }

func (b *blocked) Error() string { return b.text }

// allow checks the address of a connection. It allows public addresses, addresses in the same part of the network as
// the MCP server, and hosts that the configuration names.
func (g *guard) allow(host string, ip netip.Addr) error {
	r := reachOf(ip)
	if r == public || g.named[host] || r != never && g.peer().IsValid() && r == reachOf(g.peer()) {
		return nil
	}
	return &blocked{fmt.Sprintf("%s has the %s address %s, where the server itself is not; name the authorization "+
		"server under auth.issuer if it is right", host, r, ip)}
}

// check checks a URL by the rules that do not need its address.
func (g *guard) check(u *url.URL) error {
	switch {
	case u.Hostname() == "" || u.User != nil || u.Fragment != "":
		return &blocked{fmt.Sprintf("%s is no plain http URL", quote(u.Redacted()))}
	case u.Scheme == "https", u.Scheme == "http" && (isLoopback(u.Hostname()) || sameOrigin(u, g.server)):
		return nil
	case u.Scheme == "http":
		return &blocked{fmt.Sprintf("%s must use https", quote(u.Redacted()))}
	}
	return &blocked{fmt.Sprintf("%s has a scheme that is neither https nor http", quote(u.Redacted()))}
}

func (g *guard) checkText(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, &blocked{fmt.Sprintf("%s is no URL", quote(text))}
	}
	return u, g.check(u)
}

// get reads a JSON document. found is false if the server has no such document.
func (g *guard) get(ctx context.Context, address string, into any) (found bool, err error) {
	u, err := g.checkText(address)
	if err != nil {
		return false, wrapf(tenon.CodeAuth, err, "%w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return false, wrapf(tenon.CodeProtocol, err, "%s cannot be asked", quote(address))
	}
	req.Header.Set("Accept", "application/json")
	status, kind, body, err := g.do(req)
	switch {
	case err != nil:
		return false, err
	case status >= 400 && status < 500 || status == http.StatusOK && kind == "text/html":
		return false, nil // servers often send a page instead of status 404
	case status != http.StatusOK:
		return false, tenon.Errorf(tenon.CodeUnreachable, "%s answers HTTP %d", address, status)
	case json.Unmarshal(body, into) != nil:
		return false, tenon.Errorf(tenon.CodeProtocol, "%s is no JSON document as it should be", address)
	}
	return true, nil
}

// do sends a request and reads the response, up to maxDocument bytes.
func (g *guard) do(req *http.Request) (status int, kind string, body []byte, err error) {
	req.Header.Set("User-Agent", "tenon")
	resp, err := g.client.Do(req)
	where := req.URL.Scheme + "://" + req.URL.Host + req.URL.Path
	if err != nil {
		var b *blocked
		var ue *url.Error
		switch {
		case errors.As(err, &b):
			return 0, "", nil, wrapf(tenon.CodeAuth, err, "%s is not asked: %s", where, b.text)
		case req.Context().Err() != nil:
			return 0, "", nil, req.Context().Err()
		case errors.As(err, &ue): // the error's text contains the whole URL
			err = ue.Err
		}
		return 0, "", nil, wrapf(tenon.CodeUnreachable, err, "%s cannot be reached: %s", where, err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxDocument+1))
	switch {
	case err != nil:
		return 0, "", nil, wrapf(tenon.CodeUnreachable, err, "the answer of %s was cut off: %s", where, err)
	case len(body) > maxDocument:
		return 0, "", nil, tenon.Errorf(tenon.CodeTooLarge, "the answer of %s is over %d bytes", where, maxDocument)
	}
	kind, _, _ = mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return resp.StatusCode, kind, bytes.TrimPrefix(body, []byte("\ufeff")), nil
}

// hostPort returns host:port, with the default port of the scheme if the URL has none.
func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}

func sameOrigin(a, b *url.URL) bool {
	return strings.EqualFold(a.Scheme, b.Scheme) && strings.EqualFold(hostPort(a), hostPort(b))
}

// isLoopback reports whether a host name or address means this machine.
func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.Unmap().IsLoopback()
}

// wrapf returns a [tenon.Error] with a cause.
func wrapf(code tenon.Code, cause error, format string, args ...any) error {
	return &tenon.Error{Code: code, Message: fmt.Errorf(format, args...).Error(), Err: cause}
}

// quote puts an untrusted text into single quotes, shortened and with unprintable characters escaped.
func quote(text string) string {
	q := fmt.Sprintf("%+q", text[:min(len(text), 200)])
	return "'" + q[1:len(q)-1] + "'"
}
