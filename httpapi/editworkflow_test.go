package httpapi_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/httpapi"
)

const flowText = "kind: workflow\nversion: 1\nname: hi\ndescription: Greets. # kindly\nsteps:\n  - {id: a, template: hello}\nmessage: a\n"

// flowProject returns a handler with a project that has one workflow, and its folder.
func flowProject(t *testing.T) (http.Handler, string) {
	t.Helper()
	h, _, _ := serve(t)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"tenon.yaml":      "version: 1\n# below\ntools:\n  hi: {kind: workflow, path: flows/hi.yaml}\n",
		"flows/hi.yaml":   flowText,
		"flows/none.yaml": "kind: workflow\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := config.Options{Dir: dir, File: filepath.Join(dir, "tenon.yaml"), NoUser: true}
	return httpapi.New(h, httpapi.Config{Editor: writing{o}}), dir
}

func readText(t *testing.T, path ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestUX_10_WorkflowText changes the file of a workflow, adds one and takes it out again, and checks what is refused.
func TestUX_10_WorkflowText(t *testing.T) {
	handler, dir := flowProject(t)
	const at = "/api/v1/config/workflows/"
	status, _, text := request(t, handler, http.MethodGet, at+"hi", "", "")
	var got httpapi.WorkflowText
	if err := json.Unmarshal([]byte(text), &got); err != nil || status != 200 || got.Text != flowText ||
		got.File != "flows/hi.yaml" {
		t.Fatalf("%d %v %s", status, err, text)
	}
	body := func(text, digest string, add, dry bool) string {
		b, err := json.Marshal(httpapi.WorkflowTextRequest{Text: text, Digest: digest, Add: add, DryRun: dry})
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	changed := strings.Replace(flowText, "hello", "goodbye", 1)
	for _, step := range []struct {
		name, method, path, body string
		status                   int
		want                     string
	}{
		{"plan", "PUT", "hi", body(changed, got.Digest, false, true), 200, `"written":false`},
		{"no digest", "PUT", "hi", body(changed, "", false, false), 400, "the digest is missing"},
		{"old digest", "PUT", "hi", body(changed, "sha256:0", false, false), 409, "changed meanwhile"},
		{"a mistake", "PUT", "hi", body("kind: workflow\n", got.Digest, false, false), 400, "hi.yaml"},
		{"no workflow", "PUT", "ho", body(changed, got.Digest, false, false), 404, "did you mean 'hi'?"},
		{"changed", "PUT", "hi", body(changed, got.Digest, false, false), 200, `"written":true`},
		{"changed meanwhile", "PUT", "hi", body(flowText, got.Digest, false, false), 409, "load it again"},
		{"there already", "PUT", "hi", body(flowText, "", true, false), 409, "tools.hi already"},
		{"a path", "PUT", "..%2Fhi", body(flowText, "", true, false), 400, "cannot be the name of a workflow"},
		{"a taken file", "PUT", "tenon", body(flowText, "", true, false), 400, "project's file"},
		{"new", "PUT", "bye", body(strings.Replace(flowText, "name: hi", "name: bye", 1), "", true, false), 200,
			`"written":true`},
		{"removed", "DELETE", "bye", "", 200, `"written":true`},
		{"not there", "DELETE", "bye", "", 404, "there is no workflow"},
	} {
		status, _, text := request(t, handler, step.method, at+step.path, "application/json", step.body)
		if status != step.status || !strings.Contains(text, step.want) {
			t.Errorf("%s: %d %s, want %d %s", step.name, status, text, step.status, step.want)
		}
		if step.name == "new" {
			if s := readText(t, dir, "tenon.yaml"); !strings.Contains(s, "# below") || !strings.Contains(s, "bye:") {
				t.Errorf("tenon.yaml: %s", s)
			}
		}
	}
	if diff := cmp.Diff(changed, readText(t, dir, "flows/hi.yaml")); diff != "" {
		t.Error(diff)
	}
	if s := readText(t, dir, "bye.yaml"); !strings.Contains(s, "name: bye") {
		t.Errorf("the file of a workflow that is taken out has to stay: %s", s)
	}
	if s := readText(t, dir, "flows/none.yaml"); s != "kind: workflow\n" {
		t.Errorf("another file was changed: %s", s)
	}
}

// TestUX_13_Draft checks a text and changes it as a form does.
func TestUX_13_Draft(t *testing.T) {
	handler, dir := flowProject(t)
	for _, step := range []struct {
		name, text, changes string
		want                httpapi.DraftResponse
		value               string
	}{
		{"as it is", flowText, `[]`, httpapi.DraftResponse{Text: flowText, Mistakes: []httpapi.DraftMistake{}}, "hello"},
		{"one value", flowText, `[{"path":["steps",0,"template"],"value":"bye"}]`,
			httpapi.DraftResponse{Text: strings.Replace(flowText, "hello", "bye", 1), Mistakes: []httpapi.DraftMistake{}}, "bye"},
		{"no such tool", flowText, `[{"path":["steps",0],"value":{"id":"a","tool":"nosuchtool"}}]`,
			httpapi.DraftResponse{Text: strings.Replace(flowText, "template: hello", "tool: nosuchtool", 1),
				Mistakes: []httpapi.DraftMistake{{File: "flows/hi.yaml", Line: 6, Column: 19, Path: "steps[0].tool",
					Message: "there is no tool 'nosuchtool'"}}}, "nosuchtool"},
		{"no step", flowText, `[{"path":["message"],"value":"b"}]`,
			httpapi.DraftResponse{Text: strings.Replace(flowText, "message: a", "message: b", 1),
				Mistakes: []httpapi.DraftMistake{{File: "flows/hi.yaml", Line: 7, Column: 10, Path: "message.from",
					Message: "there is no step 'b'", Hint: "did you mean 'a'?"}}}, "hello"},
	} {
		text, err := json.Marshal(step.text)
		if err != nil {
			t.Fatal(err)
		}
		status, _, answer := request(t, handler, "POST", "/api/v1/workflows/draft", "application/json",
			`{"name":"hi","text":`+string(text)+`,"changes":`+step.changes+`}`)
		var got httpapi.DraftResponse
		if err := json.Unmarshal([]byte(answer), &got); err != nil || status != 200 {
			t.Fatalf("%s: %d %v %s", step.name, status, err, answer)
		}
		if !strings.Contains(string(got.Value), step.value) || !strings.Contains(answer, `"nodes":[{`) {
			t.Errorf("%s: %s", step.name, answer)
		}
		got.Value, got.Graph = nil, nil
		for i := range got.Mistakes {
			if step.want.Mistakes != nil && i < len(step.want.Mistakes) && step.want.Mistakes[i].Hint == "" {
				got.Mistakes[i].Hint = "" // depends on the tools of the test
			}
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s: %s", step.name, diff)
		}
	}
	for name, body := range map[string]string{
		"a bad path":  `{"text":"a: 1","changes":[{"path":[-1],"value":1}]}`,
		"no path":     `{"text":"a: 1","changes":[{"path":[],"value":1}]}`,
		"no text":     `{"name":"hi","changes":[]}`,
		"null":        `{"name":"hi","text":"a: 1","changes":null}`,
		"deep":        `{"text":"a: 1","changes":[{"path":[` + strings.Repeat(`"a",`, 40) + `"a"],"value":1}]}`,
		"no workflow": `{"name":"ho","text":"a: 1"}`,
	} {
		if status, _, answer := request(t, handler, "POST", "/api/v1/workflows/draft", "application/json", body); status < 400 || status >= 500 {
			t.Errorf("%s: %d %s", name, status, answer)
		}
	}
	if s := readText(t, dir, "flows/hi.yaml"); s != flowText {
		t.Errorf("a draft was written: %s", s)
	}
}
