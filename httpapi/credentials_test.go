package httpapi_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/httpapi"
	"github.com/tenonhq/tenon/servers"
)

// parrot is an MCP server whose tools, resource and prompt say back what they were asked
// with.
func parrot(t *testing.T) (address string, heard func() []string) {
	t.Helper()
	var mu sync.Mutex
	var calls []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct{ Name string }
		}
		if req.Method != http.MethodPost || json.NewDecoder(req.Body).Decode(&m) != nil {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		if len(m.ID) == 0 {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		who := req.Header.Get("Authorization") + " " + req.Header.Get("X-User")
		said, _ := json.Marshal(who + " is in base64 " + base64.StdEncoding.EncodeToString([]byte(who)) + " and in a link ?t=" + url.QueryEscape(who))
		const tool = `"inputSchema":{"type":"object","properties":{}}`
		results := map[string]string{
			"initialize":     `{"protocolVersion":"2025-06-18","serverInfo":{"name":"parrot","version":"1"},"capabilities":{"tools":{},"resources":{},"prompts":{}}}`,
			"tools/list":     `{"tools":[{"name":"say",` + tool + `,"annotations":{"readOnlyHint":true}},{"name":"fail",` + tool + `,"annotations":{"readOnlyHint":true}},{"name":"change",` + tool + `}]}`,
			"tools/call":     `{"content":[{"type":"text","text":` + string(said) + `}],"structuredContent":{"who":` + string(said) + `},"_meta":{"who":` + string(said) + `}}`,
			"resources/read": `{"contents":[{"uri":"mem://note","mimeType":"text/plain","text":` + string(said) + `}]}`,
			"prompts/get":    `{"messages":[{"role":"user","content":{"type":"text","text":` + string(said) + `}}]}`,
		}
		if m.Method == "tools/call" || m.Method == "resources/read" || m.Method == "prompts/get" {
			mu.Lock()
			calls = append(calls, m.Method+" "+who)
			mu.Unlock()
		}
		answer := `"error":{"code":-32601,"message":"no such method"}`
		if r, ok := results[m.Method]; ok {
			answer = `"result":` + r
		}
		if m.Params.Name == "fail" {
			answer = `"error":{"code":-32000,"message":` + string(said) + `,"data":{"who":` + string(said) + `}}`
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,` + answer + `}`))
	}))
	t.Cleanup(s.Close)
	return s.URL, func() []string {
		mu.Lock()
		defer mu.Unlock()
		out := calls
		calls = nil
		return out
	}
}

// formsOf are the forms of a secret that are looked for.
func formsOf(secret string) []string {
	forms := []string{secret, hex.EncodeToString([]byte(secret)), url.QueryEscape(secret), url.PathEscape(secret)}
	for k := range 3 {
		whole := base64.StdEncoding.EncodeToString([]byte("abc"[:k] + secret + "abc"[:(3-(k+len(secret))%3)%3]))
		forms = append(forms, whole[4:len(whole)-4])
	}
	return forms
}

// TestCredentialsOfCallers holds what a request brings for a server: it is used for that
// caller alone, where the server's entry allows it, is kept in memory only, and stands in
// no answer, file or log.
func TestCredentialsOfCallers(t *testing.T) {
	address, heard := parrot(t)
	dir := t.TempDir()
	script := filepath.Join(dir, "steps.yaml")
	if err := os.WriteFile(script, []byte("steps:\n  - calls: [{name: change, arguments: {}}]\n  - text: done\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	entry := func(change func(*servers.Config)) servers.Config {
		c := servers.Config{URL: address, Protocol: "2025-06-18", Auth: servers.Auth{Type: servers.AuthBearer, Secret: tenon.NewSecret("token-of-the-service")}}
		change(&c)
		return c
	}
	only := func(names ...string) func(*servers.Config) {
		return func(c *servers.Config) {
			c.Include = names
			c.CallerCredentials = servers.CallerCredentials{Bearer: true, Headers: []string{"X-User"}}
			c.Principals = map[string]servers.Own{"carl": {Auth: servers.Auth{Type: servers.AuthBearer, Secret: tenon.NewSecret("token-of-carl/in-config")}}}
		}
	}
	cfg := &config.Config{Servers: map[string]servers.Config{
		"open":   entry(only("say", "fail", "change")),
		"closed": entry(func(c *servers.Config) { c.LoadTools = new(bool) }),
		"own": entry(func(c *servers.Config) {
			c.CallerCredentials = servers.CallerCredentials{Bearer: true, Required: true}
			c.LoadTools = new(bool)
		}),
	}}
	file := filepath.Join(dir, "flow.yaml")
	if err := os.WriteFile(file, []byte("kind: workflow\nversion: 1\nname: flow\nsteps:\n  - {id: query, tool: change, server: open}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	flow, pack, err := config.ReadWorkflow(file)
	if err != nil {
		t.Fatal(err)
	}
	var logs bytes.Buffer
	var logging sync.Mutex
	logger := slog.New(slog.NewTextHandler(writerFunc(func(b []byte) (int, error) {
		logging.Lock()
		defer logging.Unlock()
		return logs.Write(b)
	}), &slog.HandlerOptions{Level: slog.LevelDebug}))
	open := func() (*host.Host, http.Handler) {
		h, err := host.Open(t.Context(), host.Config{Config: cfg, Home: filepath.Join(dir, "home"), Model: "script:" + script, Logger: logger, Workflows: map[string]host.Workflow{"flow": {Workflow: flow, Pack: pack}},
			LookupEnv: func(string) (string, bool) { return "", false }})
		if err != nil {
			t.Fatal(err)
		}
		c := guarded()
		c.Authenticate = httpapi.Tokens(tenon.NewSecret(ownToken), map[tenon.Principal]tenon.Secret{"anna": tenon.NewSecret(annaToken), "carl": tenon.NewSecret("carl-token-0123456789")})
		return h, httpapi.New(h, c)
	}
	h, handler := open()
	closed := false
	t.Cleanup(func() {
		if !closed {
			_ = h.Close()
		}
	})
	var said strings.Builder // all that was answered
	const anna = "anna/her+own=token-0123456789"
	bring := func(server, token string) string {
		return fmt.Sprintf(`{%q: {"bearer": %q, "headers": {"x-user": "user-of-%s"}}}`, server, token, token)
	}
	ask := func(want int, token, method, path, body, credentials string) string {
		t.Helper()
		header := []string{"Authorization", "Bearer " + token}
		if credentials != "" {
			header = append(header, httpapi.CredentialsHeader, credentials)
		}
		kind := ""
		if body != "" {
			kind = "application/json"
		}
		status, head, text := request(t, handler, method, path, kind, body, header...)
		fmt.Fprintln(&said, head, text)
		if status != want {
			t.Fatalf("%s %s: %d, want %d: %s", method, path, status, want, text)
		}
		return text
	}
	saw := func(want ...string) {
		t.Helper()
		if got := heard(); !slices.Equal(got, want) {
			t.Errorf("the server heard %q, want %q", got, want)
		}
	}
	asAnna := "Bearer " + anna + " user-of-" + anna

	// A tool call, of both APIs, a resource, a prompt, a failure.
	if text := ask(200, annaToken, "POST", "/api/v1/tools/say/call", "", bring("open", anna)); !strings.Contains(text, "Bearer ***") {
		t.Errorf("the result was not masked: %s", text)
	}
	saw("tools/call " + asAnna)
	ask(200, annaToken, "POST", "/mcp/tools/call", `{"serverId":"open","toolName":"say","arguments":{}}`, bring("open", anna))
	saw("tools/call " + asAnna)
	ask(200, annaToken, "POST", "/api/v1/resources/read", `{"server":"open","uri":"mem://note"}`, bring("open", anna))
	saw("resources/read " + asAnna)
	ask(200, annaToken, "POST", "/api/v1/prompts/get", `{"server":"open","name":"x"}`, bring("open", anna))
	saw("prompts/get " + asAnna)
	ask(424, annaToken, "POST", "/api/v1/tools/fail/call", "", bring("open", anna))
	saw("tools/call " + asAnna)

	// Others, and she without them, are who they were.
	ask(200, annaToken, "POST", "/api/v1/tools/say/call", "", "")
	saw("tools/call Bearer token-of-the-service ")
	ask(200, "carl-token-0123456789", "POST", "/api/v1/tools/say/call", "", "")
	saw("tools/call Bearer token-of-carl/in-config ")
	ask(200, "carl-token-0123456789", "POST", "/api/v1/tools/say/call", "", bring("open", "carl-brings-another"))
	saw("tools/call Bearer carl-brings-another user-of-carl-brings-another")

	// Where it is not allowed, or nonsense, nothing is asked; no error repeats a value.
	ask(403, annaToken, "POST", "/api/v1/resources/read", `{"server":"closed","uri":"mem://note"}`, bring("closed", anna))
	ask(404, annaToken, "POST", "/api/v1/tools/say/call", "", bring("nobody", anna))
	ask(403, annaToken, "POST", "/api/v1/tools/say/call", "", `{"open":{"env":{"LD_PRELOAD":"`+anna+`"}}}`)
	ask(403, annaToken, "POST", "/api/v1/tools/say/call", "", `{"open":{"headers":{"Host":"`+anna+`"}}}`)
	for _, bad := range []string{anna, `"` + anna + `"`, `{"open":"` + anna + `"}`, `{"open":{"bearer":["` + anna + `"]}}`, `{"open":{"baerer":"` + anna + `"}}`,
		`{"open":{"bearer":"` + anna + `"},"open":{"bearer":"x"}}`, `{"open":{}}`, `{"open":{"bearer":"short"}}`, `{"open":{"bearer":"` + anna + ` x"}}`,
		`{"open":{"bearer":"` + anna + `\r\nX-Evil: 1"}}`, `{"open":{"headers":{"X-User":"` + anna + `\u0000"}}}`, `null`, `[]`, `{"open":{"bearer":"` + anna + `"}} {}`,
		strings.Repeat(`{"a":`, 50) + `"` + anna + `"` + strings.Repeat("}", 50)} {
		ask(400, annaToken, "POST", "/api/v1/tools/say/call", "", bad)
	}
	ask(431, annaToken, "POST", "/api/v1/tools/say/call", "", `{"open":{"bearer":"`+strings.Repeat("x", 40<<10)+`"}}`)
	ask(403, annaToken, "POST", "/api/v1/resources/read", `{"server":"own","uri":"mem://note"}`, "")
	saw()
	ask(200, annaToken, "POST", "/api/v1/resources/read", `{"server":"own","uri":"mem://note"}`, bring("own", anna)[:strings.Index(bring("own", anna), ", \"headers\"")]+"}}")
	saw("resources/read Bearer " + anna + " ")
	ask(200, ownToken, "POST", "/api/v1/resources/read", `{"server":"own","uri":"mem://note"}`, "")
	saw("resources/read Bearer token-of-the-service ")

	// A run that waits has them while the process is there, and is given them again after.
	begin := func() string {
		var r httpapi.StartResponse
		if err := json.Unmarshal([]byte(ask(202, annaToken, "POST", "/api/v1/runs", `{"question":"change it"}`, bring("open", anna))), &r); err != nil {
			t.Fatal(err)
		}
		reach(t, h, r.Run.ID, tenon.RunInputRequired)
		return r.Run.ID
	}
	allow := `{"step":"1.0","verdict":"allow"}`
	var r httpapi.StartResponse
	if err := json.Unmarshal([]byte(ask(202, annaToken, "POST", "/api/v1/workflows/flow/run", "", bring("open", anna))), &r); err != nil {
		t.Fatal(err)
	}
	reach(t, h, r.Run.ID, tenon.RunInputRequired)
	ask(200, annaToken, "POST", "/api/v1/approvals/"+r.Run.ID+"%2Fquery.0/decide", `{"verdict":"allow"}`, "")
	reach(t, h, r.Run.ID, tenon.RunCompleted)
	saw("tools/call " + asAnna)
	first, second := begin(), begin()
	ask(200, annaToken, "POST", "/api/v1/runs/"+first+"/decide", allow, "")
	reach(t, h, first, tenon.RunCompleted)
	saw("tools/call " + asAnna)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	h, handler = open()
	if text := ask(403, annaToken, "POST", "/api/v1/runs/"+second+"/decide", allow, ""); !strings.Contains(text, `"code":"auth_required"`) || !strings.Contains(text, "sent again") {
		t.Errorf("it says %s", text)
	}
	ask(403, annaToken, "POST", "/api/v1/runs/"+second+"/resume", "", "")
	ask(403, annaToken, "POST", "/v1/chat/completions", `{"model":"default","messages":[{"role":"user","content":"approve `+second+`/1.0"}]}`, "")
	reach(t, h, second, tenon.RunInputRequired)
	saw()
	const renewed = "anna/has+renewed=it-0123456789"
	ask(200, annaToken, "POST", "/api/v1/runs/"+second+"/decide", allow, bring("open", renewed))
	reach(t, h, second, tenon.RunCompleted)
	saw("tools/call Bearer " + renewed + " user-of-" + renewed)
	for _, path := range []string{"/api/v1/runs", "/api/v1/runs/" + first, "/api/v1/runs/" + first + "/events", "/api/v1/runs/" + first + "/messages", "/api/v1/sessions", "/api/v1/stats/tools"} {
		ask(200, annaToken, "GET", path, "", "")
	}
	for _, path := range []string{"/api/v1/servers", "/api/v1/servers/open/logs", "/api/v1/config"} {
		ask(200, ownToken, "GET", path, "", "")
	}
	closed = true
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}

	all := filesUnder(t, dir)
	texts := map[string]string{"a file": all, "the log": logs.String(), "an answer": said.String()}
	holdNoSecret(t, texts, anna, renewed, "carl-brings-another", "token-of-carl/in-config")
	if !strings.Contains(all, `"own_credentials":["open"]`) {
		t.Error("the journal does not say for which server there were credentials")
	}
}

// filesUnder returns the content of all regular files under a folder. Less than 10,000
// bytes are an error: a search in them would show nothing.
func filesUnder(t *testing.T, dir string) string {
	t.Helper()
	var all []byte
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		all = append(append(all, b...), '\n')
		return err
	})
	if err != nil || len(all) < 10_000 {
		t.Fatalf("%d bytes of files: %v", len(all), err)
	}
	return string(all)
}

// holdNoSecret reports each form of a secret that a text has. The key of a text says where
// it comes from.
func holdNoSecret(t *testing.T, texts map[string]string, secrets ...string) {
	t.Helper()
	for _, secret := range secrets {
		for where, text := range texts {
			for _, form := range formsOf(secret) {
				if i := strings.Index(text, form); i >= 0 {
					t.Errorf("%s has %s: …%s…", where, form, text[max(0, i-200):min(len(text), i+200)])
				}
			}
		}
	}
}

// reach waits until a run is in a state.
func reach(t *testing.T, h *host.Host, run string, state tenon.RunState) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(2 * time.Millisecond) {
		row, err := h.Runs().Get(t.Context(), run)
		if err != nil {
			t.Fatal(err)
		}
		if o, err := h.Runs().Open(run).Owner(t.Context()); err == nil && row.State == state && !o.Working {
			return
		}
		if row.State.Ended() && row.State != state || time.Now().After(deadline) {
			t.Fatalf("run %s is %s, want %s", run, row.State, state)
		}
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
