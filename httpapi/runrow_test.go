package httpapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/httpapi"
)

// TestRunRowOfACalledRun checks that a client finds a called run by its full id. It also works for a run that has
// called other runs, and if another run's id begins with this id, as run_b/1.10 begins with run_b/1.1.
func TestRunRowOfACalledRun(t *testing.T) {
	ids := []string{"run_b/1.11", "run_b/1.10", "run_b/1.1/3.0", "run_b/1.1/2.0", "run_b/1.1", "run_b/1.0", "run_b", "run_a"} // as the store lists them
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		limit, _ := strconv.Atoi(q.Get("limit"))
		list := []tenon.Run{}
		for _, id := range ids {
			caller := id[:max(0, strings.LastIndexByte(id, '/'))]
			if strings.HasPrefix(id, q.Get("prefix")) && (q.Get("caller") == "" || q.Get("caller") == caller) && len(list) < limit {
				list = append(list, tenon.Run{ID: id, Caller: caller})
			}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"items": list})
	}))
	defer srv.Close()
	c, err := httpapi.NewRemote(srv.URL, tenon.Secret{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for ref, want := range map[string]string{"run_b/1.1": "run_b/1.1", "run_b/1.1/2": "run_b/1.1/2.0", "run_b/1.11": "run_b/1.11", "run_a": "run_a"} {
		if run, err := c.Runs().Get(t.Context(), ref); err != nil || run.ID != want {
			t.Errorf("%s: %s, %v", ref, run.ID, err)
		}
	}
	if _, err := c.Runs().Get(t.Context(), "run_b/1.1/"); tenon.ErrorCode(err) != tenon.CodeConflict {
		t.Errorf("the beginning of two: %v", err)
	}
}

// TestInterruptedRunInTheList checks that the list of runs marks a run on which no process works, and no other runs
// (UX-12).
func TestInterruptedRunInTheList(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "steps.yaml")
	if err := os.WriteFile(file, []byte("steps: [{delay: 1h, text: never}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	open := func() *host.Host {
		h, err := host.Open(t.Context(), host.Config{Home: dir, Model: "script:" + file, Version: "test"})
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	interrupted := func(h *host.Host) bool {
		list := ask[struct{ Items []httpapi.RunRow }](t, httpapi.New(h, httpapi.Config{}), http.MethodGet, "/api/v1/runs", "", 200)
		if len(list.Items) != 1 || list.Items[0].State != tenon.RunWorking {
			t.Fatalf("runs: %+v", list.Items)
		}
		return list.Items[0].Interrupted
	}
	everywhere := func(h *host.Host) []bool {
		api := httpapi.New(h, httpapi.Config{})
		run := ask[struct{ Items []httpapi.RunRow }](t, api, http.MethodGet, "/api/v1/runs", "", 200).Items[0]
		sessions := ask[struct{ Items []httpapi.SessionRow }](t, api, http.MethodGet, "/api/v1/sessions", "", 200)
		return []bool{ask[httpapi.RunInfo](t, api, http.MethodGet, "/api/v1/runs/"+run.ID, "", 200).Interrupted,
			ask[httpapi.SessionInfo](t, api, http.MethodGet, "/api/v1/sessions/"+run.Session, "", 200).List[0].Interrupted,
			sessions.Items[0].Interrupted}
	}
	first := open()
	if _, err := first.Start(t.Context(), host.Question{Text: "hi"}); err != nil {
		t.Fatal(err)
	}
	if interrupted(first) {
		t.Error("a run at work is shown as interrupted")
	}
	if got := everywhere(first); slices.Contains(got, true) {
		t.Errorf("UX-12: a run at work is shown as interrupted: run, session, sessions: %v", got)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := open() // no process resumes the run, because this host does not supervise
	defer second.Close()
	if !interrupted(second) {
		t.Error("a run without a process is not shown as interrupted")
	}
	if got := everywhere(second); slices.Contains(got, false) {
		t.Errorf("UX-12: a run without a process is not shown as interrupted: run, session, sessions: %v", got)
	}
}
