package host_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/servers"
	"github.com/tenonhq/tenon/view"
)

// servedTools serves tools over HTTP.
func servedTools(t *testing.T, cfg mcp.ServerConfig) string {
	t.Helper()
	srv, err := mcp.NewServer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(srv.HTTP(mcp.HTTPConfig{}))
	t.Cleanup(s.Close)
	return s.URL
}

// TestAddedServerHasItsPolicy checks that the rules of a server that is added to an open host apply to its tools until
// the server is removed. A server with an invalid rule is refused.
func TestAddedServerHasItsPolicy(t *testing.T) {
	url := servedTools(t, mcp.ServerConfig{Name: "x", Version: "1", Tools: []mcp.ServerTool{{
		Definition: json.RawMessage(`{"name":"send","description":"Sends","inputSchema":{"type":"object","properties":{"to":{"type":"string"}}}}`),
		Call: func(context.Context, *mcp.ToolRequest) (json.RawMessage, error) {
			return json.RawMessage(`{"content":[{"type":"text","text":"` + strings.Repeat("sent ", 100) + `"}]}`), nil
		}}}})
	h, _ := budgeted(t, t.TempDir(), &config.Config{Policy: policy.Config{Defaults: policy.Block{Approval: policy.Approval{If: `args.to == "all"`}}}}, &shop{},
		once(`send {"to":"a"}`, `send {"to":"b"}`, `send {"to":"me"}`))
	before := h.Approvals().Rules().Digest()
	add := func(b policy.Block) error {
		return h.Servers().Add(t.Context(), "post", servers.Config{URL: url, Policy: b})
	}
	for name, b := range map[string]policy.Block{
		"no mode":     {Approval: policy.Approval{Mode: "sometimes"}},
		"two":         {Approval: policy.Approval{Mode: "never", If: "true"}},
		"no CEL":      {Approval: policy.Approval{If: `args.to ==`}},
		"no rate":     {Rate: "often"},
		"below zero":  {MaxCalls: policy.CallLimit{Run: new(-1)}},
		"no retry":    {Retry: "maybe"},
		"what is big": {OnLargeResult: "drop"},
		"no scope":    {Cache: policy.Cache{Scope: "world"}},
		"timeout":     {Timeout: -time.Second},
		"redact":      {Redact: []string{"to"}},
	} {
		if err := add(b); tenon.ErrorCode(err) != tenon.CodeConfig || !strings.Contains(err.Error(), "servers.post.policy.") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if h.Approvals().Rules().Digest() != before {
		t.Error("a server that was refused has changed the rules")
	}
	if err := h.Servers().Add(t.Context(), "http_tools", servers.Config{URL: url}); tenon.ErrorCode(err) != tenon.CodeConfig {
		t.Errorf("a name of tenon's own: %v", err)
	}
	err := add(policy.Block{Approval: policy.Approval{If: `args.to == "boss"`}, MaxCalls: policy.CallLimit{Run: new(2)}, ResultBytes: 100, Cost: new(0.5)})
	if err != nil {
		t.Fatal(err)
	}
	if h.Approvals().Rules().Digest() == before {
		t.Error("the rules have the same digest with other rules")
	}
	for to, want := range map[string]tenon.Verdict{"all": tenon.Allow, "boss": tenon.Ask, "me": tenon.Allow} {
		o, err := h.Approvals().Rules().Judge(t.Context(), host.Proposal{Tool: "send", Arguments: json.RawMessage(`{"to":"` + to + `"}`)})
		if err != nil || o.Verdict != want || o.MaxRun != 2 || o.Cost != tenon.Dollars(0.5) {
			t.Errorf("to %s: %+v %v", to, o, err)
		}
	}
	r, _ := ask(t, h, host.Question{Text: "q"})
	if r.State != tenon.RunCompleted || len(r.ToolCalls) != 3 {
		t.Fatalf("%s %v, %d calls", r.State, r.Error, len(r.ToolCalls))
	}
	for i, want := range []string{view.CallDone, view.CallDone, view.CallDenied} {
		if c := r.ToolCalls[i]; c.Outcome != want {
			t.Errorf("call %d: %+v, want %s", i, c, want)
		}
	}
	if err := h.Servers().Remove(t.Context(), "post"); err != nil || h.Approvals().Rules().Digest() != before {
		t.Errorf("the rules stay behind: %v", err)
	}
	if err := add(policy.Block{}); err != nil {
		t.Fatal(err)
	}
	if o, err := h.Approvals().Rules().Judge(t.Context(), host.Proposal{Tool: "send", Arguments: json.RawMessage(`{"to":"all"}`)}); err != nil || o.Verdict != tenon.Ask || o.MaxRun != 0 {
		t.Errorf("without a policy of its own: %+v %v", o, err)
	}
}

type refusedEntry struct {
	of   servers.Config
	set  func(*servers.Config)
	want string
}

// TestProgramEntriesAreChecked checks that server entries made by a Go program pass the same checks as entries of a
// file: in Config.Servers, in a parsed configuration and in Add. A refused entry starts nothing.
func TestProgramEntriesAreChecked(t *testing.T) {
	local := servers.Config{Command: os.Args[0], Args: []string{"-test.run=NONE"}}
	remote := servers.Config{URL: "http://127.0.0.1:1/mcp"}
	keep := func(tool tenon.Tool) *tenon.Tool { return &tool }
	raw := func(s string) map[string]json.RawMessage {
		return map[string]json.RawMessage{"openai": json.RawMessage(s)}
	}
	steps := func(s ...host.Transform) func(*servers.Config) {
		return func(c *servers.Config) { c.Transform = s }
	}
	for name, tc := range map[string]refusedEntry{
		"RP-16_prefix and func":   {local, steps(host.Transform{Prefix: "a_", Func: keep}), "transform[0]: a step has exactly one"},
		"RP-16_describe and func": {local, steps(host.Transform{Describe: "D", Func: keep}), "transform[0]: a step has exactly one"},
		"RP-16_prefix, describe":  {local, steps(host.Transform{Prefix: "a_", Describe: "D"}), "transform[0]: a step has exactly one"},
		"RP-16_no step":           {local, steps(host.Transform{Func: keep}, host.Transform{}), "transform[1]: a step has exactly one"},
		"RP-16_placeholder":       {local, steps(host.Transform{Describe: "{descripton} ok"}), "transform[0].describe: no such placeholder"},
		"RP-16_exclude":           {local, func(c *servers.Config) { c.Exclude = []string{"[die", "[w*"} }, "exclude[0]: '[die' is not a glob"},
		"RP-16_include":           {local, func(c *servers.Config) { c.Include = []string{"["} }, "include[0]: '[' is not a glob"},
		"RP-16_elicitation":       {local, func(c *servers.Config) { c.Elicitation = "Deny" }, "elicitation: no such value 'Deny'; did you mean 'deny'?"},
		"RP-16_transport":         {remote, func(c *servers.Config) { c.Transport = "carrier-pigeon" }, "transport: no such value"},
		"RP-16_restart":           {local, func(c *servers.Config) { c.Restart = "bogus" }, "restart: no such value"},
		"RP-16_lifecycle":         {local, func(c *servers.Config) { c.Lifecycle = "bogus" }, "lifecycle: no such value"},
		"RP-16_discover":          {local, func(c *servers.Config) { c.Discover = "bogus" }, "discover: no such value"},
		"RP-16_result_format":     {local, func(c *servers.Config) { c.ResultFormat = "bogus" }, "result_format: no such value"},
		"RP-16_log_level":         {local, func(c *servers.Config) { c.LogLevel = "bogus" }, "log_level: no such value"},
		"RP-16_headers on stdio":  {local, func(c *servers.Config) { c.Headers = map[string]string{"A": "b"} }, "headers: 'headers' has no effect for stdio transport"},
		"RP-16_auth on stdio":     {local, func(c *servers.Config) { c.Auth = servers.Auth{Type: "bearer", Secret: tenon.NewSecret("x")} }, "auth: 'auth' has no effect for stdio transport"},
		"RP-16_request_timeout":   {local, func(c *servers.Config) { c.RequestTimeout = -1 }, "request_timeout: request_timeout must be positive"},
		"RP-16_provider options":  {local, func(c *servers.Config) { c.ProviderOptions = raw("{") }, "provider_options.openai: is not JSON"},
		"RP-16_auth type":         {remote, func(c *servers.Config) { c.Auth.Secret = tenon.NewSecret("x") }, "auth: 'type' is required"},
		"RP-16_auth Bearer":       {remote, func(c *servers.Config) { c.Auth = servers.Auth{Type: "Bearer", Secret: tenon.NewSecret("x")} }, "auth.type: no such value 'Bearer'"},
		"RP-16_auth secret":       {remote, func(c *servers.Config) { c.Auth.Type = "bearer" }, "auth: 'secret' is required for auth type bearer"},
		"RP-16_cwd":               {local, func(c *servers.Config) { c.Cwd = "/nonexistent" }, "cwd: no folder /nonexistent"},
		"RP-16_ftp":               {servers.Config{URL: "ftp://127.0.0.1/mcp"}, nil, "url: 'url' must begin with https:// or http://"},
		"RP-16_no scheme":         {servers.Config{URL: "127.0.0.1:1/mcp"}, nil, "url: not a URL"},
		"RP-16_env file":          {local, func(c *servers.Config) { c.EnvFile = ".env" }, "env_file: only a configuration file"},
		"RP-16_both":              {servers.Config{Command: "x", URL: "http://127.0.0.1"}, nil, "'command' and 'url' together"},
		"RP-16_neither":           {servers.Config{}, nil, "servers.x: 'command' or 'url' is required"},
		"RP-16_max_len":           {local, func(c *servers.Config) { c.Naming.MaxLen = 5 }, "naming.max_len: must be at least 16"},
		"RP-16_rule":              {local, func(c *servers.Config) { c.Policy.OnLargeResult = "drop" }, "policy.on_large_result: no such value"},
	} {
		t.Run(name, func(t *testing.T) { checkRefusedEntry(t, tc) })
	}
	for name, entry := range map[string]servers.Config{
		"RP-16_with defaults":      local.WithDefaults(),
		"RP-16_with defaults, url": remote.WithDefaults(),
		"RP-16_literal texts":      {Command: "x", Env: map[string]string{"A": "${NOT} ${secret:no}"}, Args: []string{"~/a"}},
		"RP-16_own key":            servers.Config{URL: "http://127.0.0.1:1", Auth: servers.Auth{Type: "api_key", Secret: tenon.NewSecret("k")}}.WithDefaults(),
	} {
		t.Run(name, func(t *testing.T) {
			h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), Config: &config.Config{Servers: map[string]servers.Config{"x": entry}}})
			if err != nil {
				t.Fatal(err)
			}
			if err := h.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// checkRefusedEntry checks that Add and Open refuse an entry made by a program, and that their errors name the mistake.
func checkRefusedEntry(t *testing.T, tc refusedEntry) {
	entry := tc.of
	if tc.set != nil {
		tc.set(&entry)
	}
	refused := func(where string, err error) {
		t.Helper()
		if tenon.ErrorCode(err) != tenon.CodeConfig || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "servers.x") {
			t.Errorf("%s: %v, want %q", where, err, tc.want)
		}
	}
	h, err := host.Open(t.Context(), host.Config{Home: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	refused("Add", h.Servers().Add(t.Context(), "x", entry))
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	_, err = host.Open(t.Context(), host.Config{Home: t.TempDir(), Config: &config.Config{Servers: map[string]servers.Config{"x": entry}}})
	refused("Open", err)
}

// TestAddRefusesATakenName checks that Add does not start the command of a server whose name is already in use.
func TestAddRefusesATakenName(t *testing.T) {
	t.Run("RP-16_taken", func(t *testing.T) {
		h, err := host.Open(t.Context(), host.Config{Home: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		if err := h.Servers().Add(t.Context(), "x", servers.Config{URL: servedTools(t, mcp.ServerConfig{Name: "x", Version: "1"})}); err != nil {
			t.Fatal(err)
		}
		asked := false
		s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
		defer s.Close()
		err = h.Servers().Add(t.Context(), "x", servers.Config{URL: s.URL})
		if tenon.ErrorCode(err) != tenon.CodeConfig || !strings.Contains(err.Error(), "there is a server 'x' already") || asked {
			t.Errorf("%v; asked: %t", err, asked)
		}
	})
}

// TestCallByServer checks that a call of SERVER.TOOL works even if another server has the same tool or cannot be
// reached.
func TestCallByServer(t *testing.T) {
	url := servedTools(t, mcp.ServerConfig{Name: "x", Version: "1", Tools: []mcp.ServerTool{{
		Definition: json.RawMessage(`{"name":"pid","inputSchema":{"type":"object"}}`),
		Call: func(context.Context, *mcp.ToolRequest) (json.RawMessage, error) {
			return json.RawMessage(`{"content":[{"type":"text","text":"7"}]}`), nil
		}}}})
	h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), Config: &config.Config{Servers: map[string]servers.Config{
		"a": {URL: url}, "down": {URL: "http://127.0.0.1:1/mcp"}}}})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for name, code := range map[string]tenon.Code{"a.pid": "", "pid": "", "a.none": tenon.CodeNotFound, "down.pid": tenon.CodeUnreachable} {
		t.Run("RP-16_"+name, func(t *testing.T) {
			r, _, err := host.CallTool(t.Context(), h, name, nil, nil)
			if tenon.ErrorCode(err) != code || err == nil && r.Text() != "7" {
				t.Errorf("%v %v", r, err)
			}
		})
	}
}

// TestAddedServersShare checks that servers which a program adds use one connection if their settings are equal and
// they have share: true, and each its own otherwise.
func TestAddedServersShare(t *testing.T) {
	srv, err := mcp.NewServer(mcp.ServerConfig{Name: "x", Version: "1", Tools: []mcp.ServerTool{{
		Definition: json.RawMessage(`{"name":"send","inputSchema":{"type":"object"}}`),
		Call: func(context.Context, *mcp.ToolRequest) (json.RawMessage, error) {
			return json.RawMessage(`{"content":[]}`), nil
		}}}})
	if err != nil {
		t.Fatal(err)
	}
	var begun atomic.Int32
	web := srv.HTTP(mcp.HTTPConfig{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil && bytes.Contains(body, []byte(`"method":"initialize"`)) {
			begun.Add(1)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		web.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	for _, share := range []bool{false, true} {
		begun.Store(0)
		h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), Config: &config.Config{}})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a", "b"} {
			if err := h.Servers().Add(t.Context(), name, servers.Config{URL: s.URL, Protocol: mcp.LatestLegacy, Share: share}); err != nil {
				t.Fatal(err)
			}
		}
		want := int32(2)
		if share {
			want = 1
		}
		if n := begun.Load(); n != want {
			t.Errorf("share %t: %d connections, want %d", share, n, want)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
}
