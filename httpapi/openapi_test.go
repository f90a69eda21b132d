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
	"github.com/tenonhq/tenon/servers"
)

// document is openapi.json as far as the tests look at it.
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

// schema resolves a schema of the document.
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

// TestDocumentHasTheRoutes holds openapi.json to the router, both ways.
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

// TestDocumentTellsTheTruth asks the routes of a host at work and holds the answers to
// the schemas of openapi.json, errors too.
func TestDocumentTellsTheTruth(t *testing.T) {
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
		Config: &config.Config{Servers: map[string]servers.Config{"off": {Command: "none", Enabled: &off}}}})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(httpapi.New(h, guarded()))
	t.Cleanup(func() { s.Close(); _ = h.Close() })
	vars := map[string]string{"{model}": "default", "{by}": "tools", "{artifact}": "none"}
	ask := func(method, pattern, query, body string, want int) []byte {
		t.Helper()
		path := pattern
		for k, v := range vars {
			path = strings.ReplaceAll(path, k, v)
		}
		req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path+query, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+ownToken)
		req.Header.Set("Accept", "application/json")
		if body != "" {
			req.Header.Set("Content-Type", "application/json")
		}
		res, err := s.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != want {
			t.Errorf("%s %s%s: status %d, want %d: %s", method, path, query, res.StatusCode, want, b)
			return b
		}
		op := d.Paths[pattern][strings.ToLower(method)]
		answer, ok := op.Responses[strconv.Itoa(want)]
		if !ok {
			answer = op.Responses["default"]
		}
		kind, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
		content, ok := answer.Content[kind]
		if !ok && len(b) > 0 {
			t.Errorf("%s %s: status %d with %s is not in openapi.json", method, pattern, want, kind)
			return b
		}
		if strings.HasSuffix(kind, "json") {
			var v any
			if err := json.Unmarshal(b, &v); err != nil {
				t.Errorf("%s %s: %v", method, path, err)
			} else if err := d.schema(t, content.Schema).Validate(v); err != nil {
				t.Errorf("%s %s: the answer is not what openapi.json says: %v\n%s", method, path, err, b)
			}
		}
		if op.Body != nil && body != "" && want < 400 {
			var v any
			_ = json.Unmarshal([]byte(body), &v)
			if err := d.schema(t, op.Body.Content["application/json"].Schema).Validate(v); err != nil {
				t.Errorf("%s %s: the body is not what openapi.json says: %v", method, path, err)
			}
		}
		return b
	}
	body := ask("POST", "/api/v1/runs", "", `{"question":"open"}`, 202)
	run := between(t, string(body), `"run":{"id":"`, `"`)
	session := between(t, string(body), `"session":"`, `"`)
	for _, err := range h.Runs().Events(t.Context(), run, 0) {
		if err != nil {
			t.Fatal(err)
		}
	}
	vars["{id}"] = run
	ask("GET", "/api/v1/runs/{id}", "", "", 200)
	ask("GET", "/api/v1/approvals", "", "", 200)
	ask("GET", "/api/v1/runs", "?state=input_required&limit=1", "", 200)
	vars["{id}"] = run + "%2F1.0"
	ask("POST", "/api/v1/approvals/{id}/decide", "", `{"verdict":"allow","remember":"always"}`, 200)
	for _, err := range h.Runs().Events(t.Context(), run, 0) {
		if err != nil {
			t.Fatal(err)
		}
	}
	vars["{id}"] = run
	ask("GET", "/api/v1/runs/{id}", "", "", 200)
	ask("GET", "/api/v1/runs/{id}/events", "?limit=2", "", 200)
	ask("GET", "/api/v1/runs/{id}/messages", "", "", 200)
	ask("GET", "/api/v1/runs/{id}/artifacts/{artifact}", "", "", 404)
	ask("POST", "/api/v1/runs/{id}/steer", "", `{"text":"x"}`, 409)
	ask("POST", "/api/v1/runs/{id}/cancel", "", "", 409)
	ask("POST", "/api/v1/runs/{id}/resume", "", "{}", 409)
	ask("POST", "/api/v1/runs/{id}/decide", "", `{"step":"1.0","verdict":"maybe"}`, 400)
	vars["{id}"] = session
	ask("GET", "/api/v1/sessions", "?limit=1", "", 200)
	ask("GET", "/api/v1/sessions/{id}", "", "", 200)
	ask("PATCH", "/api/v1/sessions/{id}", "", `{"title":"The door"}`, 200)
	ask("GET", "/api/v1/sessions/{id}/messages", "", "", 200)
	ask("GET", "/api/v1/sessions/{id}/calls", "", "", 200)
	ask("GET", "/api/v1/sessions/{id}/export", "", "", 200)
	ask("GET", "/api/v1/sessions/{id}/export", "?format=markdown", "", 200)
	ask("GET", "/api/v1/sessions/{id}/export", "?format=pdf", "", 400)
	ask("POST", "/api/v1/sessions/{id}/compact", "", `{}`, 202)
	fork := ask("POST", "/api/v1/sessions/{id}/fork", "", `{"at":"1","title":"Another"}`, 201)
	ask("GET", "/api/v1/search", "?q=open", "", 200)
	ask("GET", "/api/v1/search", "", "", 400)
	vars["{id}"] = between(t, string(fork), `"session":{"id":"`, `"`)
	ask("DELETE", "/api/v1/sessions/{id}", "", "", 204)
	ask("GET", "/api/v1/sessions/{id}", "", "", 404)
	ask("GET", "/api/v1/grants", "", "", 200)
	ask("POST", "/api/v1/grants/revoke", "", `{"server":"house","remote_name":"pass"}`, 204)
	vars["{name}"] = "off"
	ask("GET", "/api/v1/servers", "", "", 200)
	ask("GET", "/api/v1/servers/{name}", "", "", 200)
	ask("GET", "/api/v1/servers/{name}/logs", "?lines=3", "", 200)
	ask("POST", "/api/v1/servers/{name}/enable", "", "", 400)
	ask("POST", "/api/v1/servers/{name}/restart", "", "", 400)
	ask("POST", "/api/v1/servers/{name}/login", "", "", 400)
	vars["{id}"] = "off"
	for _, p := range []string{"", "/api"} {
		ask("GET", p+"/mcp/servers", "", "", 200)
		ask("GET", p+"/mcp/servers/{id}", "", "", 200)
		ask("POST", p+"/mcp/servers/{id}/disable", "", "", 400)
		ask("GET", p+"/mcp/tools", "", "", 200)
		ask("GET", p+"/mcp/prompts", "", "", 200)
		ask("GET", p+"/mcp/resources", "", "", 200)
		ask("POST", p+"/chat", "", `{"message":"open","format":"JSON"}`, 409)
		ask("POST", p+"/chat", "", `{"message":""}`, 400)
	}
	vars["{name}"] = "pass"
	ask("GET", "/api/v1/tools", "?search=pass", "", 200)
	ask("GET", "/api/v1/lint", "", "", 200)
	ask("GET", "/api/v1/lint", "?provider=openai&tool=pass", "", 200)
	ask("GET", "/api/v1/lint", "?provider=nobody", "", 404)
	ask("POST", "/api/v1/runs", "", `{"question":"open","files":[{"name":"a.txt","data":"aGVsbG8="}]}`, 202)
	ask("POST", "/api/v1/runs", "", `{"question":"open","files":[{"name":"a.bin","data":"AAEC"}]}`, 400)
	ask("POST", "/api/v1/runs", "", `{"question":"open","files":[{"name":"","data":""}]}`, 400)
	ask("POST", "/api/v1/runs", "", `{"question":"open","resources":[{"server":"none","uri":"x"}]}`, 404)
	ask("GET", "/api/v1/tools/{name}", "", "", 200)
	ask("POST", "/api/v1/tools/{name}/call", "", `{"arguments":{}}`, 200)
	ask("POST", "/api/v1/tools/{name}/call", "", `{"detach":true}`, 202)
	for _, path := range []string{"/healthz", "/readyz", "/api/v1/me", "/api/v1/openapi.json", "/api/v1/prompts", "/api/v1/resources", "/api/v1/agents",
		"/api/v1/models", "/api/v1/config", "/v1/models", "/v1/models/{model}"} {
		ask("GET", path, "", "", 200)
	}
	ask("POST", "/api/v1/prompts/get", "", `{"server":"off","name":"x"}`, 400)
	ask("POST", "/api/v1/resources/read", "", `{"server":"none","uri":"x"}`, 404)
	for _, by := range host.StatsBy() {
		vars["{by}"] = by
		ask("GET", "/api/v1/stats/{by}", "?since=1d", "", 200)
		ask("GET", "/api/v1/stats/{by}", "?since=1d&per=hour", "", 200)
	}
	ask("GET", "/api/v1/stats/{by}", "?per=week", "", 400)
	vars["{by}"] = "stars"
	ask("GET", "/api/v1/stats/{by}", "", "", 404)
	ask("POST", "/v1/chat/completions", "", `{"model":"default","messages":[{"role":"user","content":"open"}]}`, 200)
	ask("POST", "/v1/chat/completions", "", `{"model":"nobody","messages":[{"role":"user","content":"open"}]}`, 404)
	ask("POST", "/v1/chat/completions", "", `{"model":"default","messages":[]}`, 400)
}
