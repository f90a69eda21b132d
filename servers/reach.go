package servers

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/tenonhq/tenon"
)

// Unreached is the error of a failed step of [Reach], with a remedy.
type Unreached struct {
	Phase  string // dns, tcp or tls; with a proxy, the step to the proxy
	Text   string
	Remedy string
	Err    error
}

// Error implements error.
func (u *Unreached) Error() string { return u.Phase + ": " + u.Text }

// Unwrap returns the cause.
func (u *Unreached) Unwrap() error { return u.Err }

// Reach tests whether an address can be reached: it resolves the name, opens a connection and makes the TLS handshake.
// It sends no request. If the environment sets a proxy for the address, Reach tests the proxy instead. It returns the
// duration of each step, including a failed one. The error is an [*Unreached] or has code invalid.
func Reach(ctx context.Context, address string) ([]Phase, error) {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return nil, tenon.Errorf(tenon.CodeInvalid, "'%s' is not a URL", address)
	}
	secure := u.Scheme == "https" || u.Scheme == "wss"
	target := *u
	target.Scheme = strings.NewReplacer("wss", "https", "ws", "http").Replace(u.Scheme)
	before := ""
	if proxy, err := http.ProxyFromEnvironment(&http.Request{URL: &target}); err == nil && proxy != nil {
		u, secure, before = proxy, proxy.Scheme == "https", "proxy "
	}
	port := u.Port()
	if port == "" {
		port = map[bool]string{true: "443", false: "80"}[secure]
	}
	w := &way{host: u.Hostname(), port: port, before: before}
	ips, err := w.resolve(ctx)
	if err != nil {
		return w.phases, err
	}
	conn, err := w.connect(ctx, ips)
	if err != nil {
		return w.phases, err
	}
	if secure {
		err = w.encrypt(ctx, conn)
	}
	_ = conn.Close() // nothing was sent on it
	return w.phases, err
}

// way records the steps of reaching an address.
type way struct {
	host, port, before string
	phases             []Phase
}

// step records a step that began at start.
func (w *way) step(name string, start time.Time) {
	w.phases = append(w.phases, Phase{Name: w.before + name, Millis: time.Since(start).Milliseconds()})
}

func (w *way) fail(phase, text, remedy string, err error) *Unreached {
	return &Unreached{Phase: w.before + phase, Text: text, Remedy: remedy, Err: err}
}

func (w *way) resolve(ctx context.Context) ([]string, error) {
	if net.ParseIP(w.host) != nil {
		return []string{w.host}, nil
	}
	start := time.Now()
	ips, err := net.DefaultResolver.LookupHost(ctx, w.host)
	w.step("dns", start)
	var e *net.DNSError
	switch {
	case err == nil:
		return ips, nil
	case errors.As(err, &e) && e.IsNotFound:
		return nil, w.fail("dns", "there is no host "+w.host, "check the name in the URL", err)
	}
	return nil, w.fail("dns", "the name "+w.host+" cannot be looked up: "+clean(err.Error()),
		"check the network, a VPN, and the name server of this machine", err)
}

func (w *way) connect(ctx context.Context, ips []string) (net.Conn, error) {
	start := time.Now()
	var conn net.Conn
	var err error
	for _, ip := range ips {
		if conn, err = new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(ip, w.port)); err == nil ||
			ctx.Err() != nil {
			break
		}
	}
	w.step("tcp", start)
	at := net.JoinHostPort(w.host, w.port)
	switch {
	case err == nil:
		return conn, nil
	case isRefused(err):
		return nil, w.fail("tcp", "nothing listens at "+at, "start the server there, or check the port in the URL", err)
	case ctx.Err() != nil || isTimeout(err):
		return nil, w.fail("tcp", at+" does not answer", "check a firewall or VPN in between, and the address", err)
	}
	return nil, w.fail("tcp", "no connection to "+at+": "+clean(err.Error()), "check the network and the address", err)
}

func (w *way) encrypt(ctx context.Context, conn net.Conn) error {
	start := time.Now()
	err := tls.Client(conn, &tls.Config{ServerName: w.host}).HandshakeContext(ctx)
	w.step("tls", start)
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var record tls.RecordHeaderError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &unknown):
		return w.fail("tls", "nobody that this machine trusts signed the certificate",
			"install the authority's certificate on this machine, or set SSL_CERT_FILE", err)
	case errors.As(err, &name):
		return w.fail("tls", clean(err.Error()), "check the host in the URL", err)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return w.fail("tls", "the certificate has expired or is not valid yet",
			"have it renewed, or check this machine's clock", err)
	case errors.As(err, &record):
		return w.fail("tls", "it does not speak TLS", "write http:// in the URL, if that is meant", err)
	}
	return w.fail("tls", clean(err.Error()), "check what answers there, and a proxy in between", err)
}

func isTimeout(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}

func isRefused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }
