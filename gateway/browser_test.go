package gateway_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/mcp"
)

// reload replaces the configuration of the host behind the gateway, as tenon serve does.
func (w *world) reload(t *testing.T, text string) {
	t.Helper()
	c, err := config.Parse("tenon.yaml", []byte(text), config.Options{Dir: w.dir,
		LookupEnv: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	old := w.host
	next, err := old.Reopen(c)
	if err != nil {
		t.Fatal(err)
	}
	w.host = next
	w.gate.Use(next)
	t.Cleanup(func() { _ = old.Close() }) // says what was under way
}

// echoAt calls the tool echo with another Host.
func (w *world) echoAt(t *testing.T, at, token string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url, strings.NewReader(
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{},"_meta":{`+
			`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},`+
			`"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Host = at
	for k, v := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Authorization": "Bearer " + token, "Mcp-Method": "tools/call", "Mcp-Name": "echo", "MCP-Protocol-Version": "2026-07-28"} {
		req.Header.Set(k, v)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestGW_11_ForeignHost checks that a client cannot choose where the authorization server sends the code.
func TestGW_11_ForeignHost(t *testing.T) {
	a := serveAccounts(t)
	w := openAccounts(t, a, "", "sign_in: true", "")
	u, err := url.Parse(w.url)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{u.Host, "localhost:" + u.Port()} {
		if body := w.echoAt(t, at, annaToken); !strings.Contains(body, "http://"+at+"/sign-in/") {
			t.Errorf("%s: no link: %s", at, body)
		}
	}
	for _, at := range []string{"127.0.0.1:9", "localhost", "127.0.0.2:" + u.Port()} {
		if body := w.echoAt(t, at, annaToken); strings.Contains(body, "/sign-in/") || !strings.Contains(body, "set serve.origins") {
			t.Errorf("%s: %s", at, body)
		}
	}
	w.reload(t, accountsConfig(a, "", "sign_in: true", "serve: {origins: ['https://localhost:9']}\n"))
	if body := w.echoAt(t, "localhost:9", annaToken); !strings.Contains(body, "https://localhost:9/sign-in/") {
		t.Errorf("a configured origin: %s", body)
	}
}

// TestGW_11_SignInsInOneBrowser checks that two sign-ins can go on in one browser, and that no cookie of them stays.
func TestGW_11_SignInsInOneBrowser(t *testing.T) {
	a := serveAccounts(t)
	w := openAccounts(t, a, "", "sign_in: true", "")
	b := newBrowser(t)
	first := b.begin(t, linkOf(t, w.client(t, mcp.Modern, annaToken, visitsURLs)), annaToken)
	second := b.begin(t, linkOf(t, w.client(t, mcp.Modern, bertToken, visitsURLs)), bertToken)
	for _, callback := range []string{first, second} {
		if status, _, body := b.visit(t, http.MethodGet, callback, ""); status != http.StatusOK {
			t.Errorf("%d %s", status, body)
		}
		u, err := url.Parse(callback)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(b.Jar.Cookies(u)); callback == second && n != 0 {
			t.Errorf("%d cookies stay", n)
		}
	}
}

// TestGW_11_SecureCookie checks the cookie behind a proxy that terminates TLS: no other host of the domain can set it.
func TestGW_11_SecureCookie(t *testing.T) {
	a, i := serveAccounts(t), startIssuer(t)
	w := openAccounts(t, a, "", "sign_in: true", exchangeServe(a, i))
	local := strings.TrimSuffix(w.url, "/mcp")
	send := func(method, address, token string, cookie *http.Cookie) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, strings.Replace(address, publicURL, local, 1), nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		if cookie != nil {
			req.AddCookie(&http.Cookie{Name: cookie.Name, Value: cookie.Value})
		}
		res, err := newBrowser(t).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = res.Body.Close() })
		return res
	}
	link := linkOf(t, w.client(t, mcp.Modern, annaToken, visitsURLs))
	res := send(http.MethodPost, link, annaToken, nil)
	cookies := res.Cookies()
	if len(cookies) != 1 {
		t.Fatalf("%d, cookies: %v", res.StatusCode, cookies)
	}
	c := cookies[0]
	if !strings.HasPrefix(c.Name, "__Host-tenon-sign-in-") || !c.Secure || !c.HttpOnly || c.Path != "/" || c.Domain != "" {
		t.Errorf("the cookie: %s", c)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	back := send(http.MethodGet, addressIn(t, body), "", nil).Header.Get("Location")
	planted := &http.Cookie{Name: strings.TrimPrefix(c.Name, "__Host-"), Value: c.Value}
	if got := send(http.MethodGet, back, "", planted); got.StatusCode != http.StatusForbidden {
		t.Errorf("with a cookie that another host can set: %d", got.StatusCode)
	}
	got := send(http.MethodGet, back, "", c)
	if deleted := got.Cookies(); got.StatusCode != http.StatusOK || len(deleted) != 1 || deleted[0].Name != c.Name || deleted[0].MaxAge >= 0 {
		t.Errorf("%d, cookies: %v", got.StatusCode, deleted)
	}
	if r, err := w.client(t, mcp.Modern, annaToken).Call(t.Context(), tenon.Call{Tool: "echo"}); err != nil || r.IsError {
		t.Errorf("after the sign-in: %+v, %v", r, err)
	}
}

// addressIn returns the address of the authorization server in an answer of tenon.
func addressIn(t *testing.T, body []byte) string {
	t.Helper()
	var to struct{ Address string }
	if err := json.Unmarshal(body, &to); err != nil || to.Address == "" {
		t.Fatalf("%s: %v", body, err)
	}
	return to.Address
}
