package gateway_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/gateway"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/mcp"
)

// curiousResource answers requests for the resource test://note and its template. The server asks for a name before it
// answers, rounds times. A legacy server asks before completions, too.
func curiousResource(rounds int) func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
	return func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
		r := mcp.RequestOf(ctx)
		switch method {
		case "resources/list":
			return json.RawMessage(`{"resources":[{"uri":"test://note","name":"note"}],"ttlMs":60000,"cacheScope":"public"}`), nil
		case "resources/templates/list":
			return json.RawMessage(`{"resourceTemplates":[{"uriTemplate":"test://of/{name}","name":"of"}]}`), nil
		case "completion/complete":
			if r.Modern {
				return json.RawMessage(`{"completion":{"values":["Ann"]}}`), nil
			}
		case "resources/read":
		default:
			return nil, nil
		}
		state := "round "
		answer := rawjson.Field(r.Responses, "who")
		switch {
		case r.Modern && len(r.State) < len(state)+rounds:
			state = cmp.Or(r.State, state)
			return tenon.EventData(map[string]any{"resultType": "input_required", "requestState": state + "+",
				"inputRequests": map[string]any{"who": map[string]any{"method": mcp.MethodElicit, "params": json.RawMessage(nameRequest)}}}), nil
		case !r.Modern:
			for range rounds {
				var err error
				if answer, err = r.Ask(ctx, mcp.MethodElicit, json.RawMessage(nameRequest)); err != nil {
					return nil, err
				}
			}
		}
		name := string(rawjson.Field(rawjson.Field(answer, "content"), "name"))
		if method == "completion/complete" {
			return json.RawMessage(`{"completion":{"values":[` + name + `]}}`), nil
		}
		return json.RawMessage(`{"contents":[{"uri":` + string(rawjson.Field(params, "uri")) + `,"text":` + name + `}],"ttlMs":60000,"cacheScope":"public"}`), nil
	}
}

// readAnswered reads a resource and answers the questions of its server. between is called before each answer of a
// modern client.
func readAnswered(t *testing.T, c *mcp.Client, between func(*mcp.Caller)) (contents []tenon.Content, hint mcp.Hint, err error) {
	t.Helper()
	caller := &mcp.Caller{Ask: answersAll}
	for range 5 {
		ctx := mcp.WithHint(mcp.WithCaller(t.Context(), caller), &hint)
		contents, err = c.Read(ctx, "test://note")
		var in *mcp.InputError
		if !errors.As(err, &in) {
			return contents, hint, err
		}
		out := map[string]json.RawMessage{}
		for key := range rawjson.Members(rawjson.Field(in.Raw, "inputRequests")) {
			out[string(key)], _ = answersAll(t.Context(), mcp.MethodElicit, nil)
		}
		caller.Input = &tenon.InputAnswer{Responses: tenon.EventData(out), State: rawjson.String(rawjson.Field(in.Raw, "requestState"))}
		between(caller)
	}
	return contents, hint, err
}

// TestGW_18_ResourceAsks checks that a server that asks questions during resources/read gets the client's answers, in
// all combinations of eras, and that no client may cache the result, which depends on them. Another principal cannot
// answer. A client without elicitation gets an error.
func TestGW_18_ResourceAsks(t *testing.T) {
	for upstreamEra, cfg := range upstreams {
		cfg.Offers, cfg.Completions = curiousResource(2), true
		u := serveUpstream(t, cfg)
		w := open(t, upstreamAsking(u), gateway.Config{})
		for clientEra, version := range eras {
			t.Run("client "+clientEra+", server "+upstreamEra, func(t *testing.T) {
				answered := 0
				contents, hint, err := readAnswered(t, w.client(t, version, ownToken, declares), func(caller *mcp.Caller) {
					answered++
					if upstreamEra != "legacy" {
						return
					}
					anna := w.client(t, version, annaToken, declares)
					if got, err := anna.Read(mcp.WithCaller(t.Context(), caller), "test://note"); err == nil {
						t.Errorf("another principal gets %v", got)
					}
					other := *caller
					own := w.client(t, version, ownToken, declares)
					if got, err := own.Read(mcp.WithCaller(t.Context(), &other), "test://of/x"); err == nil {
						t.Errorf("the answer is good for another resource: %v", got)
					}
				})
				if err != nil || len(contents) != 1 || contents[0].Text != "Ann" || hint.TTL != 0 {
					t.Errorf("%+v, %+v, %v", contents, hint, err)
				}
				if clientEra == "modern" && answered != 2 {
					t.Errorf("the client answered %d times", answered)
				}
				if _, err := w.client(t, version, ownToken).Read(t.Context(), "test://note"); err == nil {
					t.Error("a client that cannot answer gets the resource")
				}
			})
		}
	}
}

// TestGW_20_CompletionAsks checks that a legacy server can ask a legacy client for a completion. A modern client cannot
// be asked there, so that the server is refused.
func TestGW_20_CompletionAsks(t *testing.T) {
	cfg := upstreams["legacy"]
	cfg.Offers, cfg.Completions = curiousResource(1), true
	w := open(t, upstreamAsking(serveUpstream(t, cfg)), gateway.Config{})
	for clientEra, version := range eras {
		c := w.client(t, version, ownToken, declares)
		ctx := mcp.WithCaller(t.Context(), &mcp.Caller{Ask: answersAll})
		found, err := c.Complete(ctx, mcp.CompletionRequest{Template: "test://of/{name}", Argument: "name"})
		switch {
		case clientEra == "legacy" && (err != nil || strings.Join(found.Values, " ") != "Ann"):
			t.Errorf("%s: %+v, %v", clientEra, found, err)
		case clientEra == "modern" && err == nil:
			t.Errorf("%s: %+v", clientEra, found)
		}
	}
}

// TestGW_18_QuestionsOfOnePrincipal checks that a principal with many unanswered questions gets no further one, and
// that other principals still do.
func TestGW_18_QuestionsOfOnePrincipal(t *testing.T) {
	servers := "servers:\n" // several, since each of them may ask 16 questions at a time
	for n := range 3 {
		cfg := upstreams["legacy"]
		cfg.Offers = func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
			if method == "resources/list" {
				return json.RawMessage(fmt.Sprintf(`{"resources":[{"uri":"test://note%d","name":"note"}]}`, n)), nil
			}
			return curiousResource(1)(ctx, method, params)
		}
		servers += fmt.Sprintf("  up%d: {url: '%s', %s}\n", n, serveUpstream(t, cfg).url, asksClients)
	}
	w := open(t, servers, gateway.Config{})
	ask := func(c *mcp.Client, n int) error {
		_, err := c.Read(mcp.WithCaller(t.Context(), &mcp.Caller{}), fmt.Sprintf("test://note%d", n%3))
		return err
	}
	anna := w.client(t, mcp.Modern, annaToken, declares)
	var in *mcp.InputError
	for n := range 32 {
		if err := ask(anna, n); !errors.As(err, &in) {
			t.Fatalf("question %d: %v", n+1, err)
		}
	}
	if err := ask(anna, 0); err == nil || errors.As(err, &in) || !strings.Contains(err.Error(), "32 servers wait for answers of 'anna'") {
		t.Errorf("one question too many: %v", err)
	}
	if err := ask(w.client(t, mcp.Modern, bertToken, declares), 2); !errors.As(err, &in) {
		t.Errorf("another principal: %v", err)
	}
}
