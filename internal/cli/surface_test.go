package cli

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// TestSurfaceAnswered replaces the HTTP handler while a request is in progress. The replacement waits until the
// response has begun, and no longer. It does not wait for requests that cannot begin anything.
func TestSurfaceAnswered(t *testing.T) {
	type part struct {
		method string
		begin  func(http.ResponseWriter)
		waits  time.Duration
	}
	for name, p := range map[string]part{
		"silent":  {http.MethodPost, func(http.ResponseWriter) {}, answerTime},
		"header":  {http.MethodPost, func(w http.ResponseWriter) { w.WriteHeader(http.StatusOK) }, time.Second},
		"body":    {http.MethodPost, func(w http.ResponseWriter) { _, _ = io.WriteString(w, "x") }, time.Second},
		"interim": {http.MethodPost, func(w http.ResponseWriter) { w.WriteHeader(http.StatusEarlyHints) }, answerTime},
		"get":     {http.MethodGet, func(http.ResponseWriter) {}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s server
				handle := func(text string) *surface {
					return &surface{local: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
						time.Sleep(time.Second)
						p.begin(w)
						time.Sleep(time.Hour)
						_, _ = io.WriteString(w, text)
					})}
				}
				old := handle("old")
				s.show(old)
				ask := func() string {
					w := httptest.NewRecorder()
					s.at((*surface).atSocket).ServeHTTP(w, httptest.NewRequest(p.method, "/", nil))
					return w.Body.String()
				}
				first := make(chan string, 1)
				go func() { first <- ask() }()
				synctest.Wait()
				s.show(handle("new"))
				began := time.Now()
				old.answered(t.Context())
				if got := time.Since(began); got != p.waits {
					t.Errorf("waited %s, want %s", got, p.waits)
				}
				ended, cut := context.WithCancel(t.Context())
				cut()
				old.answered(ended)
				if got := <-first; got[len(got)-3:] != "old" {
					t.Errorf("the first request got %q", got)
				}
				if got := ask(); got[len(got)-3:] != "new" {
					t.Errorf("a later request got %q", got)
				}
			})
		})
	}
}
