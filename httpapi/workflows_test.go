package httpapi_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/httpapi"
	"github.com/tenonhq/tenon/table"
)

const numbersFlow = `kind: workflow
version: 1
name: numbers
description: Doubles the numbers of a table.
parameters:
  by: {type: integer, default: 2, description: How much more}
inputs:
  - {name: in, description: Rows with a number, columns: {n: integer}}
steps:
  - {id: more, sql: 'SELECT n * :by AS n FROM "in"', params: {by: params.by}, tables: [in]}
  - {id: words, template: "{{ steps.more.count }} rows"}
outputs:
  - {name: out, description: The numbers, from: more}
message: words
`

// flows serves a project with a workflow and a table of 1,200 rows.
func flows(t *testing.T) (*host.Host, http.Handler, string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"numbers.yaml": numbersFlow, "tenon.yaml": "version: 1\ntools:\n  numbers: {kind: workflow, path: numbers.yaml}\npolicy:\n  defaults: {redact: [Secret]}\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rows := make([]json.RawMessage, 1200)
	for i := range rows {
		rows[i], _ = json.Marshal(map[string]any{"n": i, "long": strings.Repeat("ü", 900), "secret": "hush"})
	}
	rows[1] = json.RawMessage(`{"n":null,"long":"","secret":null}`)
	if err := table.WriteRows(t.Context(), filepath.Join(dir, "numbers.arrow"), rows, map[string]string{"n": "integer", "long": "string", "secret": "string"}, table.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(t.Context(), config.Options{Dir: dir, NoUser: true, LookupEnv: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	h, err := host.Open(t.Context(), host.Config{Config: cfg, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h, httpapi.Handler(h), dir
}

func ask[T any](t *testing.T, h http.Handler, method, path, body string, want int) (v T) {
	t.Helper()
	status, _, text := request(t, h, method, path, "application/json", body)
	if status != want {
		t.Fatalf("%s %s: %d %s, want %d", method, path, status, text, want)
	}
	if err := json.Unmarshal([]byte(text), &v); err != nil && want != http.StatusNoContent {
		t.Fatalf("%s %s: %v: %s", method, path, err, text)
	}
	return v
}

type listOf[T any] struct{ Items []T }

// TestWorkflowRuns lists a workflow, runs it with a table from each kind of source, and reads its output tables.
func TestWorkflowRuns(t *testing.T) {
	h, handler, dir := flows(t)
	list := ask[listOf[host.WorkflowView]](t, handler, http.MethodGet, "/api/v1/workflows", "", 200).Items
	if len(list) != 1 || list[0].Tool != "numbers" || len(list[0].Graph.Nodes) != 5 || list[0].Inputs[0].Columns["n"] != "integer" {
		t.Fatalf("the workflows are %+v", list)
	}
	one := ask[host.WorkflowView](t, handler, http.MethodGet, "/api/v1/workflows/numbers", "", 200)
	if !strings.Contains(string(one.Parameters), "How much more") {
		t.Errorf("its parameters are %s", one.Parameters)
	}
	data, err := os.ReadFile(filepath.Join(dir, "numbers.arrow"))
	if err != nil {
		t.Fatal(err)
	}
	run := func(body string) string {
		t.Helper()
		r := ask[httpapi.StartResponse](t, handler, http.MethodPost, "/api/v1/workflows/numbers/run", body, 202)
		for _, err := range h.Runs().Events(t.Context(), r.Run.ID, 0) {
			if err != nil {
				t.Fatal(err)
			}
		}
		return r.Run.ID
	}
	id := run(`{"parameters":{"by":3},"inputs":{"in":{"file":"project:numbers.arrow"}}}`)
	tables := ask[listOf[host.RunTable]](t, handler, http.MethodGet, "/api/v1/runs/"+id+"/tables", "", 200).Items
	var roles []string
	var out string
	for _, one := range tables {
		roles = append(roles, one.Role+" "+one.Name)
		if one.Role == "output" {
			out = one.Digest
		}
	}
	if got := strings.Join(roles, ", "); got != "input in, step more, output out" {
		t.Fatalf("the run has the tables %s", got)
	}
	page := ask[host.TablePage](t, handler, http.MethodGet, "/api/v1/runs/"+id+"/tables/"+out+"?skip=1198&limit=5", "", 200)
	if page.Total != 1200 || page.More || len(page.Rows) != 2 || *page.Rows[1].Cells[0] != "3597" {
		t.Errorf("its rows are %+v", page)
	}
	status, _, text := request(t, handler, http.MethodGet, "/api/v1/runs/"+id+"/tables/"+out+"?download=true", "", "")
	if status != 200 || !strings.HasPrefix(text, "ARROW1") && !strings.HasPrefix(text, "\xff\xff\xff\xff") {
		t.Errorf("the download is %d %.40q", status, text)
	}
	if w := ask[host.WorkflowView](t, handler, http.MethodGet, "/api/v1/runs/"+id+"/workflow", "", 200); w.Name != "numbers" || len(w.Graph.Edges) == 0 {
		t.Errorf("the run's workflow is %+v", w)
	}
	if r := ask[host.Replay](t, handler, http.MethodPost, "/api/v1/runs/"+id+"/replay", "", 200); !r.Same || r.Events == 0 {
		t.Errorf("replayed: %+v", r)
	}
	run(`{"inputs":{"in":{"data":"` + base64.StdEncoding.EncodeToString(data) + `"}}}`)
	again := run(`{"inputs":{"in":{"run":"` + id + `","table":"` + out + `"}}}`)

	refusedFlowInputs(t, handler, again)
	// A caller who is not the owner can neither name files nor see the owner's runs.
	flowOfAnother(t, h, id, out)
}

// refusedFlowInputs checks that wrong parameters and inputs are refused.
func refusedFlowInputs(t *testing.T, handler http.Handler, again string) {
	t.Helper()
	for body, want := range map[string]string{
		`{}`:                   "in",
		`{"inputs":{"in":{}}}`: "name one of data, file, and run",
		`{"inputs":{"in":{"file":"project:numbers.arrow","run":"x"}}}`:                        "name one of data, file, and run",
		`{"inputs":{"in":{"data":"bm8="}}}`:                                                   "table",
		`{"inputs":{"in":{"file":"project:numbers.arrow"},"out":{"data":"bm8="}}}`:            "out",
		`{"parameters":{"by":"x"},"inputs":{"in":{"file":"project:numbers.arrow"}}}`:          "by",
		`{"inputs":{"in":{"file":"project:none.arrow"}}}`:                                     "there is no table",
		`{"inputs":{"in":{"run":"` + again + `","table":"` + strings.Repeat("a", 64) + `"}}}`: "has no table",
	} {
		if status, _, text := request(t, handler, http.MethodPost, "/api/v1/workflows/numbers/run", "application/json", body); status < 400 || status >= 500 || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s, want %q", body, status, text, want)
		}
	}
	if status, _, _ := request(t, handler, http.MethodPost, "/api/v1/workflows/none/run", "application/json", `{}`); status != 404 {
		t.Errorf("a workflow that is not there: %d", status)
	}
}

// flowOfAnother checks that another caller can neither name files nor see the owner's runs.
func flowOfAnother(t *testing.T, h *host.Host, id, out string) {
	t.Helper()
	other := httpapi.New(h, httpapi.Config{Authenticate: func(*http.Request) (httpapi.Caller, error) { return httpapi.Caller{Principal: "ann"}, nil }})
	for _, tt := range []struct {
		method, path, body string
		status             int
	}{
		{http.MethodPost, "/api/v1/workflows/numbers/run", `{"inputs":{"in":{"file":"project:numbers.arrow"}}}`, 403},
		{http.MethodPost, "/api/v1/workflows/numbers/run", `{"inputs":{"in":{"run":"` + id + `","table":"` + out + `"}}}`, 404},
		{http.MethodGet, "/api/v1/runs/" + id + "/tables/" + out, "", 404},
		{http.MethodGet, "/api/v1/runs/" + id + "/workflow", "", 404},
		{http.MethodPost, "/api/v1/runs/" + id + "/replay", "", 404},
		{http.MethodGet, "/api/v1/tables", "", 403},
		{http.MethodGet, "/api/v1/tables/rows?file=project:numbers.arrow", "", 403},
		{http.MethodPost, "/api/v1/doctor", "", 403},
	} {
		if status, _, text := request(t, other, tt.method, tt.path, "application/json", tt.body); status != tt.status {
			t.Errorf("%s %s of somebody else: %d %s, want %d", tt.method, tt.path, status, text, tt.status)
		}
	}
}

// TestTableFiles reads table files, uploads one and removes it. A file that is not a table, or that is outside of the
// folder, is refused.
func TestTableFiles(t *testing.T) {
	_, handler, dir := flows(t)
	outside := filepath.Join(t.TempDir(), "outside.arrow")
	data, err := os.ReadFile(filepath.Join(dir, "numbers.arrow"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(outside, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "link.arrow")); err != nil {
		t.Fatal(err)
	}
	rows := "/api/v1/tables/rows?file=" + url.QueryEscape("project:numbers.arrow")
	page := ask[host.TablePage](t, handler, http.MethodGet, rows+"&skip=1&limit=2&whole=true&count=true", "", 200)
	if page.Total != 1200 || !page.More || len(page.Rows) != 2 || page.Rows[0].Cells[0] == nil && page.Rows[0].Cells[1] == nil {
		t.Fatalf("the rows are %+v", page)
	}
	at := map[string]int{}
	for i, c := range page.Columns {
		at[c.Name] = i
	}
	if page.Rows[0].Cells[at["n"]] != nil || *page.Rows[0].Cells[at["long"]] != "" || *page.Rows[1].Cells[at["n"]] != "2" {
		t.Errorf("the cells are %+v", page.Rows)
	}
	if long := *page.Rows[1].Cells[at["long"]]; len(long) > 1010 || !strings.HasSuffix(long, "ü…") {
		t.Errorf("a long cell is cut to %d bytes: %q", len(long), long[len(long)-10:])
	}
	if *page.Rows[1].Cells[at["secret"]] == "hush" || strings.Contains(string(page.Rows[1].Value), "hush") {
		t.Errorf("what a rule redacts is shown: %s", page.Rows[1].Value)
	}
	if p := ask[host.TablePage](t, handler, http.MethodGet, rows+"&skip=5000", "", 200); p.Total != 1200 || len(p.Rows) != 0 || p.More {
		t.Errorf("past the end: %+v", p)
	}
	for _, file := range []string{"", "numbers.arrow", "project:", "project:../outside.arrow", "project:/etc/passwd", "project:tenon.yaml", "project:none.arrow", "uploaded:../tenon.db", "project:.", "elsewhere:x.arrow", "project:link.arrow"} {
		if status, _, text := request(t, handler, http.MethodGet, "/api/v1/tables/rows?file="+url.QueryEscape(file), "", ""); status != 404 && status != 403 {
			t.Errorf("%q: %d %s", file, status, text)
		}
	}
	if _, _, text := request(t, handler, http.MethodGet, "/api/v1/tables/rows?file=project:link.arrow", "", ""); !strings.Contains(text, "is behind a link that leads out of the folder") || !strings.Contains(text, "copy the file") {
		t.Errorf("RP-20_link: %s", text)
	}
	bring := func(name string, b []byte) (int, string) {
		body, _ := json.Marshal(httpapi.TableUpload{Name: name, Data: b})
		status, _, text := request(t, handler, http.MethodPost, "/api/v1/tables", "application/json", string(body))
		return status, text
	}
	if status, text := bring("mine.arrow", data); status != 201 {
		t.Fatalf("brought: %d %s", status, text)
	}
	for _, name := range []string{"Gewächse 5.arrow", "Gewa\u0308chse.arrow", "表.arrow"} {
		if status, text := bring(name, data); status != 201 {
			t.Errorf("RP-20_letters: %q: %d %s", name, status, text)
		}
		if status, _, text := request(t, handler, http.MethodDelete, "/api/v1/tables?file="+url.QueryEscape("uploaded:"+name), "", ""); status != 204 {
			t.Errorf("RP-20_letters: %q: %d %s", name, status, text)
		}
	}
	for name, b := range map[string][]byte{strings.Repeat("ü", 101) + ".arrow": data, strings.Repeat("表", 99) + ".arrow": data, "\u202egnp.arrow": data, "mine.arrow": data, "none.arrow": []byte("no table"), "cut.arrow": data[:len(data)/2], "../up.arrow": data, "x.txt": data, ".hidden.arrow": data, "a/b.arrow": data, "": data} {
		if status, text := bring(name, b); status < 400 || status >= 500 || strings.Contains(text, dir) {
			t.Errorf("%q: %d %s", name, status, text)
		}
	}
	var names []string
	for _, f := range ask[listOf[host.TableFile]](t, handler, http.MethodGet, "/api/v1/tables", "", 200).Items {
		names = append(names, f.ID)
	}
	if got := strings.Join(names, " "); got != "uploaded:mine.arrow project:numbers.arrow" {
		t.Errorf("the tables are %s", got)
	}
	if status, _, text := request(t, handler, http.MethodDelete, "/api/v1/tables?file=project:numbers.arrow", "", ""); status != 403 {
		t.Errorf("a table of the project is removed: %d %s", status, text)
	}
	if status, _, text := request(t, handler, http.MethodDelete, "/api/v1/tables?file=uploaded:mine.arrow", "", ""); status != 204 {
		t.Errorf("removed: %d %s", status, text)
	}
	if n := len(ask[listOf[host.TableFile]](t, handler, http.MethodGet, "/api/v1/tables", "", 200).Items); n != 1 {
		t.Errorf("%d tables are left", n)
	}
}
