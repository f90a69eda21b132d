package testserver

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/tenonhq/tenon/jsonrpc"
	"github.com/tenonhq/tenon/mcp"
)

// kinds lists the transports that listen on an address.
var kinds = []struct{ name, says, scheme, path string }{
	{"http", "Streamable HTTP", "http", "/mcp"},
	{"sse", "the older HTTP+SSE", "http", "/sse"},
	{"ws", "WebSocket", "ws", "/ws"},
	{"jsonrpc", "plain JSON-RPC by POST", "http", "/mcp"},
}

// listen serves until ctx ends. The first line on stderr is the URL.
func (s *server) listen(ctx context.Context) error {
	l, err := net.Listen("tcp", s.o.Addr)
	if err != nil {
		return err
	}
	var scheme, path string
	for _, k := range kinds {
		if k.name == s.o.Kind {
			scheme, path = k.scheme, k.path
		}
	}
	handler := s.handler()
	srv := &http.Server{ReadHeaderTimeout: 10 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.count(func(st *Stats) {
				st.Requests++
				st.Headers = map[string]string{}
				for k, v := range r.Header {
					st.Headers[k] = strings.Join(v, ", ")
				}
			})
			if !s.authorized(r) {
				s.count(func(st *Stats) { st.Unauthorized++ })
				w.Header().Set("WWW-Authenticate", `Bearer realm="testserver"`)
				http.Error(w, "credentials are missing or wrong", http.StatusUnauthorized)
				return
			}
			if r.URL.Path != path {
				http.NotFound(w, r)
				return
			}
			handler.ServeHTTP(w, r)
		}), ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				s.count(func(st *Stats) { st.Connections++ })
			}
		}}
	fmt.Fprintf(s.stderr, "%s://%s%s\n", scheme, l.Addr(), path)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	srv.BaseContext = func(net.Listener) context.Context { return ctx }
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		_ = srv.Close() // no graceful shutdown
		<-done
		return nil
	}
}

// handler returns the handler of the selected transport.
func (s *server) handler() http.Handler {
	h := s.honest()
	if s.fault == nil {
		return h
	}
	if s.o.Kind == "http" || s.o.Kind == "jsonrpc" {
		h = s.misbehave(h)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case s.get != nil && r.Method == http.MethodGet:
			s.get(w, r)
		case s.post != nil && r.Method == http.MethodPost:
			s.post(w, r)
		case s.o.Kind == "ws":
			s.serveSocket(w, r)
		default:
			h.ServeHTTP(w, r)
		}
	})
}

func (s *server) honest() http.Handler {
	cfg := mcp.HTTPConfig{}
	switch s.o.Kind {
	case "sse":
		if s.fault != nil {
			cfg.Wrap = func(inner jsonrpc.Stream) jsonrpc.Stream {
				return newHostile(inner, s.fault, &eventWire{stream: inner.(eventStream)})
			}
		}
		return s.srv.SSE(cfg)
	case "ws":
		return s.srv.WebSocket(cfg)
	case "jsonrpc":
		return s.srv.Plain(cfg)
	}
	return s.srv.HTTP(cfg)
}

// eventStream is a connection over HTTP+SSE.
type eventStream interface {
	jsonrpc.Stream
	Raw(b []byte) error // writes unframed bytes to the stream
	End()               // ends the stream
}

type eventWire struct{ stream eventStream }

func (e *eventWire) message(b []byte) {
	e.raw(append(append([]byte("data: "), bytes.ReplaceAll(b, []byte("\n"), []byte(" "))...), "\n\n"...))
}
func (e *eventWire) raw(b []byte) { _ = e.stream.Raw(b) } // fails if the client has gone
func (e *eventWire) drop()        { e.stream.End() }
