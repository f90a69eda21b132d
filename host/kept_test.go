package host_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
)

// TestKeptResultsFollowTheConfiguration changes the address that tools of the configuration call. The cached results
// came from the old address, so they are not used for the new one. With the old configuration they are found again.
func TestKeptResultsFollowTheConfiguration(t *testing.T) {
	calls := 0
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { calls++; fmt.Fprint(w, r.URL.Path) }))
	defer web.Close()
	dir := t.TempDir()
	call := func(word string) map[string]string {
		t.Helper()
		flow := fmt.Sprintf("kind: workflow\nversion: 1\nname: flow\ndescription: Gets it.\nsteps: [{id: get, http: {url: %s/flow/%s}}]\nmessage: get\n", web.URL, word)
		if err := os.WriteFile(filepath.Join(dir, "flow.yaml"), []byte(flow), 0o600); err != nil {
			t.Fatal(err)
		}
		file := fmt.Sprintf(`policy: {defaults: {cache: {ttl: 1h, scope: project}}}
tools:
  request: {kind: http, description: Gets it, request: {url: "%s/%s"}}
  flow: {kind: workflow, path: flow.yaml}
`, web.URL, word)
		none := func(string) (string, bool) { return "", false }
		cfg, err := config.Parse("tenon.yaml", []byte(file), config.Options{Dir: dir, LookupEnv: none})
		if err != nil {
			t.Fatal(err)
		}
		h, err := host.Open(t.Context(), host.Config{Home: filepath.Join(dir, "home"), Config: cfg, LookupEnv: none})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close() //nolint:errcheck // nothing is read any more
		got := map[string]string{}
		for _, name := range []string{"request", "flow"} {
			r, _, err := host.CallTool(t.Context(), h, name, json.RawMessage(`{}`), nil)
			if err != nil {
				t.Fatal(name, err)
			}
			got[name] = r.Text()
		}
		return got
	}
	for _, word := range []string{"one", "two", "one"} {
		got := call(word)
		if got["request"] != "/"+word || got["flow"] != "/flow/"+word {
			t.Errorf("%s: %v", word, got)
		}
	}
	if calls != 4 {
		t.Errorf("%d requests, want one for each address", calls)
	}
}
