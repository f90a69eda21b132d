package transport

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tenonhq/tenon"
)

// sessionServer is a server with a session. It records the requests with their session and their version.
type sessionServer struct {
	url       string
	mu        sync.Mutex
	seen      []string
	forgotten atomic.Bool // whether the server no longer knows the session
}

func (s *sessionServer) answer(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var m struct{ Method string }
	_ = json.Unmarshal(body, &m)
	s.mu.Lock()
	s.seen = append(s.seen, strings.Join([]string{r.Method, m.Method, r.Header.Get("Mcp-Session-Id"),
		r.Header.Get("Mcp-Protocol-Version")}, " "))
	s.mu.Unlock()
	switch {
	case m.Method == "initialize":
		w.Header().Set("Mcp-Session-Id", "s1")
		answerJSON(w)
	case s.forgotten.Load():
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodPost:
		answerJSON(w)
	}
}

// take returns the requests since its last call.
func (s *sessionServer) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.seen = nil }()
	return s.seen
}

// TestW10_Session checks how a session begins, is lost and ends.
func TestW10_Session(t *testing.T) {
	s := &sessionServer{}
	s.url, _ = serve(t, s.answer)
	tests := []struct {
		name string
		cfg  HTTPConfig
		last []string // requests of Close
	}{
		{"ended by Close", HTTPConfig{URL: s.url}, []string{"DELETE  s1 2025-11-25"}},
		{"kept", HTTPConfig{URL: s.url, KeepSession: true}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := dialHTTP(t, tt.cfg)
			for _, method := range []string{"initialize", "a", "initialize"} {
				if _, err := exchange(t.Context(), h, method); err != nil {
					t.Fatal(err)
				}
				h.SetProtocol("2025-11-25", false)
			}
			if diff := cmp.Diff([]string{"POST initialize  ", "POST a s1 2025-11-25", "POST initialize  "},
				s.take()); diff != "" {
				t.Error(diff)
			}
			_, _ = h.Close(), h.Close()
			if diff := cmp.Diff(tt.last, s.take()); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("forgotten", s.testForgotten)
	t.Run("modern", s.testModern)
}

func (s *sessionServer) testForgotten(t *testing.T) {
	h := dialHTTP(t, HTTPConfig{URL: s.url})
	if _, err := exchange(t.Context(), h, "initialize"); err != nil {
		t.Fatal(err)
	}
	s.forgotten.Store(true)
	_, err := exchange(t.Context(), h, "a")
	if !errors.Is(err, ErrSession) || tenon.ErrorCode(err) != tenon.CodeUnreachable {
		t.Error(err)
	}
	h.DropOldSession()
	if h.Session() != "s1" {
		t.Error("dropped a session that initialize returned")
	}
	h.update(func(st *httpState) { st.given = false }) // initialize returned no session
	h.DropOldSession()
	if _, err := exchange(t.Context(), h, "a"); errors.Is(err, ErrSession) ||
		tenon.ErrorCode(err) != tenon.CodeProtocol {
		t.Error(err)
	}
	s.take()
	_ = h.Close()
	if len(s.take()) != 0 {
		t.Error("ended a session that does not exist")
	}
	s.forgotten.Store(false)
}

func (s *sessionServer) testModern(t *testing.T) {
	s.take()
	h := dialHTTP(t, HTTPConfig{URL: s.url})
	openSession(h, "s1")
	h.SetProtocol("2026-07-28", true)
	if _, err := exchange(t.Context(), h, "a"); err != nil {
		t.Fatal(err)
	}
	_ = h.Close()
	if diff := cmp.Diff([]string{"POST a  2026-07-28"}, s.take()); diff != "" {
		t.Error(diff)
	}
}
