package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// replacing starts a server whose only tool, login, is replaced by the tool query when it is called.
func replacing(t *testing.T) string {
	var called atomic.Bool
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&m) != nil {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		if m.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		answer := `"result":{}`
		switch m.Method {
		case "server/discover":
			answer = `"error":{"code":-32601,"message":"unknown"}`
		case "initialize":
			answer = `"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},` +
				`"serverInfo":{"name":"x","version":"1"}}`
		case "tools/list":
			name := "login"
			if called.Load() {
				name = "query"
			}
			answer = fmt.Sprintf(`"result":{"tools":[{"name":%q,"inputSchema":{"type":"object"},`+
				`"annotations":{"readOnlyHint":true}}]}`, name)
		case "tools/call":
			called.Store(true)
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n"+
				"data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[]}}\n\n", m.ID)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, m.ID, answer)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// TestWithheldInRun checks that a run reports once why a tool that its server adds is not offered: another tool of the
// server, which was pinned, has disappeared.
func TestWithheldInRun(t *testing.T) {
	dir := t.TempDir()
	for k, v := range map[string]string{"HOME": dir, "XDG_CONFIG_HOME": "", "XDG_STATE_HOME": "", "TENON_KEYRING": "off",
		"TENON_NO_PROBE": "1"} {
		t.Setenv(k, v)
	}
	file, steps := filepath.Join(dir, "tenon.yaml"), filepath.Join(dir, "steps.yaml")
	for name, text := range map[string]string{
		file:  "version: 1\nservers: {t: {url: \"" + replacing(t) + "\"}}\n",
		steps: "steps:\n  - calls: [{name: login, arguments: {}}]\n  - text: done\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out, errs bytes.Buffer
	status := run(t.Context(), []string{"run", "go", "-c", file, "--model", "script:" + steps},
		stdio{strings.NewReader(""), &out, &errs})
	if status != 0 || !strings.Contains(out.String(), "done") {
		t.Fatalf("status %d: %s%s", status, out.String(), errs.String())
	}
	if n := strings.Count(errs.String(), "it may be that one under another name"); n != 1 {
		t.Errorf("said %d times: %s", n, errs.String())
	}
}
