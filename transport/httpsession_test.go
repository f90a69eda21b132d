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

// TestW10_Session checks how a session begins, is lost and ends.
func TestW10_Session(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	var forgotten atomic.Bool
	url, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var m struct{ Method string }
		_ = json.Unmarshal(body, &m)
		mu.Lock()
		seen = append(seen, strings.Join([]string{r.Method, m.Method, r.Header.Get("Mcp-Session-Id"),
			r.Header.Get("Mcp-Protocol-Version")}, " "))
		mu.Unlock()
		switch {
		case m.Method == "initialize":
			w.Header().Set("Mcp-Session-Id", "s1")
			answerJSON(w)
		case forgotten.Load():
			w.WriteHeader(http.StatusNotFound)
		case r.Method == http.MethodPost:
			answerJSON(w)
		}
	})
	take := func() []string {
		mu.Lock()
		defer mu.Unlock()
		defer func() { seen = nil }()
		return seen
	}
	tests := []struct {
		name string
		cfg  HTTPConfig
		last []string // requests of Close
	}{
		{"ended by Close", HTTPConfig{URL: url}, []string{"DELETE  s1 2025-11-25"}},
		{"kept", HTTPConfig{URL: url, KeepSession: true}, nil},
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
				take()); diff != "" {
				t.Error(diff)
			}
			_, _ = h.Close(), h.Close()
			if diff := cmp.Diff(tt.last, take()); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("forgotten", func(t *testing.T) {
		h := dialHTTP(t, HTTPConfig{URL: url})
		if _, err := exchange(t.Context(), h, "initialize"); err != nil {
			t.Fatal(err)
		}
		forgotten.Store(true)
		_, err := exchange(t.Context(), h, "a")
		if !errors.Is(err, ErrSession) || tenon.ErrorCode(err) != tenon.CodeUnreachable {
			t.Error(err)
		}
		h.DropOldSession()
		if h.Session() != "s1" {
			t.Error("dropped a session that initialize returned")
		}
		h.update(func(s *httpState) { s.given = false }) // initialize returned no session
		h.DropOldSession()
		if _, err := exchange(t.Context(), h, "a"); errors.Is(err, ErrSession) ||
			tenon.ErrorCode(err) != tenon.CodeProtocol {
			t.Error(err)
		}
		take()
		_ = h.Close()
		if len(take()) != 0 {
			t.Error("ended a session that does not exist")
		}
		forgotten.Store(false)
	})
	t.Run("modern", func(t *testing.T) {
		take()
		h := dialHTTP(t, HTTPConfig{URL: url})
		openSession(h, "s1")
		h.SetProtocol("2026-07-28", true)
		if _, err := exchange(t.Context(), h, "a"); err != nil {
			t.Fatal(err)
		}
		_ = h.Close()
		if diff := cmp.Diff([]string{"POST a  2026-07-28"}, take()); diff != "" {
			t.Error(diff)
		}
	})
}
