package httpapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/httpapi"
)

const citing = "steps:\n  - text: Grün.\n    calls: [{name: pass, arguments: {}}]\n    citations: [{title: A, url: 'https://a.example/', start: 0, end: 6}]\n" +
	"  - text: Zwei ü.\n    citations: [{title: B, url: 'https://b.example/', start: 5, end: 8}, {file: f.pdf}]\n" +
	"    media: [{mime_type: image/png, data: iVBORw0KGgo=}]\n"

// TestCitationsOverHTTP checks that clients of each API get the sources of an answer.
func TestCitationsOverHTTP(t *testing.T) {
	allow := func(h *host.Host) http.Handler { return httpapi.New(h, guarded()) }
	ask := func(t *testing.T, h http.Handler, path, body string) string {
		t.Helper()
		status, _, text := request(t, h, "POST", path, "application/json", body, "Authorization", "Bearer "+ownToken)
		if status != 200 {
			t.Fatalf("%d %s", status, text)
		}
		return text
	}
	type annotated struct {
		Choices []struct {
			Message, Delta struct {
				Content     string
				Annotations json.RawMessage
			}
		}
		Tenon struct {
			Run       string
			Citations []tenon.Citation
			Media     []struct{ Artifact string }
		}
	}
	open := func(t *testing.T) (*host.Host, http.Handler) {
		h := knocking(t, strings.Replace(citing, "    calls: [{name: pass, arguments: {}}]\n", "    calls: [{name: nothing, arguments: {}}]\n", 1))
		return h, allow(h)
	}
	want := `[{"type":"url_citation","url_citation":{"start_index":0,"end_index":5,"url":"https://a.example/","title":"A"}},` +
		`{"type":"url_citation","url_citation":{"start_index":12,"end_index":14,"url":"https://b.example/","title":"B"}}]`
	t.Run("MD-4_completion", func(t *testing.T) {
		_, handler := open(t)
		var c annotated
		if err := json.Unmarshal([]byte(ask(t, handler, "/v1/chat/completions", `{"model":"default","messages":[{"role":"user","content":"open"}]}`)), &c); err != nil {
			t.Fatal(err)
		}
		m := c.Choices[0].Message
		if m.Content != "Grün.\n\nZwei ü." || string(m.Annotations) != want {
			t.Errorf("%q has %s", m.Content, m.Annotations)
		}
		if len(c.Tenon.Citations) != 3 || c.Tenon.Citations[2].File != "f.pdf" || len(c.Tenon.Media) != 1 {
			t.Fatalf("%+v", c.Tenon)
		}
		status, _, data := request(t, handler, "GET", "/api/v1/runs/"+c.Tenon.Run+"/artifacts/"+c.Tenon.Media[0].Artifact, "", "", "Authorization", "Bearer "+ownToken)
		if status != 200 || data != "\x89PNG\r\n\x1a\n" {
			t.Errorf("%d %q", status, data)
		}
	})
	t.Run("MD-4_stream", func(t *testing.T) {
		_, handler := open(t)
		s := httptest.NewServer(handler)
		defer s.Close()
		_, text := post(t, s.URL+"/v1/chat/completions", `{"model":"default","stream":true,"messages":[{"role":"user","content":"open"}]}`)
		if n := strings.Count(text, `"delta":{"annotations":`+want+`}`); n != 1 {
			t.Errorf("%d chunks have the citations: %s", n, text)
		}
	})
	t.Run("MD-4_chat", func(t *testing.T) {
		_, handler := open(t)
		var c struct {
			Response  string
			Citations []tenon.Citation
		}
		if err := json.Unmarshal([]byte(ask(t, handler, "/chat", `{"message":"open"}`)), &c); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]tenon.Citation{{Title: "B", URL: "https://b.example/", Start: 5, End: 8}, {File: "f.pdf"}}, c.Citations); diff != "" || c.Response != "Zwei ü." {
			t.Errorf("%q: %s", c.Response, diff)
		}
	})
	t.Run("MD-4_go", func(t *testing.T) {
		h, _ := open(t)
		a, err := h.Ask(t.Context(), "open")
		if err != nil || len(a.Citations) != 2 || len(a.Media) != 1 || a.Text[a.Citations[0].Start:a.Citations[0].End] != "ü." {
			t.Errorf("%+v %v", a, err)
		}
	})
}
