package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/httpapi"
	"github.com/tenonhq/tenon/web"
)

// TestChanges follows the stream of change notifications during a run.
func TestChanges(t *testing.T) {
	h, d, _ := serve(t)
	close(d.open)
	s := httptest.NewServer(httpapi.Handler(h))
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/api/v1/changes", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	if !lines.Scan() || lines.Text() != ": changes" || res.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("it begins with %q, %v", lines.Text(), res.Header)
	}
	if _, err := h.Start(t.Context(), host.Question{Text: "Open up"}); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var c httpapi.Changes
		if err := json.Unmarshal([]byte(data), &c); err != nil || strings.Join(c.Topics, " ") != "runs sessions approvals" {
			t.Errorf("it tells %q: %v", data, err)
		}
		return
	}
	t.Errorf("the stream ended: %v", lines.Err())
}

// TestPages checks that the workbench is served next to the API: under the same host names, without a token, and never
// in place of an API route.
func TestPages(t *testing.T) {
	h, _, _ := serve(t)
	c := guarded()
	c.Pages = web.Files()
	handler := httpapi.New(h, c)
	for _, tt := range []struct {
		method, path, host string
		status             int
		kind               string
	}{
		{http.MethodGet, "/", "127.0.0.1:8420", 200, "text/html; charset=utf-8"},
		{http.MethodGet, "/runs/x", "localhost", 200, "text/html; charset=utf-8"},
		{http.MethodHead, "/tools", "127.0.0.1:8420", 200, "text/html; charset=utf-8"},
		{http.MethodGet, "/", "evil.example", 403, "application/problem+json"},
		{http.MethodGet, "/api/v1/runs", "127.0.0.1:8420", 401, "application/problem+json"},
		{http.MethodGet, "/api/v1/nothing", "127.0.0.1:8420", 401, "application/problem+json"},
		{http.MethodPost, "/runs", "127.0.0.1:8420", 401, "application/problem+json"},
	} {
		req := httptest.NewRequest(tt.method, "http://"+tt.host+tt.path, nil)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, req)
		if w.Code != tt.status || w.Header().Get("Content-Type") != tt.kind {
			t.Errorf("%s %s of %s: %d %s, want %d %s", tt.method, tt.path, tt.host, w.Code, w.Header().Get("Content-Type"), tt.status, tt.kind)
		}
	}
}

// TestPageThatIsNotThere requests unknown paths. A browser gets an HTML page, even without a token. Other programs, and
// requests for other hosts, get the usual error.
func TestPageThatIsNotThere(t *testing.T) {
	h, _, _ := serve(t)
	c := guarded()
	c.Pages = web.Files()
	handler := httpapi.New(h, c)
	const browser = "text/html,application/xhtml+xml,*/*;q=0.8"
	for _, tt := range []struct {
		method, url, accept string
		status              int
		kind                string
	}{
		{http.MethodGet, "http://127.0.0.1:8420/wrong/%3Cb%3E", browser, 404, "text/html; charset=utf-8"},
		{http.MethodGet, "http://127.0.0.1:8420/runs//x", browser, 404, "text/html; charset=utf-8"},
		{http.MethodGet, "http://127.0.0.1:8420/wrong", "*/*", 401, "application/problem+json"},
		{http.MethodPost, "http://127.0.0.1:8420/wrong", browser, 401, "application/problem+json"},
		{http.MethodGet, "http://127.0.0.1:8420/api/v1/wrong", browser, 401, "application/problem+json"},
		{http.MethodGet, "http://evil.example/wrong", browser, 403, "application/problem+json"},
	} {
		req := httptest.NewRequest(tt.method, tt.url, nil)
		req.Header.Set("Accept", tt.accept)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, req)
		if w.Code != tt.status || w.Header().Get("Content-Type") != tt.kind || strings.Contains(w.Body.String(), "<b>") {
			t.Errorf("%s %s: %d %s %s, want %d %s", tt.method, tt.url, w.Code, w.Header().Get("Content-Type"), w.Body, tt.status, tt.kind)
		}
	}
}

// writing is an editor that applies changes at once, as with serve.allow_server_edit.
type writing struct{ o config.Options }

func (w writing) Plan(ctx context.Context, e config.Edits) (*config.Plan, error) {
	return config.PlanEdit(ctx, w.o, e)
}

func (w writing) Propose(ctx context.Context, e config.Edits, by tenon.Principal) (httpapi.Proposal, error) {
	p, err := w.Plan(ctx, e)
	if err == nil {
		err = p.Write(ctx)
	}
	if err != nil {
		return httpapi.Proposal{}, err
	}
	return httpapi.Proposal{State: httpapi.ProposalAccepted, By: by, File: p.File, Files: p.FileChanges()}, nil
}

func (writing) Proposals(context.Context) ([]httpapi.Proposal, error) { return nil, nil }

func (writing) Accept(context.Context, string, string, bool) (httpapi.Proposal, error) {
	return httpapi.Proposal{}, nil
}

func (writing) Version() uint64 { return 0 }

func (writing) Reject(context.Context, string) (httpapi.Proposal, error) {
	return httpapi.Proposal{}, nil
}

// TestEditTheProject changes the arguments and rules of a tool, and a server, in a real file. It first only plans the
// change, then makes it. The rest of the file stays the same.
func TestEditTheProject(t *testing.T) {
	h, _, _ := serve(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "tenon.yaml")
	const before = "# mine\nversion: 1\nservers:\n  house: {command: x} # the house\n"
	if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	o := config.Options{Dir: dir, NoUser: true, LookupEnv: func(string) (string, bool) { return "", false }}
	c := httpapi.Config{Editor: writing{o}}
	handler := httpapi.New(h, c)
	ask := func(method, path, body string) (int, httpapi.Edited) {
		t.Helper()
		status, _, text := request(t, handler, method, path, "application/json", body)
		var e httpapi.Edited
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			t.Fatalf("%s %s: %d %s", method, path, status, text)
		}
		return status, e
	}
	file := func() string {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	const tool = "/api/v1/config/tools/house.pass"
	const set = `{"arguments":[{"name":"who","type":"string","description":"Who: it is","required":true}],"policy":{"timeout":"5s","max_calls":3}`
	if status, e := ask(http.MethodPut, tool, set+`,"dry_run":true}`); status != 200 || e.Written || e.Before != before || file() != before {
		t.Errorf("a plan: %d %+v", status, e)
	}
	for body, want := range map[string]string{
		`{"arguments":[{"name":"a"},{"name":"a"}]}`:          "there are two arguments 'a'",
		`{"arguments":[{"name":" "}]}`:                       "no name",
		`{"arguments":[{"name":"a","type":"text"}]}`:         "tools.pass.arguments[0].type",
		`{"arguments":[],"policy":{"redact":"x"}}`:           "cannot be set over HTTP",
		`{"arguments":[],"policy":{"timeout":true}}`:         "must be a text or a number",
		`{"arguments":[],"policy":{"timeout":"soon"}}`:       "policy.timeout",
		`{"arguments":[],"policy":{"approval":"sometimes"}}`: "policy.approval",
		`{"arguments":[],"something":1}`:                     "something",
	} {
		if status, _, text := request(t, handler, http.MethodPut, tool, "application/json", body); status != 400 && status != 422 || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s, want %q", body, status, text, want)
		}
	}
	want := before + "\ntools:\n  pass:\n    server: house\n    arguments:\n      - {name: who, type: string, description: \"Who: it is\", required: true}\n    policy: {max_calls: 3, timeout: \"5s\"}\n"
	if status, e := ask(http.MethodPut, tool, set+`}`); status != 200 || !e.Written || e.After != want || file() != want {
		t.Errorf("written: %d\n%s", status, file())
	}
	if status, _ := ask(http.MethodPut, "/api/v1/config/servers/more", `{"entry":{"command":"npx","args":["-y","x"]}}`); status != 200 || !strings.Contains(file(), "  more: {command: npx, args: [-y, x]}") && !strings.Contains(file(), "  more:\n    command: npx\n") {
		t.Errorf("a server: %d\n%s", status, file())
	}
	if status, _ := ask(http.MethodDelete, "/api/v1/config/servers/more", ""); status != 200 || file() != want {
		t.Errorf("a server removed: %d\n%s", status, file())
	}
	if status, _, _ := request(t, handler, http.MethodPut, "/api/v1/config/tools/house.nothing", "application/json", set+`}`); status != 404 {
		t.Errorf("a tool that is not there: %d", status)
	}
	if status, _, text := request(t, httpapi.New(h, httpapi.Config{}), http.MethodPut, tool, "application/json", set+`}`); status != 400 || !strings.Contains(text, "cannot be changed from here") {
		t.Errorf("without a file: %d %s", status, text)
	}
	if file() != want {
		t.Errorf("a refused change has changed the file:\n%s", file())
	}
}

// entryBefore is the file whose entry is changed.
const entryBefore = "# mine\nversion: 1\nservers:\n  house: {command: x}\ntools:\n  pass: # kept\n    server: house\n" +
	"    description: 'Old'   # mine\n    x-own: [1,2]\n    arguments:\n      # first\n" +
	"      - {name: a, type: string, x-unit: m, default: 1.50}\n      - name: b # second\n        enum: [1,  2]\n    groups: [ x ]\n"

// editedEntry is the API of a host whose file has an entry under tools.
type editedEntry struct {
	handler http.Handler
	path    string // of the file
}

func (e *editedEntry) write(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(e.path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (e *editedEntry) text(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(e.path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

const entryPath = "/api/v1/config/tools/house.pass"

func (e *editedEntry) load(t *testing.T) (got httpapi.ToolEntry) {
	t.Helper()
	status, _, text := request(t, e.handler, http.MethodGet, entryPath, "", "")
	if err := json.Unmarshal([]byte(text), &got); err != nil || status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	return got
}

func (e *editedEntry) put(t *testing.T, body map[string]any) (int, string) {
	t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	status, _, text := request(t, e.handler, http.MethodPut, entryPath, "application/json", string(b))
	return status, text
}

type entryEdit struct {
	name, old, new string
	change         func(e *httpapi.ToolEntry, body map[string]any)
}

// TestEditAnEntry changes an entry under tools. Only the changed values change; unknown keys and comments stay. If the
// file has changed since the sender read it, the result is a conflict.
func TestEditAnEntry(t *testing.T) {
	h, _, _ := serve(t)
	dir := t.TempDir()
	o := config.Options{Dir: dir, NoUser: true, LookupEnv: func(string) (string, bool) { return "", false }}
	e := &editedEntry{handler: httpapi.New(h, httpapi.Config{Editor: writing{o}}), path: filepath.Join(dir, "tenon.yaml")}
	for _, tt := range []entryEdit{
		{"RP-18_nothing", "", "", func(*httpapi.ToolEntry, map[string]any) {}},
		{"RP-18_description", "'Old'", "'New'", func(_ *httpapi.ToolEntry, body map[string]any) {
			body["keys"] = map[string]any{"description": "New"}
		}},
		{"RP-18_groups", "[ x ]", "[ x, z ]", func(_ *httpapi.ToolEntry, body map[string]any) {
			body["keys"] = map[string]any{"groups": []string{"x", "z"}}
		}},
		{"RP-18_enum", "[1,  2]", "[1,  3]", func(e *httpapi.ToolEntry, _ map[string]any) {
			e.Arguments[1].Enum[1] = json.RawMessage("3")
		}},
		{"RP-18_default", "1.50", "2", func(e *httpapi.ToolEntry, _ map[string]any) {
			e.Arguments[0].Default = json.RawMessage("2")
		}},
		{"RP-18_same_number", "", "", func(e *httpapi.ToolEntry, _ map[string]any) {
			e.Arguments[0].Default = json.RawMessage("1.5")
		}},
		{"RP-18_rename", "name: a,", "name: c,", func(e *httpapi.ToolEntry, _ map[string]any) { e.Arguments[0].Name = "c" }},
		{"RP-18_new_argument", "    groups", "      - name: when\n        type: number\n    groups",
			func(e *httpapi.ToolEntry, _ map[string]any) {
				e.Arguments = append(e.Arguments, httpapi.ToolArgument{Name: "when", Type: "number"})
			}},
		{"RP-18_argument_removed", "      - {name: a, type: string, x-unit: m, default: 1.50}\n", "",
			func(e *httpapi.ToolEntry, _ map[string]any) { e.Arguments = e.Arguments[1:] }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e.write(t, entryBefore)
			got := e.load(t)
			if !got.Exists || len(got.Arguments) != 2 || string(got.Keys["description"]) != `"Old"` {
				t.Fatalf("%+v", got)
			}
			body := map[string]any{"digest": got.Digest}
			tt.change(&got, body)
			body["arguments"] = got.Arguments
			if status, text := e.put(t, body); status != 200 {
				t.Fatalf("%d %s", status, text)
			}
			if want := strings.Replace(entryBefore, tt.old, tt.new, 1); e.text(t) != want {
				t.Errorf("written:\n%s\nwant:\n%s", e.text(t), want)
			}
		})
	}
	t.Run("RP-18_no_arguments", func(t *testing.T) {
		e.write(t, "version: 1\nservers:\n  house: {command: x}\n")
		const want = "\ntools:\n  pass:\n    server: house\n    arguments_mode: replace\n    arguments: []\n"
		body := map[string]any{"arguments": []any{}, "keys": map[string]any{"arguments_mode": "replace"}}
		for range 2 { // a new entry, and then one that exists
			if status, text := e.put(t, body); status != 200 || !strings.HasSuffix(e.text(t), want) {
				t.Errorf("%d %s\n%s", status, text, e.text(t))
			}
		}
	})
	t.Run("RP-18_conflict", e.testConflict)
	t.Run("RP-18_refused", e.testRefused)
	t.Run("RP-18_new_entry", func(t *testing.T) {
		e.write(t, "version: 1\nservers:\n  house: {command: x}\n")
		status, _, text := request(t, e.handler, http.MethodPut, "/api/v1/config/tools/house.later", "application/json",
			`{"name":"soon","arguments":[{"name":"a"}],"keys":{"states":["s"]}}`)
		const want = "\ntools:\n  soon:\n    server: house\n    remote_name: later\n    states: [s]\n    arguments:\n      - {name: a}\n"
		if status != 200 || !strings.HasSuffix(e.text(t), want) {
			t.Errorf("%d %s\n%s", status, text, e.text(t))
		}
	})
}

// testConflict changes the file after the host has loaded it.
func (e *editedEntry) testConflict(t *testing.T) {
	e.write(t, entryBefore)
	got := e.load(t)
	e.write(t, entryBefore+"# later\n")
	for _, dry := range []bool{true, false} {
		body := map[string]any{"digest": got.Digest, "arguments": nil, "dry_run": dry,
			"keys": map[string]any{"description": "New"}}
		if status, text := e.put(t, body); status != 409 || !strings.Contains(text, "changed meanwhile") {
			t.Errorf("%d %s", status, text)
		}
	}
	if e.text(t) != entryBefore+"# later\n" {
		t.Errorf("written:\n%s", e.text(t))
	}
}

// testRefused tries to change settings that can only be changed in the file itself.
func (e *editedEntry) testRefused(t *testing.T) {
	e.write(t, entryBefore)
	for want, body := range map[string]map[string]any{
		"cannot be set over HTTP":         {"arguments": nil, "keys": map[string]any{"server": "x"}},
		"can only be changed in the file": {"arguments": []map[string]any{{"name": "b", "index": 1}, {"name": "a", "index": 0}}},
		"no argument 7 any more":          {"arguments": []map[string]any{{"name": "b", "index": 7}}},
	} {
		if status, text := e.put(t, body); status/100 != 4 || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", want, status, text)
		}
	}
	if e.text(t) != entryBefore {
		t.Errorf("written:\n%s", e.text(t))
	}
}
