package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/gateway"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/httpapi"
	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/servers"
	"github.com/tenonhq/tenon/transport"
)

// envServe turns the test binary into an MCP server on stdin and stdout. Its value is the protocol era.
const envServe = "TENON_GATEWAY_TEST_SERVER"

func TestMain(m *testing.M) {
	era := os.Getenv(envServe)
	if era == "" {
		goleak.VerifyTestMain(m)
		return
	}
	cfg := upstreams[era]
	cfg.Name, cfg.Tools = "upstream", []mcp.ServerTool{spacedTool}
	s, err := mcp.NewServer(cfg)
	if err == nil {
		err = s.Serve(context.Background(), transport.NewLines(os.Stdin, os.Stdout, 0))
	}
	if err != nil && !errors.Is(err, io.EOF) {
		os.Exit(1)
	}
}

// The tokens of the principals.
const (
	ownToken  = "token-of-the-owner-0123456789"
	annaToken = "token-of-anna-0123456789abcd"
	bertToken = "token-of-bert-0123456789abcd"
)

// upstream is an MCP server behind the gateway.
type upstream struct {
	*mcp.Server
	url    string
	web    *httptest.Server
	writes atomic.Int32
}

// echoResult is the result of the tool echo.
const echoResult = `{"content":[{"type":"text","text":"hi","x":1}],"structuredContent":{"id":9007199254740993,"v":1.0},` +
	`"_meta":{"a.example/b":[1,2]},"vendor":{"a":[1,2]}}`

// echoTool answers with echoResult.
var echoTool = mcp.ServerTool{Definition: json.RawMessage(`{"name":"echo","title":"Echo","description":"says it back",` +
	`"inputSchema":{"type":"object","properties":{"text":{"type":"string"}}},"annotations":{"readOnlyHint":true,"vendorHint":7},` +
	`"icons":[{"src":"https://a.example/i.png"}],"_meta":{"ui":{"resourceUri":"ui://a"}},"x-vendor":{"n":1.0}}`),
	Call: func(_ context.Context, r *mcp.ToolRequest) (json.RawMessage, error) {
		r.Progress(1, 3, "one of three")
		return json.RawMessage(echoResult), nil
	}}

// serveUpstream starts a server with some tools, in one era or in both.
func serveUpstream(t *testing.T, cfg mcp.ServerConfig, more ...mcp.ServerTool) *upstream {
	t.Helper()
	u := &upstream{}
	tool := func(def string, call func(context.Context, *mcp.ToolRequest) (json.RawMessage, error)) mcp.ServerTool {
		return mcp.ServerTool{Definition: json.RawMessage(def), Call: call}
	}
	cfg.Name, cfg.Tools = "upstream", append([]mcp.ServerTool{
		echoTool,
		tool(`{"name":"secret","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`, echoTool.Call),
		tool(`{"name":"guarded","inputSchema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]},"annotations":{"readOnlyHint":true}}`, echoTool.Call),
		tool(`{"name":"write","inputSchema":{"type":"object","properties":{"n":{"type":"integer"}}}}`,
			func(context.Context, *mcp.ToolRequest) (json.RawMessage, error) {
				u.writes.Add(1)
				return json.RawMessage(`{"content":[{"type":"text","text":"written"}]}`), nil
			}),
		tool(`{"name":"broken","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`,
			func(context.Context, *mcp.ToolRequest) (json.RawMessage, error) {
				return json.RawMessage(`{"content":[{"type":"text","text":"it broke"}],"isError":true}`), nil
			}),
	}, more...)
	s, err := mcp.NewServer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(s.HTTP(mcp.HTTPConfig{}))
	t.Cleanup(web.Close)
	u.Server, u.url, u.web = s, web.URL, web
	return u
}

// rules is a policy that denies one tool to everybody except the owner, and another one depending on its arguments.
const rules = `
policy:
  rules:
    - {when: 'tool.remote_name == "secret" && principal != "local"', verdict: deny, reason: only the owner may}
    - {when: 'tool.remote_name == "guarded" && args.path == "/etc"', verdict: deny, reason: not that folder}
`

// world is a host with a gateway that is served over HTTP.
type world struct {
	host *host.Host
	gate *gateway.Gateway
	url  string
	home string
	dir  string // of the configuration
	stop func() // ends what start began
	asks bool   // servers may ask during calls
	// record and replay are folders of cassettes.
	record, replay string
	wrap           func(server string, t tenon.Toolset) tenon.Toolset

	noticed atomic.Pointer[gateway.Gateway]
}

// open opens a host with a configuration and serves it.
func open(t *testing.T, text string, cfg gateway.Config) *world {
	t.Helper()
	w := &world{home: filepath.Join(t.TempDir(), "home")}
	w.start(t, text, cfg)
	return w
}

// openWith does the same as open, with additional files next to the configuration.
func openWith(t *testing.T, text string, files map[string]string) *world {
	t.Helper()
	w := &world{home: filepath.Join(t.TempDir(), "home"), dir: t.TempDir()}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(w.dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.start(t, text, gateway.Config{})
	return w
}

// at connects a client with the owner's token to an endpoint.
func (w *world) at(t *testing.T, path, era string) *mcp.Client {
	t.Helper()
	there := world{url: w.url}
	there.url += path
	return there.client(t, era, ownToken)
}

// start opens the host. It is stopped by the returned function, or at the end of the test.
func (w *world) start(t *testing.T, text string, cfg gateway.Config) (stop func()) {
	t.Helper()
	if w.dir == "" {
		w.dir = t.TempDir()
	}
	none := func(string) (string, bool) { return "", false }
	c, err := config.Parse("tenon.yaml", []byte(text), config.Options{Dir: w.dir, LookupEnv: none})
	if err != nil {
		t.Fatal(err)
	}
	w.host, err = host.Open(t.Context(), host.Config{Config: c, Home: w.home, LookupEnv: none, Version: "1.2.3", Interactive: w.asks,
		Wrap: w.wrap, Record: w.record, Replay: w.replay,
		Notify: func(n servers.Notification) {
			if g := w.noticed.Load(); g != nil {
				g.Notice(n)
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(context.WithoutCancel(t.Context()))
	supervised := make(chan struct{})
	go func() { defer close(supervised); w.host.Service().Supervise(ctx) }()
	w.gate = gateway.New(w.host, cfg)
	w.noticed.Store(w.gate)
	web := httptest.NewServer(httpapi.New(w.host, httpapi.Config{Guarded: true, Gateway: w.gate, OAuth: &httpapi.OAuth{},
		Authenticate: httpapi.Tokens(tenon.NewSecret(ownToken), map[tenon.Principal]tenon.Secret{"anna": tenon.NewSecret(annaToken),
			"bert": tenon.NewSecret(bertToken)})}))
	w.url = web.URL + "/mcp"
	var stopped bool
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		_ = w.gate.Close()
		web.CloseClientConnections()
		web.Close()
		leave()
		<-supervised
		_ = w.host.Close() // says what was under way
	}
	t.Cleanup(stop)
	w.stop = stop
	return stop
}

// eras are the eras that a client can speak.
var eras = map[string]string{"legacy": mcp.LatestLegacy, "modern": mcp.Modern}

// client connects tenon's own MCP client to the gateway.
func (w *world) client(t *testing.T, era, token string, more ...func(*mcp.ClientConfig)) *mcp.Client {
	t.Helper()
	cfg := mcp.ClientConfig{Protocol: era, Dial: func(context.Context) (mcp.Stream, error) {
		return transport.DialHTTP(transport.HTTPConfig{URL: w.url, Headers: map[string]string{"Authorization": "Bearer " + token}})
	}}
	for _, f := range more {
		f(&cfg)
	}
	c, err := mcp.Connect(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// upstreamConfig returns a configuration with one server.
func upstreamConfig(u *upstream, more string) string {
	return "servers: {up: {url: '" + u.url + "'}}\n" + strings.TrimLeft(more, "\n")
}

// named returns the names of tools.
func named(tools []tenon.Tool) string {
	var names []string
	for _, t := range tools {
		names = append(names, t.Remote)
	}
	return strings.Join(names, " ")
}

// until waits until something holds.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: it never came", what)
		}
	}
}
