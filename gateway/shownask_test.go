package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/mcp"
)

// nosySecret is a secret that the server below knows, because tenon sends it in a header.
const nosySecret = "secret-of-tenon-0123456789"

// nosyRequest is a question with a secret and a hidden character.
const nosyRequest = `{"message":"key ` + nosySecret + ` hid` + "\u200b" + `den","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}`

// asksNosily asks the client of a request, in the form of its era. done is false if the client has to answer first.
func asksNosily(ctx context.Context, r *mcp.ToolRequest) (result json.RawMessage, done bool, err error) {
	if !r.Modern {
		_, err = r.Ask(ctx, mcp.MethodElicit, json.RawMessage(nosyRequest))
		return nil, err == nil, err
	}
	if r.Responses != nil {
		return nil, true, nil
	}
	return json.RawMessage(`{"resultType":"input_required","requestState":"s","inputRequests":{"who":{"method":"elicitation/create","params":` +
		nosyRequest + `}}}`), false, nil
}

// nosyTool asks during a call.
var nosyTool = mcp.ServerTool{Definition: json.RawMessage(`{"name":"nosy","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`),
	Call: func(ctx context.Context, r *mcp.ToolRequest) (json.RawMessage, error) {
		if needed, done, err := asksNosily(ctx, r); !done {
			return needed, err
		}
		return json.RawMessage(`{"content":[{"type":"text","text":"done"}]}`), nil
	}}

// nosyOffers asks during all other requests that allow it.
func nosyOffers(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	var result string
	switch method {
	case "prompts/list":
		return json.RawMessage(`{"prompts":[{"name":"greet"}]}`), nil
	case "resources/list":
		return json.RawMessage(`{"resources":[{"uri":"test://note","name":"note"}]}`), nil
	case "resources/templates/list":
		return json.RawMessage(`{"resourceTemplates":[]}`), nil
	case "prompts/get":
		result = `{"messages":[{"role":"user","content":{"type":"text","text":"done"}}]}`
	case "resources/read":
		result = `{"contents":[{"uri":"test://note","text":"done"}]}`
	case "completion/complete":
		result = `{"completion":{"values":["done"]}}`
		if mcp.RequestOf(ctx).Modern {
			return json.RawMessage(result), nil
		}
	default:
		return nil, nil
	}
	if needed, done, err := asksNosily(ctx, mcp.RequestOf(ctx)); !done {
		return needed, err
	}
	return json.RawMessage(result), nil
}

// TestGW_18_QuestionsAreMasked checks that no question of a server shows a secret or a hidden character to a client,
// in all combinations of eras, whatever the request.
func TestGW_18_QuestionsAreMasked(t *testing.T) {
	for upstreamEra, cfg := range upstreams {
		cfg.Offers, cfg.Completions = nosyOffers, true
		u := serveUpstream(t, cfg, nosyTool)
		w := openWith(t, "secrets: {k: {file: secret.txt}}\nservers: {up: {url: '"+u.url+"', headers: {X-Key: '${secret:k}'}, "+
			asksClients+"}}\n", map[string]string{"secret.txt": nosySecret})
		for clientEra, version := range eras {
			c := w.client(t, version, ownToken, declares)
			for name, send := range map[string]func(context.Context, mcp.AskFunc) (string, error){
				"a tool": func(_ context.Context, ask mcp.AskFunc) (string, error) {
					return callAnswering(t, c, tenon.Call{Tool: "nosy", Ask: ask}).Text(), nil
				},
				"a prompt": func(ctx context.Context, _ mcp.AskFunc) (string, error) {
					raw, err := c.Prompt(ctx, "greet", nil)
					return string(raw), err
				},
				"a resource": func(ctx context.Context, _ mcp.AskFunc) (string, error) {
					contents, err := c.Read(ctx, "test://note")
					var in *mcp.InputError
					if errors.As(err, &in) {
						return string(in.Raw), nil
					}
					if err != nil {
						return "", err
					}
					return contents[0].Text, nil
				},
				"a completion": func(ctx context.Context, _ mcp.AskFunc) (string, error) {
					found, err := c.Complete(ctx, mcp.CompletionRequest{Prompt: "greet", Argument: "a"})
					return strings.Join(found.Values, " "), err
				},
			} {
				t.Run("client "+clientEra+", server "+upstreamEra+", "+name, func(t *testing.T) {
					var shown []string
					ask := func(_ context.Context, _ string, params json.RawMessage) (json.RawMessage, error) {
						shown = append(shown, string(params))
						return json.RawMessage(`{"action":"accept","content":{"name":"Ann"}}`), nil
					}
					caller := &mcp.Caller{Ask: ask}
					got, err := send(mcp.WithCaller(t.Context(), caller), ask)
					if in := rawjson.Field([]byte(got), "inputRequests"); in != nil { // what a modern client is asked
						shown = append(shown, string(in))
						caller.Input = &tenon.InputAnswer{State: rawjson.String(rawjson.Field([]byte(got), "requestState"))}
						out := map[string]any{}
						for key := range rawjson.Members(in) {
							out[string(key)] = map[string]any{"action": "accept", "content": map[string]any{"name": "Ann"}}
						}
						caller.Input.Responses = tenon.EventData(out)
						got, err = send(mcp.WithCaller(t.Context(), caller), ask)
					}
					cannot := name == "a completion" && (clientEra == "modern" || upstreamEra == "modern")
					if !cannot && (err != nil || !strings.Contains(got, "done") || len(shown) == 0) {
						t.Fatalf("%s, %v; %d questions", got, err, len(shown))
					}
					for _, q := range shown {
						if strings.Contains(q, nosySecret) || strings.Contains(q, "\u200b") || strings.Contains(q, `\u200b`) || !strings.Contains(q, "hid") {
							t.Errorf("the client is asked %s", q)
						}
					}
				})
			}
		}
	}
}
