package httpapi_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/httpapi"
)

// TestNarrowGrants permanently allows a call with a condition, a number of uses and a time, and revokes the grant by
// its id.
func TestNarrowGrants(t *testing.T) {
	h, d, _ := serve(t)
	close(d.open)
	handler := httpapi.Handler(h)
	wait := func() string {
		t.Helper()
		_, _, begun := request(t, handler, "POST", "/api/v1/runs", "application/json", `{"question":"open"}`)
		var started httpapi.StartResponse
		if err := json.Unmarshal([]byte(begun), &started); err != nil {
			t.Fatalf("%s: %v", begun, err)
		}
		for range h.Runs().Events(t.Context(), started.Run.ID, 0) { // until it waits
		}
		return "/api/v1/approvals/" + started.Run.ID + "%2F1.0/decide"
	}
	path := wait()
	for name, body := range map[string]string{
		"no time":            `{"verdict":"allow","remember":"always","for":"tomorrow"}`,
		"a time that is 0":   `{"verdict":"allow","remember":"always","for":"0s"}`,
		"a past time":        `{"verdict":"allow","remember":"always","for":"-1h"}`,
		"no CEL":             `{"verdict":"allow","remember":"always","if":"args.x ="}`,
		"undecidable":        `{"verdict":"allow","remember":"always","if":"args.nothing == 1"}`,
		"negative":           `{"verdict":"allow","remember":"always","uses":-1}`,
		"for the session":    `{"verdict":"allow","remember":"session","uses":1}`,
		"a condition, once":  `{"verdict":"allow","if":"true"}`,
		"another case":       `{"verdict":"allow","remember":"always","If":"true"}`,
		"a text for a count": `{"verdict":"allow","remember":"always","uses":"1"}`,
	} {
		if status, _, got := request(t, handler, "POST", path, "application/json", body); status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", name, status, got)
		}
	}
	grants := func() (list []host.Grant) {
		t.Helper()
		_, _, got := request(t, handler, "GET", "/api/v1/grants", "", "")
		var l struct{ Items []host.Grant }
		if err := json.Unmarshal([]byte(got), &l); err != nil {
			t.Fatalf("%s: %v", got, err)
		}
		return l.Items
	}
	if list := grants(); len(list) != 0 {
		t.Fatalf("%+v", list)
	}
	if status, _, got := request(t, handler, "POST", path, "application/json", `{"verdict":"allow","remember":"always","if":"size(args) < 3","uses":5,"for":"30d"}`); status != http.StatusOK {
		t.Fatalf("%d %s", status, got)
	}
	list := grants()
	if len(list) != 1 || list[0].Condition != "size(args) < 3" || list[0].Uses != 5 || list[0].Expires.IsZero() || list[0].State != host.GrantActive || list[0].Server == "" || list[0].Definition == "" {
		t.Fatalf("%+v", list)
	}
	revoke := func(body string) int {
		t.Helper()
		status, _, _ := request(t, handler, "POST", "/api/v1/grants/revoke", "application/json", body)
		return status
	}
	for body, want := range map[string]int{`{"id":"gr_none"}`: 404, `{"server":"house"}`: 404, `{}`: 404, `{"server":"` + strings.ToUpper(list[0].Name) + `","remote_name":"` + list[0].Remote + `"}`: 404} {
		if got := revoke(body); got != want {
			t.Errorf("%s: %d", body, got)
		}
	}
	if got := revoke(`{"id":"` + list[0].ID + `"}`); got != http.StatusNoContent || len(grants()) != 0 {
		t.Errorf("%d, %+v", got, grants())
	}
}
