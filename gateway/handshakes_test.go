package gateway_test

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tenonhq/tenon/gateway"
	"github.com/tenonhq/tenon/mcp"
)

// exchange is a request of a client, and what its answer must be.
type exchange struct {
	method  string            // of HTTP; POST if empty
	headers map[string]string // beside the ones that every client sends; SESSION is replaced by the id of the session
	body    string
	status  int
	has     string // in the answer
}

// handshakes are the first requests of real clients, in their shape as issue threads describe it. The bytes are our
// own: none of these programs was recorded.
var handshakes = map[string][]exchange{
	// anthropics/claude-code: capabilities of 2.1.232, agentgateway #2982 (2.1.240 probes with server/discover).
	"Claude Code, older era": {
		{body: initialize("2025-11-25", `{"roots":{"listChanged":true},"elicitation":{}}`, "claude-code", "2.1.232"),
			status: 200, has: `"protocolVersion":"2025-11-25"`},
		{headers: legacyHeaders, body: initialized, status: 202},
		{headers: legacyHeaders, body: request(2, "tools/list"), status: 200, has: `"name":"echo"`},
		{headers: legacyHeaders, body: call(3, "echo"), status: 200, has: `"text":"hi"`},
		{headers: legacyHeaders, body: request(4, "prompts/list"), status: 200, has: `"prompts":`},
		{headers: legacyHeaders, body: request(5, "resources/list"), status: 200, has: `"resources":`},
		{method: http.MethodDelete, headers: legacyHeaders, status: 204},
	},
	"Claude Code, 2026-07-28": {
		{headers: modernHeaders("server/discover", ""), body: modern(1, "server/discover", "", "claude-code"), status: 200,
			has: `"supportedVersions":["2026-07-28"`},
		{headers: modernHeaders("tools/list", ""), body: modern(2, "tools/list", "", "claude-code"), status: 200,
			has: `"name":"echo"`},
		{headers: modernHeaders("tools/call", "echo"), body: modern(3, "tools/call", `"name":"echo","arguments":{},`,
			"claude-code"), status: 200, has: `"text":"hi"`},
	},
	// github/copilot-cli #4370, github/app #3582: a probe in the newer era, then the older handshake on the same server.
	"Copilot, probes and goes back": {
		{headers: modernHeaders("server/discover", ""), body: modern(1, "server/discover", "", "copilot-cli"), status: 200,
			has: `"supportedVersions"`},
		{body: initialize("2025-11-25", `{}`, "github-copilot-developer", "1.0.0"), status: 200, has: `"serverInfo"`},
		{headers: legacyHeaders, body: initialized, status: 202},
		{headers: legacyHeaders, body: request(2, "tools/list"), status: 200, has: `"name":"echo"`},
	},
	// github/copilot-cli #4370: a probe without _meta, which is no request of the newer era.
	"Copilot, bare probe": {
		{body: request(1, "server/discover"), status: 200, has: `"code":-32601`},
		{body: initialize("2025-11-25", `{}`, "github-copilot-developer", "1.0.0"), status: 200, has: `"serverInfo"`},
	},
	// agentgateway #3439: the header names server/discover, and the body is another request. The specification demands
	// that it is refused, and the next request must not suffer from it.
	"Copilot, header of another request": {
		{headers: modernHeaders("server/discover", ""), body: modern(1, "tools/list", "", "copilot-cli"), status: 400,
			has: `"code":-32020`},
		{headers: modernHeaders("tools/list", ""), body: modern(2, "tools/list", "", "copilot-cli"), status: 200,
			has: `"name":"echo"`},
	},
	// A client of revision 2025-06-18 with an unknown capability, which breaks strict servers.
	"Cursor": {
		{body: initialize("2025-06-18", `{"tools":true,"prompts":true,"roots":{"listChanged":false},"elicitation":{}}`,
			"cursor-vscode", "1.0.0"), status: 200, has: `"protocolVersion":"2025-06-18"`},
		{headers: map[string]string{"Mcp-Session-Id": "SESSION", "MCP-Protocol-Version": "2025-06-18"}, body: initialized,
			status: 202},
		{headers: map[string]string{"Mcp-Session-Id": "SESSION", "MCP-Protocol-Version": "2025-06-18"},
			body: request(1, "tools/list"), status: 200, has: `"name":"echo"`},
	},
	// anthropics/claude-ai-mcp #975 and #99, Envoy #1958: the session is not sent back, and each request comes from
	// another machine. A request without a session is answered on its own.
	"claude.ai, without the session": {
		{body: initialize("2025-11-25", `{}`, "claude-ai", "0.1.0"), status: 200, has: `"serverInfo"`},
		{headers: map[string]string{"MCP-Protocol-Version": "2025-11-25"}, body: initialized, status: 202},
		{headers: map[string]string{"MCP-Protocol-Version": "2025-11-25"}, body: request(1, "tools/list"), status: 200,
			has: `"name":"echo"`},
		{headers: map[string]string{"MCP-Protocol-Version": "2025-11-25"}, body: call(2, "echo"), status: 200,
			has: `"text":"hi"`},
		{headers: map[string]string{"MCP-Protocol-Version": "2025-11-25"}, body: request(3, "resources/subscribe"),
			status: 200, has: "needs the session"},
		{method: http.MethodGet, headers: map[string]string{"MCP-Protocol-Version": "2025-11-25"}, status: 400,
			has: `"message":"the header Mcp-Session-Id is missing"`},
	},
	// The same client uses the newer era where server/discover works, which needs no session.
	"claude.ai, 2026-07-28": {
		{headers: modernHeaders("server/discover", ""), body: modern(1, "server/discover", "", "claude-ai"), status: 200,
			has: `"2026-07-28"`},
		{headers: modernHeaders("tools/call", "echo"), body: modern(2, "tools/call", `"name":"echo","arguments":{},`,
			"claude-ai"), status: 200, has: `"text":"hi"`},
	},
}

const initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`

var legacyHeaders = map[string]string{"Mcp-Session-Id": "SESSION", "MCP-Protocol-Version": "2025-11-25"}

func initialize(version, capabilities, name, number string) string {
	return `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"` + version + `","capabilities":` +
		capabilities + `,"clientInfo":{"name":"` + name + `","version":"` + number + `"}}}`
}

func request(id int, method string) string {
	b, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": method}) // numbers and texts
	return string(b)
}

func call(id int, tool string) string {
	b, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": "tools/call",
		"params": map[string]any{"name": tool, "arguments": map[string]any{}, "_meta": map[string]any{"progressToken": 1}}})
	return string(b)
}

// modernHeaders are the headers of a request of 2026-07-28; name is the value of Mcp-Name, or empty.
func modernHeaders(method, name string) map[string]string {
	h := map[string]string{"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method}
	if name != "" {
		h["Mcp-Name"] = name
	}
	return h
}

// modern is a request of 2026-07-28; params are the members before _meta.
func modern(id int, method, params, client string) string {
	head, _ := json.Marshal(id) // a number
	return `{"jsonrpc":"2.0","id":` + string(head) + `,"method":"` + method + `","params":{` + params +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},` +
		`"io.modelcontextprotocol/clientInfo":{"name":"` + client + `","version":"1"}}}}`
}

// TestGW_2_HandshakesOfRealClients checks that the first requests of real clients are answered, in front of a server of
// either era, also those that break servers and gateways.
func TestGW_2_HandshakesOfRealClients(t *testing.T) {
	for _, era := range []string{"legacy", "modern"} {
		cfg := mcp.ServerConfig{NoModern: era == "legacy", NoLegacy: era == "modern"}
		w := open(t, upstreamConfig(serveUpstream(t, cfg), ""), gateway.Config{})
		for name, list := range handshakes {
			t.Run(name+", to a server of the "+era+" era", func(t *testing.T) {
				session := ""
				for i, x := range list {
					status, body := w.exchange(t, x, &session)
					if status != x.status || !strings.Contains(body, x.has) {
						t.Fatalf("request %d: status %d (want %d), answer %s, without %s", i, status, x.status, body, x.has)
					}
				}
			})
		}
	}
}

// exchange sends a request with the owner's token, and keeps the session of an initialize.
func (w *world) exchange(t *testing.T, x exchange, session *string) (status int, body string) {
	t.Helper()
	method := http.MethodPost
	method = cmp.Or(x.method, method)
	r, err := http.NewRequestWithContext(t.Context(), method, w.url, strings.NewReader(x.body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+ownToken)
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Content-Type", "application/json")
	for k, v := range x.headers {
		r.Header.Set(k, strings.ReplaceAll(v, "SESSION", *session))
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	if id := answer.Header.Get("Mcp-Session-Id"); id != "" {
		*session = id
	}
	return answer.StatusCode, string(b)
}
