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

// HTTPConfig says how to reach a server over Streamable HTTP.
type HTTPConfig struct {
	// URL is the endpoint. A login in it (user:password@) is sent as Basic, where
	// Headers has no Authorization, and shown nowhere.
	URL     string
	Headers map[string]string // sent with every request
	// MaxMessage bounds one message in bytes after decompression; 0:
	// [DefaultMaxMessage].
	MaxMessage int
	// IdleTimeout is the silence allowed on an event stream; comments count as
	// silence. 0: 5 minutes.
	IdleTimeout time.Duration
	// Concurrency is the number of idle connections kept; 0: 64.
	Concurrency int
	// KeepSession leaves a legacy session to the server's own time limit instead
	// of ending it with DELETE on Close.
	KeepSession bool
	// Plain leaves out what only MCP knows: event streams, sessions, the version
	// header and notices. What is left is one JSON-RPC object in a POST and one
	// in its answer.
	Plain bool
	// Admit looks at each address, IP:port, before it is connected to; its error is that
	// of the connection. With it proxies of the environment are not used. Nil: any address.
	Admit func(address string) error
	// RoundTripper replaces the network, for tests. It must not follow redirects.
	// Nil: a pool of connections of its own.
	RoundTripper http.RoundTripper
	// SignIn puts a sign-in around the network. What it returns must not follow
	// redirects; its errors of type tenon.Error reach the caller as they are. Nil:
	// there is none.
	SignIn func(network http.RoundTripper) http.RoundTripper
	Logger *slog.Logger // nil discards
}

// HTTP is a connection to a Streamable HTTP endpoint: the session, and a pool
// of network connections. It is safe for concurrent use.
type HTTP struct {
	cfg    HTTPConfig
	url    *url.URL
	rt     http.RoundTripper
	own    *http.Transport
	header http.Header // immutable
	state  atomic.Pointer[httpState]
	ctx    context.Context
	cancel context.CancelFunc
	once   sync.Once
}

// httpState is what the handshake found out; immutable.
type httpState struct {
	session, protocol string
	modern            bool
	given             bool // the last initialize gave the session
	header            http.Header
}

// DialHTTP prepares a connection; nothing is sent before the first message.
// Errors have code config for the URL and invalid for a header.
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
	for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream"} {
		if cfg.Plain && name == "Accept" {
			value = "application/json"
		}
		if all[name] == nil {
			all[name] = []string{value}
		}
	}
	h := &HTTP{cfg: cfg, url: u, rt: cfg.RoundTripper, header: all}
	if h.rt == nil {
		h.own = network(cfg.Concurrency, cfg.Admit)
		h.rt = h.own
	}
	if cfg.SignIn != nil {
		h.rt = cfg.SignIn(h.rt)
	}
	h.state.Store(&httpState{header: h.header})
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h, nil
}

// SetProtocol sets the version header of all later requests, "" for none. In
// the modern era there is no session, and requests name their method.
func (h *HTTP) SetProtocol(version string, modern bool) {
	h.update(func(s *httpState) { s.protocol, s.modern = version, modern })
}

// DropOldSession forgets a session that the last initialize did not give: the server
// has none any more.
func (h *HTTP) DropOldSession() {
	h.update(func(s *httpState) {
		if !s.given {
			s.session = ""
		}
	})
}

// IsPlain reports whether this is a plain JSON-RPC endpoint.
func (h *HTTP) IsPlain() bool { return h.cfg.Plain }

// Session returns the session id that the server gave, "" for none.
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

// Recv is not how HTTP gives messages: it waits for the end.
func (h *HTTP) Recv(ctx context.Context) ([]byte, error) {
	select {
	case <-h.ctx.Done():
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Send posts a notice or an answer of ours, which the server only acknowledges.
func (h *HTTP) Send(ctx context.Context, m jsonrpc.Outgoing) error {
	if h.cfg.Plain {
		return nil // such servers know no notices
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
		_, _ = io.CopyN(io.Discard, resp.Body, n) // so that the connection can be used again
	}
	return nil
}

// maxAcknowledgement bounds what is read of a body that nobody needs.
const maxAcknowledgement = 4 << 10

// errClosed is the cause of what ends because of Close.
var errClosed = errors.New("the connection was closed")

// Exchange posts a request and delivers what comes for it. Close ends it.
func (h *HTTP) Exchange(ctx context.Context, m jsonrpc.Outgoing, deliver func([]byte) bool) error {
	if h.ctx.Err() != nil {
		return &jsonrpc.LostError{Err: errClosed}
	}
	own, cancel := context.WithCancel(ctx)
	defer cancel() // ends a stream that goes on behind the answer
	stop := context.AfterFunc(h.ctx, cancel)
	defer stop()
	err := h.exchange(own, cancel, m, deliver)
	if errors.Is(err, context.Canceled) && ctx.Err() == nil && h.ctx.Err() != nil {
		return &jsonrpc.LostError{Sent: true, Err: errClosed}
	}
	return err
}

func (h *HTTP) exchange(ctx context.Context, cancel context.CancelFunc, m jsonrpc.Outgoing, deliver func([]byte) bool) error {
	resp, st, err := h.post(ctx, m)
	if err != nil {
		return err
	}
	defer closeBody(resp)
	if m.Method == "initialize" && resp.StatusCode == http.StatusOK {
		id := resp.Header.Get("Mcp-Session-Id")
		h.update(func(s *httpState) {
			if s.given = id != ""; s.given {
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
			return &jsonrpc.LostError{Sent: true, Err: errors.New("the answer's body holds no answer to this request")}
		}
		return nil
	case kind == "text/event-stream" && resp.StatusCode == http.StatusOK && !h.cfg.Plain:
		return h.stream(ctx, cancel, resp, st, m.Patient, deliver)
	case resp.StatusCode == http.StatusAccepted:
		return &jsonrpc.LostError{Sent: true, Err: errors.New("HTTP 202 without an answer to a request")}
	}
	return h.status(resp, m, st)
}

// mediaType is the content type without its parameters, in lower case.
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
		if m.Method == "initialize" { // it begins a session, whatever there was before
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
	// The body is copied because a round tripper may read it after it has
	// returned, and the caller's buffer is used again.
	resp, err := h.roundTrip(ctx, http.MethodPost, header, append([]byte(nil), m.Body...))
	return resp, st, err
}

// roundTrip sends one request. Redirects that keep the method are followed
// within the origin; beyond it they would carry the credentials away.
func (h *HTTP) roundTrip(ctx context.Context, method string, header http.Header, body []byte) (*http.Response, error) {
	return h.roundTripTo(ctx, h.url, method, header, body)
}

func (h *HTTP) roundTripTo(ctx context.Context, target *url.URL, method string, header http.Header, body []byte) (*http.Response, error) {
	for range 4 {
		req := &http.Request{Method: method, URL: target, Host: target.Host, Header: header, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
		if body != nil {
			req.ContentLength, req.Body = int64(len(body)), io.NopCloser(bytes.NewReader(body))
			// With it net/http sends again what certainly did not reach the server,
			// as on an idle connection that was closed in the meantime.
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

// lost describes a request without an answer. Only what failed before there was
// a connection is certain not to have reached the server.
func (h *HTTP) lost(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var known *tenon.Error
	if errors.As(err, &known) { // of the sign-in: the request was refused, or not sent
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
		err = fmt.Errorf("%s closed the connection without an answer: %w", h.url.Host, err)
	}
	return &jsonrpc.LostError{Sent: true, Err: err}
}

// read reads a body of one message, within the bound.
func (h *HTTP) read(resp *http.Response) ([]byte, error) {
	if n := resp.ContentLength; n > int64(h.cfg.MaxMessage) {
		return nil, &jsonrpc.SizeError{Limit: h.cfg.MaxMessage}
	} else if n >= 0 {
		b := make([]byte, n)
		if _, err := io.ReadFull(resp.Body, b); err != nil {
			return nil, &jsonrpc.LostError{Sent: true, Err: fmt.Errorf("the answer was cut off: %w", err)}
		}
		return b, nil
	}
	b, over, err := readUpTo(resp.Body, h.cfg.MaxMessage)
	switch {
	case err != nil:
		return nil, &jsonrpc.LostError{Sent: true, Err: fmt.Errorf("the answer was cut off: %w", err)}
	case over:
		return nil, &jsonrpc.SizeError{Limit: h.cfg.MaxMessage}
	}
	return b, nil
}

// closeBody gives the connection back where the rest of the body is short and
// here already.
func closeBody(resp *http.Response) { _ = resp.Body.Close() }

// Close ends what is under way, the session, and all connections.
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
