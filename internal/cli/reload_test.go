package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/table"
)

// spoken collects the output of a process, so that it can be read while the process runs.
type spoken struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *spoken) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

// runQuick is run with short intervals between the checks for changed files, for tests that wait for them.
func runQuick(ctx context.Context, args []string, s stdio) int {
	a := newApp(s)
	a.checkEvery = 20 * time.Millisecond
	return a.main(ctx, args)
}

// await waits for a pattern in the output after the position from. It returns the match and the position after it.
func (s *spoken) await(t *testing.T, from int, pattern string) (string, int) {
	t.Helper()
	re := regexp.MustCompile(pattern)
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		s.mu.Lock()
		text := s.text.String()
		s.mu.Unlock()
		if m := re.FindStringIndex(text[from:]); m != nil {
			return text[from+m[0] : from+m[1]], from + m[1]
		}
	}
	t.Fatalf("%s was not said:\n%s", pattern, s.text.String()[from:])
	return "", 0
}

// agreeTo accepts the held-back changes of a tenon serve on the command line, as its owner does. It returns the exit
// status.
func agreeTo(t *testing.T, args ...string) int {
	t.Helper()
	tenonJSON := func(args ...string) (int, string) {
		var out, said bytes.Buffer
		status := run(t.Context(), args, stdio{strings.NewReader(""), &out, &said})
		if status != 0 {
			t.Logf("%q: %s", args, &said)
		}
		return status, out.String()
	}
	status, text := tenonJSON(append([]string{"proposals", "show", "reload", "-o", "json"}, args...)...)
	var p struct{ Digest string }
	if err := json.Unmarshal([]byte(text), &p); err != nil || status != 0 || p.Digest == "" {
		t.Fatalf("status %d, %v: %s", status, err, text)
	}
	status, _ = tenonJSON(append([]string{"proposals", "accept", "reload", "--digest", p.Digest}, args...)...)
	return status
}

// TestServeReload changes the configuration of a running tenon serve. Additions apply when the owner agrees to them. An
// invalid file changes nothing.
func TestServeReload(t *testing.T) {
	t.Run("TG-18_TG-32", serveReload)
}

const reloadFirst = "servers:\n  t: {url: \"http://127.0.0.1:1/mcp\", load_tools: false}\ntools:\n  one: {server: t, arguments: [{name: a}]}\n"

// reloading is a running tenon serve whose configuration file changes.
type reloading struct {
	t          *testing.T
	dir, file  string
	url, token string
	said       *spoken
	at         int // the position up to which the output was read
}

func (r *reloading) put(text string) {
	r.t.Helper()
	if err := os.WriteFile(r.file, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// await waits for a line of the output that matches.
func (r *reloading) await(pattern string) {
	r.t.Helper()
	_, r.at = r.said.await(r.t, r.at, pattern)
}

// list returns the list of tools.
func (r *reloading) list() string {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, r.url+toolsPath, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+r.token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		r.t.Fatalf("HTTP %d, %v: %s", resp.StatusCode, err, b)
	}
	return string(b)
}

// agreed accepts a change that is held back, and waits until it applies.
func (r *reloading) agreed() {
	r.t.Helper()
	r.await(`held back until you agree`)
	if status := agreeTo(r.t, "-c", r.file, "--home", filepath.Join(r.dir, "home")); status != 0 {
		r.t.Errorf("the agreement has status %d", status)
	}
	r.await(`config reloaded`)
}

// page returns the HTTP status of the workbench's page.
func (r *reloading) page() int {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, r.url+"/", nil)
	if err != nil {
		r.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	return resp.StatusCode
}

// rows writes a tool table with one tool.
func (r *reloading) rows(name, server string) {
	r.t.Helper()
	tool := &table.Tool{Kind: table.MCP, Name: name, Remote: name, Server: server, Message: -1}
	if err := table.WriteTools(r.t.Context(), filepath.Join(r.dir, "t.arrow"), []table.Row{{Tool: tool}}, table.WriteOptions{}); err != nil {
		r.t.Fatal(err)
	}
}

func serveReload(t *testing.T) {
	r := &reloading{t: t, dir: t.TempDir(), said: &spoken{}}
	r.file = filepath.Join(r.dir, "tenon.yaml")
	for k, v := range map[string]string{"HOME": r.dir, "XDG_CONFIG_HOME": "", "XDG_STATE_HOME": "", "TENON_KEYRING": "off", "TENON_NO_PROBE": "1"} {
		t.Setenv(k, v)
	}
	r.put(reloadFirst)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan int, 1)
	go func() {
		done <- runQuick(ctx, []string{"serve", "-c", r.file, "--listen", "127.0.0.1:0", "--home", filepath.Join(r.dir, "home")}, stdio{strings.NewReader(""), io.Discard, r.said})
	}()
	defer func() {
		cancel()
		<-done
	}()
	r.url, r.at = r.said.await(t, 0, `http://127\.0\.0\.1:\d+`)
	token, err := os.ReadFile(filepath.Join(r.dir, "home", "serve.token"))
	if err != nil {
		t.Fatal(err)
	}
	r.token = strings.TrimSpace(string(token))
	if got := r.list(); !strings.Contains(got, `"one"`) || strings.Contains(got, `"two"`) {
		t.Fatalf("before: %s", got)
	}
	r.tools()
	r.workbench()
	r.table()
}

// tools changes the tools of the configuration file. An invalid file changes nothing. A new file that replaces the old
// one is read.
func (r *reloading) tools() {
	r.put(reloadFirst + "  two: {server: t, arguments: [{name: b}]}\n")
	r.agreed()
	good := r.list()
	if !strings.Contains(good, `"two"`) {
		r.t.Errorf("after: %s", good)
	}
	r.put(reloadFirst + "  three: {server: none}\n  four: {sever: t}\n")
	r.await(`tenon\.yaml:5:19: tools\.three\.server: no server`)
	if got := r.list(); got != good {
		r.t.Errorf("a broken file changed the tools: %s", got)
	}
	other := filepath.Join(r.dir, "new.yaml")
	if err := os.WriteFile(other, []byte(reloadFirst+"  five: {server: t, arguments: [{name: b}]}\n"), 0o600); err != nil {
		r.t.Fatal(err)
	}
	if err := os.Rename(other, r.file); err != nil {
		r.t.Fatal(err)
	}
	r.agreed()
	if got := r.list(); !strings.Contains(got, `"five"`) || strings.Contains(got, `"two"`) {
		r.t.Errorf("mended: %s", got)
	}
}

// workbench switches the workbench off.
func (r *reloading) workbench() {
	if got := r.page(); got != http.StatusOK {
		r.t.Errorf("the workbench: HTTP %d", got)
	}
	r.put(reloadFirst + "serve: {ui: false}\n")
	r.await(`config reloaded`)
	if got := r.page(); got == http.StatusOK {
		r.t.Error("the workbench is there although serve.ui is false")
	}
	r.list() // the APIs are there
}

// table changes a tool table that the configuration names. It is treated like the configuration file.
func (r *reloading) table() {
	r.rows("six", "http://127.0.0.1:1/mcp")
	r.put(reloadFirst + "tool_tables: [t.arrow]\n")
	r.agreed()
	if got := r.list(); !strings.Contains(got, `"six"`) || !strings.Contains(got, `"one"`) {
		r.t.Errorf("with a table: %s", got)
	}
	r.rows("seven", "http://127.0.0.1:1/mcp")
	r.agreed()
	good := r.list()
	if !strings.Contains(good, `"seven"`) || strings.Contains(good, `"six"`) {
		r.t.Errorf("with another version of the table: %s", good)
	}
	r.rows("eight", table.CommandURI([]string{"nope"}))
	r.await(`held back until you agree`)
	if status := agreeTo(r.t, "-c", r.file, "--home", filepath.Join(r.dir, "home")); status == 0 {
		r.t.Error("the agreement to a table is one to its commands")
	}
	r.await(`the last good one stays: .*nobody has agreed yet to start nope`)
	if err := os.WriteFile(filepath.Join(r.dir, "t.arrow"), []byte("no table"), 0o600); err != nil {
		r.t.Fatal(err)
	}
	r.await(`tenon\.yaml:5:15: tool_tables\[0\]: .*t\.arrow is not a table`)
	if got := r.list(); got != good {
		r.t.Errorf("a table that nobody agreed to, or a broken one, changed the tools: %s", got)
	}
}

// toolsPath lists the tools in the API of ResearchAI.
const toolsPath = "/mcp/tools"

// TestServeReloadKeepsConnections changes other parts of the configuration, and then a server's entry, while tenon
// serve runs. Only the second change reconnects the server.
func TestServeReloadKeepsConnections(t *testing.T) {
	dir := t.TempDir()
	for k, v := range map[string]string{"HOME": dir, "XDG_CONFIG_HOME": "", "XDG_STATE_HOME": "", "TENON_KEYRING": "off", "TENON_NO_PROBE": "1"} {
		t.Setenv(k, v)
	}
	srv, err := mcp.NewServer(mcp.ServerConfig{Name: "x", Version: "1", Tools: []mcp.ServerTool{{
		Definition: json.RawMessage(`{"name":"look","description":"x","inputSchema":{"type":"object"}}`),
		Call: func(context.Context, *mcp.ToolRequest) (json.RawMessage, error) {
			return json.RawMessage(`{"content":[]}`), nil
		}}}})
	if err != nil {
		t.Fatal(err)
	}
	inner := srv.HTTP(mcp.HTTPConfig{})
	var begun, ended atomic.Int32
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			ended.Add(1)
		} else if r.Method == http.MethodPost && r.Header.Get("Mcp-Session-Id") == "" {
			begun.Add(1)
		}
		inner.ServeHTTP(w, r)
	}))
	defer web.Close()
	file := filepath.Join(dir, "tenon.yaml")
	put := func(entry, rest string) {
		t.Helper()
		text := "servers:\n  t: {url: \"" + web.URL + "\", protocol: \"2025-11-25\", lifecycle: eager" + entry + "}\n" + rest
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("", "")
	var said spoken
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan int, 1)
	go func() {
		done <- runQuick(ctx, []string{"serve", "-c", file, "--listen", "off", "--home", filepath.Join(dir, "home")}, stdio{strings.NewReader(""), io.Discard, &said})
	}()
	const connected = `MCP initialization complete: 1/1`
	_, at := said.await(t, 0, connected)
	for _, c := range []struct {
		entry, rest string
		begun       int32
	}{
		{"", "limits: {max_turns: 7}\n", 1},
		{", exclude: [nothing]", "limits: {max_turns: 7}\n", 1},
		{", exclude: [nothing], headers: {X-A: b}", "limits: {max_turns: 7}\n", 2},
	} {
		put(c.entry, c.rest)
		if c.begun > 1 {
			_, at = said.await(t, at, `held back until you agree`)
			agreeTo(t, "-c", file, "--home", filepath.Join(dir, "home"))
		}
		// These two lines can come in either order.
		_, reloaded := said.await(t, at, `config reloaded`)
		_, at = said.await(t, at, connected)
		at = max(at, reloaded)
		if got := begun.Load(); got != c.begun {
			t.Errorf("after %q: %d sessions were begun, want %d", c.entry, got, c.begun)
		}
	}
	cancel()
	if status := <-done; status != 0 || ended.Load() != begun.Load() {
		t.Errorf("status %d; %d sessions were begun, and %d ended", status, begun.Load(), ended.Load())
	}
}
