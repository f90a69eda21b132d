package httpapi

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestUploadChecked checks that the time of a body does not bound what happens to the table after it has arrived, also
// if the end of the body was read twice.
func TestUploadChecked(t *testing.T) {
	const bodyTime = 500 * time.Millisecond
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		c := &call{api: &api{cfg: Config{BodyTime: bodyTime}}, w: w, req: req}
		body := &slowBody{c: c, control: http.NewResponseController(w)}
		for _, want := range []string{"a table", ""} {
			if b, err := io.ReadAll(body); err != nil || string(b) != want {
				t.Errorf("%q, %v", b, err)
			}
		}
		select {
		case <-req.Context().Done():
			t.Errorf("the check of the table was stopped: %v", context.Cause(req.Context()))
		case <-time.After(3 * bodyTime):
		}
	}))
	defer s.Close()
	for name, body := range map[string]io.Reader{
		"with a length":    strings.NewReader("a table"),
		"without a length": io.MultiReader(strings.NewReader("a table")),
	} {
		t.Run(name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, s.URL, body)
			if err != nil {
				t.Fatal(err)
			}
			res, err := s.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
		})
	}
}
