package transport

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/jsonrpc"
)

// socket starts a server that runs play on a raw connection of the library.
func socket(t *testing.T, play func(ctx context.Context, c *websocket.Conn)) string {
	t.Helper()
	url, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{Subprotocol}})
		if err != nil {
			t.Error(err)
			return
		}
		defer c.CloseNow()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		play(ctx, c)
	})
	return "ws" + strings.TrimPrefix(url, "http")
}

func dialSocket(t *testing.T, cfg WebSocketConfig) *WebSocket {
	t.Helper()
	w, err := DialWebSocket(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}

// TestWebSocketMessages checks which frames are accepted as messages. Others end the connection with a
// matching close code.
func TestWebSocketMessages(t *testing.T) {
	big := strings.Repeat("x", 2000)
	for _, c := range []struct {
		name  string
		kind  websocket.MessageType
		text  string
		want  string // substring of the error; "" if the message is delivered
		close websocket.StatusCode
	}{
		{"text", websocket.MessageText, notice, "", 0},
		{"RP-13_binary", websocket.MessageBinary, notice, "", 0},
		{"RP-13_binary_not_utf8", websocket.MessageBinary, "\x00\xff", "a binary message that is not UTF-8",
			websocket.StatusUnsupportedData},
		{"not_utf8", websocket.MessageText, "{\"a\":\"\xff\"}", "text that is not UTF-8",
			websocket.StatusInvalidFramePayloadData},
		{"half_a_character", websocket.MessageText, "\xf0\x9f\x92", "text that is not UTF-8",
			websocket.StatusInvalidFramePayloadData},
		{"surrogate", websocket.MessageText, "\xed\xa0\x80", "text that is not UTF-8",
			websocket.StatusInvalidFramePayloadData},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := make(chan error, 1)
			w := dialSocket(t, WebSocketConfig{URL: socket(t, func(ctx context.Context, s *websocket.Conn) {
				_ = s.Write(ctx, c.kind, []byte(c.text))
				_, _, err := s.Read(ctx)
				got <- err
			})})
			b, err := w.Recv(t.Context())
			if c.want == "" {
				if err != nil || string(b) != c.text {
					t.Errorf("%q, %v", b, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q, %v", b, err)
			}
			if err := <-got; websocket.CloseStatus(err) != c.close {
				t.Errorf("the server got %v, want %d", err, c.close)
			}
			if err := w.Send(t.Context(), request("x")); err == nil {
				t.Error("a message was accepted after the end")
			}
		})
	}
	t.Run("over_the_limit", func(t *testing.T) {
		w := dialSocket(t, WebSocketConfig{MaxMessage: 1000,
			URL: socket(t, func(ctx context.Context, s *websocket.Conn) {
				_ = s.Write(ctx, websocket.MessageText, []byte(`{"jsonrpc":"2.0","id":1,"result":"`+big))
				_ = s.Write(ctx, websocket.MessageText, []byte(notice))
				_, _, _ = s.Read(ctx)
			})})
		var size *jsonrpc.SizeError
		if _, err := w.Recv(t.Context()); !errors.As(err, &size) || !strings.Contains(string(size.Prefix), `"id":1`) {
			t.Errorf("%v", err)
		}
		if b, err := w.Recv(t.Context()); err != nil || string(b) != notice {
			t.Errorf("the connection does not continue: %q, %v", b, err)
		}
	})
}

// TestWebSocketEnd checks how the end of a connection is reported, and how long Close takes if the other side
// does not answer.
func TestWebSocketEnd(t *testing.T) {
	for _, c := range []struct {
		name, want string
		end        func(*websocket.Conn)
	}{
		{"close frame", "closed the connection (1000)",
			func(c *websocket.Conn) { _ = c.Close(websocket.StatusNormalClosure, "") }},
		{"reason", "closed the connection: 'going down' (1001)",
			func(c *websocket.Conn) { _ = c.Close(websocket.StatusGoingAway, "going down") }},
		{"dropped", "without a close frame", func(c *websocket.Conn) { _ = c.CloseNow() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := dialSocket(t, WebSocketConfig{URL: socket(t, func(_ context.Context, s *websocket.Conn) { c.end(s) })})
			if _, err := w.Recv(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Error(err)
			}
		})
	}
	t.Run("silent_peer", func(t *testing.T) {
		// The library would wait five seconds. The test repeats, because other programs may delay a single attempt.
		var took []time.Duration
		for len(took) == 0 || len(took) < 4 && took[len(took)-1] > closeTimeout+time.Second {
			done := make(chan struct{})
			w := dialSocket(t, WebSocketConfig{URL: socket(t, func(context.Context, *websocket.Conn) { <-done })})
			recv := make(chan error, 1)
			go func() { _, err := w.Recv(context.Background()); recv <- err }()
			begun := time.Now()
			_ = w.Close()
			took = append(took, time.Since(begun))
			if err := <-recv; !errors.Is(err, io.EOF) {
				t.Error(err)
			}
			close(done)
		}
		if len(took) == 4 {
			t.Errorf("close took %s", took)
		}
	})
	t.Run("no_pong", func(t *testing.T) {
		done := make(chan struct{})
		w := dialSocket(t, WebSocketConfig{Ping: 30 * time.Millisecond,
			URL: socket(t, func(context.Context, *websocket.Conn) { <-done })})
		if _, err := w.Recv(t.Context()); err == nil ||
			!strings.Contains(err.Error(), "no answer to a ping within 30ms") {
			t.Error(err)
		}
		close(done)
	})
}

// TestWebSocketDial checks the errors of a refused upgrade.
func TestWebSocketDial(t *testing.T) {
	answer := func(status int) string {
		url, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if status/100 == 3 {
				w.Header().Set("Location", "http://evil.example/")
			}
			w.WriteHeader(status)
		})
		return "ws" + strings.TrimPrefix(url, "http")
	}
	for _, c := range []struct {
		name, url, want string
		code            tenon.Code
	}{
		{"ok", answer(200), "HTTP 200 instead of an upgrade", tenon.CodeProtocol},
		{"not_found", answer(404), "HTTP 404", tenon.CodeProtocol},
		{"credentials", answer(401), "HTTP 401", tenon.CodeAuth},
		{"redirect", answer(307), "redirects to http://evil.example", tenon.CodeProtocol},
		{"nobody", "ws://127.0.0.1:1/", "cannot be reached", tenon.CodeInternal},
		{"scheme", "http://127.0.0.1:1/", "not a ws or wss URL", tenon.CodeConfig},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := DialWebSocket(t.Context(), WebSocketConfig{URL: c.url})
			if err == nil || !strings.Contains(err.Error(), c.want) || tenon.ErrorCode(err) != c.code {
				t.Errorf("%v (%s)", err, tenon.ErrorCode(err))
			}
		})
	}
}
