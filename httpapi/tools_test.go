package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/httpapi"
)

// TestToolListIsTheOneNow requests the list of tools repeatedly while toolsets are added and removed. The cached list
// is never outdated, and its entity tag matches its bytes.
func TestToolListIsTheOneNow(t *testing.T) {
	h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), Model: host.DemoModel, Toolsets: map[string]tenon.Toolset{"a": weather{}},
		LookupEnv: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	api := httpapi.Handler(h)
	get := func(tag string) (int, string, string) {
		req := httptest.NewRequest(http.MethodGet, "/api/v1/tools", nil)
		req.Header.Set("If-None-Match", tag)
		w := httptest.NewRecorder()
		api.ServeHTTP(w, req)
		return w.Code, w.Header().Get("ETag"), w.Body.String()
	}
	status, one, first := get("")
	if status != http.StatusOK || strings.Count(first, `"remote_name":"get_weather"`) != 1 {
		t.Fatalf("%d %s", status, first)
	}
	if status, tag, body := get(one); status != http.StatusNotModified || tag != one || body != "" {
		t.Errorf("the same list: %d %s %q", status, tag, body)
	}
	if err := h.Tools().Add(t.Context(), "b", weather{}); err != nil {
		t.Fatal(err)
	}
	status, two, second := get(one)
	if status != http.StatusOK || two == one || strings.Count(second, `"remote_name":"get_weather"`) != 2 || !strings.Contains(second, `"b_get_weather"`) {
		t.Errorf("another list: %d %s %s", status, two, second)
	}
	if err := h.Servers().Remove(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	if status, tag, body := get(two); status != http.StatusOK || tag != one || body != first {
		t.Errorf("the first list again: %d %s %s", status, tag, body)
	}
	h.Service().Callers().RegisterSecret(tenon.NewSecret("get_weather"))
	if status, tag, body := get(one); status != http.StatusOK || tag == one || strings.Contains(body, "get_weather") {
		t.Errorf("with a secret in it: %d %s %s", status, tag, body)
	}
}
