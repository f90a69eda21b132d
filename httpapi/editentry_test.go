package httpapi_test

import (
	"crypto/sha256"
	"encoding/hex"
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
	const before = "# mine\nversion: 1\nmodels:\n  main: # the main one\n    provider: openai\n    model: gpt-5 # good\n" +
		"    api_key: {env: KEY}\n    headers: {x-team: a}\n"
	handler, file := editing(t, before)
	status, _, text := request(t, handler, http.MethodGet, entries, "", "")
	var list httpapi.ConfigEntries
	if err := json.Unmarshal([]byte(text), &list); err != nil || status != 200 || len(list.Sections) != 7 {
		t.Fatalf("%d %v %s", status, err, text)
	}
	models := list.Sections[0]
	if len(models.Entries) != 1 || len(models.Entries[0].Keys) != 2 || models.Entries[0].Keys["model"] != "gpt-5" {
		t.Errorf("models: %+v", models.Entries)
	}
	if s := string(models.Schema); strings.Contains(s, `"api_key":`) || !strings.Contains(s, "temperature") {
		t.Errorf("the schema of a model: %.300s", s)
	}

	steps := []entryStep{
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
		{"removed", "DELETE", "/budgets/day", "", 200, "\nbudgets:\n  day:\n    cost: 3\n", "", `"written":true`},
	}
	walkEntries(t, handler, file, steps)
}

// TestUX_10_Limits does the same with the limits of runs, and with the rules, which are a list and have numbers instead
// of names.
func TestUX_10_Limits(t *testing.T) {
	handler, file := editing(t, "version: 1\n# below\nmodels:\n  main: {provider: openai, model: m}\n")
	walkEntries(t, handler, file, []entryStep{
		{"limits", "PUT", "/limits/limits", `{"add":true,"keys":{"max_turns":7,"run_timeout":"5m"}}`, 200, "", "limits: {max_turns: 7, run_timeout: \"5m\"}\n", ""},
		{"a limit", "PUT", "/limits/limits", `{"keys":{"max_turns":8}}`, 200, "max_turns: 7", "max_turns: 8", ""},
		{"bad limit", "PUT", "/limits/limits", `{"keys":{"max_turns":0}}`, 400, "", "", "limits.max_turns"},
		{"other limits", "PUT", "/limits/run", `{"keys":{"max_turns":1}}`, 400, "", "", "names: limits"},
		{"limits removed", "DELETE", "/limits/limits", "", 200, "limits: {max_turns: 8, run_timeout: \"5m\"}\n", "", ""},
		{"first rule", "PUT", "/rules/0", `{"digest":"DIGEST","add":true,"keys":{"verdict":"deny","when":"tool.name == \"rm\""}}`, 200,
			"", "policy:\n  rules:\n    - {verdict: deny, when: \"tool.name == \\\"rm\\\"\"}\n", ""},
		{"next rule", "PUT", "/rules/1", `{"digest":"DIGEST","add":true,"keys":{"verdict":"ask","when":"true"}}`, 200,
			"", "    - {verdict: ask, when: \"true\"}\n", ""},
		{"a rule", "PUT", "/rules/1", `{"digest":"DIGEST","keys":{"verdict":"deny"}}`, 200, "verdict: ask", "verdict: deny", ""},
		{"bad rule", "PUT", "/rules/1", `{"digest":"DIGEST","keys":{"when":"tool.nme =="}}`, 400, "", "", "policy.rules[1].when"},
		{"no digest", "PUT", "/rules/1", `{"keys":{"verdict":"ask"}}`, 400, "", "", "the digest is missing"},
		{"no rule", "PUT", "/rules/2", `{"digest":"DIGEST","keys":{"verdict":"ask"}}`, 404, "", "", "it has 2, numbered from 0"},
		{"rule taken", "PUT", "/rules/1", `{"digest":"DIGEST","add":true,"keys":{"verdict":"ask"}}`, 409, "", "", "has the number 2"},
		{"rule of an older file", "DELETE", "/rules/0?digest=sha256:0", "", 409, "", "", "changed meanwhile"},
		{"rule removed", "DELETE", "/rules/0?digest=DIGEST", "", 200, "    - {verdict: deny, when: \"tool.name == \\\"rm\\\"\"}\n", "", ""},
		{"last rule removed", "DELETE", "/rules/0?digest=DIGEST", "", 200, "policy:\n  rules:\n    - {verdict: deny, when: \"true\"}\n", "", ""},
	})
}

const entries = "/api/v1/config/entries"

// entryStep is a request with its expected effects.
type entryStep struct {
	name, method, path, body string
	status                   int
	old, new                 string // texts in the file: new replaces old
	want                     string // in the answer
}

// editing returns a handler for a project with a configuration file, and a function that reads the file.
func editing(t *testing.T, before string) (http.Handler, func() string) {
	t.Helper()
	h, _, _ := serve(t)
	path := filepath.Join(t.TempDir(), "tenon.yaml")
	if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	o := config.Options{Dir: filepath.Dir(path), NoUser: true, LookupEnv: func(name string) (string, bool) { return "k", name == "KEY" }}
	return httpapi.New(h, httpapi.Config{Editor: writing{o}}), func() string {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
}

// walkEntries sends the requests in order and compares the file after each.
func walkEntries(t *testing.T, handler http.Handler, file func() string, steps []entryStep) {
	t.Helper()
	was := file()
	for _, step := range steps {
		sum := sha256.Sum256([]byte(was))
		digest := strings.NewReplacer("DIGEST", "sha256:"+hex.EncodeToString(sum[:]))
		status, _, text := request(t, handler, step.method, entries+digest.Replace(step.path), "application/json", digest.Replace(step.body))
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
