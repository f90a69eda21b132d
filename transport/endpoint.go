package transport

import (
	"encoding/base64"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tenonhq/tenon"
)

// endpoint parses a URL of the scheme or its TLS variant. It refuses URLs that cannot be dialed. Its error does not
// contain the error of package url, which may quote a password.
func endpoint(text, scheme string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.Scheme != scheme && u.Scheme != scheme+"s" {
		return nil, tenon.Errorf(tenon.CodeConfig, "%s is not a %s or %ss URL", quote(MaskURL(text)), scheme, scheme)
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return nil, tenon.Errorf(tenon.CodeConfig, "%s has a port outside 1 to 65535", quote(MaskURL(text)))
		}
	}
	return u, nil
}

// header returns the headers of every request. These are the user's headers, which it checks, and the login in the URL
// as Basic credentials. It removes the login from the URL.
func header(u *url.URL, own map[string]string) (http.Header, error) {
	h := http.Header{"User-Agent": {"tenon"}}
	for _, name := range slices.Sorted(maps.Keys(own)) {
		if err := checkHeader(name, own[name]); err != nil {
			return nil, err
		}
		h[http.CanonicalHeaderKey(name)] = []string{own[name]}
	}
	if u.User != nil {
		if h["Authorization"] == nil {
			password, _ := u.User.Password()
			h["Authorization"] = []string{"Basic " +
				base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password))}
		}
		u.User = nil
	}
	return h, nil
}

// Network returns the HTTP transport of the connections. It is for requests to a server that are not MCP messages. It
// follows no redirects. admit works as in [HTTPConfig].
func Network(admit func(address string) error) *http.Transport { return network(1, admit) }

// network returns a connection pool that bounds the header of a server's response.
func network(concurrency int, admit func(address string) error) *http.Transport {
	d := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
	proxy := http.ProxyFromEnvironment
	if admit != nil {
		proxy = nil // a proxy would connect to addresses that admit cannot check
		d.Control = func(_, address string, _ syscall.RawConn) error { return admit(address) }
	}
	return &http.Transport{
		Proxy:               proxy,
		DialContext:         d.DialContext,
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: concurrency, MaxIdleConns: concurrency,
		IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: 10 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
	}
}

// reserved lists the headers that the connection sets itself.
var reserved = []string{"Connection", "Content-Length", "Host", "Mcp-Session-Id", "Transfer-Encoding"}

// checkHeader returns an error for a user's header that cannot be sent (RFC 9110, section 5), or that the connection
// sets itself. The error never contains the value, which may be a secret.
func checkHeader(name, value string) error {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune("\"(),/:;<=>?@[\\]{}", r)
	}) {
		return tenon.Errorf(tenon.CodeInvalid, "%s is not a valid header name", quote(name))
	}
	if name := http.CanonicalHeaderKey(name); slices.Contains(reserved, name) {
		return tenon.Errorf(tenon.CodeInvalid, "header '%s' is set by the connection itself; remove it", name)
	}
	for i := range len(value) {
		switch c := value[i]; {
		case c == '\r' || c == '\n':
			return tenon.Errorf(tenon.CodeInvalid,
				"the value of header '%s' contains a line break, which HTTP forbids; "+
					"if it comes from a file, remove the line break at its end", name)
		case c < ' ' && c != '\t' || c == 0x7f:
			return tenon.Errorf(tenon.CodeInvalid,
				"the value of header '%s' contains a control character, which HTTP forbids", name)
		}
	}
	return nil
}

// quote puts text into single quotes and escapes characters that cannot be shown.
func quote(text string) string {
	q := strconv.QuoteToGraphic(text)
	return "'" + q[1:len(q)-1] + "'"
}
