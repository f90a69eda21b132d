package servers

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/longtest"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/jsonrpc"
	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/transport"
)

// listens starts a proxy in front of a server. bodies returns the bodies of all requests so far.
func listens(t *testing.T, to string) (proxy string, bodies func() [][]byte) {
	t.Helper()
	target, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var all [][]byte
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.URL.Path = target.Path }, FlushInterval: -1}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		mu.Lock()
		all = append(all, b)
		mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(b))
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	return front.URL + target.Path, func() [][]byte {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

// TestSettings checks that the key config reaches the server: a process in the variable MCP_CONFIG, a server over HTTP
// in initialize or in _meta of each request.
func TestSettings(t *testing.T) {
	const want = `{"allowed_directories":["/workspace/data"]}`
	settings := map[string]json.RawMessage{"allowed_directories": json.RawMessage(`["/workspace/data"]`)}
	t.Run("HD-FR-011", func(t *testing.T) {
		cfg := process("--stdio")
		cfg.Settings = settings
		if got := text(t, started(t, cfg, Options{}), "echo_env", `{"name":"MCP_CONFIG"}`); got != want {
			t.Errorf("the process has %q", got)
		}
		for _, era := range []string{"2025-11-25", mcp.Modern} {
			url, bodies := listens(t, listening(t, "--http", "127.0.0.1:0"))
			s := started(t, Config{URL: url, Protocol: era, Settings: settings}, Options{})
			if got := text(t, s, "add", `{"a":1,"b":2}`); got != "3" {
				t.Error(got)
			}
			told := 0
			for _, b := range bodies() {
				params := rawjson.Field(b, "params")
				method := rawjson.String(rawjson.Field(b, "method"))
				var got []byte
				switch {
				case method == "initialize":
					got = rawjson.Field(rawjson.Field(rawjson.Field(params, "capabilities"), "experimental"), "tenon/config")
				case era == mcp.Modern && rawjson.Field(b, "id") != nil:
					got = rawjson.Field(rawjson.Field(params, "_meta"), "tenon/config")
				default:
					continue
				}
				if told++; string(got) != want {
					t.Errorf("%s: %s has %s", era, method, got)
				}
			}
			if least := map[string]int{"2025-11-25": 1, mcp.Modern: 2}[era]; told < least {
				t.Errorf("%s: the server is told %d times", era, told)
			}
		}
	})
}

// TestLifeOfAServer checks the order of the requests to a server in both eras, and that its process has ended
// afterwards.
func TestLifeOfAServer(t *testing.T) {
	for era, want := range map[string][]string{
		"legacy": {"initialize", "notifications/initialized", "tools/list", "tools/call"},
		"modern": {"server/discover", "tools/list", "tools/call"},
	} {
		t.Run("HD-FR-002_"+era, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "stats.json")
			protocol := map[string]string{"legacy": mcp.LatestLegacy, "modern": mcp.Modern}[era]
			cfg := process("--stdio", "--stats", file)
			cfg.Protocol = protocol
			s := New("t", cfg, Options{})
			if _, err := s.List(t.Context()); err != nil {
				t.Fatal(err)
			}
			text(t, s, "add", `{"a":1,"b":2}`)
			if st := readStats(t, file); st.Ended {
				t.Error("its stdin has ended before it was closed")
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			st := readStats(t, file)
			got := slices.DeleteFunc(slices.Clone(st.Methods), func(m string) bool { return !slices.Contains(want, m) })
			if !slices.Equal(got, want) || !st.Ended {
				t.Errorf("it was told %v, ended %v; want %v and the end of its input", st.Methods, st.Ended, want)
			}
			for _, m := range []string{"initialize", "server/discover"} {
				if slices.Contains(st.Methods, m) != slices.Contains(want, m) {
					t.Errorf("the other era: %v", st.Methods)
				}
			}
			if pids := children(t); len(pids) > 0 {
				t.Errorf("processes %v are left", pids)
			}
		})
	}
}

// TestParallel checks that calls of one server are sent at the same time.
func TestParallel(t *testing.T) {
	t.Run("HD-CL-3", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "stats.json")
		s := started(t, process("--stdio", "--stats", file), Options{})
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if got := text(t, s, "slow", `{"ms":1500,"steps":1}`); got == "" {
					t.Error("no result")
				}
			})
		}
		wg.Wait()
		if st := readStats(t, file); st.MaxInFlight != 10 || st.Connections != 1 {
			t.Errorf("%+v", st)
		}
	})
}

// TestCleanUp checks that servers that were used and closed leave no process, even if a caller gave up or panicked.
func TestCleanUp(t *testing.T) {
	longtest.Skip(t)
	t.Run("HD-FR-025", func(t *testing.T) {
		cycle := func(n int) {
			defer func() {
				if p := recover(); (p != nil) != (n == 70) {
					t.Errorf("cycle %d: %v", n, p)
				}
			}()
			s := New("t", process(), Options{})
			defer func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			switch n {
			case 40: // cancelled in the middle
				c := tenon.Call{Tool: "slow", Arguments: json.RawMessage(`{"ms":60000,"steps":600}`), Progress: func(tenon.Progress) { cancel() }}
				if _, err := s.Call(ctx, c); tenon.ErrorCode(err) != tenon.CodeCancelled {
					t.Error(err)
				}
			case 70: // what handles the result panics
				if r, err := s.Call(ctx, tenon.Call{Tool: "add", Arguments: json.RawMessage(`{"a":1,"b":1}`)}); err == nil {
					panic(r.Content[0].Text)
				}
			default:
				text(t, s, "add", `{"a":1,"b":1}`)
			}
		}
		cycle(0)
		fds := descriptors(t)
		for n := range 100 {
			cycle(n)
		}
		if n := descriptors(t); n > fds {
			t.Errorf("%d descriptors, %d before", n, fds)
		}
		if pids := children(t); len(pids) > 0 {
			t.Errorf("processes %v are left", pids)
		}
	}) // goleak checks the goroutines after all tests
}

// silent is a network that sends nothing: either no answer at all, or an answer to tools/call that is an event stream
// without events.
type silent struct{ accepts bool }

func (n silent) RoundTrip(r *http.Request) (*http.Response, error) {
	if !n.accepts {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	res := &http.Response{StatusCode: http.StatusOK, ContentLength: -1, Header: http.Header{"Content-Type": {"application/json"}}, Request: r}
	if method := rawjson.String(rawjson.Field(b, "method")); method == "tools/call" {
		in, out := io.Pipe()
		context.AfterFunc(r.Context(), func() { _ = out.CloseWithError(r.Context().Err()) })
		res.Header.Set("Content-Type", "text/event-stream")
		res.Body = in
		return res, nil
	}
	res.Body = io.NopCloser(bytes.NewReader(jsonrpc.AppendResult(nil, rawjson.Field(b, "id"),
		[]byte(`{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`))))
	return res, nil
}

// TestPatience checks that the timeout of a connect and the limit of silence on a stream are two settings with
// different messages. It uses a fake clock.
func TestPatience(t *testing.T) {
	t.Run("HD-US6.3", func(t *testing.T) {
		for _, tt := range []struct {
			network silent
			after   time.Duration
			words   string
		}{
			{silent{false}, 7 * time.Second, "it did not answer server/discover within 7s; raise servers.t.timeout"},
			{silent{true}, 90 * time.Second, "no data received for 1m30s); raise servers.t.sse_read_timeout if it needs longer"},
		} {
			synctest.Test(t, func(t *testing.T) {
				cfg := Config{URL: "http://127.0.0.1:9/mcp", Timeout: 7 * time.Second, SSEReadTimeout: 90 * time.Second, RequestTimeout: time.Hour, Restart: RestartNever}
				s := New("t", cfg, Options{})
				s.connector = func(ctx context.Context) (*dialed, error) {
					c, err := mcp.Connect(ctx, mcp.ClientConfig{Protocol: mcp.Modern, RequestTimeout: cfg.RequestTimeout,
						Dial: func(context.Context) (mcp.Stream, error) {
							return transport.DialHTTP(transport.HTTPConfig{URL: cfg.URL, IdleTimeout: cfg.SSEReadTimeout,
								SignIn: func(http.RoundTripper) http.RoundTripper { return tt.network }})
						}})
					if err != nil {
						return nil, err
					}
					return &dialed{conn: c, protocol: mcp.Modern}, nil
				}
				begun := time.Now()
				_, err := s.Call(t.Context(), tenon.Call{Tool: "add"})
				if took := time.Since(begun); took != tt.after || err == nil || !strings.Contains(err.Error(), tt.words) {
					t.Errorf("after %s: %v", took, err)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	})
}

// TestSilence checks that the error about a silent stream of HTTP+SSE names the configuration key that allows more
// time.
func TestSilence(t *testing.T) {
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush() // the client notices
		<-r.Context().Done()
	}))
	t.Cleanup(ts.Close)
	for _, c := range []struct{ name, key, want string }{
		{"file", "", "raise servers.t.sse_read_timeout if it needs longer"},
		{"no file", "policy.defaults.timeout", "raise sse_read_timeout of its entry if it needs longer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := Config{URL: ts.URL, Transport: TransportSSE, SSEReadTimeout: 50 * time.Millisecond,
				Timeout: time.Minute, Restart: RestartNever}
			s := New("t", cfg, Options{TimeoutKey: c.key})
			_, err := s.Tools(t.Context())
			if err == nil || !strings.Contains(err.Error(), "no data received for 50ms") ||
				!strings.HasSuffix(err.Error(), c.want) {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
