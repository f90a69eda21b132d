package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/sse"
	"github.com/tenonhq/tenon/jsonrpc"
)

// SSE is a connection to a server of the older HTTP+SSE transport (revision 2024-11-05). A GET opens one
// event stream for everything the server sends. Outgoing messages are posted to the address in the first
// event of the stream.
//
// The stream is the session. When it ends, the connection has ended; a new connection starts a new session
// with initialize.
type SSE struct {
	web      *HTTP // headers, redirects, errors, and the network
	endpoint *url.URL
	body     io.Closer
	events   *sse.Reader
	idle     *time.Timer
	silent   atomic.Bool
	gone     atomic.Pointer[error] // the error of a message that the server refused for lack of a session
	failed   error                 // error of the event stream; set before a SizeError is returned
	once     sync.Once
}

// DialSSE opens the event stream and waits for the event that contains the address for posting. cfg is a configuration
// of Streamable HTTP, of which KeepSession is ignored. IdleTimeout is the time of silence after which the stream counts
// as dead. Every byte restarts it, including comments, because servers send comments to keep a stream alive. Errors
// have code config, invalid, unreachable, auth_required, timeout or protocol.
func DialSSE(ctx context.Context, cfg HTTPConfig) (*SSE, error) {
	web, err := DialHTTP(cfg)
	if err != nil {
		return nil, err
	}
	s := &SSE{web: web}
	// The stream lives until Close. ctx only bounds opening it.
	stop := context.AfterFunc(ctx, web.cancel)
	defer stop()
	err = s.open()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = s.Close() // the first error is more specific
		return nil, err
	}
	return s, nil
}

func (s *SSE) open() error {
	resp, err := s.web.get(s.web.ctx, s.web.state.Load(), "")
	if err != nil {
		return err
	}
	s.body = resp.Body
	s.idle = time.AfterFunc(s.web.cfg.IdleTimeout, func() { s.silent.Store(true); _ = s.body.Close() })
	s.events = sse.NewReader(s.alive(resp.Body), s.web.cfg.MaxMessage)
	for {
		ev, err := s.events.Next()
		if err != nil {
			return tenon.Errorf(tenon.CodeProtocol, "the event stream ended before it named an endpoint: %w; "+
				"check that the URL belongs to an HTTP+SSE server", s.reason(err))
		}
		if ev.Type != "endpoint" {
			continue // no request has been sent yet
		}
		return s.locate(string(ev.Data))
	}
}

// locate handles the endpoint event. The endpoint receives the credentials, so it must have the same origin
// as the stream.
func (s *SSE) locate(named string) error {
	to, err := s.web.url.Parse(named)
	if err != nil || named == "" {
		return tenon.Errorf(tenon.CodeProtocol, "the endpoint %s named by the server is not a valid URL",
			quote(MaskURL(named)))
	}
	if to.Scheme != s.web.url.Scheme || to.Host != s.web.url.Host {
		return tenon.Errorf(tenon.CodeProtocol, "the server names an endpoint of another origin, %s://%s; "+
			"it is refused because the credentials would be sent there", to.Scheme, to.Host)
	}
	to.User, to.Fragment = nil, ""
	s.endpoint = to
	return nil
}

// alive resets the idle timer with every byte.
func (s *SSE) alive(r io.Reader) io.Reader {
	return readFunc(func(b []byte) (int, error) {
		n, err := r.Read(b)
		if n > 0 {
			s.idle.Reset(s.web.cfg.IdleTimeout)
		}
		return n, err
	})
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(b []byte) (int, error) { return f(b) }

// reason returns the error that describes why the stream ended.
func (s *SSE) reason(err error) error {
	switch gone := s.gone.Load(); {
	case gone != nil:
		return fmt.Errorf("the server no longer knows this session: %w", *gone)
	case s.silent.Load():
		return &SilenceError{Limit: s.web.cfg.IdleTimeout}
	case errors.Is(err, sse.ErrTooLarge):
		return fmt.Errorf("an event is larger than the limit of %d bytes", s.web.cfg.MaxMessage)
	case errors.Is(err, io.EOF):
		return errors.New("the server closed it")
	}
	return err
}

// Send posts a message to the endpoint. The response to a request arrives on the event stream.
func (s *SSE) Send(ctx context.Context, m jsonrpc.Outgoing) error {
	st := s.web.state.Load()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.web.ctx, cancel)()
	resp, err := s.web.roundTripTo(ctx, s.endpoint, http.MethodPost, st.header, append([]byte(nil), m.Body...))
	if err != nil {
		if s.web.ctx.Err() != nil {
			return errClosed
		}
		return err
	}
	defer closeBody(resp)
	switch code := resp.StatusCode; {
	case code == http.StatusNotFound || code == http.StatusBadRequest || code == http.StatusGone:
		// The session ended with its stream, so the stream is no longer useful.
		err := s.web.status(resp, m, st)
		s.gone.Store(&err)
		_ = s.body.Close()
		return &jsonrpc.LostError{Err: s.reason(nil)}
	case code >= 300:
		return s.web.status(resp, m, st)
	}
	if n := resp.ContentLength; n > 0 && n <= maxAcknowledgement {
		_, _ = io.CopyN(io.Discard, resp.Body, n) // allows reuse of the network connection
	}
	return nil
}

// Recv returns the next message of the stream. The end of the stream ends the connection. So does a message
// over the limit, because the rest of the stream cannot be read.
func (s *SSE) Recv(context.Context) ([]byte, error) {
	for s.failed == nil {
		ev, err := s.events.Next()
		switch {
		case s.web.ctx.Err() != nil:
			return nil, io.EOF
		case err != nil:
			s.failed = fmt.Errorf("the event stream ended: %w", s.reason(err))
			if errors.Is(err, sse.ErrTooLarge) {
				return nil, &jsonrpc.SizeError{Limit: s.web.cfg.MaxMessage}
			}
		case len(ev.Data) > 0 && (ev.Type == "" || ev.Type == "message"):
			return append([]byte(nil), ev.Data...), nil
		}
	}
	return nil, s.failed
}

// Close ends the stream and thereby the server's session.
func (s *SSE) Close() error {
	s.once.Do(func() {
		if s.idle != nil {
			s.idle.Stop()
		}
		_ = s.web.Close()
		if s.body != nil {
			_ = s.body.Close()
		}
	})
	return nil
}

var _ jsonrpc.Stream = (*SSE)(nil)
