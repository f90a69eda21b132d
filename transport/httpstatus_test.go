package transport

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestStatusText checks the text of a response in an error: bounded, on one line, without credentials and without
// characters that a terminal acts on.
func TestStatusText(t *testing.T) {
	for _, c := range []struct {
		name, kind, body, want, not string
		status                      int
	}{
		{"RP-14_401", "text/plain", "Your key has expired.\n", "and says 'Your key has expired.'", "\n", 401},
		{"RP-14_403", "application/json", `{"error":"over quota"}`, `and says '{"error":"over quota"}'`, "", 403},
		{"RP-14_controls", "text/plain", "a\x1b[31mb\r\nc\u202ed\u009be\x00", "'a [31mb cd e'", "\x1b", 401},
		{"RP-14_long", "text/plain", strings.Repeat("x", 1000), strings.Repeat("x", 300) + "…'",
			strings.Repeat("x", 301), 401},
		{"RP-14_url", "text/plain", "see https://u:p@h/x?key=abc", "see https://***@h/x?key=***", "abc", 403},
		{"RP-14_not_utf8", "text/plain", "a\xffb", "'a\uFFFDb'", "", 401},
		{"RP-14_page", "text/html", "<html>no</html>", "refuses these credentials", "<html>", 401},
		{"RP-14_empty", "text/plain", " \n", "refuses these credentials", "says", 401},
		{"RP-14_503", "text/plain", "a\x1bb", "HTTP 503 Service Unavailable: a b", "\x1b", 503},
	} {
		t.Run(c.name, func(t *testing.T) {
			url, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", c.kind)
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			})
			for _, dial := range []func() error{
				func() error {
					_, err := exchange(t.Context(), dialHTTP(t, HTTPConfig{URL: url}), "x")
					return err
				},
				func() error {
					_, err := DialWebSocket(t.Context(), WebSocketConfig{URL: "ws" + strings.TrimPrefix(url, "http")})
					return err
				},
			} {
				err := dial()
				if text := fmt.Sprint(err); err == nil || !strings.Contains(text, c.want) ||
					c.not != "" && strings.Contains(text, c.not) {
					t.Errorf("%q", text)
				}
			}
		})
	}
}
