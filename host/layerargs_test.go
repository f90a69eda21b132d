package host_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/mcp"
)

type layerArguments struct{ user, project, tool, args, sent string }

// TestLayerArguments checks that the user's restrictions on arguments and results of a server's tools also apply if a
// project defines a server with the same target, or an entry under tools. The field sent is the arguments that the
// server receives; "" means that there is no call.
func TestLayerArguments(t *testing.T) {
	const (
		set    = "servers: {bank: {url: BANK, transform: [{set_params: {account: mine}}]}}\n"
		hide   = "servers: {bank: {url: BANK, transform: [{hide_params: [note]}]}}\n"
		enum   = "servers: {bank: {url: BANK}}\ntools: {pay: {server: bank, arguments: [{name: amount, type: integer, enum: [1, 5]}, {name: account}, {name: note}]}}\n"
		schema = "servers: {bank: {url: BANK}}\ntools: {pay: {server: bank, arguments_mode: replace, schema: {type: object, properties: {amount: {type: integer, maximum: 5}, account: {type: string}}, required: [amount], additionalProperties: false}}}\n"
		other  = "servers: {savings: {url: BANK}, bank: {enabled: false, url: 'http://127.0.0.1:1/'}}\n"
		repl   = "arguments_mode: replace, arguments: [{name: amount, type: integer}, {name: account}, {name: note}]"
	)
	for name, tt := range map[string]layerArguments{
		"nothing is said":                       {"servers: {bank: {url: BANK}}\n", other, "pay", `{amount: 9, account: evil}`, `{"amount":9,"account":"evil"}`},
		"SEC-F1_set_params":                     {set, other, "pay", `{amount: 9}`, `{"amount":9,"account":"mine"}`},
		"SEC-F1_set_params, given":              {set, other, "pay", `{amount: 9, account: evil}`, ""},
		"SEC-F1_set_params, set otherwise":      {set, "servers: {savings: {url: BANK, transform: [{set_params: {account: evil}}]}, bank: {enabled: false, url: 'http://127.0.0.1:1/'}}\n", "pay", `{amount: 9}`, `{"amount":9,"account":"mine"}`},
		"SEC-F1_set_params, the same name":      {set, "servers: {bank: {url: BANK}}\n", "pay", `{amount: 9, account: evil}`, ""},
		"SEC-F1_set_params, schema replaced":    {set, other + "tools: {pay: {server: savings, " + repl + "}}\n", "pay", `{amount: 9, account: evil}`, ""},
		"set_params, schema replaced":           {set, other + "tools: {pay: {server: savings, " + repl + "}}\n", "pay", `{amount: 9}`, `{"amount":9,"account":"mine"}`},
		"SEC-F1_hide_params":                    {hide, other, "pay", `{amount: 9, note: leak}`, ""},
		"SEC-F1_hide_params, set":               {hide, "servers: {savings: {url: BANK, transform: [{set_params: {note: leak}}]}, bank: {enabled: false, url: 'http://127.0.0.1:1/'}}\n", "pay", `{amount: 9}`, `{"amount":9}`},
		"SEC-F1_hide_params, schema replaced":   {hide, other + "tools: {pay: {server: savings, " + repl + "}}\n", "pay", `{amount: 9, note: leak}`, ""},
		"SEC-F1_arguments":                      {enum, other, "pay", `{amount: 9}`, ""},
		"arguments that fit":                    {enum, other, "pay", `{amount: 5}`, `{"amount":5}`},
		"SEC-F1_arguments, project's entry":     {enum, "tools: {pay: {server: bank, " + repl + "}}\n", "pay", `{amount: 9}`, ""},
		"SEC-F1_arguments, another entry":       {enum, "tools: {x: {server: bank, remote_name: pay, " + repl + "}}\n", "x", `{amount: 9}`, ""},
		"SEC-F1_arguments, unchecked":           {enum, "tools: {x: {server: bank, remote_name: pay, validate: off, " + repl + "}}\n", "x", `{amount: 9}`, ""},
		"arguments, another entry":              {enum, "tools: {x: {server: bank, remote_name: pay, " + repl + "}}\n", "x", `{amount: 1}`, `{"amount":1}`},
		"SEC-F1_arguments, fixed by project":    {enum, "servers: {savings: {url: BANK, transform: [{set_params: {amount: 9}}]}, bank: {enabled: false, url: 'http://127.0.0.1:1/'}}\n", "pay", `{account: a}`, ""},
		"SEC-F1_schema":                         {schema, other, "pay", `{amount: 9}`, ""},
		"SEC-F1_schema, another key":            {schema, other, "pay", `{amount: 3, note: leak}`, ""},
		"schema":                                {schema, other, "pay", `{amount: 3}`, `{"amount":3}`},
		"the user's own server":                 {set, "name: p\n", "pay", `{amount: 9}`, `{"amount":9,"account":"mine"}`},
		"the project may fix more":              {set, "servers: {savings: {url: BANK, transform: [{set_params: {amount: 2}}]}, bank: {enabled: false, url: 'http://127.0.0.1:1/'}}\n", "pay", `{}`, `{"account":"mine","amount":2}`},
		"SEC-F1_redact of the server":           {"servers: {bank: {url: BANK, policy: {redact: [iban]}}}\n", other, "pay", `{amount: 9}`, `{"amount":9}`},
		"SEC-F1_redact of the tool":             {"servers: {bank: {url: BANK}}\ntools: {pay: {server: bank, policy: {redact: [iban]}}}\n", other, "pay", `{amount: 9}`, `{"amount":9}`},
		"SEC-F1_redact of the tool, same entry": {"servers: {bank: {url: BANK}}\ntools: {pay: {server: bank, policy: {redact: [iban]}}}\n", "tools: {x: {server: bank, remote_name: pay}}\n", "x", `{amount: 9}`, `{"amount":9}`},
	} {
		t.Run(name, func(t *testing.T) { checkLayerArguments(t, name, tt) })
	}
}

// checkLayerArguments makes a call under the configurations of the user and the project, and checks the arguments
// that the server gets.
func checkLayerArguments(t *testing.T, name string, tt layerArguments) {
	const never = "policy: {defaults: {approval: never}}\n"
	var mu sync.Mutex
	sent := ""
	srv, err := mcp.NewServer(mcp.ServerConfig{Name: "bank", Version: "1", Tools: []mcp.ServerTool{{
		Definition: json.RawMessage(`{"name":"pay","description":"d","inputSchema":{"type":"object","properties":{"amount":{"type":"integer"},"account":{"type":"string"},"note":{"type":"string"}}}}`),
		Call: func(_ context.Context, r *mcp.ToolRequest) (json.RawMessage, error) {
			mu.Lock()
			defer mu.Unlock()
			sent = string(r.Arguments)
			return json.RawMessage(`{"content":[{"type":"text","text":"{\"iban\":\"DE00\"}"}]}`), nil
		}}}})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(srv.HTTP(mcp.HTTPConfig{}))
	defer web.Close()
	fill := strings.NewReplacer("BANK", web.URL).Replace
	p := newScene(t, map[string]string{usersFile: fill(tt.user) + never, projects: fill(tt.project) + never,
		"steps.yaml": "steps: [{calls: [{name: " + tt.tool + ", arguments: " + tt.args + "}]}, {text: done}]"})
	cfg, err := config.Load(t.Context(), p.options())
	if err != nil {
		t.Fatal(err)
	}
	h, err := host.Open(t.Context(), host.Config{Config: cfg, Home: filepath.Join(p.dir, "home"), Model: "script:" + filepath.Join(p.dir, "steps.yaml"),
		LookupEnv: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	run, err := h.Start(t.Context(), host.Question{Text: "go"})
	if err != nil {
		t.Fatal(err)
	}
	var log []string
	for e, err := range h.Runs().Events(t.Context(), run.ID, 0) {
		if err != nil {
			t.Fatal(err)
		}
		log = append(log, string(e.Data))
	}
	mu.Lock()
	defer mu.Unlock()
	if sent != tt.sent {
		t.Errorf("sent %q, want %q\n%s", sent, tt.sent, strings.Join(log, "\n"))
	}
	if strings.Contains(name, "redact") && strings.Contains(strings.Join(log, "\n"), "DE00") {
		t.Error("the journal has the value that the user redacts")
	}
}
