package httpapi_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/httpapi"
)

// TestUX_10_Entries adds, changes and removes entries of models, agents and budgets in a real file. Comments and other
// keys stay, keys that can hold secrets are neither shown nor set, and a bad entry changes nothing.
func TestUX_10_Entries(t *testing.T) {
	h, _, _ := serve(t)
	path := filepath.Join(t.TempDir(), "tenon.yaml")
	const before = "# mine\nversion: 1\nmodels:\n  main: # the main one\n    provider: openai\n    model: gpt-5 # good\n" +
		"    api_key: {env: KEY}\n    headers: {x-team: a}\n"
	if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	o := config.Options{Dir: filepath.Dir(path), NoUser: true, LookupEnv: func(name string) (string, bool) { return "k", name == "KEY" }}
	handler := httpapi.New(h, httpapi.Config{Editor: writing{o}})
	const entries = "/api/v1/config/entries"
	file := func() string {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}

	status, _, text := request(t, handler, http.MethodGet, entries, "", "")
	var list httpapi.ConfigEntries
	if err := json.Unmarshal([]byte(text), &list); err != nil || status != 200 || len(list.Sections) != 5 {
		t.Fatalf("%d %v %s", status, err, text)
	}
	models := list.Sections[0]
	if len(models.Entries) != 1 || len(models.Entries[0].Keys) != 2 || models.Entries[0].Keys["model"] != "gpt-5" {
		t.Errorf("models: %+v", models.Entries)
	}
	if s := string(models.Schema); strings.Contains(s, `"api_key":`) || !strings.Contains(s, "temperature") {
		t.Errorf("the schema of a model: %.300s", s)
	}

	was := before
	for _, step := range []struct {
		name, method, path, body string
		status                   int
		old, new                 string // in the file: one replaces the other
		want                     string // in the answer
	}{
		{"a key", "PUT", "/models/main", `{"keys":{"model":"gpt-5-mini","temperature":0.5}}`, 200,
			"    model: gpt-5 # good\n    api_key: {env: KEY}\n    headers: {x-team: a}\n",
			"    model: gpt-5-mini # good\n    api_key: {env: KEY}\n    headers: {x-team: a}\n    temperature: 0.5\n", ""},
		{"removed key", "PUT", "/models/main", `{"keys":{"temperature":null}}`, 200, "    temperature: 0.5\n", "", ""},
		{"new agent", "PUT", "/agents/helper", `{"add":true,"keys":{"model":"main","limits.max_turns":5,"limits.cost":0.5}}`, 200,
			"", "\nagents:\n  helper:\n    limits: {cost: 0.5, max_turns: 5}\n    model: main\n", ""},
		{"deeper key", "PUT", "/agents/helper", `{"keys":{"limits.max_turns":6}}`, 200, "max_turns: 5", "max_turns: 6", ""},
		{"there already", "PUT", "/agents/helper", `{"add":true,"keys":{"model":"main"}}`, 409, "", "", "helper already"},
		{"budget", "PUT", "/budgets/day", `{"add":true,"keys":{"cost":3}}`, 200, "", "\nbudgets:\n  day:\n    cost: 3\n", ""},
		{"other budget", "PUT", "/budgets/week", `{"add":true,"keys":{"cost":3}}`, 400, "", "", "names: session, day, principal"},
		{"secret", "PUT", "/models/main", `{"keys":{"api_key":"sk-1"}}`, 400, "", "", "cannot be set over HTTP"},
		{"header", "PUT", "/models/main", `{"keys":{"headers.x":"sk-1"}}`, 400, "", "", "cannot be set over HTTP"},
		{"nothing", "PUT", "/models/main", `{"keys":{}}`, 400, "", "", "nothing to change"},
		{"twice", "PUT", "/agents/other", `{"add":true,"keys":{"limits":{"cost":1},"limits.cost":2}}`, 400, "", "", "as a value and as an object"},
		{"bad value", "PUT", "/models/main", `{"keys":{"temperature":"warm"}}`, 400, "", "", "models.main.temperature"},
		{"no model", "PUT", "/agents/helper", `{"keys":{"model":"nosuch"}}`, 400, "", "", "nosuch"},
		{"not there", "PUT", "/models/nosuch", `{"keys":{"model":"m"}}`, 404, "", "", "no entry models.nosuch"},
		{"section", "PUT", "/servers/x", `{"keys":{"command":"sh"}}`, 404, "", "", "there are no forms for 'servers'"},
		{"old file", "PUT", "/models/main", `{"digest":"sha256:0","keys":{"model":"m"}}`, 409, "", "", ""},
		{"plan", "DELETE", "/agents/helper?dry_run=true", "", 200, "", "", `"written":false`},
		{"removed", "DELETE", "/budgets/day", "", 200, "budgets:\n  day:\n    cost: 3\n", "", `"written":true`},
	} {
		status, _, text := request(t, handler, step.method, entries+step.path, "application/json", step.body)
		want := was + step.new
		if step.old != "" {
			want = strings.Replace(was, step.old, step.new, 1)
		}
		if status != step.status || !strings.Contains(text, step.want) || file() != want {
			t.Errorf("%s: %d %s\nthe file:\n%s\nwant:\n%s", step.name, status, text, file(), want)
		}
		was = file()
	}
}
