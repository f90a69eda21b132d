package httpapi_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/httpapi"
	"github.com/tenonhq/tenon/schedule"
	"github.com/tenonhq/tenon/servers"
)

// document has the parts of openapi.json that the tests check.
type document struct {
	OpenAPI string `json:"openapi"`
	Paths   map[string]map[string]struct {
		ID         string `json:"operationId"`
		Owner      bool   `json:"x-owner"`
		Security   *[]any `json:"security"`
		Parameters []struct{ Name, In string }
		Body       *struct {
			Content map[string]struct{ Schema json.RawMessage }
		} `json:"requestBody"`
		Responses map[string]struct {
			Content map[string]struct{ Schema json.RawMessage }
		}
	}
	Components struct {
		Schemas map[string]json.RawMessage
	}
}

func readDocument(t *testing.T) (d document) {
	t.Helper()
	b, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// schema resolves a schema in the document.
func (d document) schema(t *testing.T, raw json.RawMessage) *jsonschema.Resolved {
	t.Helper()
	defs, err := json.Marshal(d.Components.Schemas)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(`{"$defs":`+string(defs)+`,"allOf":[`+string(raw)+`]}`, "#/components/schemas/", "#/$defs/")
	var s jsonschema.Schema
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatal(err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestDocumentHasTheRoutes checks that openapi.json and the router have the same routes.
func TestDocumentHasTheRoutes(t *testing.T) {
	d := readDocument(t)
	ids := map[string]bool{}
	served := map[string]bool{}
	for _, r := range httpapi.Routes() {
		served[r.Method+" "+r.Pattern] = true
		op, ok := d.Paths[r.Pattern][strings.ToLower(r.Method)]
		switch {
		case !ok:
			t.Errorf("%s %s is not in openapi.json", r.Method, r.Pattern)
			continue
		case op.Owner != r.Owner:
			t.Errorf("%s %s: x-owner is %v", r.Method, r.Pattern, op.Owner)
		case (op.Security != nil) != r.Open:
			t.Errorf("%s %s: who may ask is not as it is served", r.Method, r.Pattern)
		case ids[op.ID] || op.ID == "":
			t.Errorf("%s %s: operationId '%s'", r.Method, r.Pattern, op.ID)
		}
		ids[op.ID] = true
		for _, part := range strings.Split(r.Pattern, "/") {
			name := strings.Trim(part, "{}")
			if name != part && !slices.ContainsFunc(op.Parameters, func(p struct{ Name, In string }) bool { return p.Name == name && p.In == "path" }) {
				t.Errorf("%s %s: parameter %s is missing", r.Method, r.Pattern, name)
			}
		}
	}
	for path, ops := range d.Paths {
		for method := range ops {
			if !served[strings.ToUpper(method)+" "+path] {
				t.Errorf("%s %s is in openapi.json and not served", method, path)
			}
		}
	}
}

// truth is a running host whose responses are compared with openapi.json.
type truth struct {
	d    document
	h    *host.Host
	s    *httptest.Server
	vars map[string]string // of the paths
}

func newTruth(t *testing.T) *truth {
	t.Helper()
	d := readDocument(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "steps.yaml")
	if err := os.WriteFile(file, []byte(steps), 0o600); err != nil {
		t.Fatal(err)
	}
	house := &door{open: make(chan struct{})}
	close(house.open)
	off := false
	h, err := host.Open(t.Context(), host.Config{Home: dir, Model: "script:" + file, Version: "test", Toolsets: map[string]tenon.Toolset{"house": house},
		Config: &config.Config{Servers: map[string]servers.Config{"off": {Command: "none", Enabled: &off}}, Schedules: map[string]schedule.Config{
			"nightly": {Cron: "0 3 * * *", Question: "open"}, "off": {Cron: "@daily", Workflow: "w", Enabled: &off}}}})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(httpapi.New(h, guarded()))
	t.Cleanup(func() { s.Close(); _ = h.Close() })
	vars := map[string]string{"{model}": "default", "{by}": "tools", "{artifact}": "none"}
	return &truth{d: d, h: h, s: s, vars: vars}
}

// ask sends a request and checks the status and the form of the response.
func (a *truth) ask(t *testing.T, method, pattern, query, body string, want int) []byte {
	t.Helper()
	path := pattern
	for k, v := range a.vars {
		path = strings.ReplaceAll(path, k, v)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, a.s.URL+path+query, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+ownToken)
	req.Header.Set("Accept", "application/json")
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := a.s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != want {
		t.Errorf("%s %s%s: status %d, want %d: %s", method, path, query, res.StatusCode, want, b)
		return b
	}
	a.compare(t, method, pattern, body, res, b)
	return b
}

// compare checks a response, and the body of its request, against the schemas of openapi.json.
func (a *truth) compare(t *testing.T, method, pattern, body string, res *http.Response, b []byte) {
	t.Helper()
	op := a.d.Paths[pattern][strings.ToLower(method)]
	answer, ok := op.Responses[strconv.Itoa(res.StatusCode)]
	if !ok {
		answer = op.Responses["default"]
	}
	kind, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
	content, ok := answer.Content[kind]
	if !ok && len(b) > 0 {
		t.Errorf("%s %s: status %d with %s is not in openapi.json", method, pattern, res.StatusCode, kind)
		return
	}
	if strings.HasSuffix(kind, "json") {
		var v any
		if err := json.Unmarshal(b, &v); err != nil {
			t.Errorf("%s %s: %v", method, pattern, err)
		} else if err := a.d.schema(t, content.Schema).Validate(v); err != nil {
			t.Errorf("%s %s: the answer is not what openapi.json says: %v\n%s", method, pattern, err, b)
		}
	}
	if op.Body != nil && body != "" && res.StatusCode < 400 {
		var v any
		_ = json.Unmarshal([]byte(body), &v)
		if err := a.d.schema(t, op.Body.Content["application/json"].Schema).Validate(v); err != nil {
			t.Errorf("%s %s: the body is not what openapi.json says: %v", method, pattern, err)
		}
	}
}

// TestDocumentTellsTheTruth sends requests to the routes of a running host and checks the responses, including errors,
// against the schemas of openapi.json.
func TestDocumentTellsTheTruth(t *testing.T) {
	a := newTruth(t)
	a.sessions(t, a.runs(t))
	a.servers(t)
	a.tools(t)
	a.rest(t)
}

// runs requests a run that waits and is then allowed, and returns its session.
func (a *truth) runs(t *testing.T) (session string) {
	body := a.ask(t, "POST", "/api/v1/runs", "", `{"question":"open"}`, 202)
	run := between(t, string(body), `"run":{"id":"`, `"`)
	session = between(t, string(body), `"session":"`, `"`)
	for _, err := range a.h.Runs().Events(t.Context(), run, 0) {
		if err != nil {
			t.Fatal(err)
		}
	}
	a.vars["{id}"] = run
	a.ask(t, "GET", "/api/v1/runs/{id}", "", "", 200)
	a.ask(t, "GET", "/api/v1/approvals", "", "", 200)
	a.ask(t, "GET", "/api/v1/runs", "?state=input_required&limit=1", "", 200)
	a.vars["{id}"] = run + "%2F1.0"
	a.ask(t, "POST", "/api/v1/approvals/{id}/decide", "", `{"verdict":"allow","remember":"always"}`, 200)
	for _, err := range a.h.Runs().Events(t.Context(), run, 0) {
		if err != nil {
			t.Fatal(err)
		}
	}
	a.vars["{id}"] = run
	a.ask(t, "GET", "/api/v1/runs/{id}", "", "", 200)
	a.ask(t, "GET", "/api/v1/runs/{id}/events", "?limit=2", "", 200)
	a.ask(t, "GET", "/api/v1/runs/{id}/messages", "", "", 200)
	a.ask(t, "GET", "/api/v1/runs/{id}/artifacts/{artifact}", "", "", 404)
	a.ask(t, "POST", "/api/v1/runs/{id}/steer", "", `{"text":"x"}`, 409)
	a.ask(t, "POST", "/api/v1/runs/{id}/cancel", "", "", 409)
	a.ask(t, "POST", "/api/v1/runs/{id}/resume", "", "{}", 409)
	a.ask(t, "POST", "/api/v1/runs/{id}/decide", "", `{"step":"1.0","verdict":"maybe"}`, 400)
	return session
}

// sessions requests a session, its export, its fork and a search.
func (a *truth) sessions(t *testing.T, session string) {
	a.vars["{id}"] = session
	a.ask(t, "GET", "/api/v1/sessions", "?limit=1", "", 200)
	a.ask(t, "GET", "/api/v1/sessions/{id}", "", "", 200)
	a.ask(t, "PATCH", "/api/v1/sessions/{id}", "", `{"title":"The door"}`, 200)
	a.ask(t, "GET", "/api/v1/sessions/{id}/messages", "", "", 200)
	a.ask(t, "GET", "/api/v1/sessions/{id}/calls", "", "", 200)
	a.ask(t, "GET", "/api/v1/sessions/{id}/export", "", "", 200)
	a.ask(t, "GET", "/api/v1/sessions/{id}/export", "?format=markdown", "", 200)
	a.ask(t, "GET", "/api/v1/sessions/{id}/export", "?format=pdf", "", 400)
	a.ask(t, "POST", "/api/v1/sessions/{id}/compact", "", `{}`, 202)
	fork := a.ask(t, "POST", "/api/v1/sessions/{id}/fork", "", `{"at":"1","title":"Another"}`, 201)
	a.ask(t, "GET", "/api/v1/search", "?q=open", "", 200)
	a.ask(t, "GET", "/api/v1/search", "", "", 400)
	a.vars["{id}"] = between(t, string(fork), `"session":{"id":"`, `"`)
	a.ask(t, "DELETE", "/api/v1/sessions/{id}", "", "", 204)
	a.ask(t, "GET", "/api/v1/sessions/{id}", "", "", 404)
}

// servers requests grants and servers, also with the routes of ResearchAI's API.
func (a *truth) servers(t *testing.T) {
	a.ask(t, "GET", "/api/v1/grants", "", "", 200)
	a.ask(t, "POST", "/api/v1/grants/revoke", "", `{"server":"house","remote_name":"pass"}`, 204)
	a.vars["{name}"] = "off"
	a.ask(t, "GET", "/api/v1/servers", "", "", 200)
	a.ask(t, "GET", "/api/v1/servers/{name}", "", "", 200)
	a.ask(t, "GET", "/api/v1/servers/{name}/logs", "?lines=3", "", 200)
	a.ask(t, "POST", "/api/v1/servers/{name}/enable", "", "", 400)
	a.ask(t, "POST", "/api/v1/servers/{name}/restart", "", "", 400)
	a.ask(t, "POST", "/api/v1/servers/{name}/login", "", "", 400)
	a.vars["{id}"] = "off"
	for _, p := range []string{"", "/api"} {
		a.ask(t, "GET", p+"/mcp/servers", "", "", 200)
		a.ask(t, "GET", p+"/mcp/servers/{id}", "", "", 200)
		a.ask(t, "POST", p+"/mcp/servers/{id}/disable", "", "", 400)
		a.ask(t, "GET", p+"/mcp/tools", "", "", 200)
		a.ask(t, "GET", p+"/mcp/prompts", "", "", 200)
		a.ask(t, "GET", p+"/mcp/resources", "", "", 200)
		a.ask(t, "POST", p+"/chat", "", `{"message":"open","format":"JSON"}`, 409)
		a.ask(t, "POST", p+"/chat", "", `{"message":""}`, 400)
	}
}

// tools requests tools, their lint and their calls, and runs with files.
func (a *truth) tools(t *testing.T) {
	a.vars["{name}"] = "pass"
	a.ask(t, "GET", "/api/v1/tools", "?search=pass", "", 200)
	a.ask(t, "GET", "/api/v1/lint", "", "", 200)
	a.ask(t, "GET", "/api/v1/lint", "?provider=openai&tool=pass", "", 200)
	a.ask(t, "GET", "/api/v1/lint", "?provider=nobody", "", 404)
	a.ask(t, "POST", "/api/v1/runs", "", `{"question":"open","files":[{"name":"a.txt","data":"aGVsbG8="}]}`, 202)
	a.ask(t, "POST", "/api/v1/runs", "", `{"question":"open","files":[{"name":"a.bin","data":"AAEC"}]}`, 400)
	a.ask(t, "POST", "/api/v1/runs", "", `{"question":"open","files":[{"name":"","data":""}]}`, 400)
	a.ask(t, "POST", "/api/v1/runs", "", `{"question":"open","resources":[{"server":"none","uri":"x"}]}`, 404)
	a.ask(t, "GET", "/api/v1/tools/{name}", "", "", 200)
	a.ask(t, "POST", "/api/v1/tools/{name}/call", "", `{"arguments":{}}`, 200)
	a.ask(t, "POST", "/api/v1/tools/{name}/call", "", `{"detach":true}`, 202)
}

// rest requests information about the whole host: its state, statistics and OpenAI's API.
func (a *truth) rest(t *testing.T) {
	for _, path := range []string{"/healthz", "/readyz", "/api/v1/me", "/api/v1/openapi.json", "/api/v1/prompts", "/api/v1/resources", "/api/v1/agents",
		"/api/v1/models", "/api/v1/schedules", "/api/v1/gateway/clients", "/api/v1/config", "/v1/models", "/v1/models/{model}"} {
		a.ask(t, "GET", path, "", "", 200)
	}
	for _, path := range []string{"/api/v1/prompts", "/api/v1/resources"} {
		a.ask(t, "GET", path, "?from=stored", "", 200)
		a.ask(t, "GET", path, "?from=known", "", 200)
		a.ask(t, "GET", path, "?from=memory", "", 400)
	}
	a.ask(t, "POST", "/api/v1/prompts/get", "", `{"server":"off","name":"x"}`, 400)
	a.ask(t, "POST", "/api/v1/resources/read", "", `{"server":"none","uri":"x"}`, 404)
	for _, by := range host.StatsBy() {
		a.vars["{by}"] = by
		a.ask(t, "GET", "/api/v1/stats/{by}", "?since=1d", "", 200)
		a.ask(t, "GET", "/api/v1/stats/{by}", "?since=1d&per=hour", "", 200)
	}
	a.ask(t, "GET", "/api/v1/stats/{by}", "?per=week", "", 400)
	a.vars["{by}"] = "stars"
	a.ask(t, "GET", "/api/v1/stats/{by}", "", "", 404)
	a.ask(t, "POST", "/v1/chat/completions", "", `{"model":"default","messages":[{"role":"user","content":"open"}]}`, 200)
	a.ask(t, "POST", "/v1/chat/completions", "", `{"model":"nobody","messages":[{"role":"user","content":"open"}]}`, 404)
	a.ask(t, "POST", "/v1/chat/completions", "", `{"model":"default","messages":[]}`, 400)
}
