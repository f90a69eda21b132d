package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestServersSearch(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("REGISTRY_TOKEN", "t0ken")
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.RequestURI()+" "+r.Header.Get("Authorization"))
		_, _ = w.Write([]byte(`{"servers":[{"server":{"name":"io.example/files","description":"Files\u001b[2J","version":"1.0","packages":[{"registryType":"npm","identifier":"files","transport":{"type":"stdio"}}]}},
			{"server":{"name":"io.example/old","description":"Old","version":"1"},"_meta":{"io.modelcontextprotocol.registry/official":{"status":"deprecated"}}}],"metadata":{}}`))
	}))
	defer s.Close()
	file := filepath.Join(t.TempDir(), "tenon.yaml")
	if err := os.WriteFile(file, []byte("registry: {url: \""+s.URL+"\", secret: {env: REGISTRY_TOKEN}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	status, out, errs := runHere(t, "servers", "search", "files", "-c", file)
	if status != exitOK {
		t.Fatalf("status %d: %s", status, errs)
	}
	if want := "/v0.1/servers?limit=20&search=files&version=latest Bearer t0ken"; len(asked) != 1 || asked[0] != want {
		t.Errorf("asked %q, want %q", asked, want)
	}
	if !strings.Contains(out, "io.example/files\t1.0\t") || !strings.Contains(out, "\ttenon servers add files -- npx -y files\n") || strings.Contains(out, "\x1b") {
		t.Errorf("text: %q", out)
	}
	if !strings.Contains(out, "(deprecated) (cannot be run from here)") {
		t.Errorf("text: %q", out)
	}
	status, out, _ = runHere(t, "servers", "search", "-c", file, "-o", "json")
	var list []map[string]any
	if err := json.Unmarshal([]byte(out), &list); err != nil || status != exitOK || len(list) != 2 || list[0]["name"] != "io.example/files" {
		t.Errorf("json: %d %v %s", status, err, out)
	}
	// A server that is already configured is listed with the name of its entry.
	mine := filepath.Join(t.TempDir(), "tenon.yaml")
	if err := os.WriteFile(mine, []byte("registry: {url: \""+s.URL+"\"}\nservers: {mine: {command: files, registry_name: io.example/files}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, out, errs := runHere(t, "servers", "search", "-c", mine); status != exitOK || !strings.Contains(out, "\t(configured as mine)\n") {
		t.Errorf("status %d: %s %s", status, out, errs)
	}
	if status, out, errs := runHere(t, "servers", "list", "--no-connect", "-c", mine, "-o", "json"); status != exitOK || !strings.Contains(out, `"registry_name":"io.example/files"`) {
		t.Errorf("status %d: %s %s", status, out, errs)
	}
	// The configured token is not sent to a registry that only the command line names.
	if status, _, errs := runHere(t, "servers", "search", "-c", file, "--registry", s.URL+"/v0"); status != exitOK || !strings.HasSuffix(asked[len(asked)-1], " ") {
		t.Errorf("status %d, asked %q: %s", status, asked[len(asked)-1], errs)
	}
	if status, _, errs := runHere(t, "servers", "search", "-c", os.DevNull); status != exitUsage || !strings.Contains(errs, "registry.url") {
		t.Errorf("without a registry: status %d: %s", status, errs)
	}
}
