package transport

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestL11_Silence checks that comments count as silence and that the call ends.
func TestL11_Silence(t *testing.T) {
	for name, comments := range map[string]bool{"comments": true, "nothing": false} {
		t.Run(name, func(t *testing.T) {
			url, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
				send := beginEvents(w)
				for r.Context().Err() == nil {
					if comments {
						send(": still here\n")
					}
					time.Sleep(5 * time.Millisecond)
				}
			})
			h := dialHTTP(t, HTTPConfig{URL: url, IdleTimeout: 60 * time.Millisecond})
			_, err := exchange(t.Context(), h, "tools/call")
			if !isLost(err, true) || !strings.Contains(err.Error(), "no data received for 60ms") {
				t.Error(err)
			}
		})
	}
	t.Run("the caller's deadline", func(t *testing.T) {
		url, _ := serve(t, func(w http.ResponseWriter, r *http.Request) { beginEvents(w); <-r.Context().Done() })
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		defer cancel()
		if _, err := exchange(ctx, dialHTTP(t, HTTPConfig{URL: url}), "x"); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

// TestResume checks that a broken stream with event ids is resumed after the server's own retry time.
func TestResume(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	url, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.Method+" "+r.Header.Get("Last-Event-Id")+" "+r.Header.Get("Mcp-Session-Id"))
		n := len(asked)
		mu.Unlock()
		if n == 2 {
			w.WriteHeader(http.StatusBadGateway) // a transient proxy error
			return
		}
		send := beginEvents(w)
		switch n {
		case 1:
			send("retry: 1\nid: a\ndata:\n\n" + "id: b\ndata: " + notice + "\n\n")
		case 3:
			send("data: " + answer + "\n\n")
		}
	})
	h := dialHTTP(t, HTTPConfig{URL: url, KeepSession: true})
	openSession(h, "s1")
	got, err := exchange(t.Context(), h, "tools/call")
	if diff := cmp.Diff([]string{notice, answer}, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
	if diff := cmp.Diff([]string{"POST  s1", "GET b s1", "GET b s1"}, asked); diff != "" {
		t.Error(diff)
	}
}

// TestResumeRefused checks the error of a broken stream that cannot be resumed. It must not look like a
// refused request, because the request may have taken effect.
func TestResumeRefused(t *testing.T) {
	for _, status := range []int{404, 405, 400} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			var gets atomic.Int32
			url, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					gets.Add(1)
					w.WriteHeader(status)
					return
				}
				beginEvents(w)("retry: 1\nid: a\ndata:\n\n")
			})
			h := dialHTTP(t, HTTPConfig{URL: url, KeepSession: true})
			openSession(h, "s")
			_, err := exchange(t.Context(), h, "tools/call")
			if !isLost(err, true) || errors.Is(err, ErrSession) || gets.Load() != 1 {
				t.Errorf("%v after %d tries", err, gets.Load())
			}
		})
	}
	t.Run("a modern stream", func(t *testing.T) {
		url, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodPost {
				t.Errorf("%s in the modern era", r.Method)
			}
			beginEvents(w)("retry: 1\nid: a\ndata: " + notice + "\n\n")
		})
		h := dialHTTP(t, HTTPConfig{URL: url})
		h.SetProtocol("2026-07-28", true)
		if _, err := exchange(t.Context(), h, "tools/call"); !isLost(err, true) {
			t.Error(err)
		}
	})
}

// TestW11_NoticeStream checks a notification stream that is closed repeatedly. The session survives, requests
// are not repeated quickly, and delivered events are not requested again.
func TestW11_NoticeStream(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var mu sync.Mutex
	var asked []string
	var at []time.Time
	url, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			answerJSON(w)
			return
		}
		mu.Lock()
		asked, at = append(asked, r.Header.Get("Last-Event-Id")), append(at, time.Now())
		n := len(asked)
		mu.Unlock()
		if n == 3 {
			cancel()
		}
		send := beginEvents(w)
		if n == 1 {
			send("retry: 5\nid: 7\ndata: " + notice + "\n\n")
		}
	})
	h := dialHTTP(t, HTTPConfig{URL: url, KeepSession: true})
	openSession(h, "s")
	var notices atomic.Int32
	done := make(chan error, 1)
	go func() { done <- h.Listen(ctx, func(error) {}, func([]byte) bool { notices.Add(1); return false }) }()
	for range 5 {
		if _, err := exchange(t.Context(), h, "tools/call"); err != nil {
			t.Error(err)
		}
	}
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	// The second stream was opened after the server's own retry time of 5 ms. It sent nothing.
	if diff := cmp.Diff([]string{"", "7", "7"}, asked); diff != "" || notices.Load() != 1 || h.Session() != "s" {
		t.Errorf("asked for %q, %d notices, session %q", asked, notices.Load(), h.Session())
	} else if waited := at[2].Sub(at[1]); waited < backoff(0, 1) {
		t.Errorf("retried %s after a stream without events, want %s", waited, backoff(0, 1))
	}
	for tries, want := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second} {
		if d := backoff(0, tries); d != want {
			t.Errorf("pause %d is %s", tries, d)
		}
	}
	if backoff(0, 1000) != maxRetry || backoff(time.Hour, 0) != maxRetry {
		t.Error("the backoff is not bounded")
	}
}

func TestListenRefused(t *testing.T) {
	for _, status := range []int{405, 404} {
		url, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
		h := dialHTTP(t, HTTPConfig{URL: url, KeepSession: true})
		openSession(h, "s")
		err := h.Listen(t.Context(), func(error) {}, func([]byte) bool { return false })
		if err == nil || errors.Is(err, ErrSession) != (status == 404) {
			t.Errorf("%d: %v", status, err)
		}
	}
}

func FuzzHeaderValue(f *testing.F) {
	for _, s := range []string{"", "add", " a", "a\t", "ä", "=?base64?YQ==?=", "=?base64?", "\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v := HeaderValue(s)
		if got, ok := DecodeHeaderValue(v); !ok || got != s {
			t.Errorf("%q became %q and then %q", s, v, got)
		}
		for i := range len(v) {
			if v[i] < 0x20 || v[i] > 0x7e {
				t.Errorf("%q is not a header value", v)
			}
		}
	})
}
