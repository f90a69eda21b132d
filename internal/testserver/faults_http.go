package testserver

import (
	"bytes"
	"compress/gzip"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/tenonhq/tenon/jsonrpc"
)

// webWire responds to a POST: with JSON for one message, with an event stream for several.
type webWire struct {
	w       http.ResponseWriter
	r       *http.Request
	waiting []byte // the first message, until a second one follows
	begun   bool   // the response has been started
	events  bool
}

func (h *webWire) message(b []byte) {
	switch {
	case h.events:
		h.event(b)
	case h.waiting == nil && !h.begun:
		h.waiting = bytes.Clone(b)
	default:
		h.w.Header().Set("Content-Type", "text/event-stream")
		h.events, h.begun = true, true
		if first := h.waiting; first != nil {
			h.waiting = nil
			h.event(first)
		}
		h.event(b)
	}
}

func (h *webWire) event(b []byte) {
	_, _ = h.w.Write(append(append([]byte("data: "), bytes.ReplaceAll(b, []byte("\n"), []byte(" "))...), "\n\n"...))
}

func (h *webWire) raw(b []byte) {
	if !h.begun {
		h.w.Header().Set("Content-Type", "application/json")
		h.begun = true
	}
	_, _ = h.w.Write(b)
	_ = http.NewResponseController(h.w).Flush()
}

func (h *webWire) drop() {
	h.finish()
	panic(http.ErrAbortHandler)
}

// finish writes the waiting message.
func (h *webWire) finish() {
	if h.waiting != nil {
		h.raw(h.waiting)
		h.waiting = nil
	}
}

// misbehave applies the fault to a handler of POST requests.
func (s *server) misbehave(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			next.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(io.LimitReader(r.Body, 4<<20))
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		var m jsonrpc.Message
		if jsonrpc.Parse(body, &m) != nil || !m.IsRequest() || !s.fault.meets(m.Method) {
			next.ServeHTTP(w, r)
			return
		}
		rec := &kept{header: http.Header{}}
		next.ServeHTTP(rec, r)
		for k, v := range rec.header {
			if k != "Content-Length" && k != "Content-Type" {
				w.Header()[k] = v
			}
		}
		out := &webWire{w: w, r: r}
		s.fault.reply(out, &right{id: m.ID, params: m.Params, method: m.Method, answer: rec.body.Bytes(),
			ctx: r.Context()})
		out.finish()
	})
}

// kept records a response instead of sending it.
type kept struct {
	header http.Header
	body   bytes.Buffer
}

func (k *kept) Header() http.Header         { return k.header }
func (k *kept) Write(b []byte) (int, error) { return k.body.Write(b) }
func (k *kept) WriteHeader(int)             {}

// web returns a fault of the HTTP response.
func web(name, says string, f func(w http.ResponseWriter, r *http.Request, a *right)) fault {
	return fault{name: name, says: says, on: []string{"http", "jsonrpc"}, reply: func(w wire, a *right) {
		h := w.(*webWire)
		h.begun = true
		f(h.w, h.r, a)
	}}
}

func status(code int, kind, text string) func(http.ResponseWriter, *http.Request, *right) {
	return func(w http.ResponseWriter, _ *http.Request, _ *right) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(code)
		_, _ = io.WriteString(w, text)
	}
}

func httpFaults() []fault {
	const html, js = "text/html; charset=utf-8", "application/json"
	stream := func(w http.ResponseWriter) func(string) {
		w.Header().Set("Content-Type", "text/event-stream")
		return func(s string) { _, _ = io.WriteString(w, s); _ = http.NewResponseController(w).Flush() }
	}
	return []fault{
		web("html", "a web page with status 200", status(200, html, "<html>Sign in</html>")),
		web("status-204", "status 204", status(204, js, "")),
		web("status-202", "status 202 to a request", status(202, js, "")),
		web("status-400", "status 400 without a word", status(400, "text/plain", "")),
		web("status-403", "status 403", status(403, html, "<html>Forbidden</html>")),
		web("status-401", "status 401 without a challenge", status(401, "text/plain", "no")),
		web("status-404", "status 404", status(404, html, "<html>Not found</html>")),
		web("status-429", "status 429", func(w http.ResponseWriter, _ *http.Request, _ *right) {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(429)
		}),
		web("status-500", "status 500", status(500, "text/plain", "panic: runtime error")),
		web("status-503", "status 503", status(503, html, "<html>Unavailable</html>")),
		web("status-999", "a status that does not exist", status(999, "text/plain", "?")),
		web("redirect-other", "a redirect to another origin", func(w http.ResponseWriter, _ *http.Request, _ *right) {
			w.Header().Set("Location", "http://127.0.0.1:1/steal?token=1")
			w.WriteHeader(307)
		}),
		web("redirect-loop", "a redirect to itself", func(w http.ResponseWriter, r *http.Request, _ *right) {
			w.Header().Set("Location", r.URL.Path)
			w.WriteHeader(308)
		}),
		web("redirect-302", "a redirect that forgets the method",
			func(w http.ResponseWriter, r *http.Request, _ *right) {
				http.Redirect(w, r, "/login", http.StatusFound)
			}),
		web("type-missing", "no content type", func(w http.ResponseWriter, _ *http.Request, a *right) {
			w.Header()["Content-Type"] = nil
			_, _ = w.Write(a.answer)
		}),
		web("type-odd", "a content type that is none", status(200, ";;;=", "{}")),
		web("length-long", "less than the length says", func(w http.ResponseWriter, _ *http.Request, a *right) {
			w.Header().Set("Content-Type", js)
			w.Header().Set("Content-Length", "100000")
			_, _ = w.Write(a.answer)
		}),
		web("length-huge", "a length of 1 TB", func(w http.ResponseWriter, r *http.Request, _ *right) {
			w.Header().Set("Content-Type", js)
			w.Header().Set("Content-Length", "1099511627776")
			_ = http.NewResponseController(w).Flush()
			pause(r.Context(), time.Minute)
		}),
		web("gzip-bomb", "64 MB in a few KB", func(w http.ResponseWriter, _ *http.Request, a *right) {
			w.Header().Set("Content-Type", js)
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = z.Write(a.answer[:len(a.answer)-1])
			blank := bytes.Repeat([]byte(" "), 1<<20)
			for range 64 {
				_, _ = z.Write(blank)
			}
			_ = z.Close()
		}),
		web("gzip-broken", "gzip that is none", func(w http.ResponseWriter, _ *http.Request, a *right) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Type", js)
			_, _ = w.Write(a.answer)
		}),
		web("headers-huge", "1 MB of headers", func(w http.ResponseWriter, _ *http.Request, a *right) {
			for range 64 {
				w.Header().Add("X-Noise", strings.Repeat("n", 16<<10))
			}
			_, _ = w.Write(a.answer)
		}),
		web("body-endless", "a body without an end", func(w http.ResponseWriter, r *http.Request, a *right) {
			w.Header().Set("Content-Type", js)
			blank := bytes.Repeat([]byte(" "), 1<<20)
			for r.Context().Err() == nil {
				if _, err := w.Write(blank); err != nil {
					return
				}
			}
		}),
		web("http-none", "bytes that are no HTTP", func(w http.ResponseWriter, _ *http.Request, _ *right) {
			if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
				_, _ = io.WriteString(c, "SSH-2.0-OpenSSH_9.9\r\n\r\n")
				_ = c.Close()
			}
		}),
		web("reset", "a reset connection", func(w http.ResponseWriter, _ *http.Request, _ *right) {
			if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
				if tcp, ok := c.(*net.TCPConn); ok {
					_ = tcp.SetLinger(0)
				}
				_ = c.Close()
			}
		}),
		web("events-comments", "an event stream of comments only",
			func(w http.ResponseWriter, r *http.Request, _ *right) {
				write := stream(w)
				for pause(r.Context(), 10*time.Millisecond) {
					write(": still here\n\n")
				}
			}),
		web("events-end", "an event stream that ends at once",
			func(w http.ResponseWriter, _ *http.Request, _ *right) { stream(w)("\n") }),
		web("events-retry-zero", "an event stream that ends again and again",
			func(w http.ResponseWriter, _ *http.Request, _ *right) { stream(w)("id: 1\nretry: 0\ndata: \n\n") }),
		web("events-huge", "an event of 24 MB", func(w http.ResponseWriter, _ *http.Request, _ *right) {
			stream(w)("data: " + strings.Repeat("x", 24<<20))
		}),
		web("events-other", "events of another type", func(w http.ResponseWriter, r *http.Request, a *right) {
			stream(w)("event: delta\ndata: " + string(a.answer) + "\n\n")
			pause(r.Context(), time.Minute)
		}),
		{name: "session-404", says: "forgets each session at once", on: []string{"http"}, reply: sessionGone(404)},
		{name: "session-400", says: "forgets each session at once and says 400", on: []string{"http"},
			reply: sessionGone(400)},
	}
}

// sessionGone refuses all requests except the handshake of the legacy era.
func sessionGone(code int) func(w wire, a *right) {
	return func(w wire, a *right) {
		h := w.(*webWire)
		switch {
		case a.method == "server/discover":
			w.message(a.err(`{"code":-32601,"message":"not found"}`))
		case a.method == "initialize":
			w.message(a.answer)
		default:
			h.begun = true
			http.Error(h.w, "Bad Request: No valid session ID provided", code)
		}
	}
}
