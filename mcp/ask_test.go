package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/jsonrpc"
	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/transport"
)

const (
	formParams   = `{"message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}`
	urlParams    = `{"mode":"url","message":"Go","url":"https://x.example","elicitationId":"1"}`
	sampleParams = `{"maxTokens":10,"messages":[]}`
)

// asking returns a server with a tool that asks the client what its arguments say. The tool returns the answer, or the
// error, as text.
func asking(t *testing.T, cfg mcp.ServerConfig) *mcp.Server {
	t.Helper()
	cfg.Tools = []mcp.ServerTool{tool(`{"name":"ask"}`, func(ctx context.Context, r *mcp.ToolRequest) (json.RawMessage, error) {
		var in struct {
			Method string
			Params json.RawMessage
			GiveUp int
		}
		if err := json.Unmarshal(r.Arguments, &in); err != nil {
			return nil, err
		}
		if in.GiveUp > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, time.Duration(in.GiveUp)*time.Millisecond)
			defer cancel()
		}
		answer, err := r.Ask(ctx, in.Method, in.Params)
		text := string(answer)
		if err != nil {
			text = err.Error()
		}
		return append(append([]byte(`{"content":[{"type":"text","text":`), rawjson.AppendString(nil, text)...), "}]}"...), nil
	}), tool(`{"name":"quick"}`, func(context.Context, *mcp.ToolRequest) (json.RawMessage, error) {
		return json.RawMessage(`{"content":[]}`), nil
	})}
	s, err := mcp.NewServer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// overBoth runs a test with a stream and with HTTP.
func overBoth(t *testing.T, s *mcp.Server, cfg mcp.ClientConfig, test func(t *testing.T, c *mcp.Client)) {
	enough, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	t.Run("stream", func(t *testing.T) {
		p, r, w := newPipe()
		ctx, cancel := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		wg.Go(func() {
			lines := transport.NewLines(r, w, 0)
			_ = s.Serve(ctx, lines)
			_ = w.Close()
			_ = lines.Close()
		})
		t.Cleanup(wg.Wait)
		t.Cleanup(cancel)
		cfg := cfg
		cfg.Dial = func(context.Context) (mcp.Stream, error) { return p, nil }
		test(t, connectIn(enough, t, cfg))
	})
	t.Run("http", func(t *testing.T) {
		web := httptest.NewServer(s.HTTP(mcp.HTTPConfig{}))
		t.Cleanup(web.Close)
		cfg := cfg
		cfg.Dial = func(context.Context) (mcp.Stream, error) {
			return transport.DialHTTP(transport.HTTPConfig{URL: web.URL, IdleTimeout: cfg.RequestTimeout * 3 / 5})
		}
		test(t, connectIn(enough, t, cfg))
	})
}

func askArgs(method, params string, giveUp int) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"method":%q,"params":%s,"giveUp":%d}`, method, params, giveUp))
}

var allAnswers = mcp.Answers{Form: true, URL: true, Sampling: true, Roots: []mcp.Root{{URI: "file:///w", Name: "w"}}}

// TestAskedDuringACall has a legacy server ask the client during a call.
func TestAskedDuringACall(t *testing.T) {
	answer := func(_ context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
		if method == mcp.MethodSample && string(params) == sampleParams {
			return nil, tenon.Errorf(tenon.CodeDenied, "Sampling denied by ann")
		}
		return json.RawMessage(`{"action":"accept","content":{"name":"` + strings.TrimSuffix(method, "/create") + `","n":9007199254740993}}`), nil
	}
	tests := map[string]struct {
		answers mcp.Answers
		method  string
		params  string
		want    string
	}{
		"form":               {allAnswers, mcp.MethodElicit, formParams, `{"action":"accept","content":{"name":"elicitation","n":9007199254740993}}`},
		"url":                {allAnswers, mcp.MethodElicit, urlParams, `{"action":"accept","content":{"name":"elicitation","n":9007199254740993}}`},
		"denied":             {allAnswers, mcp.MethodSample, sampleParams, "Sampling denied by ann (JSON-RPC error -1)"},
		"roots":              {allAnswers, mcp.MethodRoots, `{}`, `{"roots":[{"uri":"file:///w","name":"w"}]}`},
		"ping":               {mcp.Answers{}, "ping", `{}`, `{}`},
		"unknown":            {allAnswers, "tasks/list", `{}`, "method not found: tasks/list (JSON-RPC error -32601)"},
		"form not declared":  {mcp.Answers{}, mcp.MethodElicit, formParams, "Elicitation denied: it is not configured for this server (JSON-RPC error -32601)"},
		"url not declared":   {mcp.Answers{Form: true}, mcp.MethodElicit, urlParams, `elicitation in mode "url" is not supported (JSON-RPC error -32602)`},
		"mode not known":     {allAnswers, mcp.MethodElicit, `{"mode":"voice"}`, `elicitation in mode "voice" is not supported (JSON-RPC error -32602)`},
		"no sampling":        {mcp.Answers{Form: true}, mcp.MethodSample, sampleParams, "Sampling denied: it is not configured for this server (JSON-RPC error -32601)"},
		"no roots":           {mcp.Answers{Form: true}, mcp.MethodRoots, `{}`, "Roots not supported: no roots are configured for this server (JSON-RPC error -32601)"},
		"tools in sampling":  {allAnswers, mcp.MethodSample, `{"maxTokens":1,"messages":[],"tools":[]}`, "tools in sampling are not supported, and were not declared (JSON-RPC error -32602)"},
		"too large to read":  {allAnswers, mcp.MethodElicit, `{"message":"` + strings.Repeat("x", 64<<10) + `"}`, "an elicitation must not have more than 65536 bytes (JSON-RPC error -32602)"},
		"empty is form mode": {mcp.Answers{URL: true}, mcp.MethodElicit, formParams, `elicitation in mode "" is not supported (JSON-RPC error -32602)`},
	}
	s := asking(t, mcp.ServerConfig{NoModern: true})
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			overBoth(t, s, mcp.ClientConfig{Answers: tt.answers}, func(t *testing.T, c *mcp.Client) {
				r, err := c.Call(t.Context(), tenon.Call{Tool: "ask", Arguments: askArgs(tt.method, tt.params, 0), Ask: answer})
				if err != nil || r.Text() != tt.want {
					t.Errorf("got %v, %v\nwant %s", r, err, tt.want)
				}
			})
		})
	}
}

// TestAPersonMayTakeTheirTime lets an answer take longer than the request's timeout and the stream's limit of silence,
// while other calls continue.
func TestAPersonMayTakeTheirTime(t *testing.T) {
	s := asking(t, mcp.ServerConfig{NoModern: true})
	patiently(t, 250*time.Millisecond, func(limit time.Duration) (failed error) {
		overBoth(t, s, mcp.ClientConfig{Answers: allAnswers, RequestTimeout: limit}, func(t *testing.T, c *mcp.Client) {
			var during atomic.Int32
			r, err := c.Call(t.Context(), tenon.Call{Tool: "ask", Arguments: askArgs(mcp.MethodElicit, formParams, 0),
				Ask: func(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
					for range 6 {
						time.Sleep(limit * 2 / 5)
						if _, err := c.Call(ctx, tenon.Call{Tool: "quick"}); err == nil {
							during.Add(1)
						}
					}
					return json.RawMessage(`{"action":"decline"}`), ctx.Err()
				}})
			if err != nil || r.Text() != `{"action":"decline"}` || during.Load() != 6 {
				failed = fmt.Errorf("%s: got %v, %v; %d of 6 other calls were answered meanwhile", t.Name(), r, err, during.Load())
			}
		})
		return failed
	})
}

// patiently runs a test of a time limit. If the test fails, patiently repeats it with longer limits, because other
// programs may delay the machine.
func patiently(t *testing.T, limit time.Duration, test func(limit time.Duration) error) {
	t.Helper()
	var failed []error
	for range 4 {
		err := test(limit)
		if err == nil {
			return
		}
		failed = append(failed, fmt.Errorf("with %s: %w", limit, err))
		limit *= 4
	}
	t.Error(errors.Join(failed...))
}

// TestTheEndOfAQuestion ends a question in three ways: the server withdraws it, the caller gives up the call, or the
// connection is closed. Each must end the context of the function that answers.
func TestTheEndOfAQuestion(t *testing.T) {
	s := asking(t, mcp.ServerConfig{NoModern: true})
	overBoth(t, s, mcp.ClientConfig{Answers: allAnswers}, func(t *testing.T, c *mcp.Client) {
		// attempt returns the function that answers. asked is closed when the question arrives. ended returns nil if
		// the question has arrived and its context has ended.
		attempt := func() (wait func(context.Context, string, json.RawMessage) (json.RawMessage, error), asked chan struct{}, ended func() error) {
			asked, over := make(chan struct{}), make(chan struct{})
			wait = func(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
				close(asked)
				<-ctx.Done()
				close(over)
				return nil, ctx.Err()
			}
			return wait, asked, func() error {
				select {
				case <-asked:
					<-over
					return nil
				default:
					return errors.New("nobody was asked in time")
				}
			}
		}
		patiently(t, 50*time.Millisecond, func(limit time.Duration) error {
			wait, _, ended := attempt()
			if r, err := c.Call(t.Context(), tenon.Call{Tool: "ask", Arguments: askArgs(mcp.MethodElicit, formParams, int(limit.Milliseconds())), Ask: wait}); err != nil || !strings.Contains(r.Text(), "deadline") {
				t.Errorf("taken back: %v, %v", r, err)
			}
			return ended()
		})
		patiently(t, 100*time.Millisecond, func(limit time.Duration) error {
			wait, _, ended := attempt()
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			// The tool may have returned its result before the caller gave up.
			if _, err := c.Call(ctx, tenon.Call{Tool: "ask", Arguments: askArgs(mcp.MethodElicit, formParams, 0), Ask: wait}); err != nil && tenon.ErrorCode(err) != tenon.CodeTimeout {
				t.Errorf("given up: %v", err)
			}
			return ended()
		})
		wait, asked, ended := attempt()
		go func() { <-asked; _ = c.Close() }()
		if _, err := c.Call(t.Context(), tenon.Call{Tool: "ask", Arguments: askArgs(mcp.MethodElicit, formParams, 0), Ask: wait}); err != nil && tenon.ErrorCode(err) != tenon.CodeUnknown {
			t.Errorf("closed: %v", err)
		}
		if err := ended(); err != nil {
			t.Error(err)
		}
	})
}

// asker makes a function an [mcp.Asker].
type asker func(method string) (json.RawMessage, error)

func (a asker) Ask(_ context.Context, method string, _ json.RawMessage) (json.RawMessage, error) {
	return a(method)
}

// TestAskedOutsideOfACall has a server ask right after the client has initialized.
func TestAskedOutsideOfACall(t *testing.T) {
	told := make(chan string, 4)
	s := asking(t, mcp.ServerConfig{NoModern: true, Initialized: func(ctx context.Context, ask mcp.AskFunc) {
		for _, q := range [][2]string{{mcp.MethodElicit, formParams}, {mcp.MethodSample, sampleParams}, {mcp.MethodRoots, "{}"}} {
			answer, err := ask(ctx, q[0], json.RawMessage(q[1]))
			var rpc *jsonrpc.Error
			if errors.As(err, &rpc) {
				answer = json.RawMessage(rpc.Message)
			}
			told <- string(answer)
		}
	}})
	for name, tt := range map[string]struct {
		asker mcp.Asker
		want  []string
	}{
		"nobody": {nil, []string{`{"action":"decline"}`, "Sampling denied: it is answered during a tool call only", `{"roots":[{"uri":"file:///w","name":"w"}]}`}},
		"an asker": {asker(func(method string) (json.RawMessage, error) { return json.RawMessage(`{"for":"` + method + `"}`), nil }),
			[]string{`{"for":"elicitation/create"}`, `{"for":"sampling/createMessage"}`, `{"roots":[{"uri":"file:///w","name":"w"}]}`}},
	} {
		t.Run(name, func(t *testing.T) {
			overBoth(t, s, mcp.ClientConfig{Answers: allAnswers, Asker: tt.asker, Changed: func(string) {}}, func(t *testing.T, _ *mcp.Client) {
				for _, want := range tt.want {
					select {
					case got := <-told:
						if got != want {
							t.Errorf("got %s, want %s", got, want)
						}
					case <-time.After(time.Minute):
						t.Fatalf("nobody answers, want %s", want)
					}
				}
			})
		})
	}
}

// TestTooManyQuestions checks that the number of open questions of one server is bounded.
func TestTooManyQuestions(t *testing.T) {
	s := asking(t, mcp.ServerConfig{NoModern: true})
	overBoth(t, s, mcp.ClientConfig{Answers: allAnswers}, func(t *testing.T, c *mcp.Client) {
		release := make(chan struct{})
		var open, refused atomic.Int32
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				r, err := c.Call(t.Context(), tenon.Call{Tool: "ask", Arguments: askArgs(mcp.MethodElicit, formParams, 0),
					Ask: func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
						open.Add(1)
						<-release
						return json.RawMessage(`{"action":"cancel"}`), nil
					}})
				if err == nil && strings.Contains(r.Text(), "more than 16 questions are open") {
					refused.Add(1)
				}
			})
		}
		for end := time.Now().Add(time.Minute); open.Load()+refused.Load() < 20 && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		close(release)
		if wg.Wait(); open.Load() != 16 || refused.Load() != 4 {
			t.Errorf("%d questions are open and %d refused, want 16 and 4", open.Load(), refused.Load())
		}
	})
}

// TestDeclaredInBothEras checks which kinds of questions the client declares to the server.
func TestDeclaredInBothEras(t *testing.T) {
	for _, modern := range []bool{false, true} {
		got := make(chan string, 1)
		s, err := mcp.NewServer(mcp.ServerConfig{NoModern: !modern, Tools: []mcp.ServerTool{tool(`{"name":"x"}`, func(_ context.Context, r *mcp.ToolRequest) (json.RawMessage, error) {
			got <- string(r.Capabilities)
			return json.RawMessage(`{"content":[]}`), nil
		})}})
		if err != nil {
			t.Fatal(err)
		}
		for want, answers := range map[string]mcp.Answers{
			`{}`:                          {},
			`{"elicitation":{"form":{}}}`: {Form: true},
			`{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{"listChanged":true}}`: allAnswers,
		} {
			overBoth(t, s, mcp.ClientConfig{Answers: answers}, func(t *testing.T, c *mcp.Client) {
				if _, err := c.Call(t.Context(), tenon.Call{Tool: "x"}); err != nil || c.Info().IsModern() != modern {
					t.Fatalf("modern %v: %v", c.Info().IsModern(), err)
				}
				if modern { // roots are part of its answers, so changes need no notification
					want = strings.Replace(want, `{"listChanged":true}`, "{}", 1)
				}
				if got := <-got; got != want {
					t.Errorf("modern %v: declared %s, want %s", modern, got, want)
				}
			})
		}
	}
}

// TestURLRequired checks that a request for input is made from the error with which a server of revision 2025-11-25
// asks for a visit of a URL.
func TestURLRequired(t *testing.T) {
	var calls atomic.Int32
	s, err := mcp.NewServer(mcp.ServerConfig{NoModern: true, Tools: []mcp.ServerTool{tool(`{"name":"x"}`, func(_ context.Context, r *mcp.ToolRequest) (json.RawMessage, error) {
		if calls.Add(1)%2 == 1 {
			return nil, &jsonrpc.Error{Code: mcp.CodeURLElicitation, Message: "first", Data: json.RawMessage(`{"elicitations":[` + urlParams + `]}`)}
		}
		if r.Responses != nil {
			t.Errorf("a legacy server is sent %s", r.Responses)
		}
		return json.RawMessage(`{"content":[{"type":"text","text":"in"}]}`), nil
	})}})
	if err != nil {
		t.Fatal(err)
	}
	overBoth(t, s, mcp.ClientConfig{Answers: allAnswers}, func(t *testing.T, c *mcp.Client) {
		r, err := c.Call(t.Context(), tenon.Call{Tool: "x"})
		if err != nil || r.Input == nil || string(r.Input.Requests) != `{"1":{"method":"elicitation/create","params":`+urlParams+`}}` {
			t.Fatalf("got %+v, %v", r, err)
		}
		no := &tenon.InputAnswer{Responses: json.RawMessage(`{"1":{"action":"decline"}}`)}
		if _, err := c.Call(t.Context(), tenon.Call{Tool: "x", Input: no}); tenon.ErrorCode(err) != tenon.CodeDenied {
			t.Errorf("declined: %v", err)
		}
		yes := &tenon.InputAnswer{Responses: json.RawMessage(`{"1":{"action":"accept"}}`)}
		if r, err := c.Call(t.Context(), tenon.Call{Tool: "x", Input: yes}); err != nil || r.Text() != "in" {
			t.Errorf("accepted: %v, %v", r, err)
		}
	})
	overBoth(t, s, mcp.ClientConfig{Answers: mcp.Answers{Form: true}}, func(t *testing.T, c *mcp.Client) {
		calls.Store(0)
		if _, err := c.Call(t.Context(), tenon.Call{Tool: "x"}); tenon.ErrorCode(err) != tenon.CodeTool {
			t.Errorf("not declared: %v", err)
		}
	})
}
