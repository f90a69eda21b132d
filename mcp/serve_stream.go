package mcp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/tenonhq/tenon/jsonrpc"
	"github.com/tenonhq/tenon/transport"
)

// WebSocket returns a handler that upgrades each request and serves the
// connection, in both eras. Foreign hosts and origins get 403.
func (s *Server) WebSocket(cfg HTTPConfig) http.Handler {
	cfg = cfg.withDefaults()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !cfg.admit(w, r) {
			return
		}
		conn, err := transport.AcceptWebSocket(w, r,
			transport.WebSocketConfig{MaxMessage: int(cfg.MaxBody), Logger: s.cfg.Logger})
		if err != nil {
			s.cfg.Logger.Debug("an upgrade was refused", "error", err.Error())
			return
		}
		defer func() { _ = conn.Close() }()
		_ = s.Serve(r.Context(), cfg.wrap(conn)) // the end of a connection is not an error here
	})
}

func (c HTTPConfig) wrap(s jsonrpc.Stream) jsonrpc.Stream {
	if c.Wrap == nil {
		return s
	}
	return c.Wrap(s)
}

// sseServer serves one Server over HTTP+SSE (revision 2024-11-05).
type sseServer struct {
	s   *Server
	cfg HTTPConfig

	mu       sync.Mutex
	sessions map[string]*sseSession
}

// sseSession is an open event stream with the messages that were posted for it.
type sseSession struct {
	in  chan []byte
	ctx context.Context
	end context.CancelFunc

	mu sync.Mutex
	w  http.ResponseWriter
}

// SSE returns a handler for the older HTTP+SSE transport (2024-11-05). A GET opens an event stream. Its first event
// is the address to which messages are posted: the same address with a session in its query. Foreign hosts and
// origins get 403.
func (s *Server) SSE(cfg HTTPConfig) http.Handler {
	return &sseServer{s: s, cfg: cfg.withDefaults(), sessions: map[string]*sseSession{}}
}

func (h *sseServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !h.cfg.admit(w, r) {
		return
	}
	switch r.Method {
	case http.MethodGet:
		h.get(w, r)
	case http.MethodPost:
		h.post(w, r)
	default:
		w.Header().Set("Allow", "GET, POST")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
	}
}

func (h *sseServer) get(w http.ResponseWriter, r *http.Request) {
	id := h.cfg.NewSession()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	c := &sseSession{in: make(chan []byte, 64), ctx: ctx, end: cancel, w: w}
	h.mu.Lock()
	full := len(h.sessions) >= maxSessions
	if !full {
		h.sessions[id] = c
	}
	h.mu.Unlock()
	if full {
		http.Error(w, "too many sessions", http.StatusServiceUnavailable)
		return
	}
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.sessions, id)
	}()
	to := r.URL.Path + "?session=" + url.QueryEscape(id)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no")
	c.event("endpoint", []byte(to))
	_ = h.s.Serve(ctx, h.cfg.wrap(c)) // the end of a connection is not an error here
	cancel()
	c.mu.Lock() // wait for a running write; after that w must not be used
	defer c.mu.Unlock()
}

func (h *sseServer) post(w http.ResponseWriter, r *http.Request) {
	body, ok := h.cfg.body(w, r)
	if !ok {
		return
	}
	var m jsonrpc.Message
	if !jsonrpc.Batch(body, func([]byte, bool) {}) && !parse(w, body, &m) {
		return
	}
	h.mu.Lock()
	c := h.sessions[r.URL.Query().Get("session")]
	h.mu.Unlock()
	if c == nil {
		http.Error(w, "no such session", http.StatusNotFound)
		return
	}
	select {
	case c.in <- body:
		w.WriteHeader(http.StatusAccepted)
	case <-c.ctx.Done():
		http.Error(w, "no such session", http.StatusNotFound)
	case <-r.Context().Done():
	}
}

// Send writes a message event.
func (c *sseSession) Send(_ context.Context, m jsonrpc.Outgoing) error {
	return c.event("message", m.Body)
}

func (c *sseSession) event(kind string, data []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return errors.New("the event stream has ended")
	}
	b := append([]byte("event: "+kind+"\ndata: "), bytes.ReplaceAll(data, []byte("\n"), []byte(" "))...)
	return c.write(append(b, "\n\n"...))
}

func (c *sseSession) write(b []byte) error {
	if _, err := c.w.Write(b); err != nil {
		return err
	}
	return http.NewResponseController(c.w).Flush()
}

// Raw writes bytes to the stream unchanged, for tests of clients.
func (c *sseSession) Raw(b []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return errors.New("the event stream has ended")
	}
	return c.write(b)
}

// End ends the stream.
func (c *sseSession) End() { c.end() }

// Recv returns the next posted message.
func (c *sseSession) Recv(ctx context.Context) ([]byte, error) {
	select {
	case b := <-c.in:
		return b, nil
	case <-c.ctx.Done():
	case <-ctx.Done():
	}
	return nil, io.EOF
}

// Plain returns a handler for clients of plain JSON-RPC without a handshake: a POST contains one request object, and
// its response one response object. The handler only serves tools/list and tools/call. Errors have the HTTP status
// 400, 404 (unknown method) or 500. Foreign hosts and origins get 403.
func (s *Server) Plain(cfg HTTPConfig) http.Handler {
	cfg = cfg.withDefaults()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !cfg.admit(w, r) {
			return
		}
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", "POST")
			http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
			return
		}
		var m jsonrpc.Message
		if body, ok := cfg.body(w, r); !ok || !parse(w, body, &m) {
			return
		}
		if !m.IsRequest() {
			reply(w, http.StatusBadRequest, jsonrpc.AppendError(nil, nil,
				jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "only requests are answered here")))
			return
		}
		result, err := s.plain(r.Context(), &jsonrpc.Request{ID: m.ID, Method: m.Method, Params: m.Params})
		if err == nil {
			reply(w, http.StatusOK, jsonrpc.AppendResult(nil, m.ID, result))
			return
		}
		var e *jsonrpc.Error
		if !errors.As(err, &e) {
			e = jsonrpc.Errorf(jsonrpc.CodeInternal, "%s", err)
		}
		status := http.StatusInternalServerError
		switch e.Code {
		case jsonrpc.CodeMethodNotFound:
			status = http.StatusNotFound
		case jsonrpc.CodeInvalidParams, jsonrpc.CodeInvalidRequest:
			status = http.StatusBadRequest
		}
		reply(w, status, jsonrpc.AppendError(nil, m.ID, e))
	})
}

// plain handles the two methods that do not need a handshake.
func (s *Server) plain(ctx context.Context, r *jsonrpc.Request) ([]byte, error) {
	if s.cfg.Observe != nil {
		if err := s.cfg.Observe(ctx, r.Method, r.Params); err != nil {
			return nil, err
		}
	}
	if !strings.HasPrefix(r.Method, "tools/") {
		return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "method not found: %s", r.Method)
	}
	c := &serverConn{s: s, notify: func(string, []byte) {}}
	return c.common(ctx, r, nil, false)
}

var _ jsonrpc.Stream = (*sseSession)(nil)
