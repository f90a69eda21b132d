package httpapi_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/httpapi"
	"github.com/tenonhq/tenon/policy"
)

// counter is a toolset that counts the effects of its tools.
type counter struct {
	effects atomic.Int64
	began   chan struct{} // receives a value when a call of the tool wait begins
	open    chan struct{} // ends the calls of wait
}

func (c *counter) Tools(context.Context) (list []tenon.Tool, err error) {
	for _, name := range []string{"pay", "fail", "wait"} {
		list = append(list, tenon.Tool{Remote: name, Input: json.RawMessage(`{"type":"object"}`)})
	}
	return list, nil
}

func (c *counter) Call(ctx context.Context, call tenon.Call) (*tenon.Result, error) {
	c.effects.Add(1)
	switch call.Tool {
	case "fail":
		return nil, tenon.Errorf(tenon.CodeTool, "the bank is closed")
	case "wait":
		c.began <- struct{}{}
		select {
		case <-c.open:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return &tenon.Result{Content: []tenon.Content{tenon.Text("paid")}}, nil
}

var _ tenon.Toolset = (*counter)(nil)

// paying opens a host with an agent for each case. "model" and "limit" call a tool that pays; then the model fails or
// the limit of turns is reached. "down" fails before any call, "fails" makes a call that fails, and "slow" makes a call
// that waits.
func paying(t *testing.T) (*host.Host, *counter) {
	t.Helper()
	dir := t.TempDir()
	scripts := map[string]string{
		"model":   "steps:\n  - {text: I pay., calls: [{name: pay, arguments: {}}]}\n  - error: {code: invalid, message: gone}\n",
		"limit":   "steps:\n  - {text: I pay., calls: [{name: pay, arguments: {}}], repeat: forever}\n",
		"cut":     "steps:\n  - {text: Half, stop: max_tokens}\n",
		"unknown": "steps:\n  - {text: I look., calls: [{name: nosuch, arguments: {}}], repeat: forever}\n",
		"down":    "steps:\n  - error: {code: invalid, message: down}\n",
		"fails":   "steps:\n  - {text: I try., calls: [{name: fail, arguments: {}}]}\n  - text: It is closed.\n",
		"slow":    "steps:\n  - {text: I wait., calls: [{name: wait, arguments: {}}]}\n  - text: Done.\n",
	}
	cfg := &config.Config{Agents: map[string]agent.Config{}, Policy: policy.Config{
		Defaults: policy.Block{Approval: policy.Approval{Mode: policy.ApprovalNever}}}}
	for name, text := range scripts {
		file := filepath.Join(dir, name+".yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg.Agents[name] = agent.Config{Model: "script:" + file, Limits: agent.Limits{MaxTurns: 2}}
		if name == "limit" {
			cfg.Agents["asks"] = agent.Config{Model: "script:" + file,
				Policy: policy.Block{Approval: policy.Approval{Mode: policy.ApprovalAlways}}}
		}
	}
	c := &counter{began: make(chan struct{}, 8), open: make(chan struct{})}
	h, err := host.Open(t.Context(), host.Config{Home: dir, Config: cfg,
		Toolsets: map[string]tenon.Toolset{"bank": c}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h, c
}

// TestFinal checks the answer of every route when a run fails after a tool call. Its status must not make a client
// repeat the request.
func TestFinal(t *testing.T) {
	ask := func(agent string) (path, body string) {
		return "/v1/chat/completions", `{"model":"` + agent + `","messages":[{"role":"user","content":"pay"}]}`
	}
	for name, tt := range map[string]struct {
		agent, path, body string
		status            int
		has               string
		effects           int64
	}{
		"RP-2_completions_failure": {agent: "model", status: 424, has: `"run":"run_`, effects: 1},
		"RP-2_completions_limit":   {agent: "limit", status: 200, has: `"finish_reason":"length"`, effects: 2},
		"RP-2_completions_before":  {agent: "down", status: 400, has: `"error":`},
		"RP-2_chat_failure":        {agent: "model", path: "/chat", body: `{"message":"pay"}`, status: 424, has: `"run":"run_`, effects: 1},
		"RP-2_chat_limit":          {agent: "limit", path: "/chat", body: `{"message":"pay"}`, status: 200, has: `"response":"I pay.`, effects: 2},
		"RP-2_chat_session":        {agent: "model", path: "/chat", body: `{"message":"pay"}`, status: 424, has: `"sessionId":"ses_`, effects: 1},
		"RP-2_chat_cut":            {agent: "cut", path: "/chat", body: `{"message":"pay"}`, status: 200, has: `{"response":"Half","sessionId":"`},
		"RP-2_chat_cut_finish":     {agent: "cut", path: "/chat", body: `{"message":"pay"}`, status: 200, has: `"finishReason":"MAX_TOKENS"`},
		"RP-2_stream_cut":          {agent: "cut", path: "/chat/stream", body: `{"message":"pay"}`, status: 200, has: "event: done\n"},
		"RP-2_completions_cut":     {agent: "cut", status: 200, has: `"finish_reason":"length"`},
		"RP-2_chat_unknown_tool":   {agent: "unknown", path: "/chat", body: `{"message":"pay"}`, status: 200, has: `"response":"I look.`},
		"RP-2_chat_down":           {agent: "down", path: "/chat", body: `{"message":"pay"}`, status: 400, has: `"sessionId":"`},
		"RP-2_chat_provider":       {agent: "down", path: "/chat", body: `{"message":"pay","providerId":"OPENAI"}`, status: 400, has: "no model of providerId 'OPENAI' is configured"},
		"RP-2_chat_provider_model": {agent: "down", path: "/chat", body: `{"message":"pay","model":"openai/x","providerId":"claude"}`, status: 400, has: "model 'openai/x' is not of providerId 'claude'"},
		"RP-2_mcp_no_server":       {path: "/mcp/tools/call", body: `{"toolName":"pay"}`, status: 200, has: `"success":true`, effects: 1},
		"RP-2_mcp_name":            {path: "/mcp/tools/call", body: `{"name":"pay"}`, status: 400, has: `toolName is missing`},
		"RP-2_mcp_no_tool":         {path: "/mcp/tools/call", body: `{"toolName":"nosuch"}`, status: 404, has: `Tool not found`},
		"RP-2_stream_failure":      {agent: "model", path: "/chat/stream", body: `{"message":"pay"}`, status: 200, has: "event: error\ndata: {\"error\":\"", effects: 1},
		"RP-2_stream_limit":        {agent: "limit", path: "/chat/stream", body: `{"message":"pay"}`, status: 200, has: "event: done\n", effects: 2},
		"RP-2_mcp":                 {path: "/mcp/tools/call", body: `{"serverId":"bank","toolName":"fail"}`, status: 424, has: `"run":"run_`, effects: 1},
		"RP-2_call":                {path: "/api/v1/tools/fail/call", body: `{}`, status: 424, has: `"run":"run_`, effects: 1},
	} {
		t.Run(name, func(t *testing.T) {
			h, c := paying(t)
			path, body := tt.path, tt.body
			if path == "" {
				path, body = ask(tt.agent)
			}
			s := httptest.NewServer(httpapi.New(h, httpapi.Config{Agent: tt.agent}))
			defer s.Close()
			status, header, text := send(t, s.URL+path, body)
			if status != tt.status || !strings.Contains(text, tt.has) || c.effects.Load() != tt.effects {
				t.Errorf("HTTP %d %s; %d effects", status, text, c.effects.Load())
			}
			if tt.effects == 0 {
				return
			}
			if !strings.HasPrefix(header.Get("Tenon-Run"), "run_") || header.Get("Retry-After") != "" ||
				(status == 424) != (header.Get("X-Should-Retry") == "false") {
				t.Errorf("the header is %v", header)
			}
		})
	}
}

// send posts a body with headers.
func send(t *testing.T, url, body string, header ...string) (int, http.Header, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer res.Body.Close()
	var b strings.Builder
	if err := res.Write(&b); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Header, b.String()
}

// TestSameRun checks that a repeated request gets the run of the first one.
func TestSameRun(t *testing.T) {
	key := []string{"Idempotency-Key", "stainless-python-retry-1"}
	for name, tt := range map[string]struct{ path, body string }{
		"RP-2_completions": {"/v1/chat/completions", `{"model":"model","messages":[{"role":"user","content":"pay"}]}`},
		"RP-2_streamed":    {"/v1/chat/completions", `{"model":"model","stream":true,"messages":[{"role":"user","content":"pay"}]}`},
		"RP-2_chat":        {"/chat", `{"message":"pay"}`},
		"RP-2_chat_stream": {"/chat/stream", `{"message":"pay"}`},
	} {
		t.Run(name, func(t *testing.T) {
			h, c := paying(t)
			s := httptest.NewServer(httpapi.New(h, httpapi.Config{Agent: "model"}))
			defer s.Close()
			_, first, _ := send(t, s.URL+tt.path, tt.body, key...)
			_, second, text := send(t, s.URL+tt.path, tt.body, key...)
			if c.effects.Load() != 1 || first.Get("Tenon-Run") != second.Get("Tenon-Run") ||
				second.Get("Idempotency-Replayed") != "true" {
				t.Errorf("%d effects; %v %s", c.effects.Load(), second, text)
			}
			if _, third, _ := send(t, s.URL+tt.path, tt.body); third.Get("Tenon-Run") == first.Get("Tenon-Run") {
				t.Error("without the key it is the same run")
			}
		})
	}
}

// TestRetryAfterTimeout checks that a repeated attempt of an SDK after a timeout gets the run of the first attempt.
func TestRetryAfterTimeout(t *testing.T) {
	t.Run("RP-2_attempt", func(t *testing.T) {
		h, c := paying(t)
		s := httptest.NewServer(httpapi.New(h, httpapi.Config{}))
		defer s.Close()
		const body = `{"model":"slow","messages":[{"role":"user","content":"wait"}]}`
		gone, leave := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			req := httptest.NewRequestWithContext(gone, http.MethodPost, "/v1/chat/completions", strings.NewReader(body))
			req.Header.Set("Content-Type", "application/json")
			s.Config.Handler.ServeHTTP(httptest.NewRecorder(), req)
		}()
		<-c.began
		leave()
		<-ended
		list, err := h.Runs().List(t.Context(), engine.Filter{})
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		close(c.open)
		_, header, text := send(t, s.URL+"/v1/chat/completions", body, "X-Stainless-Retry-Count", "1")
		if header.Get("Tenon-Run") != list[0].ID || c.effects.Load() != 1 {
			t.Errorf("%d effects; %v %s", c.effects.Load(), header, text)
		}
	})
}

// TestCancelledIsFinal cancels a run for which a client waits. The client must not start it again.
func TestCancelledIsFinal(t *testing.T) {
	t.Run("RP-2_cancelled", func(t *testing.T) {
		h, c := paying(t)
		s := httptest.NewServer(httpapi.New(h, httpapi.Config{}))
		defer s.Close()
		done := make(chan struct{})
		go func() {
			defer close(done)
			<-c.began
			list, err := h.Runs().List(context.Background(), engine.Filter{})
			if err != nil || len(list) != 1 {
				t.Error(list, err)
				return
			}
			if err := h.Runs().Cancel(context.Background(), list[0].ID, "enough"); err != nil {
				t.Error(err)
			}
		}()
		status, header, text := send(t, s.URL+"/v1/chat/completions", `{"model":"slow","messages":[{"role":"user","content":"wait"}]}`)
		<-done
		if status != 424 || header.Get("X-Should-Retry") != "false" || !strings.Contains(text, "run_") {
			t.Errorf("HTTP %d %s", status, text)
		}
	})
}
