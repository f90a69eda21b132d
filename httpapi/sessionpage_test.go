package httpapi_test

import (
	"encoding/json"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/httpapi"
)

// TestPageAfterDeletedSession checks that the page after a session that was deleted, or used again, follows the page
// before without gaps and repetitions. The id of a session is a cursor, too.
func TestPageAfterDeletedSession(t *testing.T) {
	h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), Model: host.DemoModel,
		LookupEnv: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	api := httpapi.New(h, httpapi.Config{})
	page := func(status int, query string) (ids []string, next string) {
		t.Helper()
		code, _, body := request(t, api, http.MethodGet, "/api/v1/sessions?limit=2"+query, "", "")
		var list struct {
			Items []tenon.Session `json:"items"`
			Next  string          `json:"next_cursor"`
		}
		if code != status || json.Unmarshal([]byte(body), &list) != nil {
			t.Fatalf("%d: %s", code, body)
		}
		for _, s := range list.Items {
			ids = append(ids, s.ID)
		}
		return ids, list.Next
	}
	for i := range 6 {
		if _, err := h.Ask(t.Context(), "question "+strconv.Itoa(i)); err != nil {
			t.Fatal(err)
		}
	}
	all, err := h.Sessions().List(t.Context(), host.SessionFilter{})
	if err != nil || len(all) != 6 {
		t.Fatalf("%d sessions, %v", len(all), err)
	}
	same := func(got []string, want ...tenon.Session) {
		t.Helper()
		for i, s := range want {
			if len(got) != len(want) || got[i] != s.ID {
				t.Errorf("page %v, want %v", got, want)
				return
			}
		}
	}
	first, next := page(200, "")
	same(first, all[0], all[1])
	if err := h.Sessions().Delete(t.Context(), first[1]); err != nil {
		t.Fatal(err)
	}
	second, next := page(200, "&cursor="+next)
	same(second, all[2], all[3])
	if _, err := host.Ask(t.Context(), h, host.Question{Text: "more", Session: second[1]}); err != nil {
		t.Fatal(err)
	}
	third, _ := page(200, "&cursor="+next)
	same(third, all[4], all[5])
	byID, _ := page(200, "&cursor="+all[2].ID)
	same(byID, all[4], all[5])
	page(404, "&cursor="+all[1].ID)
	page(404, "&cursor=x@y")
	page(404, "&cursor=@1")
	whole, _ := page(200, "&cursor=me@example.org@"+strconv.FormatInt(time.Now().Add(time.Hour).UnixNano(), 10))
	same(whole, all[3], all[0])
}
