package mcp_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tenonhq/tenon/jsonrpc"
	"github.com/tenonhq/tenon/mcp"
)

// TestSlowToStart checks that the timeout of a request does not limit a connect, which has a separate timeout.
func TestSlowToStart(t *testing.T) {
	slow := mcp.ServerConfig{Name: "x", Version: "1", Observe: func(_ context.Context, method string, _ []byte) error {
		if method == "initialize" || method == "server/discover" {
			time.Sleep(100 * time.Millisecond)
		}
		return nil
	}}
	for name, dial := range ends(t, slow) {
		for _, protocol := range []string{mcp.LatestLegacy, mcp.Modern} {
			t.Run(name+"/"+protocol, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				c, err := mcp.Connect(ctx, mcp.ClientConfig{Dial: dial, Protocol: protocol, RequestTimeout: time.Millisecond})
				if err != nil {
					t.Fatal(err)
				}
				_ = c.Close()
			})
		}
	}
}

type slowServer struct {
	start  time.Duration
	answer func(conn int, r request) string
	era    string
	sent   []string // to all connections, in order
	conns  int
}

// TestEraOfAServerThatIsSlow connects to servers that take longer to start than the client waits for server/discover.
// The client must find the era of each in the same process. A server that stays silent is started again.
func TestEraOfAServerThatIsSlow(t *testing.T) {
	both := answersOf(t, mcp.ServerConfig{Name: "x", Version: "1"})
	modern := answersOf(t, mcp.ServerConfig{Name: "x", Version: "1", NoLegacy: true})
	opening := []string{"server/discover", "initialize"}
	legacy := []string{"server/discover", "initialize", "notifications/initialized"}
	for name, tt := range map[string]slowServer{
		"both eras":               {4 * time.Second, both, mcp.Modern, opening, 1},
		"both eras, in disorder":  {4 * time.Second, disorder(both), mcp.Modern, opening, 1},
		"modern":                  {4 * time.Second, modern, mcp.Modern, opening, 1},
		"modern, in disorder":     {4 * time.Second, disorder(modern), mcp.Modern, opening, 1},
		"legacy":                  {4 * time.Second, olderServer(refuse), mcp.LatestLegacy, legacy, 1},
		"legacy, in disorder":     {4 * time.Second, disorder(olderServer(refuse)), mcp.LatestLegacy, legacy, 1},
		"legacy, silent":          {4 * time.Second, olderServer(func(request) string { return "" }), mcp.LatestLegacy, legacy, 1},
		"legacy, silent and fast": {0, olderServer(func(request) string { return "" }), mcp.LatestLegacy, legacy, 1},
		"stuck at the unknown method": {0, func(conn int, r request) string {
			if conn == 1 {
				return ""
			}
			return result(r, hello)
		}, mcp.LatestLegacy, append(opening[:2:2], legacy[1:]...), 2},
		"ends at the unknown method": {4 * time.Second, func(conn int, r request) string {
			if conn == 1 {
				return "end"
			}
			return result(r, hello)
		}, mcp.LatestLegacy, append(legacy[:1:1], legacy[1:]...), 2},
		"spoiled by the unknown method": {0, func(conn int, r request) string {
			switch {
			case conn > 1:
				return result(r, hello)
			case r.Method == "initialize":
				return refuse(r)
			}
			return ""
		}, mcp.LatestLegacy, nil, 2},
	} {
		t.Run(name, func(t *testing.T) { testSlowServer(t, tt) })
	}
}

// olderServer plays a legacy server. discover returns its answer to server/discover; "" means no answer.
func olderServer(discover func(request) string) func(int, request) string {
	return func(_ int, r request) string {
		switch r.Method {
		case "server/discover":
			return discover(r)
		case "initialize":
			return result(r, hello)
		}
		return refuse(r)
	}
}

// testSlowServer connects to a server that starts slowly. It checks the era and the messages that were sent.
func testSlowServer(t *testing.T, tt slowServer) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // of what the connections share
		var sent []string
		conns := 0
		dial := fake(t, func(conn int, line string, send func(string)) bool {
			r := parse(line)
			mu.Lock()
			first := conn > conns
			sent, conns = append(sent, r.Method), max(conn, conns)
			mu.Unlock()
			if first {
				time.Sleep(tt.start)
			}
			if r.ID == nil {
				return true
			}
			answer := tt.answer(conn, r)
			if answer != "" && answer != "end" {
				send(answer)
			}
			return answer != "end"
		})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		c, err := mcp.Connect(ctx, mcp.ClientConfig{Dial: dial})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if got := c.Info().Protocol; got != tt.era || conns != tt.conns {
			t.Errorf("%s after %d connections, want %s after %d", got, conns, tt.era, tt.conns)
		}
		if diff := cmp.Diff(tt.sent, sent); diff != "" && tt.sent != nil {
			t.Errorf("sent (-want +got):\n%s", diff)
		}
	})
}

// refuse returns an answer that the method is unknown.
func refuse(r request) string {
	return string(jsonrpc.AppendError(nil, r.ID, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "method not found")))
}

// answersOf returns a function that answers as the configured server does.
func answersOf(t *testing.T, cfg mcp.ServerConfig) func(conn int, r request) string {
	t.Helper()
	s, err := mcp.NewServer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return func(_ int, r request) string {
		result, err := s.Handle(context.Background(), &jsonrpc.Request{ID: r.ID, Method: r.Method, Params: r.Params}, "", func(string, []byte) {})
		var e *jsonrpc.Error
		if errors.As(err, &e) {
			return string(jsonrpc.AppendError(nil, r.ID, e))
		}
		return string(jsonrpc.AppendResult(nil, r.ID, result))
	}
}

// disorder answers the second request before the first, like a server that handles both at the same time.
func disorder(answer func(int, request) string) func(int, request) string {
	var held string
	return func(conn int, r request) string {
		switch text := answer(conn, r); {
		case r.Method == "server/discover":
			held = text
			return ""
		case held != "":
			text += "\n" + held
			held = ""
			return text
		default:
			return text
		}
	}
}
