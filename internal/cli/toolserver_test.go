package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestServerOfATool checks that every list of tools says which server each tool belongs to.
func TestServerOfATool(t *testing.T) { t.Run("AI-26", serverOfATool) }

func serverOfATool(t *testing.T) {
	dir := t.TempDir()
	for k, v := range map[string]string{"HOME": dir, "XDG_CONFIG_HOME": "", "XDG_STATE_HOME": "", "TENON_KEYRING": "off", "TENON_NO_PROBE": "1"} {
		t.Setenv(k, v)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var ended []chan int
	begin := func(said *spoken, args ...string) {
		done := make(chan int, 1)
		ended = append(ended, done)
		go func() { done <- run(ctx, args, stdio{strings.NewReader(""), said, said}) }()
	}
	defer func() {
		cancel()
		for _, done := range ended {
			<-done
		}
	}()
	file, home := filepath.Join(dir, "two.yaml"), filepath.Join(dir, "home")
	config := "servers:\n"
	for _, name := range []string{"a", "b"} {
		var said spoken
		begin(&said, "testserver", "--http", "127.0.0.1:0", "--only", "add,greet,echo")
		url, _ := said.await(t, 0, `http://127\.0\.0\.1:\d+\S*`)
		config += "  " + name + ": {url: \"" + url + "\"}\n"
	}
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	a := newApp(stdio{strings.NewReader(""), &out, &errs})
	a.outTTY = true
	if status := a.main(ctx, []string{"tools", "list", "-c", file, "--home", filepath.Join(dir, "other")}); status != 0 {
		t.Fatalf("status %d: %s", status, errs.String())
	}
	checkServerColumn(t, out.String())

	var said spoken
	begin(&said, "serve", "-c", file, "--listen", "127.0.0.1:0", "--home", home)
	url, at := said.await(t, 0, `http://127\.0\.0\.1:\d+`)
	token, err := os.ReadFile(filepath.Join(home, "serve.token"))
	if err != nil {
		t.Fatal(err)
	}
	ask := func(method, path, body string) (int, []byte) {
		t.Helper()
		return askServe(ctx, t, url, strings.TrimSpace(string(token)), method, path, body)
	}
	list := func() []string {
		t.Helper()
		status, b := ask(http.MethodGet, toolsPath, "")
		if status != http.StatusOK {
			t.Fatalf("HTTP %d: %s", status, b)
		}
		return servedTools(t, b)
	}
	if got, want := strings.Join(list(), " "), "a.a_add a.a_echo a.a_greet b.b_add b.b_echo b.b_greet"; got != want {
		t.Errorf("before: %s, want %s", got, want)
	}
	if status := run(ctx, []string{"servers", "remove", "a", "-c", file, "--home", home}, stdio{strings.NewReader(""), &out, &errs}); status != 0 {
		t.Fatalf("status %d: %s", status, errs.String())
	}
	said.await(t, at, `config reloaded`)
	if got, want := strings.Join(list(), " "), "b.add b.echo b.greet"; got != want {
		t.Errorf("after the removal of a: %s, want %s", got, want)
	}
	if status, b := ask(http.MethodPost, toolsPath+"/call", `{"serverId":"a","toolName":"add","arguments":{"a":1,"b":2}}`); status != http.StatusNotFound {
		t.Errorf("a tool of a: HTTP %d: %s", status, b)
	}
	if status, b := ask(http.MethodPost, toolsPath+"/call", `{"serverId":"b","toolName":"add","arguments":{"a":1,"b":2}}`); status != http.StatusOK || !bytes.Contains(b, []byte("3")) {
		t.Errorf("a tool of b: HTTP %d: %s", status, b)
	}
}

// checkServerColumn checks the column with the server of each tool in tools list. In this test, the name of a tool
// begins with the name of its server.
func checkServerColumn(t *testing.T, list string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(list), "\n")
	var servers []string
	for _, line := range lines[1:] {
		cells := strings.Fields(line)
		if !strings.HasPrefix(cells[0], cells[1]+"_") {
			t.Errorf("the server of %s is said to be %s", cells[0], cells[1])
		}
		servers = append(servers, cells[1])
	}
	if head := strings.Fields(lines[0]); head[1] != "SERVER" || strings.Join(servers, "") != "aaabbb" {
		t.Errorf("tools list:\n%s", list)
	}
}

// askServe sends a request to tenon serve and returns the status and the body of the answer.
func askServe(ctx context.Context, t *testing.T, url, token, method, path, body string) (int, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, b
}

// servedTools returns the servers and names of listed tools, sorted.
func servedTools(t *testing.T, b []byte) (names []string) {
	t.Helper()
	var got struct {
		Tools []struct {
			Name     string
			ServerID string `json:"serverId"`
		}
	}
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	for _, tool := range got.Tools {
		names = append(names, tool.ServerID+"."+tool.Name)
	}
	slices.Sort(names)
	return names
}
