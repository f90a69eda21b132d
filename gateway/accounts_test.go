package gateway_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/mcp"
)

// signIn signs a principal in with a link.
func signIn(t *testing.T, link, token string) {
	t.Helper()
	b := newBrowser(t)
	if status, _, body := b.visit(t, http.MethodGet, b.begin(t, link, token), ""); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
}

// works checks that a client needs no sign-in.
func works(t *testing.T, c *mcp.Client) {
	t.Helper()
	if r, err := c.Call(t.Context(), tenon.Call{Tool: "echo"}); err != nil || r.IsError || r.Input != nil {
		t.Errorf("%+v, %v", r, err)
	}
}

// logout sends a request to delete a sign-in to the API.
func (w *world) logout(t *testing.T, token, body string) (int, string) {
	t.Helper()
	api := world{url: strings.TrimSuffix(w.url, "/mcp") + "/api/v1/servers/up/logout"}
	status, _, answer := api.post(t, token, body)
	return status, answer
}

// TestGW_11_SignOut checks that the sign-in of a principal can be deleted by the principal and by the owner, and by
// nobody else. Its tokens are revoked, and the next call gets a link.
func TestGW_11_SignOut(t *testing.T) {
	a := serveAccounts(t)
	w := openAccounts(t, a, "", "sign_in: true", "")
	anna, bert := w.client(t, mcp.Modern, annaToken, visitsURLs), w.client(t, mcp.LatestLegacy, bertToken, visitsURLs)
	signIn(t, linkOf(t, anna), annaToken)
	signIn(t, linkOf(t, bert), bertToken)
	for body, want := range map[string]int{`{"principal":"anna"}`: http.StatusForbidden, `{"principal":"local"}`: http.StatusForbidden} {
		if status, answer := w.logout(t, bertToken, body); status != want {
			t.Errorf("bert sends %s: %d %s", body, status, answer)
		}
	}
	works(t, anna)
	want := `{"server":"up","principal":"anna","signed_in":true,"revoked":true}`
	if status, answer := w.logout(t, annaToken, ""); status != http.StatusOK || strings.TrimSpace(answer) != want {
		t.Errorf("anna signs out: %d %s, want %s", status, answer, want)
	}
	if status, answer := w.logout(t, annaToken, ""); status != http.StatusOK || !strings.Contains(answer, `"signed_in":false`) {
		t.Errorf("anna signs out again: %d %s", status, answer)
	}
	linkOf(t, anna)
	works(t, bert)
	if status, answer := w.logout(t, ownToken, `{"principal":"bert"}`); status != http.StatusOK || !strings.Contains(answer, `"signed_in":true`) {
		t.Errorf("the owner signs bert out: %d %s", status, answer)
	}
	linkOf(t, bert)
	if status, answer := w.logout(t, ownToken, `{"principal":"local"}`); status != http.StatusBadRequest {
		t.Errorf("the owner as a principal: %d %s", status, answer)
	}
	revoked := 0
	for _, line := range a.Seen() {
		if strings.HasSuffix(line, "/revoke") {
			revoked++
		}
	}
	if revoked < 2 {
		t.Errorf("%d tokens were revoked: %q", revoked, a.Seen())
	}
}

// TestGW_11_ElicitationComplete checks that a client of the older era is notified when the sign-in is done for which it
// got the id of an elicitation, and that another client of the same principal is not.
func TestGW_11_ElicitationComplete(t *testing.T) {
	a := serveAccounts(t)
	w := openAccounts(t, a, "", "sign_in: true", "")
	var mu sync.Mutex
	ended := map[string]string{}
	listens := func(who string) func(*mcp.ClientConfig) {
		return func(cfg *mcp.ClientConfig) {
			cfg.Answers, cfg.Changed = mcp.Answers{URL: true}, func(string) {}
			cfg.Notice = func(method string, params json.RawMessage) {
				mu.Lock()
				defer mu.Unlock()
				if method == "notifications/elicitation/complete" {
					ended[who] += rawjson.String(rawjson.Field(params, "elicitationId")) + " "
				}
			}
		}
	}
	first := w.client(t, mcp.LatestLegacy, annaToken, listens("first"))
	other := w.client(t, mcp.LatestLegacy, annaToken, listens("other"))
	r, err := first.Call(t.Context(), tenon.Call{Tool: "echo"})
	if err != nil || r.Input == nil {
		t.Fatalf("%+v, %v", r, err)
	}
	id, link := "", linkOf(t, first) // the same link again
	for _, request := range rawjson.Members(r.Input.Requests) {
		id = rawjson.String(rawjson.Field(rawjson.Field(request, "params"), "elicitationId"))
	}
	if id == "" {
		t.Fatalf("no id: %s", r.Input.Requests)
	}
	signIn(t, link, annaToken)
	until(t, "the notification", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return ended["first"] != ""
	})
	works(t, other)
	mu.Lock()
	defer mu.Unlock()
	if len(ended) != 1 || ended["first"] != id+" " {
		t.Errorf("notified: %v, want only the first client, of %s", ended, id)
	}
}

// TestGW_11_LinksForOffers checks that a principal without a sign-in gets a link for a prompt and a resource, as for a
// call of a tool, in the way that the client understands, and that the request succeeds afterwards.
func TestGW_11_LinksForOffers(t *testing.T) {
	requests := map[string]string{"prompts/get": `"name":"greet","arguments":{"whom":"you"}`, "resources/read": `"uri":"mem://acc"`}
	names := map[string]string{"prompts/get": "greet", "resources/read": "mem://acc"}
	results := map[string]string{"prompts/get": "acc greets you", "resources/read": "of acc"}
	for method, params := range requests {
		t.Run("modern, "+method, func(t *testing.T) {
			w := openAccounts(t, serveAccounts(t), "", "sign_in: true", "")
			send := func(can, more string) string {
				t.Helper()
				status, _, body := w.post(t, annaToken, `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{`+params+more+
					`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":`+can+
					`,"io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"}}}}`,
					"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", method, "Mcp-Name", names[method])
				if status != http.StatusOK {
					t.Logf("%s: status %d", method, status)
				}
				return body
			}
			body := send(`{"elicitation":{"url":{}}}`, "")
			result := rawjson.Field([]byte(body), "result")
			request := rawjson.Field(rawjson.Field(result, "inputRequests"), "tenonhq.github.io/sign-in")
			link := rawjson.String(rawjson.Field(rawjson.Field(request, "params"), "url"))
			if rawjson.String(rawjson.Field(result, "resultType")) != "input_required" || !strings.Contains(link, "/sign-in/") {
				t.Fatalf("no link: %s", body)
			}
			if body := send(`{}`, ""); !strings.Contains(body, `"error"`) || !strings.Contains(body, link) {
				t.Errorf("a client without elicitation: %s", body)
			}
			declined := `,"inputResponses":{"tenonhq.github.io/sign-in":{"action":"decline"}}`
			if body := send(`{"elicitation":{"url":{}}}`, declined); !strings.Contains(body, "did not open the page") {
				t.Errorf("declined: %s", body)
			}
			signIn(t, link, annaToken)
			accepted := `,"inputResponses":{"tenonhq.github.io/sign-in":{"action":"accept"}}`
			if body := send(`{"elicitation":{"url":{}}}`, accepted); !strings.Contains(body, results[method]) {
				t.Errorf("after the sign-in: %s", body)
			}
		})
	}
	t.Run("legacy", func(t *testing.T) {
		w := openAccounts(t, serveAccounts(t), "", "sign_in: true", "")
		plain, visits := w.client(t, mcp.LatestLegacy, annaToken), w.client(t, mcp.LatestLegacy, annaToken, visitsURLs)
		if _, err := plain.Read(t.Context(), "mem://acc"); err == nil || !strings.Contains(err.Error(), "/sign-in/") {
			t.Errorf("a client without elicitation: %v", err)
		}
		for name, get := range map[string]func() error{
			"a prompt":   func() error { _, err := visits.Prompt(t.Context(), "greet", nil); return err },
			"a resource": func() error { _, err := visits.Read(t.Context(), "mem://acc"); return err }} {
			if err := get(); err == nil || !strings.Contains(err.Error(), "-32042") {
				t.Errorf("%s: %v", name, err)
			}
		}
		signIn(t, linkOf(t, visits), annaToken)
		if raw, err := visits.Prompt(t.Context(), "greet", map[string]string{"whom": "you"}); err != nil || !strings.Contains(string(raw), "acc greets you") {
			t.Errorf("after the sign-in: %s, %v", raw, err)
		}
	})
}
