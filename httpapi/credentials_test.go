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

// parrot starts an MCP server whose tools, resource and prompt return the credentials of the request.
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

// formsOf returns the forms of a secret that the test looks for.
func formsOf(secret string) []string {
	forms := []string{secret, hex.EncodeToString([]byte(secret)), url.QueryEscape(secret), url.PathEscape(secret)}
	for k := range 3 {
		whole := base64.StdEncoding.EncodeToString([]byte("abc"[:k] + secret + "abc"[:(3-(k+len(secret))%3)%3]))
		forms = append(forms, whole[4:len(whole)-4])
	}
	return forms
}

const (
	herToken = "anna/her+own=token-0123456789"
	renewed  = "anna/has+renewed=it-0123456789"
	asAnna   = "Bearer " + herToken + " user-of-" + herToken
)

// callersAPI is the API of a host whose servers accept credentials of the callers.
type callersAPI struct {
	cfg   host.Config
	h     *host.Host
	http  http.Handler
	heard func() []string // requests that the servers received since the last call of heard
	said  strings.Builder // all that was answered
}

// reopen closes the host if it is open, and opens it.
func (x *callersAPI) reopen(t *testing.T) {
	t.Helper()
	if x.h != nil {
		x.close(t)
	}
	var err error
	if x.h, err = host.Open(t.Context(), x.cfg); err != nil {
		t.Fatal(err)
	}
	c := guarded()
	c.Authenticate = httpapi.Tokens(tenon.NewSecret(ownToken), map[tenon.Principal]tenon.Secret{"anna": tenon.NewSecret(annaToken), "carl": tenon.NewSecret("carl-token-0123456789")})
	x.http = httpapi.New(x.h, c)
}

func (x *callersAPI) close(t *testing.T) {
	t.Helper()
	h := x.h
	if x.h = nil; h == nil {
		return
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
}

// bringing returns the header with which a caller sends a token and a user name for a server.
func bringing(server, token string) string {
	return fmt.Sprintf(`{%q: {"bearer": %q, "headers": {"x-user": "user-of-%s"}}}`, server, token, token)
}

func (x *callersAPI) ask(t *testing.T, want int, token, method, path, body, credentials string) string {
	t.Helper()
	header := []string{"Authorization", "Bearer " + token}
	if credentials != "" {
		header = append(header, httpapi.CredentialsHeader, credentials)
	}
	kind := ""
	if body != "" {
		kind = "application/json"
	}
	status, head, text := request(t, x.http, method, path, kind, body, header...)
	fmt.Fprintln(&x.said, head, text)
	if status != want {
		t.Fatalf("%s %s: %d, want %d: %s", method, path, status, want, text)
	}
	return text
}

// saw checks which requests the servers received since the last check.
func (x *callersAPI) saw(t *testing.T, want ...string) {
	t.Helper()
	if got := x.heard(); !slices.Equal(got, want) {
		t.Errorf("the server heard %q, want %q", got, want)
	}
}

// TestCredentialsOfCallers sends credentials for a server with a request. They are used for this caller only, and only
// if the entry of the server permits it. They are kept in memory only, and are in no answer, file or log.
func TestCredentialsOfCallers(t *testing.T) {
	address, heard := parrot(t)
	dir := t.TempDir()
	var logs bytes.Buffer
	var logging sync.Mutex
	logger := slog.New(slog.NewTextHandler(writerFunc(func(b []byte) (int, error) {
		logging.Lock()
		defer logging.Unlock()
		return logs.Write(b)
	}), &slog.HandlerOptions{Level: slog.LevelDebug}))
	x := &callersAPI{cfg: callersConfig(t, dir, address), heard: heard}
	x.cfg.Logger = logger
	x.reopen(t)
	t.Cleanup(func() { x.close(t) })
	x.callsWithCredentials(t)
	x.callsOfOthers(t)
	x.refusedCredentials(t)
	x.flowWithCredentials(t)
	run := x.runsWithCredentials(t)
	for _, path := range []string{"/api/v1/runs", "/api/v1/runs/" + run, "/api/v1/runs/" + run + "/events", "/api/v1/runs/" + run + "/messages", "/api/v1/sessions", "/api/v1/stats/tools"} {
		x.ask(t, 200, annaToken, "GET", path, "", "")
	}
	for _, path := range []string{"/api/v1/servers", "/api/v1/servers/open/logs", "/api/v1/config"} {
		x.ask(t, 200, ownToken, "GET", path, "", "")
	}
	x.close(t)

	all := filesUnder(t, dir)
	texts := map[string]string{"a file": all, "the log": logs.String(), "an answer": x.said.String()}
	holdNoSecret(t, texts, herToken, renewed, "carl-brings-another", "token-of-carl/in-config")
	if !strings.Contains(all, `"own_credentials":["open"]`) {
		t.Error("the journal does not say for which server there were credentials")
	}
}

// callersConfig returns the configuration of a host with a script, a workflow and three servers. The first server
// accepts credentials of callers, the second one requires them, and the third one does not accept them.
func callersConfig(t *testing.T, dir, address string) host.Config {
	t.Helper()
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
	return host.Config{Config: cfg, Home: filepath.Join(dir, "home"), Model: "script:" + script,
		Workflows: map[string]host.Workflow{"flow": {Workflow: flow, Pack: pack}},
		LookupEnv: func(string) (string, bool) { return "", false }}
}

// callsWithCredentials calls tools with both APIs, reads a resource, gets a prompt, and makes a call that fails.
func (x *callersAPI) callsWithCredentials(t *testing.T) {
	if text := x.ask(t, 200, annaToken, "POST", "/api/v1/tools/say/call", "", bringing("open", herToken)); !strings.Contains(text, "Bearer ***") {
		t.Errorf("the result was not masked: %s", text)
	}
	x.saw(t, "tools/call "+asAnna)
	x.ask(t, 200, annaToken, "POST", "/mcp/tools/call", `{"serverId":"open","toolName":"say","arguments":{}}`, bringing("open", herToken))
	x.saw(t, "tools/call "+asAnna)
	x.ask(t, 200, annaToken, "POST", "/api/v1/resources/read", `{"server":"open","uri":"mem://note"}`, bringing("open", herToken))
	x.saw(t, "resources/read "+asAnna)
	x.ask(t, 200, annaToken, "POST", "/api/v1/prompts/get", `{"server":"open","name":"x"}`, bringing("open", herToken))
	x.saw(t, "prompts/get "+asAnna)
	x.ask(t, 424, annaToken, "POST", "/api/v1/tools/fail/call", "", bringing("open", herToken))
	x.saw(t, "tools/call "+asAnna)
}

// callsOfOthers makes calls without credentials, as another principal, and as a principal with configured credentials.
func (x *callersAPI) callsOfOthers(t *testing.T) {
	x.ask(t, 200, annaToken, "POST", "/api/v1/tools/say/call", "", "")
	x.saw(t, "tools/call Bearer token-of-the-service ")
	x.ask(t, 200, "carl-token-0123456789", "POST", "/api/v1/tools/say/call", "", "")
	x.saw(t, "tools/call Bearer token-of-carl/in-config ")
	x.ask(t, 200, "carl-token-0123456789", "POST", "/api/v1/tools/say/call", "", bringing("open", "carl-brings-another"))
	x.saw(t, "tools/call Bearer carl-brings-another user-of-carl-brings-another")
}

// refusedCredentials sends credentials that are not allowed or cannot be read. No server is asked.
func (x *callersAPI) refusedCredentials(t *testing.T) {
	x.ask(t, 403, annaToken, "POST", "/api/v1/resources/read", `{"server":"closed","uri":"mem://note"}`, bringing("closed", herToken))
	x.ask(t, 404, annaToken, "POST", "/api/v1/tools/say/call", "", bringing("nobody", herToken))
	x.ask(t, 403, annaToken, "POST", "/api/v1/tools/say/call", "", `{"open":{"env":{"LD_PRELOAD":"`+herToken+`"}}}`)
	x.ask(t, 403, annaToken, "POST", "/api/v1/tools/say/call", "", `{"open":{"headers":{"Host":"`+herToken+`"}}}`)
	for _, bad := range []string{herToken, `"` + herToken + `"`, `{"open":"` + herToken + `"}`, `{"open":{"bearer":["` + herToken + `"]}}`, `{"open":{"baerer":"` + herToken + `"}}`,
		`{"open":{"bearer":"` + herToken + `"},"open":{"bearer":"x"}}`, `{"open":{}}`, `{"open":{"bearer":"short"}}`, `{"open":{"bearer":"` + herToken + ` x"}}`,
		`{"open":{"bearer":"` + herToken + `\r\nX-Evil: 1"}}`, `{"open":{"headers":{"X-User":"` + herToken + `\u0000"}}}`, `null`, `[]`, `{"open":{"bearer":"` + herToken + `"}} {}`,
		strings.Repeat(`{"a":`, 50) + `"` + herToken + `"` + strings.Repeat("}", 50)} {
		x.ask(t, 400, annaToken, "POST", "/api/v1/tools/say/call", "", bad)
	}
	x.ask(t, 431, annaToken, "POST", "/api/v1/tools/say/call", "", `{"open":{"bearer":"`+strings.Repeat("x", 40<<10)+`"}}`)
	x.ask(t, 403, annaToken, "POST", "/api/v1/resources/read", `{"server":"own","uri":"mem://note"}`, "")
	x.saw(t)
	x.ask(t, 200, annaToken, "POST", "/api/v1/resources/read", `{"server":"own","uri":"mem://note"}`, bringing("own", herToken)[:strings.Index(bringing("own", herToken), ", \"headers\"")]+"}}")
	x.saw(t, "resources/read Bearer "+herToken+" ")
	x.ask(t, 200, ownToken, "POST", "/api/v1/resources/read", `{"server":"own","uri":"mem://note"}`, "")
	x.saw(t, "resources/read Bearer token-of-the-service ")
}

const allowFirst = `{"step":"1.0","verdict":"allow"}`

// flowWithCredentials runs a workflow that waits for a decision.
func (x *callersAPI) flowWithCredentials(t *testing.T) {
	var r httpapi.StartResponse
	if err := json.Unmarshal([]byte(x.ask(t, 202, annaToken, "POST", "/api/v1/workflows/flow/run", "", bringing("open", herToken))), &r); err != nil {
		t.Fatal(err)
	}
	reach(t, x.h, r.Run.ID, tenon.RunInputRequired)
	x.ask(t, 200, annaToken, "POST", "/api/v1/approvals/"+r.Run.ID+"%2Fquery.0/decide", `{"verdict":"allow"}`, "")
	reach(t, x.h, r.Run.ID, tenon.RunCompleted)
	x.saw(t, "tools/call "+asAnna)
}

// runsWithCredentials starts two runs that wait for a decision. The first one is decided while the process still has
// the credentials. The second one is decided after a restart, so the credentials must be sent again. It returns the id
// of the first run.
func (x *callersAPI) runsWithCredentials(t *testing.T) string {
	begin := func() string {
		var r httpapi.StartResponse
		if err := json.Unmarshal([]byte(x.ask(t, 202, annaToken, "POST", "/api/v1/runs", `{"question":"change it"}`, bringing("open", herToken))), &r); err != nil {
			t.Fatal(err)
		}
		reach(t, x.h, r.Run.ID, tenon.RunInputRequired)
		return r.Run.ID
	}
	first, second := begin(), begin()
	x.ask(t, 200, annaToken, "POST", "/api/v1/runs/"+first+"/decide", allowFirst, "")
	reach(t, x.h, first, tenon.RunCompleted)
	x.saw(t, "tools/call "+asAnna)
	x.reopen(t)
	if text := x.ask(t, 403, annaToken, "POST", "/api/v1/runs/"+second+"/decide", allowFirst, ""); !strings.Contains(text, `"code":"auth_required"`) || !strings.Contains(text, "sent again") {
		t.Errorf("it says %s", text)
	}
	x.ask(t, 403, annaToken, "POST", "/api/v1/runs/"+second+"/resume", "", "")
	x.ask(t, 403, annaToken, "POST", "/v1/chat/completions", `{"model":"default","messages":[{"role":"user","content":"approve `+second+`/1.0"}]}`, "")
	reach(t, x.h, second, tenon.RunInputRequired)
	x.saw(t)
	x.ask(t, 200, annaToken, "POST", "/api/v1/runs/"+second+"/decide", allowFirst, bringing("open", renewed))
	reach(t, x.h, second, tenon.RunCompleted)
	x.saw(t, "tools/call Bearer "+renewed+" user-of-"+renewed)
	return first
}

// filesUnder returns the contents of all regular files under a folder. It fails if they have fewer than 10,000 bytes,
// because a search in them would prove nothing.
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

// holdNoSecret reports each form of a secret that is in a text. The keys of texts say where the texts come from.
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
