package mcp

import (
	"context"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/jsonrpc"
	"github.com/tenonhq/tenon/transport"
)

// HTTPConfig configures a [Server] over Streamable HTTP.
type HTTPConfig struct {
	// Hosts are the host names that Host and Origin of a request may contain in addition to loopback names
	// (protection against DNS rebinding).
	Hosts []string
	// MaxBody is the maximum size of a request in bytes; 0 means 4 MiB.
	MaxBody int64
	// Wrap wraps the connections of [Server.SSE] and [Server.WebSocket]. Tests inject faults here. It may be nil.
	Wrap func(jsonrpc.Stream) jsonrpc.Stream
	// NewSession returns the id of a new legacy session. If nil, ids are random.
	NewSession func() string
	// Admitted says that Host and Origin were checked before the handler.
	Admitted bool
	// Strict refuses modern requests without the headers that the specification requires (2026-07-28, -32020).
	Strict bool
	// SessionIdle is the time after which an unused legacy session may end. If 0, it never ends for that reason.
	SessionIdle time.Duration
	// Sessionless answers legacy requests that name no session, because some clients do not send their session back.
	// The client of such a request cannot be asked, cancel it, or subscribe. The caller must know in another way who
	// the client is.
	Sessionless bool
}

func (c HTTPConfig) withDefaults() HTTPConfig {
	if c.MaxBody <= 0 {
		c.MaxBody = 4 << 20
	}
	if c.NewSession == nil {
		c.NewSession = func() string { return tenon.NewID("mcp", time.Now()) }
	}
	return c
}

// httpServer serves one Server over HTTP. Only the legacy era has sessions.
type httpServer struct {
	s   *Server
	cfg HTTPConfig

	large sync.Pool // *[]byte, for large responses

	mu       sync.Mutex
	sessions map[string]*httpSession
}

// HTTP returns a handler that serves both eras on one endpoint (2025-11-25 and
// 2026-07-28, Streamable HTTP). Foreign hosts and origins get 403, other
// content types 415, bodies over the bound 413.
func (s *Server) HTTP(cfg HTTPConfig) http.Handler {
	return &httpServer{s: s, cfg: cfg.withDefaults(), sessions: map[string]*httpSession{}}
}

func (h *httpServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !h.cfg.Admitted && !h.cfg.admit(w, r) {
		return
	}
	switch r.Method {
	case http.MethodPost:
		h.post(w, r)
	case http.MethodGet:
		h.get(w, r)
	case http.MethodDelete:
		h.delete(w, r)
	default:
		w.Header().Set("Allow", "GET, POST, DELETE")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
	}
}

// admit refuses requests that a foreign web page in a browser could send (DNS rebinding).
func (c HTTPConfig) admit(w http.ResponseWriter, r *http.Request) bool {
	if !c.local(r.Host) {
		http.Error(w, "this host is not served here", http.StatusForbidden)
		return false
	}
	for _, origin := range r.Header.Values("Origin") {
		u, err := url.Parse(origin)
		if err != nil || u.Host == "" || !c.local(u.Host) {
			http.Error(w, "requests of this origin are refused", http.StatusForbidden)
			return false
		}
	}
	return true
}

// local reports whether a host, with or without port, is served here.
func (c HTTPConfig) local(hostport string) bool {
	host := hostport
	if name, _, err := net.SplitHostPort(hostport); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback() || slices.Contains(c.Hosts, host)
}

// body reads the body of a POST. If ok is false, it has already sent an error response.
func (c HTTPConfig) body(w http.ResponseWriter, r *http.Request) (body []byte, ok bool) {
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/json" {
		http.Error(w, "the content type must be application/json", http.StatusUnsupportedMediaType)
		return nil, false
	}
	body, err := readAll(r, c.MaxBody)
	if err != nil {
		status := http.StatusBadRequest
		var big *http.MaxBytesError
		if errors.As(err, &big) {
			status = http.StatusRequestEntityTooLarge
		}
		http.Error(w, err.Error(), status)
		return nil, false
	}
	return body, true
}

// parse reads a JSON-RPC message. If it returns false, it has already sent an error response.
func parse(w http.ResponseWriter, body []byte, m *jsonrpc.Message) bool {
	err := jsonrpc.Parse(body, m)
	if err == nil {
		return true
	}
	code := jsonrpc.CodeParse
	if jsonrpc.Valid(body) == nil {
		code = jsonrpc.CodeInvalidRequest
	}
	reply(w, http.StatusBadRequest, jsonrpc.AppendError(nil, nil, jsonrpc.Errorf(code, "%s", err)))
	return false
}

func (h *httpServer) post(w http.ResponseWriter, r *http.Request) {
	body, ok := h.cfg.body(w, r)
	if !ok || h.batch(w, r, body) {
		return
	}
	var m jsonrpc.Message
	if !parse(w, body, &m) {
		return
	}
	version := r.Header.Get("MCP-Protocol-Version")
	if version >= Modern || rawjson.Field(rawjson.Field(m.Params, "_meta"), metaVersion) != nil {
		h.modern(w, r, &m, version)
		return
	}
	if m.Method != "initialize" && !speaks(w, r, m.ID) {
		return
	}
	h.legacy(w, r, &m)
}

// speaks checks the header MCP-Protocol-Version of a legacy request after initialize. Clients of older revisions do not
// send it. If it names a revision that is not supported, speaks sends an error response (2025-11-25, transports).
func speaks(w http.ResponseWriter, r *http.Request, id []byte) bool {
	version := r.Header.Get("MCP-Protocol-Version")
	if version == "" || IsLegacy(version) {
		return true
	}
	reply(w, http.StatusBadRequest, jsonrpc.AppendError(nil, id, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest,
		"the protocol version %q in the header MCP-Protocol-Version is not supported; supported: %s, %s", version,
		Modern, strings.Join(legacy[:], ", "))))
	return false
}

func readAll(r *http.Request, limit int64) ([]byte, error) {
	in := http.MaxBytesReader(nil, r.Body, limit)
	if r.ContentLength < 0 || r.ContentLength > limit {
		return io.ReadAll(in)
	}
	b := make([]byte, r.ContentLength)
	_, err := io.ReadFull(in, b)
	return b, err
}

// modern handles a stateless request. Its headers must match its body (2026-07-28, -32020).
func (h *httpServer) modern(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message, version string) {
	if !m.IsRequest() {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if mismatch := checkHeaders(r, m, version, h.cfg.Strict); mismatch != "" {
		reply(w, http.StatusBadRequest, jsonrpc.AppendError(nil, m.ID,
			jsonrpc.Errorf(codeHeaderMismatch, "%s", mismatch)))
		return
	}
	if problem := checkMeta(m); problem != "" && !h.s.cfg.NoModern {
		reply(w, http.StatusBadRequest, jsonrpc.AppendError(nil, m.ID,
			jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s", problem)))
		return
	}
	a := &answer{w: w, id: m.ID, large: &h.large}
	result, err := h.s.single(r.Context(), &jsonrpc.Request{ID: m.ID, Method: m.Method, Params: m.Params}, version,
		paramHeaders{r.Header, h.cfg.Strict}, a.notice)
	a.finish(result, err, true)
}

// checkMeta returns what is missing in the _meta of a modern request, or "" if nothing is (2026-07-28).
func checkMeta(m *jsonrpc.Message) string {
	meta := rawjson.Field(m.Params, "_meta")
	version, ok := rawjson.ParseString(rawjson.Field(meta, metaVersion))
	switch {
	case !ok:
		return "_meta names no " + metaVersion
	case version == Modern && !rawjson.IsObject(rawjson.Field(meta, metaCapabilities)):
		return "_meta names no " + metaCapabilities
	}
	return ""
}

// checkHeaders returns how the headers of a modern request differ from its body, or "" if they match. If strict is
// true, the headers are required (SEP-2243).
func checkHeaders(r *http.Request, m *jsonrpc.Message, version string, strict bool) string {
	named, ok := rawjson.ParseString(rawjson.Field(rawjson.Field(m.Params, "_meta"), metaVersion))
	if ok && named != version {
		return "the header MCP-Protocol-Version differs from _meta"
	}
	for _, name := range []string{"Mcp-Method", "Mcp-Name"} { // a proxy may have read another one than this server
		if len(r.Header.Values(name)) > 1 {
			return "the header " + name + " is there more than once"
		}
	}
	if got := r.Header.Get("Mcp-Method"); (got != "" || strict) && got != m.Method {
		return "the header Mcp-Method differs from the method, or is missing"
	}
	key := map[string]string{"tools/call": "name", "prompts/get": "name", "resources/read": "uri",
		"tasks/get": "taskId", "tasks/update": "taskId", "tasks/cancel": "taskId"}[m.Method]
	if got := r.Header.Get("Mcp-Name"); key != "" && (got != "" || strict) {
		name := rawjson.String(rawjson.Field(m.Params, key))
		if plain, ok := transport.DecodeHeaderValue(got); !ok || plain != name {
			return "the header Mcp-Name differs from the params, or is missing"
		}
	}
	return ""
}

// legacy handles a request of a session; initialize begins one.
func (h *httpServer) legacy(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
	a := &answer{w: w, id: m.ID, large: &h.large}
	if m.Method == "initialize" && m.IsRequest() {
		s, id, ok := h.begin()
		if !ok {
			Refuse(w, http.StatusServiceUnavailable, "too many sessions")
			return
		}
		result, err := s.handle(r.Context(), &jsonrpc.Request{ID: m.ID, Method: m.Method, Params: m.Params})
		if err == nil {
			w.Header().Set("Mcp-Session-Id", id)
		} else {
			h.end(id)
		}
		a.finish(result, err, false)
		return
	}
	if m.Method == "server/discover" {
		a.finish(nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "method not found: %s", m.Method), false)
		return
	}
	if h.cfg.Sessionless && r.Header.Get("Mcp-Session-Id") == "" {
		h.single(w, r, m)
		return
	}
	s := h.session(w, r)
	if s == nil {
		return
	}
	if !m.IsRequest() {
		h.noted(r, s, m)
		w.WriteHeader(http.StatusAccepted)
		return
	}
	h.answer(r, s, m, a)
}

// noted handles a notification or a response of the client of a session.
func (h *httpServer) noted(r *http.Request, s *httpSession, m *jsonrpc.Message) {
	if m.Method == "notifications/cancelled" {
		s.cancel(rawjson.Field(m.Params, "requestId"), errCancelled)
	}
	if h.s.cfg.Observe != nil && m.Method != "" {
		_ = h.s.cfg.Observe(r.Context(), m.Method, m.Params) // a notification has no response
	}
	switch {
	case m.IsAnswer():
		s.answered(*m)
	case m.Method == "notifications/initialized" && h.s.cfg.Initialized != nil:
		go h.s.cfg.Initialized(context.WithoutCancel(r.Context()), s.ask)
	}
}

// answer handles a request of a session.
func (h *httpServer) answer(r *http.Request, s *httpSession, m *jsonrpc.Message, a *answer) {
	// In this era, a dropped connection does not cancel the request.
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(r.Context()))
	defer cancel(nil)
	if !s.enter(m.ID, cancel) {
		a.finish(nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "a request with the id %s is under way", m.ID), false)
		return
	}
	c := &serverConn{s: h.s, version: LatestLegacy, parent: s.serverConn, notify: a.notice, ask: s.asking(a.request),
		left: leaves(r)}
	result, err := c.handle(ctx, &jsonrpc.Request{ID: m.ID, Method: m.Method, Params: m.Params})
	if context.Cause(ctx) == errCancelled {
		a.drop()
		return
	}
	s.cancel(m.ID, nil) // the client can use the id again as soon as it has the response
	a.finish(result, err, false)
}

// leaves returns a function that reports whether the client of a request has dropped its connection.
func leaves(r *http.Request) func() bool {
	return func() bool {
		return r.Context().Err() != nil && !errors.Is(context.Cause(r.Context()), tenon.ErrClosing)
	}
}

// single handles a legacy message without a session. As in a session, a dropped connection does not cancel the request.
func (h *httpServer) single(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
	if !m.IsRequest() {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	h.singly(r, m, &answer{w: w, id: m.ID, large: &h.large})
}

// singly handles a legacy request without a session.
func (h *httpServer) singly(r *http.Request, m *jsonrpc.Message, a *answer) {
	if m.Method == "resources/subscribe" {
		a.finish(nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "a subscription needs the session that initialize "+
			"began; send it in the header Mcp-Session-Id"), false)
		return
	}
	version := r.Header.Get("MCP-Protocol-Version")
	if !IsLegacy(version) {
		version = LatestLegacy
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	c := &serverConn{s: h.s, version: version, id: ClientID{Protocol: version}, notify: a.notice, left: leaves(r)}
	result, err := c.handle(ctx, &jsonrpc.Request{ID: m.ID, Method: m.Method, Params: m.Params})
	a.finish(result, err, false)
}

// get serves the notification stream of a session.
func (h *httpServer) get(w http.ResponseWriter, r *http.Request) {
	if h.s.cfg.NoLegacy {
		w.Header().Set("Allow", "POST")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	if !speaks(w, r, nil) {
		return
	}
	s := h.session(w, r)
	if s == nil {
		return
	}
	st, missed := s.follow(r.Context(), r.Header.Get("Last-Event-ID"))
	defer s.unfollow(st)
	a := &answer{w: w}
	a.stream()
	defer s.use()()
	for _, one := range missed {
		a.numbered(one)
	}
	for {
		select {
		case <-st.ctx.Done():
			return
		case one := <-st.late:
			a.numbered(one)
		case b := <-s.notices:
			one, mine := s.next(st, b)
			if !mine {
				return
			}
			a.numbered(one)
		}
	}
}

func (h *httpServer) delete(w http.ResponseWriter, r *http.Request) {
	if !speaks(w, r, nil) {
		return
	}
	if h.s.cfg.NoLegacy || !h.end(r.Header.Get("Mcp-Session-Id")) {
		Refuse(w, http.StatusNotFound, "no such session")
		return
	}
	if h.s.cfg.Observe != nil {
		_ = h.s.cfg.Observe(r.Context(), "DELETE", nil) // its error is not needed
	}
	w.WriteHeader(http.StatusNoContent)
}
