package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/gateway"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/mcp"
)

// searched is a configuration with endpoints in mode search, over the tools of an upstream server and 40 more.
const searched = rules + `
gateway:
  endpoints:
    find: {mode: search, always: [echo, find_tools], exclude: [broken]}
    bare: {mode: search, tools: [write, echo]}
`

// many returns the tools that a search has to distinguish.
func many() (list []mcp.ServerTool) {
	for i := range 40 {
		list = append(list, mcp.ServerTool{Call: echoTool.Call, Definition: fmt.Appendf(nil, `{"name":"report_%d",`+
			`"description":"makes report %d about sales","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`, i, i)})
	}
	return append(list,
		mcp.ServerTool{Call: echoTool.Call, Definition: json.RawMessage(`{"name":"weather","description":"tells the weather of a city",` +
			`"inputSchema":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]},"annotations":{"readOnlyHint":true}}`)},
		mcp.ServerTool{Call: echoTool.Call, Definition: json.RawMessage(`{"name":"find_tools","description":"of the server",` +
			`"inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`)})
}

// through calls a tool by means of the tool call_tool.
func through(t *testing.T, c *mcp.Client, name, args string) *tenon.Result {
	t.Helper()
	r, err := c.Call(t.Context(), tenon.Call{Tool: "call_tool", Arguments: json.RawMessage(`{"name":"` + name + `","arguments":` + args + `}`)})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return r
}

// found returns the names that find_tools finds.
func found(t *testing.T, c *mcp.Client, args string) (names string, r *tenon.Result) {
	t.Helper()
	r, err := c.Call(t.Context(), tenon.Call{Tool: "find_tools", Arguments: json.RawMessage(args)})
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for v := range rawjson.Elements(rawjson.Field(r.Structured, "tools")) {
		list = append(list, rawjson.String(rawjson.Field(v, "name")))
	}
	return strings.Join(list, " "), r
}

// TestGW_26_Search checks an endpoint in mode search. It lists two tools and the configured always-visible ones, finds
// the other tools with their definitions, and calls them with the same result as a direct call.
func TestGW_26_Search(t *testing.T) {
	w := open(t, upstreamConfig(serveUpstream(t, mcp.ServerConfig{}, many()...), searched), gateway.Config{})
	for name, era := range eras {
		t.Run(name, func(t *testing.T) {
			c := w.at(t, "/find", era)
			tools, err := c.Tools(t.Context())
			if got := named(tools); err != nil || got != "find_tools call_tool echo" {
				t.Fatalf("tools %q, %v", got, err)
			}
			if about := tools[0].Description; !strings.Contains(about, "There are 44 more tools") || !strings.Contains(about, "servers: up") {
				t.Errorf("find_tools: %s", about)
			}
			names, r := found(t, c, `{"query":"what is the weather in Rome"}`)
			if first, _, _ := strings.Cut(names, " "); first != "weather" || !strings.Contains(r.Text(), `"required":["city"]`) {
				t.Errorf("found %q: %s", names, r.Text())
			}
			if names, _ := found(t, c, `{"query":"report about sales"}`); strings.Count(names, " ") != 7 {
				t.Errorf("found %q, want 8 of 40", names)
			}
			if names, r := found(t, c, `{"query":"xyzzy"}`); names != "" || !strings.Contains(r.Text(), "No tool fits") {
				t.Errorf("found %q: %s", names, r.Text())
			}
			if r := through(t, c, "weather", `{"city":"Rome"}`); r.IsError || string(r.Structured) != `{"id":9007199254740993,"v":1.0}` {
				t.Errorf("the found tool: %+v", r)
			}
			if r := through(t, c, "weather", `"{\"city\":\"Rome\"}"`); r.IsError {
				t.Errorf("arguments as a text: %+v", r)
			}
			if r := through(t, c, "find_tools", `{}`); r.Text() != "hi" {
				t.Errorf("the server's own find_tools: %+v", r)
			}
			if r, err := c.Call(t.Context(), tenon.Call{Tool: "weather", Arguments: json.RawMessage(`{"city":"Rome"}`)}); err != nil || r.IsError {
				t.Errorf("a direct call: %+v, %v", r, err)
			}
		})
	}
	if tools, err := w.at(t, "/bare", mcp.Modern).Tools(t.Context()); err != nil || named(tools) != "find_tools call_tool" {
		t.Errorf("without pinned tools: %s, %v", named(tools), err)
	}
	if tools, err := w.client(t, mcp.Modern, ownToken).Tools(t.Context()); err != nil || len(tools) != 47 {
		t.Errorf("the endpoint with all tools has %d, %v", len(tools), err)
	}
}

// TestGW_26_Mistakes checks that errors about wrong arguments of find_tools and call_tool say what to do.
func TestGW_26_Mistakes(t *testing.T) {
	w := open(t, upstreamConfig(serveUpstream(t, mcp.ServerConfig{}, many()...), searched), gateway.Config{})
	for name, era := range eras {
		for what, tt := range map[string]struct{ tool, args, want string }{
			"an unknown name":           {"call_tool", `{"name":"wether","arguments":{}}`, "there is no tool 'wether'; did you mean 'weather'?"},
			"a name like none":          {"call_tool", `{"name":"qqqqqqqq"}`, "there is no tool 'qqqqqqqq'; search for it with find_tools"},
			"a tool beside the others":  {"call_tool", `{"name":"broken"}`, "there is no tool 'broken'"},
			"no name":                   {"call_tool", `{}`, "'name' is missing"},
			"arguments beside":          {"call_tool", `{"name":"weather","city":"Rome"}`, "no parameter 'city'"},
			"arguments that are none":   {"call_tool", `{"name":"weather","arguments":[1]}`, "'arguments' is no JSON object"},
			"a text that is no object":  {"call_tool", `{"name":"weather","arguments":"{"}`, "'arguments' is no JSON object"},
			"arguments that do not fit": {"call_tool", `{"name":"weather","arguments":{}}`, "city"},
			"no query":                  {"find_tools", `{}`, "'query' is missing"},
			"an unknown server":         {"find_tools", `{"query":"weather","server":"upp"}`, "no tool is of a server 'upp'; did you mean 'up'?"},
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				r, err := w.at(t, "/find", era).Call(t.Context(), tenon.Call{Tool: tt.tool, Arguments: json.RawMessage(tt.args)})
				if err != nil || !r.IsError || !strings.Contains(r.Text(), tt.want) {
					t.Errorf("%+v, %v; want %q", r, err, tt.want)
				}
			})
		}
	}
}

// TestGW_26_Rules checks that a tool that a principal may not see is neither found, called nor named, and that the
// journal contains the attempt. Denials because of arguments, and approvals, are the same as in a direct call.
func TestGW_26_Rules(t *testing.T) {
	for name, era := range eras {
		t.Run(name, func(t *testing.T) {
			u := serveUpstream(t, mcp.ServerConfig{}, many()...)
			w := open(t, upstreamConfig(u, searched), gateway.Config{Park: 50 * time.Millisecond})
			there := world{url: w.url + "/find"}
			anna, own := there.client(t, era, annaToken), there.client(t, era, ownToken)
			if names, _ := found(t, anna, `{"query":"secret"}`); strings.Contains(names, "secret") {
				t.Errorf("anna finds %s", names)
			}
			if names, _ := found(t, own, `{"query":"secret"}`); !strings.Contains(names, "secret") {
				t.Errorf("the owner finds %s", names)
			}
			if r := through(t, own, "secret", `{}`); r.IsError {
				t.Errorf("the owner's call: %+v", r)
			}
			if r := through(t, anna, "secret", `{}`); !r.IsError || r.Text() != "there is no tool 'secret'; search for it with find_tools" {
				t.Errorf("anna's call: %+v", r)
			}
			if r := through(t, anna, "secrets", `{}`); !r.IsError || strings.Contains(r.Text(), "'secret'") {
				t.Errorf("a similar name: %+v", r)
			}
			if r := through(t, anna, "guarded", `{"path":"/etc"}`); !r.IsError || !strings.Contains(r.Text(), "not that folder") {
				t.Errorf("denied by its arguments: %+v", r)
			}
			until(t, "the audit", func() bool { return len(w.runs(t)) == 3 })
			if got, want := w.decisions(t, "anna"), "guarded=deny secret=deny"; got != want {
				t.Errorf("decisions %q, want %q", got, want)
			}
			if r := through(t, anna, "write", `{"n":1}`); !r.IsError || !strings.Contains(r.Text(), "waits for a person") {
				t.Fatalf("parked: %+v", r)
			}
			w.decide(t, w.waiting(t, 1)[0].Run, tenon.Allow)
			var r *tenon.Result
			until(t, "the result", func() bool { r = through(t, anna, "write", `{"n":1}`); return !r.IsError })
			if r.Text() != "written" || u.writes.Load() != 1 {
				t.Errorf("%+v after %d calls", r, u.writes.Load())
			}
		})
	}
}

// TestGW_26_QuestionsPass checks that a server's question during a call through call_tool reaches the client.
func TestGW_26_QuestionsPass(t *testing.T) {
	for name, era := range eras {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int32
			w := &world{home: filepath.Join(t.TempDir(), "home"), asks: true}
			w.start(t, upstreamConfig(serveUpstream(t, mcp.ServerConfig{}, greeter(&calls)), searched), gateway.Config{})
			d := &dialog{answer: `{"action":"accept","content":{"name":"Ann"}}`}
			there := world{url: w.url + "/find"}
			r := d.call(t, there.client(t, era, ownToken, elicits), "call_tool", `{"name":"hello"}`)
			if r.Text() != "accept Ann" || d.asked.Load() != 1 || calls.Load() != 1 {
				t.Errorf("%+v after %d questions and %d calls", r, d.asked.Load(), calls.Load())
			}
		})
	}
}

// decisions returns the decisions about a principal's calls, sorted.
func (w *world) decisions(t *testing.T, who tenon.Principal) string {
	t.Helper()
	var list []string
	for _, r := range w.runs(t) {
		if r.Principal != who {
			continue
		}
		events, err := w.host.Runs().Open(r.ID).Journal(t.Context(), 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			var d agent.Decision
			if e.Kind == agent.EventDecided && json.Unmarshal(e.Data, &d) == nil {
				list = append(list, d.Remote+"="+string(d.Verdict))
			}
		}
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

// TestGW_26_DeadServer checks that clients find and call the tools of the other servers while one server cannot be
// reached. They also find the last known tools of that server.
func TestGW_26_DeadServer(t *testing.T) {
	u, dead := serveUpstream(t, mcp.ServerConfig{}), serveUpstream(t, mcp.ServerConfig{}, mcp.ServerTool{Call: echoTool.Call,
		Definition: json.RawMessage(`{"name":"lost","description":"says where it is","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`)})
	never := httptest.NewServer(http.NotFoundHandler())
	never.Close()
	w := open(t, "servers: {up: {url: '"+u.url+"'}, dead: {url: '"+dead.url+"', include: [lost]}, never: {url: '"+never.URL+"'}}\n"+
		"gateway: {endpoints: {find: {mode: search}}}\n", gateway.Config{})
	c := w.at(t, "/find", mcp.Modern)
	if names, _ := found(t, c, `{"query":"says where it is"}`); !strings.Contains(names, "lost") {
		t.Fatalf("found %q", names)
	}
	if r := through(t, c, "echo", `{}`); r.IsError { // wait until the working server is connected
		t.Fatal(r.Text())
	}
	dead.web.CloseClientConnections()
	dead.web.Close()
	if _, err := w.host.Servers().Restart(t.Context(), "dead"); err == nil {
		t.Fatal("the server is not dead")
	}
	if names, _ := found(t, c, `{"query":"says it back"}`); !strings.Contains(names, "echo") {
		t.Errorf("found %q of the server that works", names)
	}
	names, r := found(t, c, `{"query":"says where it is","server":"dead"}`)
	if names != "lost" || !strings.Contains(r.Text(), "tenonhq.github.io/unavailable") {
		t.Errorf("found %q of the server that does not work: %s", names, r.Text())
	}
	if r := through(t, c, "echo", `{}`); r.IsError {
		t.Errorf("a call: %s", r.Text())
	}
	if r := through(t, c, "lost", `{}`); !r.IsError || strings.Contains(r.Text(), "there is no tool") {
		t.Errorf("a call of the dead server: %s", r.Text())
	}
}
