package gateway_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tenonhq/tenon/gateway"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/mcp"
)

// libraryOffers answers requests about a prompt, a resource, a resource template and completions. Their names contain
// who.
func libraryOffers(who string) func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
	return func(_ context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
		switch method {
		case "prompts/list":
			return json.RawMessage(`{"prompts":[{"name":"greet","x-vendor":1.0,"arguments":[{"name":"whom"}]},{"name":"only_` + who + `"}]}`), nil
		case "prompts/get":
			return json.RawMessage(`{"vendor":[1],"messages":[{"role":"user","content":{"type":"text","text":"` + who + ` greets ` + rawjson.String(rawjson.Field(rawjson.Field(params, "arguments"), "whom")) + `"}}]}`), nil
		case "resources/list":
			return json.RawMessage(`{"resources":[{"uri":"mem://` + who + `","name":"it","_meta":{"a":1}}]}`), nil
		case "resources/templates/list":
			return json.RawMessage(`{"resourceTemplates":[{"uriTemplate":"` + who + `://{path}","name":"any"}]}`), nil
		case "resources/read":
			return json.RawMessage(`{"contents":[{"uri":` + string(rawjson.Field(params, "uri")) + `,"text":"of ` + who + `","_meta":{"b":2}}]}`), nil
		case "completion/complete":
			return json.RawMessage(`{"completion":{"values":["` + who + `"],"total":1}}`), nil
		}
		return nil, nil
	}
}

// library starts a server with libraryOffers.
func library(t *testing.T, who string) string {
	t.Helper()
	s, err := mcp.NewServer(mcp.ServerConfig{Name: who, Completions: true, Offers: libraryOffers(who)})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(s.HTTP(mcp.HTTPConfig{}))
	t.Cleanup(web.Close)
	return web.URL
}

// TestGW_20_ResourcesPromptsCompletion checks that prompts, resources, templates and completions of all servers reach
// the client with their unknown members, each from the right server.
func TestGW_20_ResourcesPromptsCompletion(t *testing.T) {
	w := open(t, "servers: {ann: {url: '"+library(t, "ann")+"'}, bob: {url: '"+library(t, "bob")+"'}}\n"+
		"gateway: {endpoints: {one: {servers: [bob]}, none: {tools: [x]}}}\n", gateway.Config{})
	for name, era := range eras {
		t.Run(name, func(t *testing.T) {
			c := w.client(t, era, ownToken)
			prompts, err := c.Prompts(t.Context())
			var names []string
			for _, p := range prompts {
				names = append(names, p.Name)
			}
			if got, want := strings.Join(names, " "), "ann_greet only_ann bob_greet only_bob"; err != nil || got != want || !strings.Contains(string(prompts[0].Raw), `"x-vendor":1.0`) {
				t.Errorf("prompts %q, want %q (%v)", got, want, err)
			}
			raw, err := c.Prompt(t.Context(), "bob_greet", map[string]string{"whom": "you"})
			if err != nil || !strings.Contains(string(raw), "bob greets you") || !strings.Contains(string(raw), `"vendor":[1]`) {
				t.Errorf("prompt %s, %v", raw, err)
			}
			if _, err := c.Prompt(t.Context(), "greet", nil); err == nil {
				t.Error("an ambiguous prompt is there")
			}
			resources, err := c.Resources(t.Context())
			if err != nil || len(resources) != 4 || !strings.Contains(string(resources[0].Raw), `"_meta":{"a":1}`) {
				t.Errorf("resources %+v, %v", resources, err)
			}
			for uri, want := range map[string]string{"mem://bob": "of bob", "ann://a/b": "of ann"} {
				if got, err := c.Read(t.Context(), uri); err != nil || len(got) != 1 || got[0].Text != want || !strings.Contains(string(got[0].Raw), `"_meta":{"b":2}`) {
					t.Errorf("%s: %+v, %v", uri, got, err)
				}
			}
			if _, err := c.Read(t.Context(), "mem://none"); err == nil {
				t.Error("a resource that is not there was read")
			}
			for _, q := range []mcp.CompletionRequest{{Prompt: "bob_greet", Argument: "whom"}, {Template: "bob://{path}", Argument: "path"}} {
				if found, err := c.Complete(t.Context(), q); err != nil || len(found.Values) != 1 || found.Values[0] != "bob" {
					t.Errorf("%+v: %+v, %v", q, found, err)
				}
			}
		})
	}
	if list, err := w.at(t, "/one", mcp.Modern).Resources(t.Context()); err != nil || len(list) != 2 {
		t.Errorf("an endpoint of one server: %+v, %v", list, err)
	}
	if list, err := w.at(t, "/none", mcp.Modern).Resources(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("an endpoint of tools: %+v, %v", list, err)
	}
}

// TestGW_14_ListChanged checks that a client is notified once of a changed list, and only if the change affects the
// client's own list.
func TestGW_14_ListChanged(t *testing.T) {
	for name, era := range eras {
		t.Run(name, func(t *testing.T) {
			u := serveUpstream(t, mcp.ServerConfig{})
			w := open(t, upstreamConfig(u, rules+"\ngateway: {endpoints: {echo: {tools: [echo]}}}\n"), gateway.Config{})
			var all, some atomic.Int32
			watch := func(path string, n *atomic.Int32) *mcp.Client {
				there := world{url: w.url + path}
				c := there.client(t, era, ownToken, func(cfg *mcp.ClientConfig) {
					cfg.Changed = func(list string) {
						if list == "tools" {
							n.Add(1)
						}
					}
				})
				if _, err := c.Tools(t.Context()); err != nil {
					t.Fatal(err)
				}
				return c
			}
			c := watch("", &all)
			watch("/echo", &some)
			extra := mcp.ServerTool{Definition: json.RawMessage(`{"name":"extra","inputSchema":{"type":"object"}}`)}
			with := false // the streams of notifications open in the background, so that the first changes may be missed
			until(t, "the notification", func() bool {
				tools := []mcp.ServerTool{echoTool}
				if with = !with; with {
					tools = append(tools, extra)
				}
				for range 5 { // a storm
					if err := u.SetTools(tools); err != nil {
						t.Fatal(err)
					}
				}
				return all.Load() > 0
			})
			if err := u.SetTools([]mcp.ServerTool{echoTool}); err != nil {
				t.Fatal(err)
			}
			until(t, "the list", func() bool {
				tools, err := c.Tools(t.Context())
				return err == nil && named(tools) == "echo"
			})
			if some.Load() != 0 {
				t.Errorf("%d notifications to a client that sees no change", some.Load())
			}
		})
	}
}

// TestGW_7_20_RulesOfResourcesAndPrompts checks that rules apply to resources and prompts as they do to tools: a denied
// one is not listed, and the error gives the reason.
func TestGW_7_20_RulesOfResourcesAndPrompts(t *testing.T) {
	w := open(t, "servers: {ann: {url: '"+library(t, "ann")+"'}}\n"+`
policy:
  rules:
    - {when: 'tool.kind == "mcp_prompt" && tool.remote_name == "only_ann" && principal == "anna"', verdict: deny, reason: not this prompt}
    - {when: 'tool.kind == "mcp_prompt" && args.whom == "eve"', verdict: deny, reason: nobody greets eve}
    - {when: 'tool.kind == "mcp_resource" && tool.remote_name.startsWith("mem:") && principal == "anna"', verdict: deny, reason: not this resource}
    - {when: 'tool.kind == "mcp_resource" && args.uri.startsWith("ann://secret")', verdict: deny, reason: not that folder}
    - {when: 'tool.kind == "mcp_resource" && args.uri.startsWith("ann://asked")', verdict: ask, reason: somebody decides}
`, gateway.Config{})
	for name, era := range eras {
		t.Run(name, func(t *testing.T) {
			own, anna := w.client(t, era, ownToken), w.client(t, era, annaToken)
			for who, want := range map[*mcp.Client]int{own: 2, anna: 1} {
				if list, err := who.Prompts(t.Context()); err != nil || len(list) != want {
					t.Errorf("%d prompts, want %d, %v", len(list), want, err)
				}
				if list, err := who.Resources(t.Context()); err != nil || len(list) != want { // one is the template
					t.Errorf("%d resources, want %d, %v", len(list), want, err)
				}
			}
			for uri, why := range map[string]string{"mem://ann": "not this resource", "ann://secret/a": "not that folder",
				"ann://asked/a": "needs approval", "ann://open": ""} {
				_, err := anna.Read(t.Context(), uri)
				if (err == nil) != (why == "") || err != nil && !strings.Contains(err.Error(), why) {
					t.Errorf("%s: %v, want %q", uri, err, why)
				}
			}
			if _, err := own.Read(t.Context(), "mem://ann"); err != nil {
				t.Errorf("the owner: %v", err)
			}
			for _, p := range []struct{ name, whom, why string }{{"only_ann", "", "not this prompt"}, {"greet", "eve", "nobody greets eve"}, {"greet", "you", ""}} {
				_, err := anna.Prompt(t.Context(), p.name, map[string]string{"whom": p.whom})
				if (err == nil) != (p.why == "") || err != nil && !strings.Contains(err.Error(), p.why) {
					t.Errorf("%s: %v, want %q", p.name, err, p.why)
				}
			}
			if _, err := anna.Complete(t.Context(), mcp.CompletionRequest{Prompt: "only_ann", Argument: "whom"}); err == nil {
				t.Error("a denied prompt is completed")
			}
		})
	}
}

// TestGW_7_20_RuleOfPromptIsNoMistake checks the warning about a rule that names an unknown tool. A rule with the name
// of a prompt causes no warning; a rule whose name is neither a tool nor a prompt does.
func TestGW_7_20_RuleOfPromptIsNoMistake(t *testing.T) {
	w := open(t, "servers: {ann: {url: '"+library(t, "ann")+"'}}\n"+`
policy:
  rules:
    - {when: 'tool.remote_name == "only_ann"', verdict: deny}
    - {when: 'tool.remote_name == "only_anne"', verdict: deny}
`, gateway.Config{})
	_, problems, err := w.host.Tools().Snapshot(t.Context())
	if err != nil || len(problems) != 1 || !strings.Contains(problems[0].Err.Error(), "policy.rules[1].when: matches no tool") {
		t.Errorf("problems %v, %v; want one about the second rule", problems, err)
	}
}
