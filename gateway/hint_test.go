package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon/gateway"
	"github.com/tenonhq/tenon/mcp"
)

// hinting is a server that sends cache hints with its lists and its resource.
type hinting struct {
	name  string
	hints string // members of the server's answers; "" for no hints
	hint  mcp.Hint
}

func (s hinting) List(context.Context) ([]json.RawMessage, error) {
	return []json.RawMessage{json.RawMessage(`{"name":"of_` + s.name + `","inputSchema":{"type":"object"}}`)}, nil
}

func (s hinting) Call(context.Context, *mcp.ToolRequest) (json.RawMessage, error) {
	return json.RawMessage(echoResult), nil
}

func (s hinting) Hint(context.Context) mcp.Hint { return s.hint }

func (s hinting) offers(_ context.Context, method string, _ json.RawMessage) (json.RawMessage, error) {
	with := func(rest string) (json.RawMessage, error) {
		if s.hints == "" {
			return json.RawMessage("{" + rest + "}"), nil
		}
		return json.RawMessage("{" + s.hints + "," + rest + "}"), nil
	}
	switch method {
	case "prompts/list":
		return with(`"prompts":[{"name":"p_` + s.name + `"}]`)
	case "resources/list":
		return with(`"resources":[{"uri":"mem://` + s.name + `","name":"it"}]`)
	case "resources/templates/list":
		return with(`"resourceTemplates":[]`)
	case "resources/read":
		return with(`"contents":[{"uri":"mem://` + s.name + `","text":"x"}]`)
	}
	return nil, nil
}

// serveHints starts a server, with cache hints if scope is not empty, and returns its entry in a configuration.
func serveHints(t *testing.T, name string, ttl time.Duration, scope, more string) string {
	t.Helper()
	s := hinting{name: name, hint: mcp.Hint{TTL: ttl, Public: scope == "public"}}
	if scope != "" {
		s.hints = fmt.Sprintf(`"ttlMs":%d,"cacheScope":%q`, ttl.Milliseconds(), scope)
	}
	srv, err := mcp.NewServer(mcp.ServerConfig{Name: name, Source: s, Offers: s.offers})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(srv.HTTP(mcp.HTTPConfig{}))
	t.Cleanup(web.Close)
	return name + ": {url: '" + web.URL + "'" + more + "}"
}

// TestGW_29_Hints checks the cache hints of lists and resources. The lifetime is the shortest of the servers' hints and
// of the rules. A list that depends on the principal is private.
func TestGW_29_Hints(t *testing.T) {
	const principal = "policy: {rules: [{when: 'tool.remote_name == \"x\" && principal == \"eve\"', verdict: deny}]}"
	const hour = time.Hour
	for name, tt := range map[string]struct {
		a, b        time.Duration
		scope       string // of b
		more, rules string
		most        time.Duration // of lists; 0: none
		list, read  bool          // whether they are public
		mostRead    time.Duration // of b's resource
	}{
		"two public servers":    {hour, 20 * time.Second, "public", "", "", 20 * time.Second, true, true, 20 * time.Second},
		"one private":           {hour, 20 * time.Second, "private", "", "", 20 * time.Second, false, false, 20 * time.Second},
		"one without hints":     {hour, 0, "", "", "", 0, false, false, 0},
		"one that says 0":       {hour, 0, "public", "", "", 0, true, true, 0},
		"long hints":            {hour, 2 * hour, "public", "", "", 5 * time.Minute, true, true, 5 * time.Minute},
		"a rule of a principal": {hour, hour, "public", "", principal, 5 * time.Minute, false, false, 5 * time.Minute},
		"own credentials": {hour, hour, "public", ", principals: {anna: {headers: {X-Key: k}}}", "", 5 * time.Minute, true,
			false, 5 * time.Minute},
		"a cache of the rules": {hour, hour, "public", "", "policy: {defaults: {cache: 3s}}", 5 * time.Minute, true, true, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t, "servers:\n  "+serveHints(t, "a", tt.a, "public", "")+"\n  "+serveHints(t, "b", tt.b, tt.scope, tt.more)+"\n"+
				strings.TrimSpace(tt.rules)+"\n", gateway.Config{})
			c := w.client(t, mcp.Modern, annaToken)
			if _, err := c.Tools(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Prompts(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Resources(t.Context()); err != nil {
				t.Fatal(err)
			}
			fits := func(what string, got mcp.Hint, most time.Duration, public bool) {
				t.Helper()
				if got.TTL > most || (got.TTL > 0) != (most > 0) || got.Public != public {
					t.Errorf("%s: %+v, want at most %s, public %t", what, got, most, public)
				}
			}
			for _, method := range []string{"tools/list", "prompts/list", "resources/list", "resources/templates/list"} {
				fits(method, c.Hint(method), tt.most, tt.list)
			}
			var read mcp.Hint
			if _, err := c.Read(mcp.WithHint(t.Context(), &read), "mem://b"); err != nil {
				t.Fatal(err)
			}
			fits("resources/read", read, tt.mostRead, tt.read)
		})
	}
}
