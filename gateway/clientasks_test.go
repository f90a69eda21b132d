package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/gateway"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/mcp"
)

// asksClients permits the server to ask everything that the client of a call supports.
const asksClients = "elicitation: client, sampling: client, client_roots: true"

// Requests of a server for an answer of the client's model.
const (
	sampleParams = `{"messages":[{"role":"user","content":{"type":"text","text":"Capital of France?"}}],"maxTokens":9}`
	sampleAnswer = `{"role":"assistant","model":"the client's","content":{"type":"text","text":"Paris"}}`
	clientRoots  = `{"roots":[{"uri":"file:///home/ann"}]}`
)

// declares configures a client that answers the questions of servers.
func declares(cfg *mcp.ClientConfig) {
	cfg.Answers = mcp.Answers{Form: true, Sampling: true, Roots: []mcp.Root{{URI: "file:///home/ann"}}}
}

// answersAll answers every request of a server.
func answersAll(_ context.Context, method string, _ json.RawMessage) (json.RawMessage, error) {
	switch method {
	case mcp.MethodSample:
		return json.RawMessage(sampleAnswer), nil
	case mcp.MethodRoots:
		return json.RawMessage(clientRoots), nil
	}
	return json.RawMessage(`{"action":"accept","content":{"name":"Ann"}}`), nil
}

// curious is a tool whose server asks three questions at once, and returns the answers.
var curious = mcp.ServerTool{Definition: json.RawMessage(`{"name":"curious","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`),
	Call: func(ctx context.Context, r *mcp.ToolRequest) (json.RawMessage, error) {
		asked := map[string][2]string{"who": {mcp.MethodElicit, nameRequest}, "model": {mcp.MethodSample, sampleParams}, "roots": {mcp.MethodRoots, `{}`}}
		got := map[string]json.RawMessage{}
		if r.Modern && r.Responses == nil {
			requests := map[string]any{}
			for key, q := range asked {
				requests[key] = map[string]any{"method": q[0], "params": json.RawMessage(q[1])}
			}
			return tenon.EventData(map[string]any{"resultType": "input_required", "requestState": "s", "inputRequests": requests}), nil
		}
		var mu sync.Mutex
		var work sync.WaitGroup
		for key, q := range asked {
			if r.Modern {
				got[key] = rawjson.Field(r.Responses, key)
				continue
			}
			work.Go(func() {
				answer, err := r.Ask(ctx, q[0], json.RawMessage(q[1]))
				if err != nil {
					answer = tenon.EventData(err.Error())
				}
				mu.Lock()
				defer mu.Unlock()
				got[key] = answer
			})
		}
		work.Wait()
		return tenon.EventData(map[string]any{"content": []any{map[string]any{"type": "text", "text": string(tenon.EventData(got))}}}), nil
	}}

// upstreamAsking returns a configuration with one server that may ask clients.
func upstreamAsking(u *upstream) string {
	return "servers: {up: {url: '" + u.url + "', " + asksClients + "}}\n"
}

// TestGW_17_SamplingByClient checks that a client that declares sampling, roots and elicitation answers the server's
// questions itself, in all combinations of protocol eras. A client without these capabilities is not asked.
func TestGW_17_SamplingByClient(t *testing.T) {
	for upstreamEra, cfg := range upstreams {
		u := serveUpstream(t, cfg, curious)
		w := open(t, upstreamAsking(u), gateway.Config{})
		for clientEra, version := range eras {
			t.Run("client "+clientEra+", server "+upstreamEra, func(t *testing.T) {
				r := callAnswering(t, w.client(t, version, ownToken, declares), tenon.Call{Tool: "curious", Ask: answersAll})
				for _, want := range []string{`"Ann`, "Paris", "file:///home/ann"} {
					if !strings.Contains(r.Text(), want) {
						t.Errorf("no %s in %s", want, r.Text())
					}
				}
			})
		}
		if list := w.waitingNow(t); len(list) > 0 {
			t.Errorf("a person is asked: %+v", list)
		}
	}
	u := serveUpstream(t, upstreams["legacy"], curious)
	w := open(t, upstreamAsking(u), gateway.Config{})
	for clientEra, version := range eras {
		t.Run("client without capabilities, "+clientEra, func(t *testing.T) {
			if r := callAnswering(t, w.client(t, version, ownToken), tenon.Call{Tool: "curious", Ask: answersAll}); strings.Contains(r.Text(), "Paris") || !strings.Contains(r.Text(), "denied") {
				t.Errorf("%s", r.Text())
			}
		})
	}
}

// curiousPrompt answers requests for the prompt greet, for which it asks a question first.
func curiousPrompt() func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
	return func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
		switch method {
		case "prompts/list":
			return json.RawMessage(`{"prompts":[{"name":"greet"}]}`), nil
		case "prompts/get":
		default:
			return nil, nil
		}
		r := mcp.RequestOf(ctx)
		answer := rawjson.Field(r.Responses, "who")
		switch {
		case r.Modern && answer == nil:
			return json.RawMessage(`{"resultType":"input_required","requestState":"s","inputRequests":{"who":{"method":"elicitation/create","params":` + nameRequest + `}}}`), nil
		case !r.Modern:
			var err error
			if answer, err = r.Ask(ctx, mcp.MethodElicit, json.RawMessage(nameRequest)); err != nil {
				return nil, err
			}
		}
		return json.RawMessage(`{"messages":[{"role":"user","content":{"type":"text","text":` + string(rawjson.Field(rawjson.Field(answer, "content"), "name")) + `}}]}`), nil
	}
}

// promptAnswered gets the prompt greet and answers the question of its server. between is called before the answer of a
// modern client.
func promptAnswered(t *testing.T, c *mcp.Client, between func(*mcp.Caller)) (json.RawMessage, error) {
	t.Helper()
	caller := &mcp.Caller{Ask: answersAll}
	raw, err := c.Prompt(mcp.WithCaller(t.Context(), caller), "greet", nil)
	if rawjson.String(rawjson.Field(raw, "resultType")) != "input_required" {
		return raw, err
	}
	out := map[string]json.RawMessage{}
	for key := range rawjson.Members(rawjson.Field(raw, "inputRequests")) {
		out[string(key)], _ = answersAll(t.Context(), mcp.MethodElicit, nil)
	}
	caller.Input = &tenon.InputAnswer{Responses: tenon.EventData(out), State: rawjson.String(rawjson.Field(raw, "requestState"))}
	between(caller)
	return c.Prompt(mcp.WithCaller(t.Context(), caller), "greet", nil)
}

// TestGW_18_PromptAsks checks that a server that asks a question during prompts/get gets the client's answer, in all
// combinations of eras.
func TestGW_18_PromptAsks(t *testing.T) {
	for upstreamEra, cfg := range upstreams {
		cfg.Offers = curiousPrompt()
		u := serveUpstream(t, cfg)
		w := open(t, upstreamAsking(u), gateway.Config{})
		for clientEra, version := range eras {
			t.Run("client "+clientEra+", server "+upstreamEra, func(t *testing.T) {
				raw, err := promptAnswered(t, w.client(t, version, ownToken, declares), func(caller *mcp.Caller) {
					if upstreamEra != "legacy" {
						return
					}
					// another principal cannot answer
					anna := w.client(t, version, annaToken, declares)
					if got, err := anna.Prompt(mcp.WithCaller(t.Context(), caller), "greet", nil); err == nil {
						t.Errorf("another principal gets %s", got)
					}
				})
				if err != nil || !strings.Contains(string(raw), `"Ann"`) {
					t.Errorf("%s, %v", raw, err)
				}
			})
		}
	}
}

// TestGW_15_ResourceSubscriptions checks that updates of a resource reach the clients that have subscribed to it and
// may read it, in all combinations of eras. The subscription at the server ends with its last client.
func TestGW_15_ResourceSubscriptions(t *testing.T) {
	for upstreamEra, cfg := range upstreams {
		began, ended := make(chan string, 8), make(chan string, 8)
		cfg.Offers = func(_ context.Context, method string, _ json.RawMessage) (json.RawMessage, error) {
			switch method {
			case "resources/list":
				return json.RawMessage(`{"resources":[{"uri":"test://a","name":"a"},{"uri":"test://b","name":"b"}]}`), nil
			case "resources/templates/list":
				return json.RawMessage(`{"resourceTemplates":[]}`), nil
			}
			return nil, nil
		}
		cfg.Watch = func(_ context.Context, uri string) (func(), error) {
			began <- uri
			return func() { ended <- uri }, nil
		}
		u := serveUpstream(t, cfg)
		w := open(t, upstreamConfig(u, `
policy:
  rules:
    - {when: 'tool.kind == "mcp_resource" && principal != "local" && tool.remote_name == "test://a"', verdict: deny}
`), gateway.Config{})
		for clientEra, version := range eras {
			t.Run("client "+clientEra+", server "+upstreamEra, func(t *testing.T) {
				updates := make(chan string, 8)
				hears := func(cfg *mcp.ClientConfig) { cfg.Changed = func(string) {} } // opens the stream of notifications
				c := w.client(t, version, ownToken, hears)
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				watched := make(chan error, 1)
				go func() {
					watched <- c.Watch(ctx, "test://a", func() {}, func(uri string) { updates <- uri })
				}()
				if got := <-began; got != "test://a" {
					t.Errorf("the server watches %s", got)
				}
				until(t, "an update", func() bool {
					u.ResourceUpdated("test://a", json.RawMessage(`{"uri":"test://a"}`))
					u.ResourceUpdated("test://b", json.RawMessage(`{"uri":"test://b"}`))
					select {
					case got := <-updates:
						if got != "test://a" {
							t.Errorf("an update of %s", got)
						}
						return true
					default:
						return false
					}
				})
				stop()
				<-watched
				if got := <-ended; got != "test://a" {
					t.Errorf("the server ended %s", got)
				}
			})
		}
		legacy := w.client(t, mcp.LatestLegacy, annaToken)
		nothing := func(string) {}
		if err := legacy.Watch(t.Context(), "test://a", func() {}, nothing); err == nil || !strings.Contains(err.Error(), "denied") {
			t.Errorf("a resource that the rules deny: %v", err)
		}
		if err := legacy.Watch(t.Context(), "test://none", func() {}, nothing); err == nil {
			t.Error("a resource that does not exist is watched")
		}
	}
}

// TestGW_19_LogsReachTheCaller checks that log messages of a server reach only the client whose call is in progress,
// from the log level that it has set.
func TestGW_19_LogsReachTheCaller(t *testing.T) {
	noisy := mcp.ServerTool{Definition: json.RawMessage(`{"name":"noisy","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`),
		Call: func(_ context.Context, r *mcp.ToolRequest) (json.RawMessage, error) {
			r.Log("info", "quiet")
			r.Log("warning", "loud")
			return json.RawMessage(echoResult), nil
		}}
	for upstreamEra, cfg := range upstreams {
		u := serveUpstream(t, cfg, noisy)
		w := open(t, upstreamConfig(u, ""), gateway.Config{})
		for clientEra, version := range eras {
			t.Run("client "+clientEra+", server "+upstreamEra, func(t *testing.T) {
				var mu sync.Mutex
				heard := map[string]string{}
				listens := func(who, level string) func(*mcp.ClientConfig) {
					return func(cfg *mcp.ClientConfig) {
						cfg.LogLevel = level
						cfg.Notice = func(method string, params json.RawMessage) {
							mu.Lock()
							defer mu.Unlock()
							if method == "notifications/message" {
								heard[who] += rawjson.String(rawjson.Field(params, "data")) + " "
							}
						}
					}
				}
				_ = w.client(t, version, annaToken, listens("anna", "debug"))
				c := w.client(t, version, ownToken, listens("own", "warning"))
				until(t, "the message", func() bool { // a legacy client sets its level in the background
					if _, err := c.Call(t.Context(), tenon.Call{Tool: "noisy"}); err != nil {
						t.Fatal(err)
					}
					mu.Lock()
					defer mu.Unlock()
					return heard["own"] != ""
				})
				mu.Lock()
				defer mu.Unlock()
				if strings.Contains(heard["own"], "quiet") || heard["anna"] != "" {
					t.Errorf("%s", fmt.Sprint(heard))
				}
			})
		}
	}
}
