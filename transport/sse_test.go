package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/jsonrpc"
)

// oldServer runs an HTTP+SSE server. begin writes the first events; post handles messages.
func oldServer(t *testing.T, begin func(w func(string), r *http.Request), post http.HandlerFunc) string {
	t.Helper()
	url, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			post(w, r)
			return
		}
		begin(beginEvents(w), r)
	})
	return url
}

func accept(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) }

func dialSSE(t *testing.T, cfg HTTPConfig) (*SSE, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := DialSSE(ctx, cfg)
	if err == nil {
		t.Cleanup(func() { _ = s.Close() })
	}
	return s, err
}

// TestSSEEndpoint checks which addresses of an endpoint event are accepted.
func TestSSEEndpoint(t *testing.T) {
	for _, c := range []struct{ name, data, want, refused string }{
		{"relative", "/m?s=1", "/m?s=1", ""},
		{"beside", "m", "/m", ""},
		{"query", "?s=1", "/?s=1", ""},
		{"absolute", "http://HOST/m", "/m", ""},
		{"other_host", "http://evil.example/m", "", "another origin, http://evil.example"},
		{"other_port", "http://127.0.0.1:1/m", "", "another origin"},
		{"other_scheme", "https://HOST/m", "", "another origin"},
		{"no_scheme", "//evil.example/m", "", "another origin"},
		{"login", "http://u:p@evil.example/m", "", "another origin, http://evil.example"},
		{"empty", "", "", "not a valid URL"},
		{"no_url", "http://[", "", "not a valid URL"},
	} {
		t.Run(c.name, func(t *testing.T) {
			url := oldServer(t, func(w func(string), r *http.Request) {
				w("event: endpoint\ndata: " + strings.Replace(c.data, "HOST", r.Host, 1) + "\n\n")
				<-r.Context().Done()
			}, accept)
			s, err := dialSSE(t, HTTPConfig{URL: url})
			switch {
			case c.refused != "":
				if err == nil || !strings.Contains(err.Error(), c.refused) ||
					tenon.ErrorCode(err) != tenon.CodeProtocol {
					t.Errorf("%v", err)
				}
			case err != nil:
				t.Error(err)
			case s.endpoint.RequestURI() != c.want:
				t.Errorf("endpoint %s", s.endpoint)
			}
		})
	}
}

// TestSSEOpening checks that a failed opening returns its reason in time.
func TestSSEOpening(t *testing.T) {
	for _, c := range []struct {
		name  string
		begin func(w func(string), r *http.Request)
		idle  time.Duration // 0 for longer than dialSSE waits
		want  string
	}{
		{"ends", func(func(string), *http.Request) {}, 0, "ended before it named an endpoint: the server closed it"},
		{"silent", func(_ func(string), r *http.Request) { <-r.Context().Done() }, 100 * time.Millisecond,
			"no data received for 100ms"},
		{"huge", func(w func(string), r *http.Request) {
			w("data: " + strings.Repeat("x", 100_000))
			<-r.Context().Done()
		},
			0, "larger than the limit of 65536 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := dialSSE(t, HTTPConfig{URL: oldServer(t, c.begin, accept), IdleTimeout: c.idle,
				MaxMessage: 1 << 16})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Error(err)
			}
		})
	}
	t.Run("deadline", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		url := oldServer(t, func(_ func(string), r *http.Request) { <-r.Context().Done() }, accept)
		if _, err := DialSSE(ctx, HTTPConfig{URL: url}); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

// TestSSESession checks the errors of a lost session and of a broken stream.
func TestSSESession(t *testing.T) {
	endpoint := func(w func(string), r *http.Request) {
		w("event: endpoint\ndata: /m\n\n: hello\n\nevent: odd\ndata: {}\n\ndata: " + notice + "\n\n")
		<-r.Context().Done()
	}
	for _, status := range []int{400, 404, 410} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			s,
				err := dialSSE(t, HTTPConfig{URL: oldServer(t, endpoint,
				func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })})
			if err != nil {
				t.Fatal(err)
			}
			if b, err := s.Recv(t.Context()); string(b) != notice {
				t.Fatal(string(b), err)
			}
			var lost *jsonrpc.LostError
			if err := s.Send(t.Context(), request("x")); !errors.As(err, &lost) || lost.Sent {
				t.Errorf("send: %v", err)
			}
			if _, err := s.Recv(t.Context()); err == nil ||
				!strings.Contains(err.Error(), "no longer knows this session") {
				t.Errorf("recv: %v", err)
			}
		})
	}
	t.Run("refused_credentials", func(t *testing.T) {
		s,
			err := dialSSE(t, HTTPConfig{URL: oldServer(t, endpoint,
			func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) })})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Send(t.Context(), request("x")); tenon.ErrorCode(err) != tenon.CodeAuth {
			t.Error(err)
		}
	})
	t.Run("close_ends_recv", func(t *testing.T) {
		s, err := dialSSE(t, HTTPConfig{URL: oldServer(t, endpoint, accept)})
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(20*time.Millisecond, func() { _ = s.Close() })
		for range 3 {
			if _, err = s.Recv(t.Context()); err != nil {
				break
			}
		}
		if !errors.Is(err, io.EOF) {
			t.Error(err)
		}
	})
}
