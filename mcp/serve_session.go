package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/tenonhq/tenon/jsonrpc"
)

// httpSession is a legacy session: its connection, its notification stream, and the requests that can be cancelled.
type httpSession struct {
	*serverConn
	notices chan []byte

	mu    sync.Mutex
	open  map[string]context.CancelCauseFunc
	users int                             // streams and requests
	used  time.Time                       // when the last of them ended
	asked map[string]chan jsonrpc.Message // requests to the client, by id
	last  int64
	sent  sentEvents
}

// maxSessions is the maximum number of sessions that clients can begin with initialize.
const maxSessions = 10_000

// enter records a request. It returns false if a request with the same id is running.
func (s *httpSession) enter(id []byte, cancel context.CancelCauseFunc) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[string(id)] != nil {
		return false
	}
	s.open[string(id)] = cancel
	return true
}

// use marks the session as in use until done is called.
func (s *httpSession) use() (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.users--
		s.used = time.Now()
	}
}

// isIdle reports whether the session has not been used for a time.
func (s *httpSession) isIdle(after time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return after > 0 && s.users == 0 && len(s.open) == 0 && time.Since(s.used) > after
}

// errCancelled is the cause of the end of a request's context if the client cancelled the request.
var errCancelled = errors.New("the request was cancelled")

// cancel ends the context of a request and releases its id.
func (s *httpSession) cancel(id []byte, cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel := s.open[string(id)]; cancel != nil {
		cancel(cause)
		delete(s.open, string(id))
	}
}

// asking returns a function that sends a request to the client with send. The client sends its response in a separate
// POST.
func (s *httpSession) asking(send func([]byte)) AskFunc {
	return func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
		answer := make(chan jsonrpc.Message, 1)
		s.mu.Lock()
		s.last++
		id := s.last
		key := strconv.FormatInt(id, 10)
		s.asked[key] = answer
		s.mu.Unlock()
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.asked, key)
		}()
		send(jsonrpc.AppendRequest(nil, id, method, params))
		select {
		case m := <-answer:
			if m.Error != nil {
				return nil, jsonrpc.ParseError(m.Error)
			}
			return m.Result, nil
		case <-ctx.Done():
			send(jsonrpc.AppendRequest(nil, 0, "notifications/cancelled",
				append(member([]byte{'{'}, "requestId", []byte(key)), '}')))
			return nil, ctx.Err()
		}
	}
}

// answered passes a response of the client to the function that waits for it. A response without a request is
// dropped.
func (s *httpSession) answered(m jsonrpc.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if answer := s.asked[string(m.ID)]; answer != nil {
		delete(s.asked, string(m.ID))
		answer <- m
	}
}

func (h *httpServer) begin() (*httpSession, string, bool) {
	id := h.cfg.NewSession()
	s := &httpSession{serverConn: &serverConn{s: h.s, subs: map[string][]byte{}}, notices: make(chan []byte, 64),
		used: time.Now(),
		open: map[string]context.CancelCauseFunc{}, asked: map[string]chan jsonrpc.Message{}}
	s.ask = s.asking(func(b []byte) {
		select {
		case s.notices <- b:
		default: // no client reads, or it reads too slowly
		}
	})
	s.notify = func(method string, params []byte) {
		select {
		case s.notices <- jsonrpc.AppendRequest(nil, 0, method, params):
		default: // no client reads, or it reads too slowly
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, old := range h.sessions { // clients may vanish without ending their sessions
		if old.isIdle(h.cfg.SessionIdle) {
			h.s.leave(old.serverConn)
			delete(h.sessions, id)
		}
	}
	if len(h.sessions) >= maxSessions {
		return nil, "", false
	}
	h.sessions[id] = s
	h.s.join(s.serverConn)
	return s, id, true
}

func (h *httpServer) end(id string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	s, ok := h.sessions[id]
	if ok {
		h.s.leave(s.serverConn)
		delete(h.sessions, id)
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, cancel := range s.open { // nobody can answer their questions any more
			cancel(nil)
		}
	}
	return ok
}

// session returns the session that a request names. If it returns nil, it has sent an error response.
func (h *httpServer) session(w http.ResponseWriter, r *http.Request) *httpSession {
	id := r.Header.Get("Mcp-Session-Id")
	if id == "" {
		Refuse(w, http.StatusBadRequest, "the header Mcp-Session-Id is missing")
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.sessions[id]
	if s == nil {
		Refuse(w, http.StatusNotFound, "no such session")
		return nil
	}
	s.use()()
	return s
}
