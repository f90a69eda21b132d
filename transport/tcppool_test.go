package transport

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// rawServer answers each request on each connection with what answer returns: the bytes of the response, and whether
// the connection is closed afterwards. It counts connections and requests.
type rawServer struct {
	url                    string
	conns, requests, ended atomic.Int32
}

func startRaw(t *testing.T, answer func(n int32, body string) (response string, closes bool)) *rawServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &rawServer{url: "http://" + l.Addr().String()}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.conns.Add(1)
			go func() {
				defer func() { _ = c.Close(); s.ended.Add(1) }()
				in := bufio.NewReader(c)
				for {
					r, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					b, err := io.ReadAll(r.Body)
					if err != nil {
						return
					}
					response, closes := answer(s.requests.Add(1), string(b))
					if _, err := io.WriteString(c, response); err != nil || closes {
						return
					}
				}
			}()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return s
}

// postTo sends a body through a pool.
func postTo(ctx context.Context, p *tcpPool, url, body string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	return p.RoundTrip(r)
}

// bodyOf returns the whole body of a response.
func bodyOf(t *testing.T, resp *http.Response, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return string(b)
}

func pool(t *testing.T) *tcpPool {
	p := newTCPPool(network(4, nil), 4)
	t.Cleanup(p.CloseIdleConnections)
	return p
}

func ok(body string) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

// TestTCPPool checks that each form of a response reaches the caller whole, and whether the connection is used again.
func TestTCPPool(t *testing.T) {
	if !checksIdle {
		t.Skip("on this platform net/http sends all requests")
	}
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = io.WriteString(z, "x")
	_ = z.Close()
	for name, test := range map[string]struct {
		response string
		closes   bool
		body     string
		conns    int32 // for three requests
	}{
		"length":          {ok("x"), false, "x", 1},
		"empty":           {ok(""), false, "", 1},
		"no content":      {"HTTP/1.1 204 No Content\r\n\r\n", false, "", 1},
		"chunked":         {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", false, "x", 1},
		"to the end":      {"HTTP/1.1 200 OK\r\n\r\nx", true, "x", 3},
		"closes":          {"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx", true, "x", 3},
		"closes unsaid":   {ok("x"), true, "x", 3},
		"1.0":             {"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", true, "x", 3},
		"interim":         {"HTTP/1.1 103 Early Hints\r\nLink: y\r\n\r\n" + ok("x"), false, "x", 1},
		"gzip":            {"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n" + strings.TrimPrefix(ok(zipped.String()), "HTTP/1.1 200 OK\r\n"), false, "x", 1},
		"more than said":  {ok("x") + "HTTP/1.1 200 OK\r\n", false, "x", 3},
		"an error status": {"HTTP/1.1 500 No\r\nContent-Length: 1\r\n\r\nx", false, "x", 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := startRaw(t, func(int32, string) (string, bool) { return test.response, test.closes })
			p := pool(t)
			for n := range int32(3) {
				resp, err := postTo(t.Context(), p, s.url, "hello")
				if got := bodyOf(t, resp, err); got != test.body {
					t.Errorf("%q, want %q", got, test.body)
				}
				for test.conns == 3 && s.ended.Load() <= n { // until the connection has ended
					time.Sleep(time.Millisecond)
				}
			}
			if n := s.conns.Load(); n != test.conns {
				t.Errorf("%d connections, want %d", n, test.conns)
			}
		})
	}
}

// TestTCPPoolRefuses checks that no request is sent a second time after its bytes were sent, and that a response which
// never ends being a head is an error.
func TestTCPPoolRefuses(t *testing.T) {
	if !checksIdle {
		t.Skip("on this platform net/http sends all requests")
	}
	for name, test := range map[string]struct {
		response string
		want     error
	}{
		"nothing":   {"", io.EOF},
		"cut":       {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n", io.ErrUnexpectedEOF},
		"long head": {"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 70<<10) + "\r\n\r\n", errHead},
		"interim":   {strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 9), nil},
		"switches":  {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := startRaw(t, func(n int32, _ string) (string, bool) {
				if n == 1 {
					return ok("x"), false
				}
				return test.response, true
			})
			p := pool(t)
			resp, err := postTo(t.Context(), p, s.url, "one")
			bodyOf(t, resp, err)
			_, err = postTo(t.Context(), p, s.url, "two") // on the same connection
			if err == nil || test.want != nil && !errors.Is(err, test.want) {
				t.Errorf("%v, want %v", err, test.want)
			}
			if n := s.requests.Load(); n != 2 {
				t.Errorf("%d requests arrived, want 2", n)
			}
		})
	}
}

// TestTCPPoolCancelled checks that the end of its context ends a request before its response, and in the middle of it.
func TestTCPPoolCancelled(t *testing.T) {
	if !checksIdle {
		t.Skip("on this platform net/http sends all requests")
	}
	cause := errors.New("enough")
	for name, response := range map[string]string{"before": "", "within": "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"} {
		t.Run(name, func(t *testing.T) {
			arrived, left := make(chan struct{}), make(chan struct{})
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			go func() {
				defer close(left)
				c, err := l.Accept()
				if err != nil {
					return
				}
				defer c.Close()
				in := bufio.NewReader(c)
				if r, err := http.ReadRequest(in); err == nil {
					_, _ = io.Copy(io.Discard, r.Body)
				}
				_, _ = io.WriteString(c, response)
				close(arrived)
				_, _ = in.ReadByte() // until the client leaves
			}()
			ctx, cancel := context.WithCancelCause(t.Context())
			go func() { <-arrived; cancel(cause) }()
			resp, err := postTo(ctx, pool(t), "http://"+l.Addr().String(), "hello")
			if err == nil {
				_, err = io.ReadAll(resp.Body)
				_ = resp.Body.Close()
			}
			if !errors.Is(err, cause) {
				t.Errorf("%v, want %v", err, cause)
			}
			<-left
		})
	}
}

// TestTCPPoolLeavesToNetHTTP checks which requests the pool does not send itself.
func TestTCPPoolLeavesToNetHTTP(t *testing.T) {
	p := pool(t)
	for name, change := range map[string]func(*http.Request){
		"https":        func(r *http.Request) { r.URL.Scheme = "https" },
		"GET":          func(r *http.Request) { r.Method = http.MethodGet },
		"large":        func(r *http.Request) { r.ContentLength = maxDirect + 1 },
		"line break":   func(r *http.Request) { r.Header["X"] = []string{"a\r\nB: c"} },
		"bad name":     func(r *http.Request) { r.Header["X:"] = []string{"a"} },
		"own encoding": func(r *http.Request) { r.Header.Set("Accept-Encoding", "br") },
		"other host":   func(r *http.Request) { r.Host = "other" },
		"unrepeatable": func(r *http.Request) { r.GetBody = nil },
	} {
		r, err := http.NewRequest(http.MethodPost, "http://127.0.0.1/", strings.NewReader("hello"))
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := p.head(r); ok != checksIdle {
			t.Errorf("%s: before the change: %t", name, ok)
		}
		change(r)
		if _, ok := p.head(r); ok {
			t.Errorf("%s: the pool sends it", name)
		}
	}
}
