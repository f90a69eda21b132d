package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/jsonrpc"
)

// Subprotocol is the WebSocket subprotocol that both ends announce in the upgrade (Sec-WebSocket-Protocol).
const Subprotocol = "mcp"

// WebSocketConfig configures a connection to a server over WebSocket.
type WebSocketConfig struct {
	// URL begins with ws:// or wss://. A login in it is sent as Basic credentials, unless Headers contains
	// Authorization.
	URL     string
	Headers map[string]string // sent with the upgrade request
	// MaxMessage bounds one message in bytes. 0 means [DefaultMaxMessage].
	MaxMessage int
	// Ping is the interval between two pings. Each ping must be answered within the same time. 0 means 30 s.
	Ping   time.Duration
	Admit  func(address string) error // as in [HTTPConfig]
	Logger *slog.Logger               // if nil, nothing is logged
}

// WebSocket sends one message in each text frame, and accepts binary frames with the same text. No revision of
// MCP defines this transport. It follows the common practice of existing servers: subprotocol mcp, no batches,
// no session, and a normal closure as the end.
type WebSocket struct {
	conn   *websocket.Conn
	host   string
	cfg    WebSocketConfig
	raw    *socketReader // the frames below conn
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	once   sync.Once
	in     io.Reader // used by Recv: the message to skip

	mu     sync.Mutex
	queue  [][]byte
	size   int           // bytes in queue
	room   chan struct{} // closed and replaced when the queue is taken; nil if no sender waits
	filled chan struct{} // signals that the queue is not empty
	left   chan struct{} // closed when the closing handshake is over; nil before the close frame
	err    error         // reason of the end, if this side knows it
}

// writeTimeout is how long the other side may take to accept one message.
const writeTimeout = 30 * time.Second

// DialWebSocket connects and upgrades. Both end with the context. Errors have code config, invalid,
// unreachable, auth_required or protocol.
func DialWebSocket(ctx context.Context, cfg WebSocketConfig) (*WebSocket, error) {
	u, err := endpoint(cfg.URL, "ws")
	if err != nil {
		return nil, err
	}
	head, err := header(u, cfg.Headers)
	if err != nil {
		return nil, err
	}
	// An HTTP provides the errors for unreachable addresses, certificates and refusals, which apply to an
	// upgrade too.
	web := &HTTP{url: u}
	pool := network(1, cfg.Admit)
	pool.ForceAttemptHTTP2 = false // the upgrade requires HTTP/1.1
	up := &upgrading{RoundTripper: pool}
	defer pool.CloseIdleConnections() // does not affect the upgraded connection
	conn, resp, err := websocket.Dial(ctx, u.String(), &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: up,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		HTTPHeader: head, Subprotocols: []string{Subprotocol}, CompressionMode: websocket.CompressionDisabled,
	})
	if err != nil {
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case resp == nil:
			return nil, web.lost(ctx, err)
		case resp.StatusCode != http.StatusSwitchingProtocols:
			if resp.StatusCode < 300 {
				return nil, tenon.Errorf(tenon.CodeProtocol,
					"HTTP %d instead of an upgrade to WebSocket; check the URL",
					resp.StatusCode)
			}
			return nil, web.status(resp, jsonrpc.Outgoing{Method: "initialize"}, &httpState{})
		}
		return nil, tenon.Errorf(tenon.CodeProtocol, "the server's upgrade to WebSocket is invalid: %v", plainText(err))
	}
	return newWebSocket(conn, up.in, u.Host, cfg), nil
}

// AcceptWebSocket upgrades a request on the server side. The caller must have checked Host and Origin. If it
// returns an error, it has already answered the request.
func AcceptWebSocket(w http.ResponseWriter, r *http.Request, cfg WebSocketConfig) (*WebSocket, error) {
	grab := &hijacker{ResponseWriter: w}
	conn, err := websocket.Accept(grab, r, &websocket.AcceptOptions{Subprotocols: []string{Subprotocol},
		InsecureSkipVerify: true, CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeProtocol, "no upgrade to WebSocket for %s: %w", r.RemoteAddr, err)
	}
	return newWebSocket(conn, grab.in, r.RemoteAddr, cfg), nil
}

func newWebSocket(conn *websocket.Conn, raw *socketReader, host string, cfg WebSocketConfig) *WebSocket {
	if cfg.MaxMessage <= 0 {
		cfg.MaxMessage = DefaultMaxMessage
	}
	if cfg.Ping <= 0 {
		cfg.Ping = 30 * time.Second
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	conn.SetReadLimit(-1) // Recv enforces the limit and skips larger messages
	w := &WebSocket{conn: conn, raw: raw, host: host, cfg: cfg, filled: make(chan struct{}, 1)}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	w.wg.Go(w.write)
	w.wg.Go(w.ping)
	return w
}

// Send queues a message. It blocks only while the queue is full.
func (w *WebSocket) Send(ctx context.Context, m jsonrpc.Outgoing) error {
	b := append([]byte(nil), m.Body...)
	w.mu.Lock()
	for len(w.queue) > 0 && w.size+len(b) > maxQueue && w.err == nil {
		if w.room == nil {
			w.room = make(chan struct{})
		}
		room := w.room
		w.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return ctx.Err()
		}
		w.mu.Lock()
	}
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	w.queue, w.size = append(w.queue, b), w.size+len(b)
	select {
	case w.filled <- struct{}{}:
	default: // a signal is pending
	}
	return nil
}

// write sends queued messages. It uses its own timeout, because the library closes the connection if a
// caller's context ends during a write.
func (w *WebSocket) write() {
	for {
		select {
		case <-w.filled:
		case <-w.ctx.Done():
			return
		}
		w.mu.Lock()
		queue := w.queue
		w.queue, w.size = nil, 0
		w.freeRoom()
		w.mu.Unlock()
		for _, b := range queue {
			ctx, cancel := context.WithTimeout(w.ctx, writeTimeout)
			err := w.conn.Write(ctx, websocket.MessageText, b)
			cancel()
			if err != nil {
				w.fail(fmt.Errorf("a message could not be sent: %w", err))
				return
			}
		}
	}
}

// freeRoom wakes senders that wait for room. The caller holds the lock.
func (w *WebSocket) freeRoom() {
	if w.room != nil {
		close(w.room)
		w.room = nil
	}
}

// ping detects that the other side is gone if the network does not report it.
func (w *WebSocket) ping() {
	tick := time.NewTicker(w.cfg.Ping)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-w.ctx.Done():
			return
		}
		ctx, cancel := context.WithTimeout(w.ctx, w.cfg.Ping)
		err := w.conn.Ping(ctx)
		cancel()
		if err != nil && w.ctx.Err() == nil {
			w.fail(fmt.Errorf("no answer to a ping within %s", w.cfg.Ping))
			return
		}
	}
}

// fail records the reason of the end and closes the connection.
func (w *WebSocket) fail(err error) {
	w.mu.Lock()
	if w.err == nil {
		w.err = err
	}
	w.freeRoom()
	w.mu.Unlock()
	_ = w.raw.close() // ends a Recv
}

// refuse closes the connection. The close frame contains the reason why the last frame is invalid.
func (w *WebSocket) refuse(code websocket.StatusCode, reason string) error {
	err := errors.New("the other side sent " + reason + "; the connection was closed")
	w.mu.Lock()
	if w.err == nil {
		w.err = err
	}
	w.freeRoom()
	w.mu.Unlock()
	w.leave(code, reason)
	return err
}

// leave sends a close frame with the code of the first call and returns a channel that is closed when the
// handshake is over. The goroutine waits for the close frame of the other side, which a caller may not want to do.
func (w *WebSocket) leave(code websocket.StatusCode, reason string) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.left == nil {
		left := make(chan struct{})
		w.left = left
		w.wg.Go(func() {
			defer close(left)
			_ = w.conn.Close(code, reason) // it may have ended already
		})
	}
	return w.left
}

// Recv returns the next message. A binary message with UTF-8 text is accepted, because some servers send JSON
// that way. Invalid UTF-8 ends the connection: code 1007 in a text message (RFC 6455, section 8.1), code 1003
// in a binary message. A message over the limit is skipped.
func (w *WebSocket) Recv(context.Context) ([]byte, error) {
	if w.in != nil {
		in := w.in
		w.in = nil
		if _, err := io.Copy(io.Discard, in); err != nil {
			return nil, w.ended(err)
		}
	}
	kind, in, err := w.conn.Reader(w.ctx)
	if err != nil {
		return nil, w.ended(err)
	}
	b, over, err := readUpTo(in, w.cfg.MaxMessage)
	if err == nil && !over && w.raw.ended.Load() {
		err = io.EOF // the message is incomplete
	}
	switch {
	case err != nil:
		return nil, w.ended(err)
	case over:
		w.in = in
		return nil, &jsonrpc.SizeError{Prefix: b, Limit: w.cfg.MaxMessage}
	case utf8.Valid(b):
		return b, nil
	case kind == websocket.MessageBinary:
		return nil, w.refuse(websocket.StatusUnsupportedData, "a binary message that is not UTF-8 text")
	}
	return nil, w.refuse(websocket.StatusInvalidFramePayloadData, "text that is not UTF-8")
}

// ended returns the reason why no more messages arrive.
func (w *WebSocket) ended(err error) error {
	var bad *frameError
	if errors.As(err, &bad) && w.ctx.Err() == nil {
		return w.refuse(bad.code, bad.what)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.ctx.Err() != nil:
		return io.EOF
	case w.err != nil:
		return w.err
	}
	var closed websocket.CloseError
	switch {
	case errors.As(err, &closed) && closed.Reason != "":
		w.err = fmt.Errorf("%s closed the connection: %s (%d)", w.host,
			quote(strings.ToValidUTF8(closed.Reason, "\uFFFD")), closed.Code)
	case errors.As(err, &closed):
		w.err = fmt.Errorf("%s closed the connection (%d)", w.host, closed.Code)
	case errors.Is(err, io.EOF):
		w.err = fmt.Errorf("%s ended the connection without a close frame", w.host)
	default:
		w.err = fmt.Errorf("the connection to %s broke: %w", w.host, err)
	}
	w.freeRoom()
	return w.err
}

// closeTimeout is how long Close waits for the close frame of the other side.
const closeTimeout = time.Second

// Close sends a close frame, unless the connection has sent one for an invalid frame. Then it ends the connection.
func (w *WebSocket) Close() error {
	w.once.Do(func() {
		left := w.leave(websocket.StatusNormalClosure, "")
		select {
		case <-left:
		case <-time.After(closeTimeout):
		}
		w.cancel()
		w.mu.Lock()
		if w.err == nil {
			w.err = errClosed
		}
		w.freeRoom()
		w.mu.Unlock()
		_ = w.raw.close() // the library would wait for the other side's close frame
		_ = w.conn.CloseNow()
	})
	w.wg.Wait()
	return nil
}

// plainText returns the text of a library's error on one line.
func plainText(err error) string {
	return strings.ToValidUTF8(strings.Join(strings.Fields(err.Error()), " "), "\uFFFD")
}

var _ jsonrpc.Stream = (*WebSocket)(nil)
