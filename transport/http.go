package transport

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/jsonrpc"
)

// HTTPConfig configures a connection to a server over Streamable HTTP.
type HTTPConfig struct {
	// URL is the endpoint. A login in it (user:password@) is sent as Basic credentials, unless Headers
	// contains Authorization. It is never shown.
	URL     string
	Headers map[string]string // sent with every request
	// MaxMessage bounds one message in bytes after decompression. 0 means [DefaultMaxMessage].
	MaxMessage int
	// IdleTimeout is the maximum time without an event on an event stream. Comments do not count as events. 0
	// means 5 minutes.
	IdleTimeout time.Duration
	// Concurrency is the maximum number of idle connections. 0 means 64.
	Concurrency int
	// KeepSession keeps a legacy session open when the connection is closed. The server's own timeout then ends the
	// session. Otherwise Close ends it with DELETE.
	KeepSession bool
	// Plain disables the parts that only MCP servers know: event streams, sessions, the version header and
	// notifications. Each exchange is then one JSON-RPC object in a POST and one in its response.
	Plain bool
	// Admit checks each address, IP:port, before a connection is opened. Its error fails the connection. With
	// Admit, proxies of the environment are not used. If nil, every address is allowed.
	Admit func(address string) error
	// RoundTripper replaces the network, for tests. It must not follow redirects. If nil, the connection has
	// its own pool.
	RoundTripper http.RoundTripper
	// SignIn wraps the network with authentication. The returned RoundTripper must not follow redirects; its
	// errors of type *tenon.Error reach the caller unchanged. It may be nil.
	SignIn func(network http.RoundTripper) http.RoundTripper
	Logger *slog.Logger // if nil, nothing is logged
}

// HTTP is a connection to a Streamable HTTP endpoint. It consists of the session and a pool of network
// connections. It is safe for concurrent use.
type HTTP struct {
	cfg    HTTPConfig
	url    *url.URL
	rt     http.RoundTripper
	own    *tcpPool
	header http.Header // immutable
	state  atomic.Pointer[httpState]
	ctx    context.Context
	cancel context.CancelFunc
	once   sync.Once
}

// httpState holds the results of the handshake. It is immutable.
type httpState struct {
	session, protocol string
	modern            bool
	given             bool // the last initialize returned a session id
	header            http.Header
}

// DialHTTP prepares a connection. It sends nothing before the first message. Errors have code config for the
// URL and invalid for a header.
func DialHTTP(cfg HTTPConfig) (*HTTP, error) {
	u, err := endpoint(cfg.URL, "http")
	if err != nil {
		return nil, err
	}
	all, err := header(u, cfg.Headers)
	if err != nil {
		return nil, err
	}
	if cfg.MaxMessage <= 0 {
		cfg.MaxMessage = DefaultMaxMessage
	}
	if cfg.IdleTimeout <= 0 {
		cfg.IdleTimeout = 5 * time.Minute
	}
	if cfg.Concurrency <= 0 {
		cfg.Concurrency = 64
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	defaults := map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
	for name, value := range defaults {
		if cfg.Plain && name == "Accept" {
			value = "application/json"
		}
		if all[name] == nil {
			all[name] = []string{value}
		}
	}
	h := &HTTP{cfg: cfg, url: u, rt: cfg.RoundTripper, header: all}
	if h.rt == nil {
		h.own = newTCPPool(network(cfg.Concurrency, cfg.Admit), cfg.Concurrency)
		h.rt = h.own
	}
	if cfg.SignIn != nil {
		h.rt = cfg.SignIn(h.rt)
	}
	h.state.Store(&httpState{header: h.header})
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h, nil
}

// SetProtocol sets the version header of all later requests. If version is "", there is no such header. In the modern
// era there is no session, and requests contain their method in a header.
func (h *HTTP) SetProtocol(version string, modern bool) {
	h.update(func(s *httpState) { s.protocol, s.modern = version, modern })
}

// DropOldSession drops a session id that the last initialize did not return, because the server no longer knows that
// session.
func (h *HTTP) DropOldSession() {
	h.update(func(s *httpState) {
		if !s.given {
			s.session = ""
		}
	})
}

// IsPlain reports whether this is a plain JSON-RPC endpoint.
func (h *HTTP) IsPlain() bool { return h.cfg.Plain }

// Session returns the session id that the server assigned, or "".
func (h *HTTP) Session() string { return h.state.Load().session }

func (h *HTTP) update(f func(*httpState)) {
	for {
		old := h.state.Load()
		s := *old
		f(&s)
		s.header = h.header.Clone()
		if s.protocol != "" {
			s.header["Mcp-Protocol-Version"] = []string{s.protocol}
		}
		if s.session != "" && !s.modern {
			s.header["Mcp-Session-Id"] = []string{s.session}
		}
		if h.state.CompareAndSwap(old, &s) {
			return
		}
	}
}

// Recv waits for the end of the connection. HTTP delivers messages through Exchange and Listen.
func (h *HTTP) Recv(ctx context.Context) ([]byte, error) {
	select {
	case <-h.ctx.Done():
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Send posts a notification or a response. The server only acknowledges it.
func (h *HTTP) Send(ctx context.Context, m jsonrpc.Outgoing) error {
	if h.cfg.Plain {
		return nil // such servers accept no notifications
	}
	resp, st, err := h.post(ctx, m)
	if err != nil {
		return err
	}
	defer closeBody(resp)
	if resp.StatusCode >= 300 {
		return h.status(resp, m, st)
	}
	if n := resp.ContentLength; n > 0 && n <= maxAcknowledgement {
		_, _ = io.CopyN(io.Discard, resp.Body, n) // allows reuse of the network connection
	}
	return nil
}

// maxAcknowledgement bounds the body of an acknowledgement that is read and discarded, in bytes.
const maxAcknowledgement = 4 << 10

// errClosed is the cause of errors after Close.
var errClosed = errors.New("the connection was closed")

// Exchange posts a request and delivers the messages of the response. Close ends it.
func (h *HTTP) Exchange(ctx context.Context, m jsonrpc.Outgoing, deliver func([]byte) bool) error {
	if h.ctx.Err() != nil {
		return &jsonrpc.LostError{Err: errClosed}
	}
	own, cancel := context.WithCancel(ctx)
	defer cancel() // ends a stream that continues after the response
	stop := context.AfterFunc(h.ctx, cancel)
	defer stop()
	err := h.exchange(own, cancel, m, deliver)
	if errors.Is(err, context.Canceled) && ctx.Err() == nil && h.ctx.Err() != nil {
		return &jsonrpc.LostError{Sent: true, Err: errClosed}
	}
	return err
}

func (h *HTTP) exchange(ctx context.Context, cancel context.CancelFunc, m jsonrpc.Outgoing,
	deliver func([]byte) bool) error {
	resp, st, err := h.post(ctx, m)
	if err != nil {
		return err
	}
	defer closeBody(resp)
	if m.Method == "initialize" && resp.StatusCode == http.StatusOK {
		id := resp.Header.Get("Mcp-Session-Id")
		h.update(func(s *httpState) {
			s.given = id != ""
			if s.given {
				s.session = id
			}
		})
	}
	kind := mediaType(resp)
	switch {
	case kind == "application/json" && (resp.StatusCode == http.StatusOK || resp.StatusCode >= 400):
		body, err := h.read(resp)
		if err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			return h.refusal(resp, body, m, st, deliver)
		}
		if !deliver(body) {
			return &jsonrpc.LostError{Sent: true, Err: errors.New("the response body does not answer this request")}
		}
		return nil
	case kind == "text/event-stream" && resp.StatusCode == http.StatusOK && !h.cfg.Plain:
		return h.stream(ctx, cancel, resp, st, m.Patient, deliver)
	case resp.StatusCode == http.StatusAccepted:
		return &jsonrpc.LostError{Sent: true, Err: errors.New("HTTP 202 instead of a response to the request")}
	}
	return h.status(resp, m, st)
}

// mediaType returns the content type without its parameters, in lower case.
func mediaType(resp *http.Response) string {
	kind := resp.Header.Get("Content-Type")
	if kind == "application/json" || kind == "text/event-stream" {
		return kind
	}
	kind, _, _ = mime.ParseMediaType(kind)
	return kind
}

func (h *HTTP) post(ctx context.Context, m jsonrpc.Outgoing) (*http.Response, *httpState, error) {
	st := h.state.Load()
	header := st.header
	if st.modern && m.Method != "" || len(m.Header) > 0 || m.Method == "initialize" {
		header = header.Clone()
		if m.Method == "initialize" { // starts a new session
			delete(header, "Mcp-Session-Id")
			delete(header, "Mcp-Protocol-Version")
		}
		if st.modern {
			header["Mcp-Method"] = []string{m.Method}
			if m.Name != "" {
				header["Mcp-Name"] = []string{HeaderValue(m.Name)}
			}
		}
		for k, v := range m.Header {
			header[http.CanonicalHeaderKey(k)] = []string{v}
		}
	}
	// Copy the body: a round tripper may read it after it has returned, and the caller reuses the buffer.
	resp, err := h.roundTrip(ctx, http.MethodPost, header, append([]byte(nil), m.Body...))
	return resp, st, err
}

// roundTrip sends one request. It follows redirects that keep the method within the same origin. A redirect
// to another origin would send the credentials there.
func (h *HTTP) roundTrip(ctx context.Context, method string, header http.Header, body []byte) (*http.Response, error) {
	return h.roundTripTo(ctx, h.url, method, header, body)
}

func (h *HTTP) roundTripTo(ctx context.Context, target *url.URL, method string, header http.Header,
	body []byte) (*http.Response, error) {
	for range 4 {
		req := &http.Request{Method: method, URL: target, Host: target.Host, Header: header,
			Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
		if body != nil {
			req.ContentLength, req.Body = int64(len(body)), io.NopCloser(bytes.NewReader(body))
			// GetBody lets net/http resend a request that certainly did not reach the server, for example on
			// an idle connection that was closed in the meantime.
			req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		}
		resp, err := h.rt.RoundTrip(req.WithContext(ctx))
		if err != nil {
			return nil, h.lost(ctx, err)
		}
		if resp.StatusCode != http.StatusTemporaryRedirect && resp.StatusCode != http.StatusPermanentRedirect {
			return resp, nil
		}
		to, err := resp.Location()
		if err != nil || to.Scheme != h.url.Scheme || to.Host != h.url.Host {
			return resp, nil
		}
		closeBody(resp)
		target = to
	}
	return nil, tenon.Errorf(tenon.CodeProtocol, "%s redirects more than 3 times; check the URL", h.url.Host)
}

// lost returns the error for a request without a response. Only a failure before the connection was
// established proves that the request did not reach the server.
func (h *HTTP) lost(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var known *tenon.Error
	if errors.As(err, &known) { // from SignIn: the request was refused or not sent
		return known
	}
	var op *net.OpError
	if errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect") {
		return &jsonrpc.LostError{Err: fmt.Errorf("%s cannot be reached: %w", h.url.Host, op.Err)}
	}
	var cert *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	if errors.As(err, &cert) || errors.As(err, &record) {
		return &jsonrpc.LostError{Err: fmt.Errorf("no secure connection to %s: %w", h.url.Host, err)}
	}
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("%s closed the connection without a response: %w", h.url.Host, err)
	}
	return &jsonrpc.LostError{Sent: true, Err: err}
}

// read reads a body that holds one message, within the limit.
func (h *HTTP) read(resp *http.Response) ([]byte, error) {
	if n := resp.ContentLength; n > int64(h.cfg.MaxMessage) {
		return nil, &jsonrpc.SizeError{Limit: h.cfg.MaxMessage}
	} else if n >= 0 {
		b := make([]byte, n)
		if _, err := io.ReadFull(resp.Body, b); err != nil {
			return nil, &jsonrpc.LostError{Sent: true, Err: fmt.Errorf("the response was cut off: %w", err)}
		}
		return b, nil
	}
	b, over, err := readUpTo(resp.Body, h.cfg.MaxMessage)
	switch {
	case err != nil:
		return nil, &jsonrpc.LostError{Sent: true, Err: fmt.Errorf("the response was cut off: %w", err)}
	case over:
		return nil, &jsonrpc.SizeError{Limit: h.cfg.MaxMessage}
	}
	return b, nil
}

// closeBody closes the body. The network connection is reused if the rest of the body is short and has
// already arrived.
func closeBody(resp *http.Response) { _ = resp.Body.Close() }

// Close ends running requests, the session, and all network connections.
func (h *HTTP) Close() error {
	h.once.Do(func() {
		h.cancel()
		st := h.state.Load()
		if st.session != "" && !st.modern && !h.cfg.KeepSession {
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			defer cancel()
			if resp, err := h.roundTrip(ctx, http.MethodDelete, st.header, nil); err != nil {
				h.cfg.Logger.Debug("the session was not ended", "error", err.Error())
			} else {
				closeBody(resp) // any status is fine
			}
		}
		if h.own != nil {
			h.own.CloseIdleConnections()
		}
	})
	return nil
}

var (
	_ jsonrpc.Exchanger = (*HTTP)(nil)
	_ jsonrpc.Stream    = (*HTTP)(nil)
)
