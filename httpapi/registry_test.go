package httpapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/httpapi"
	"github.com/tenonhq/tenon/servers"
)

// TestUX_10_Registry checks that only the configured registry is searched, and that a server from it is added with its
// name in the registry.
func TestUX_10_Registry(t *testing.T) {
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Query().Get("search")+" "+r.URL.Query().Get("limit"))
		_, _ = w.Write([]byte(`{"servers":[{"server":{"name":"io.example/files","description":"Files","version":"1.0",
			"repository":{"url":"https://example.com/files"},"packages":[{"registryType":"npm","identifier":"files",
			"environmentVariables":[{"name":"TOKEN","isSecret":true}],"transport":{"type":"stdio"}}],
			"remotes":[{"type":"sse","url":"https://example.com/sse"}]}},{"server":{"name":"io.example/none"}}]}`))
	}))
	defer s.Close()
	open := func(t *testing.T, c config.Config, e httpapi.Editor) http.Handler {
		h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), Version: "test", Config: &c})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = h.Close() })
		return httpapi.New(h, httpapi.Config{Editor: e})
	}
	c := config.Config{Servers: map[string]servers.Config{"mine": {Command: "none", RegistryName: "io.example/files"}}}
	const at = "/api/v1/config/registry"
	search := func(t *testing.T, h http.Handler, query string) (int, string) {
		status, _, text := request(t, h, http.MethodGet, at+query, "", "")
		if status == http.StatusOK {
			var v any
			d := readDocument(t)
			_ = json.Unmarshal([]byte(text), &v)
			if err := d.schema(t, d.Components.Schemas["RegistryResults"]).Validate(v); err != nil {
				t.Error(err)
			}
		}
		return status, text
	}
	t.Run("none is configured", func(t *testing.T) {
		if status, text := search(t, open(t, c, nil), "?search=x"); status != 200 || strings.TrimSpace(text) != `{"items":[]}` || asked != nil {
			t.Errorf("%d %s, asked %q", status, text, asked)
		}
	})
	c.Registry.URL = s.URL
	h := open(t, c, nil)
	t.Run("found", func(t *testing.T) {
		status, text := search(t, h, "?search=files&limit=5&registry=http://127.0.0.1:1")
		var got httpapi.RegistryResults
		if err := json.Unmarshal([]byte(text), &got); err != nil || status != 200 || len(got.Items) != 2 {
			t.Fatalf("%d %v %s", status, err, text)
		}
		if len(asked) != 1 || asked[0] != "files 5" {
			t.Errorf("asked %q", asked)
		}
		for _, want := range []string{
			`"setups":[{"name":"files","transport":"stdio","command":["npx","-y","files"],"values":[{"name":"TOKEN","value":"${TOKEN}"}]},` +
				`{"name":"files","transport":"sse","url":"https://example.com/sse"}],"configured":["mine"]`,
			`{"name":"io.example/none","setups":[]}`, `"repository":"https://example.com/files"`,
		} {
			if !strings.Contains(text, want) {
				t.Errorf("no %s in %s", want, text)
			}
		}
	})
	for _, query := range []string{"?limit=0", "?limit=101", "?search=" + strings.Repeat("x", 201)} {
		if status, text := search(t, h, query); status != http.StatusBadRequest {
			t.Errorf("%.20s: %d %s", query, status, text)
		}
	}
	t.Run("added", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "tenon.yaml")
		if err := os.WriteFile(path, []byte("version: 1\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		h := open(t, c, writing{config.Options{Dir: filepath.Dir(path), NoUser: true}})
		status, _, text := request(t, h, http.MethodPut, "/api/v1/config/servers/files", "application/json",
			`{"entry":{"command":"npx","args":["-y","files"]},"registry_name":"io.example/files"}`)
		b, err := os.ReadFile(path)
		if err != nil || status != 200 || !strings.Contains(string(b), "    registry_name: io.example/files\n") {
			t.Errorf("%d %v %s\n%s", status, err, text, b)
		}
	})
}
