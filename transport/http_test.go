package transport

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/jsonrpc"
)

// serve starts a server that counts its network connections.
func serve(t *testing.T, h http.HandlerFunc) (url string, conns *atomic.Int32) {
	t.Helper()
	conns = new(atomic.Int32)
	s := httptest.NewUnstartedServer(h)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			conns.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	return s.URL, conns
}

// dialHTTP dials a server; it is closed before the server is.
func dialHTTP(t *testing.T, cfg HTTPConfig) *HTTP {
	t.Helper()
	h, err := DialHTTP(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

func request(method string) jsonrpc.Outgoing {
	return jsonrpc.Outgoing{ID: 1, Method: method, Body: jsonrpc.AppendRequest(nil, 1, method, nil)}
}

const (
	answer = `{"jsonrpc":"2.0","id":1,"result":{"ok":true}}`
	notice = `{"jsonrpc":"2.0","method":"notifications/message","params":{}}`
)

// exchange makes one call and returns the messages that it received.
func exchange(ctx context.Context, h *HTTP, method string) (got []string, err error) {
	err = h.Exchange(ctx, request(method), func(b []byte) bool {
		got = append(got, string(b))
		return strings.Contains(string(b), `"id":1`)
	})
	return got, err
}

func answerJSON(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, answer)
}

func beginEvents(w http.ResponseWriter) func(string) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	f := w.(http.Flusher)
	f.Flush()
	return func(s string) { _, _ = io.WriteString(w, s); f.Flush() }
}

// openSession sets a legacy session id on the client.
func openSession(h *HTTP, id string) {
	h.update(func(s *httpState) { s.session, s.protocol = id, "2025-11-25" })
}

func isLost(err error, sent bool) bool {
	var lost *jsonrpc.LostError
	return errors.As(err, &lost) && lost.Sent == sent
}

// answerLimit is the bound of a message in these tests.
const answerLimit = 64 << 10

// largeAnswer is an answer over the bound.
var largeAnswer = `{"jsonrpc":"2.0","id":1,"result":"` + strings.Repeat("x", answerLimit) + `"}`

func isOverLimit(err error) bool {
	var e *jsonrpc.SizeError
	return errors.As(err, &e) && e.Limit == answerLimit
}

// hasCode returns a check that an error has the code and contains the text.
func hasCode(want tenon.Code, text string) func(error) bool {
	return func(err error) bool {
		var e *tenon.Error
		return errors.As(err, &e) && e.Code == want && strings.Contains(e.Message, text)
	}
}

func answerStatus(n int, body string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) { http.Error(w, body, n) }
}

// answerType answers with a status, a content type and a body.
func answerType(n int, kind, body string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(n)
		_, _ = io.WriteString(w, body)
	}
}

// answerPacked answers with a gzip bomb of the content type.
func answerPacked(kind string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		for range 1000 {
			if _, err := io.WriteString(z, "data: "+largeAnswer[:answerLimit/2]); err != nil {
				return // the client has closed the connection
			}
		}
		_ = z.Close()
	}
}

type httpAnswer struct {
	name string
	give func(w http.ResponseWriter)
	want func(error) bool // nil for no error
}

// overBound are answers that exceed the limit of a message.
var overBound = []httpAnswer{
	{"L1 over the bound", func(w http.ResponseWriter) {
		w.Header().Set("Content-Length", fmt.Sprint(len(largeAnswer)))
		answerType(200, "application/json", largeAnswer)(w)
	}, isOverLimit},
	{"L1 over the bound, without a length", func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/json")
		w.(http.Flusher).Flush()
		_, _ = io.WriteString(w, largeAnswer)
	}, isOverLimit},
	{"L1 a length that is a lie", func(w http.ResponseWriter) {
		w.Header().Set("Content-Length", fmt.Sprint(int64(1)<<40))
		answerType(200, "application/json", answer)(w)
	}, isOverLimit},
	{"L2 one event over the bound", func(w http.ResponseWriter) { beginEvents(w)("data: " + largeAnswer) }, isOverLimit},
	{"L2 many lines of one event", func(w http.ResponseWriter) {
		beginEvents(w)(strings.Repeat("data: "+largeAnswer[:1000]+"\n", 100) + "\n")
	}, isOverLimit},
	{"L3 gzip bomb, json", answerPacked("application/json"), isOverLimit},
	{"L3 gzip bomb, events", answerPacked("text/event-stream"), isOverLimit},
	{"L3 gzip bomb, an error's text", func(w http.ResponseWriter) {
		w.Header().Set("X", "y")
		answerPacked("text/plain")(w)
	}, hasCode(tenon.CodeProtocol, "text/plain")},
}

var httpAnswers = []httpAnswer{
	{"json", answerJSON, nil},
	{"content type in capitals, with parameters", answerType(200, "Application/JSON; charset=UTF-8", answer), nil},
	{"cut off, with a length", func(w http.ResponseWriter) {
		w.Header().Set("Content-Length", "1000")
		answerType(200, "application/json", answer)(w)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}, func(err error) bool { return isLost(err, true) && strings.Contains(err.Error(), "cut off") }},
	{"cut off, without a length", func(w http.ResponseWriter) {
		answerType(200, "application/json", answer[:10])(w)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}, func(err error) bool { return isLost(err, true) && strings.Contains(err.Error(), "cut off") }},
	{"no answer at all", func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
		func(err error) bool {
			return isLost(err, true) && strings.Contains(err.Error(), "closed the connection without a response")
		}},
	{"events end without an answer", func(w http.ResponseWriter) { beginEvents(w)("data: " + notice + "\n\n") },
		func(err error) bool { return isLost(err, true) }},
	{"the answer to something else", answerType(200, "application/json", notice),
		func(err error) bool { return isLost(err, true) }},
	{"202 to a request", answerStatus(202, ""), func(err error) bool { return isLost(err, true) }},
	{"W14 a web page", answerType(200, "text/html; charset=utf-8", "<html>Sign in</html>"),
		hasCode(tenon.CodeProtocol, "web page")},
	{"W14 404 without a session", answerStatus(404, "not here"),
		hasCode(tenon.CodeProtocol, "HTTP 404 Not Found: not here")},
	{"401", func(w http.ResponseWriter) {
		w.Header().Set("WWW-Authenticate", `Bearer realm="x"`)
		answerStatus(401, "who?")(w)
	}, func(err error) bool {
		var e *StatusError
		return hasCode(tenon.CodeAuth, "401")(err) && errors.As(err, &e) && e.Challenge == `Bearer realm="x"`
	}},
	{"401 as a JSON-RPC error", answerType(401, "application/json",
		`{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}`), hasCode(tenon.CodeAuth, "401")},
	{"403", answerStatus(403, ""), hasCode(tenon.CodeAuth, "403")},
	{"429", func(w http.ResponseWriter) { w.Header().Set("Retry-After", "7"); answerStatus(429, "slow down")(w) },
		func(err error) bool {
			var e *StatusError
			return hasCode(tenon.CodeRateLimited, "429")(err) && errors.As(err, &e) && e.RetryAfter == "7"
		}},
	{"429 as a JSON-RPC error", answerType(429, "application/json",
		`{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}`), hasCode(tenon.CodeRateLimited, "429")},
	{"503", answerStatus(503, ""), hasCode(tenon.CodeUnreachable, "503")},
	{"500", answerStatus(500, "oh\x1b[31m no"), func(err error) bool {
		return isLost(err, true) && err.Error() == "HTTP 500 Internal Server Error: oh [31m no"
	}},
	{"400 with an error of this request",
		answerType(400, "application/json", `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}`), nil},
	{"400 with an error of nobody", answerType(400, "application/json",
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"bad"}}`),
		func(err error) bool { var e *jsonrpc.Error; return errors.As(err, &e) && e.Code == -32600 }},
	{"302", func(w http.ResponseWriter) { w.Header().Set("Location", "/login"); w.WriteHeader(302) },
		hasCode(tenon.CodeProtocol, `redirects to "/login"`)},
}

// TestHTTPAnswers checks the result of each kind of response, and that the next call works: a bad response
// fails only one call.
func TestHTTPAnswers(t *testing.T) {
	for _, tt := range slices.Concat(httpAnswers, overBound) {
		t.Run(tt.name, func(t *testing.T) {
			var n atomic.Int32
			url, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				if n.Add(1) == 1 {
					tt.give(w)
					return
				}
				answerJSON(w)
			})
			h := dialHTTP(t, HTTPConfig{URL: url, MaxMessage: answerLimit})
			_, err := exchange(t.Context(), h, "tools/call")
			if tt.want == nil && err != nil || tt.want != nil && !tt.want(err) {
				t.Errorf("%T: %v", errors.Unwrap(err), err)
			}
			if got, err := exchange(t.Context(), h, "tools/call"); err != nil || len(got) != 1 || got[0] != answer {
				t.Errorf("the next call: %v, %q", err, got)
			}
		})
	}
}

func TestHTTPUnreachable(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	_, err := exchange(t.Context(), dialHTTP(t, HTTPConfig{URL: s.URL}), "x")
	if !isLost(err, false) || !strings.Contains(err.Error(), "cannot be reached") {
		t.Error(err)
	}
	t.Run("an untrusted certificate", func(t *testing.T) {
		s := httptest.NewUnstartedServer(http.NotFoundHandler())
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		s.StartTLS()
		defer s.Close()
		_, err := exchange(t.Context(), dialHTTP(t, HTTPConfig{URL: s.URL}), "x")
		if !isLost(err, false) || !strings.Contains(err.Error(), "no secure connection") {
			t.Error(err)
		}
	})
	for _, url := range []string{"", "ftp://x/", "http://", "://", "http://[::1"} {
		if _, err := DialHTTP(HTTPConfig{URL: url}); tenon.ErrorCode(err) != tenon.CodeConfig {
			t.Errorf("%q: %v", url, err)
		}
	}
}

// TestL10_Redirects checks that no credentials are sent to another origin.
func TestL10_Redirects(t *testing.T) {
	var foreign atomic.Int32
	other, _ := serve(t, func(http.ResponseWriter, *http.Request) { foreign.Add(1) })
	url, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		to := map[string]string{"/away": other + "/mcp", "/here": "/mcp?x=1", "/loop": "/loop"}[r.URL.Path]
		if to == "" {
			body, _ := io.ReadAll(r.Body)
			if r.Header.Get("Authorization") != "Bearer s3cret" || r.Method == http.MethodPost &&
				!strings.Contains(string(body), `"id":1`) {
				t.Errorf("%s %v %s", r.Method, r.Header, body)
			}
			if r.Method == http.MethodGet {
				beginEvents(w)("data: " + notice + "\n\n")
				return
			}
			answerJSON(w)
			return
		}
		http.Redirect(w, r, to, http.StatusTemporaryRedirect)
	})
	headers := map[string]string{"Authorization": "Bearer s3cret"}
	h := dialHTTP(t, HTTPConfig{URL: url + "/away", Headers: headers})
	_, err := exchange(t.Context(), h, "tools/call")
	var status *StatusError
	if tenon.ErrorCode(err) != tenon.CodeProtocol || !errors.As(err, &status) ||
		!strings.HasPrefix(status.Location, other) {
		t.Error(err)
	}
	if err := h.Send(t.Context(), request("x")); tenon.ErrorCode(err) != tenon.CodeProtocol {
		t.Error(err)
	}
	if err := h.Listen(t.Context(), func(error) {}, func([]byte) bool { return false }); err == nil {
		t.Error("Listen followed a redirect to another origin")
	}
	openSession(h, "s")
	_ = h.Close() // must not follow a redirect either
	if n := foreign.Load(); n != 0 {
		t.Errorf("%d requests went to another origin", n)
	}

	h = dialHTTP(t, HTTPConfig{URL: url + "/here", Headers: headers})
	if got, err := exchange(t.Context(), h, "tools/call"); err != nil || len(got) != 1 {
		t.Error(got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := h.Listen(ctx, func(error) {}, func([]byte) bool { cancel(); return false }); !errors.Is(err,
		context.Canceled) {
		t.Error(err)
	}
	_, err = exchange(t.Context(), dialHTTP(t, HTTPConfig{URL: url + "/loop", Headers: headers}), "tools/call")
	if tenon.ErrorCode(err) != tenon.CodeProtocol || !strings.Contains(err.Error(), "more than 3 times") {
		t.Error(err)
	}
}

// TestHTTPReuse checks that sequential calls share one network connection, whatever the form of their
// responses.
func TestHTTPReuse(t *testing.T) {
	var n atomic.Int32
	url, conns := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		switch n.Add(1) % 5 {
		case 0:
			beginEvents(w)("data: " + notice + "\n\ndata: " + answer + "\n\n")
		case 1:
			answerJSON(w)
		case 2:
			w.Header().Set("Content-Type", "application/json")
			w.(http.Flusher).Flush() // sends no Content-Length
			_, _ = io.WriteString(w, answer)
		case 3:
			http.Error(w, "no", http.StatusBadRequest)
		case 4: // sends a response to a notification, which is wrong
			answerJSON(w)
		}
	})
	h := dialHTTP(t, HTTPConfig{URL: url})
	for range 4 {
		for i := range 5 {
			if i == 3 {
				_ = h.Send(t.Context(), jsonrpc.Outgoing{Method: "notifications/x", Body: []byte(notice)})
				continue
			}
			if got, err := exchange(t.Context(), h, "a"); (err != nil) != (i == 2) ||
				i != 2 && got[len(got)-1] != answer {
				t.Errorf("call %d: %q %v", i, got, err)
			}
		}
	}
	if conns.Load() != 1 {
		t.Errorf("%d connections", conns.Load())
	}
}

// TestHTTPConcurrent checks that callers do not wait for each other and that each gets its own response.
func TestHTTPConcurrent(t *testing.T) {
	const callers = 50
	var here sync.WaitGroup
	here.Add(callers)
	url, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		here.Done()
		here.Wait() // until all requests have arrived
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body)
	})
	h := dialHTTP(t, HTTPConfig{URL: url})
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			body := jsonrpc.AppendRequest(nil, int64(i+1), "a", nil)
			err := h.Exchange(t.Context(), jsonrpc.Outgoing{ID: int64(i + 1), Method: "a", Body: body},
				func(b []byte) bool { return string(b) == string(body) })
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// TestHTTPClose checks that Close ends running calls with an error that says so.
func TestHTTPClose(t *testing.T) {
	begun := make(chan struct{})
	url, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		close(begun)
		<-r.Context().Done()
	})
	h := dialHTTP(t, HTTPConfig{URL: url})
	done := make(chan error, 1)
	go func() {
		_, err := exchange(context.Background(), h, "slow")
		done <- err
	}()
	<-begun
	_ = h.Close()
	if err := <-done; !isLost(err, true) || !strings.Contains(err.Error(), "was closed") {
		t.Error(err)
	}
	if _, err := exchange(t.Context(), h, "a"); !isLost(err, false) {
		t.Error(err)
	}
	if _, err := h.Recv(t.Context()); err != io.EOF {
		t.Error(err)
	}
}

func TestHTTPHeaders(t *testing.T) {
	var got http.Header
	url, _ := serve(t, func(w http.ResponseWriter, r *http.Request) { got = r.Header; answerJSON(w) })
	h := dialHTTP(t, HTTPConfig{URL: url, Headers: map[string]string{"x-key": "k", "user-agent": "mine"}})
	h.SetProtocol("2026-07-28", true)
	m := request("tools/call")
	m.Name, m.Header = "städte", map[string]string{"Mcp-Param-X": "1"}
	if err := h.Exchange(t.Context(), m, func([]byte) bool { return true }); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"X-Key": "k", "User-Agent": "mine", "Mcp-Method": "tools/call",
		"Mcp-Param-X": "1",
		"Mcp-Name":    "=?base64?c3TDpGR0ZQ==?=", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Session-Id": "",
		"Accept": "application/json, text/event-stream", "Content-Type": "application/json"} {
		if got.Get(name) != want {
			t.Errorf("%s: %q, want %q", name, got.Get(name), want)
		}
	}
	if v := h.header.Get("Mcp-Method"); v != "" {
		t.Error("the shared headers were changed")
	}
}
