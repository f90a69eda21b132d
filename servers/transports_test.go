package servers

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tenonhq/tenon"
)

// listening starts the test server as a process that listens until the test ends. It returns the URL.
func listening(t *testing.T, args ...string) string {
	t.Helper()
	cmd, url := listen(t, args...)
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // fails if the process has ended by itself
		_ = cmd.Wait()
	})
	return url
}

// listen starts the test server and reads the URL from its output.
func listen(t *testing.T, args ...string) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), role+"=testserver", raceExit+"=atexit_sleep_ms=0")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd.Stderr = w
	err = cmd.Start()
	_ = w.Close() // it has its own
	if err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(r).ReadString('\n')
	if !strings.Contains(line, "://") {
		t.Fatalf("the test server names no URL: %q", line)
	}
	return cmd, strings.TrimSpace(line)
}

// TestKN10 checks that the tools of a server can be listed, found and called over each transport.
func TestKN10(t *testing.T) {
	stats := func(t *testing.T) string { return filepath.Join(t.TempDir(), "stats.json") }
	for _, c := range []struct{ name, kind, transport, want string }{
		{"stdio", "stdio", "", ""},
		{"http", "http", "", ""},
		{"sse", "sse", TransportSSE, ""},
		{"websocket", "ws", "", ""},
		{"jsonrpc", "jsonrpc", TransportJSONRPC, ""},
		{"auto_http", "http", TransportAuto, TransportHTTP},
		{"auto_sse", "sse", TransportAuto, TransportSSE},
		{"auto_jsonrpc", "jsonrpc", TransportAuto, TransportJSONRPC},
	} {
		t.Run("KN-10_"+c.name, func(t *testing.T) {
			t.Parallel()
			file := stats(t)
			cfg := process("--stdio", "--stats", file)
			if c.kind != "stdio" {
				cfg = Config{URL: listening(t, "--"+c.kind, "127.0.0.1:0", "--stats", file), Transport: c.transport}
			}
			s := started(t, cfg, Options{})
			tools, err := s.Tools(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			names := map[string]bool{}
			for _, tool := range tools {
				names[tool.Remote] = true
			}
			if !names["add"] || !names["greet"] || !names["reverse_string"] {
				t.Errorf("tools: %v", names)
			}
			if got := text(t, s, "add", `{"a":1,"b":2}`); got != "3" {
				t.Errorf("1+2 = %q", got)
			}
			if c.want != "" && s.Status().Found != c.want {
				t.Errorf("auto found %q", s.Status().Found)
			}
		})
	}
}

// TestOneSocket also checks HD-US7.2: five calls share one connection.
func TestOneSocket(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stats.json")
	s := started(t, Config{URL: listening(t, "--ws", "127.0.0.1:0", "--stats", file)}, Options{})
	for range 5 {
		text(t, s, "add", `{"a":1,"b":2}`)
	}
	if st := readStats(t, file); st.Connections != 1 || st.Calls != 5 {
		t.Errorf("%+v", st)
	}
}

// TestBareResults checks that a result in another form than MCP's reaches the caller completely.
func TestBareResults(t *testing.T) {
	s := started(t, Config{URL: listening(t, "--jsonrpc", "127.0.0.1:0", "--bare"), Transport: TransportJSONRPC}, Options{})
	r, err := s.Call(t.Context(), tenon.Call{Tool: "add", Arguments: []byte(`{"a":9007199254740992,"b":1}`)})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"result":9007199254740993}`
	if string(r.Structured) != want || len(r.Content) != 1 || r.Content[0].Text != want {
		t.Errorf("%s", r.Raw)
	}
	if _, err := s.Call(t.Context(), tenon.Call{Tool: "fail_rpc"}); tenon.ErrorCode(err) != tenon.CodeTool || !strings.Contains(err.Error(), "-32602: bad input") {
		t.Errorf("%v", err)
	}
}

// TestProgress checks that progress notifications reach the caller during the call, over every transport that has them
// and in both eras.
func TestProgress(t *testing.T) {
	for _, c := range []struct{ kind, transport, protocol string }{
		{"sse", TransportSSE, ""}, {"ws", "", "2025-11-25"}, {"ws", "", "2026-07-28"}, {"http", "", "2026-07-28"},
	} {
		t.Run(c.kind+c.protocol, func(t *testing.T) {
			t.Parallel()
			s := started(t, Config{URL: listening(t, "--"+c.kind, "127.0.0.1:0"), Transport: c.transport, Protocol: c.protocol}, Options{})
			var n atomic.Int32
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			_, err := s.Call(ctx, tenon.Call{Tool: "slow", Arguments: []byte(`{"ms":30}`), Progress: func(tenon.Progress) { n.Add(1) }})
			if err != nil || n.Load() != 3 {
				t.Errorf("%d notices, %v", n.Load(), err)
			}
		})
	}
}
