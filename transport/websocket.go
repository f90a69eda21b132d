package transport

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/jsonrpc"
)

// Subprotocol is what both ends name in the upgrade (Sec-WebSocket-Protocol).
const Subprotocol = "mcp"

// WebSocketConfig says how to reach a server over WebSocket.
type WebSocketConfig struct {
	// URL begins with ws:// or wss://. A login in it is sent as Basic, where
	// Headers has no Authorization.
	URL     string
	Headers map[string]string // of the upgrade
	// MaxMessage bounds one message in bytes; 0: [DefaultMaxMessage].
	MaxMessage int
	// Ping is the time between two pings, each of which has to be answered within
	// the same time. 0: 30 s.
	Ping   time.Duration
	Admit  func(address string) error // as in [HTTPConfig]
	Logger *slog.Logger               // nil discards
}

// WebSocket carries one message in each text frame. Neither revision of MCP
// defines it; this is what those who offer it agree on: the subprotocol mcp, no
// batches, no session, the normal closure as the end.
type WebSocket struct {
	conn   *websocket.Conn
	host   string
	cfg    WebSocketConfig
	raw    *socketConn // below it, to end at once
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	once   sync.Once
	in     io.Reader // the message that is being skipped; of Recv

	mu     sync.Mutex
	queue  [][]byte
	size   int           // bytes in queue
	room   chan struct{} // closed and replaced when the queue was taken; nil: nobody waits
	filled chan struct{} // there is something to write
	err    error         // why it ended, as far as this side knows
}

// writeTimeout is how long the other side may leave one message unread.
const writeTimeout = 30 * time.Second

// DialWebSocket connects and upgrades within the context. Errors have code
// config, invalid, unreachable, auth_required or protocol.
func DialWebSocket(ctx context.Context, cfg WebSocketConfig) (*WebSocket, error) {
	u, err := endpoint(cfg.URL, "ws")
	if err != nil {
		return nil, err
	}
	head, err := header(u, cfg.Headers)
	if err != nil {
		return nil, err
	}
	// What HTTP knows about addresses that cannot be reached, certificates and
	// refusals holds for an upgrade as well.
	web := &HTTP{url: u}
	pool := network(1, cfg.Admit)
	pool.ForceAttemptHTTP2 = false // an upgrade is of HTTP/1.1
	var raw *socketConn
	dial := pool.DialContext
	pool.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		raw = &socketConn{Conn: c}
		return raw, nil
	}
	defer pool.CloseIdleConnections() // all but the upgraded one
	conn, resp, err := websocket.Dial(ctx, u.String(), &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: pool, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
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
				return nil, tenon.Errorf(tenon.CodeProtocol, "HTTP %d instead of an upgrade to WebSocket; check the URL", resp.StatusCode)
			}
			return nil, web.status(resp, jsonrpc.Outgoing{Method: "initialize"}, &httpState{})
		}
		return nil, tenon.Errorf(tenon.CodeProtocol, "the upgrade to WebSocket is not a valid one: %v", plainText(err))
	}
	return newWebSocket(conn, raw, u.Host, cfg), nil
}

// AcceptWebSocket upgrades a request on the listen end. Who calls it has checked
// Host and Origin. Where it gives an error, the request has been answered.
func AcceptWebSocket(w http.ResponseWriter, r *http.Request, cfg WebSocketConfig) (*WebSocket, error) {
	grab := &hijacker{ResponseWriter: w}
	conn, err := websocket.Accept(grab, r, &websocket.AcceptOptions{Subprotocols: []string{Subprotocol},
		InsecureSkipVerify: true, CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeProtocol, "no WebSocket from %s: %w", r.RemoteAddr, err)
	}
	return newWebSocket(conn, grab.raw, r.RemoteAddr, cfg), nil
}

// hijacker keeps the connection that an upgrade takes over.
type hijacker struct {
	http.ResponseWriter
	raw *socketConn
}

// Hijack is called by the upgrade.
func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	h.raw = &socketConn{Conn: c}
	return h.raw, rw, nil
}

// socketConn knows whether somebody has read to its end. The library takes a message for
// complete whose next frame never came because the connection had ended.
type socketConn struct {
	net.Conn
	late  error // came with the last bytes
	ended atomic.Bool
}

// Read gives an error when all bytes before it have been given.
func (c *socketConn) Read(b []byte) (int, error) {
	if c.late != nil {
		c.ended.Store(true)
		return 0, c.late
	}
	n, err := c.Conn.Read(b)
	switch {
	case err != nil && n > 0:
		c.late = err
		return n, nil
	case err != nil:
		c.ended.Store(true)
	}
	return n, err
}

func newWebSocket(conn *websocket.Conn, raw *socketConn, host string, cfg WebSocketConfig) *WebSocket {
	if cfg.MaxMessage <= 0 {
		cfg.MaxMessage = DefaultMaxMessage
	}
	if cfg.Ping <= 0 {
		cfg.Ping = 30 * time.Second
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	conn.SetReadLimit(-1) // Recv counts, and skips what is too large instead of giving up
	w := &WebSocket{conn: conn, raw: raw, host: host, cfg: cfg, filled: make(chan struct{}, 1)}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	w.wg.Go(w.write)
	w.wg.Go(w.ping)
	return w
}

// Send queues a message. It waits only while the queue is full.
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
	default: // it is told already
	}
	return nil
}

// write sends what is queued. It has a time limit of its own, since the
// library ends the connection where a caller's context ends during a write.
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
				w.fail(fmt.Errorf("a message was not taken: %w", err))
				return
			}
		}
	}
}

// freeRoom wakes those who wait for room; the caller holds the lock.
func (w *WebSocket) freeRoom() {
	if w.room != nil {
		close(w.room)
		w.room = nil
	}
}

// ping finds out that the other side is gone where the network does not say so.
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

// fail records the reason of the end, and ends the connection.
func (w *WebSocket) fail(err error) {
	w.mu.Lock()
	if w.err == nil {
		w.err = err
	}
	w.freeRoom()
	w.mu.Unlock()
	_ = w.raw.Close() // ends a Recv
}

// refuse tells the other side what was wrong with its message, and ends.
func (w *WebSocket) refuse(code websocket.StatusCode, reason string) error {
	err := errors.New("the server sent " + reason + "; the connection was closed")
	w.mu.Lock()
	if w.err == nil {
		w.err = err
	}
	w.freeRoom()
	w.mu.Unlock()
	// Close waits for the other side's goodbye, which nobody needs.
	w.wg.Go(func() { _ = w.conn.Close(code, reason) })
	return err
}

// Recv returns the next text message. A binary message and one that is not UTF-8
// end the connection (RFC 6455, 8.1); one over the limit is skipped.
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
	if kind != websocket.MessageText {
		return nil, w.refuse(websocket.StatusUnsupportedData, "a binary message")
	}
	b, over, err := readUpTo(in, w.cfg.MaxMessage)
	if err == nil && !over && w.raw.ended.Load() {
		err = io.EOF // in the middle of it
	}
	switch {
	case err != nil:
		return nil, w.ended(err)
	case over:
		w.in = in
		return nil, &jsonrpc.SizeError{Prefix: b, Limit: w.cfg.MaxMessage}
	case !utf8.Valid(b):
		return nil, w.refuse(websocket.StatusInvalidFramePayloadData, "text that is not UTF-8")
	}
	return b, nil
}

// ended says why nothing comes any more.
func (w *WebSocket) ended(err error) error {
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
		w.err = fmt.Errorf("%s closed the connection: %s (%d)", w.host, quote(strings.ToValidUTF8(closed.Reason, "\uFFFD")), closed.Code)
	case errors.As(err, &closed):
		w.err = fmt.Errorf("%s closed the connection (%d)", w.host, closed.Code)
	case errors.Is(err, io.EOF):
		w.err = fmt.Errorf("%s ended the connection without a goodbye", w.host)
	default:
		w.err = fmt.Errorf("the connection to %s broke: %w", w.host, err)
	}
	w.freeRoom()
	return w.err
}

// goodbye is how long Close waits for the other side's part of the closure.
const goodbye = time.Second

// Close says goodbye and ends the connection.
func (w *WebSocket) Close() error {
	w.once.Do(func() {
		done := make(chan struct{})
		w.wg.Go(func() {
			defer close(done)
			_ = w.conn.Close(websocket.StatusNormalClosure, "") // it may have ended already
		})
		select {
		case <-done:
		case <-time.After(goodbye):
		}
		w.cancel()
		w.mu.Lock()
		if w.err == nil {
			w.err = errClosed
		}
		w.freeRoom()
		w.mu.Unlock()
		_ = w.raw.Close() // the library would wait for an answer to its goodbye
		_ = w.conn.CloseNow()
	})
	w.wg.Wait()
	return nil
}

// plainText makes one line of a library's error.
func plainText(err error) string {
	return strings.ToValidUTF8(strings.Join(strings.Fields(err.Error()), " "), "\uFFFD")
}

var _ jsonrpc.Stream = (*WebSocket)(nil)
