package cli

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon/docs"
)

// siteFolder makes a small site, with a file next to it that must not be served.
func siteFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	site := filepath.Join(dir, "site")
	for name, text := range map[string]string{"site/index.html": "first", "site/dev/index.html": "<h1>dev</h1>",
		"site/dev/site.js": "let a;", "site/dev/guide/servers.md": "# Servers", "site/dev/empty/x.txt": "x", "secret": "secret"} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(dir, "secret"), filepath.Join(site, "out.html")); err != nil {
		t.Log(err) // a system without links
	}
	return site
}

func TestREL_docsSite(t *testing.T) {
	handler, from, err := docsHandler(siteFolder(t))
	if err != nil || !strings.HasSuffix(from, "site") {
		t.Fatal(from, err)
	}
	t.Cleanup(func() { _ = handler.(*siteHandler).root.Close() })
	for _, tt := range []struct {
		name, method, path string
		status             int
		kind, body         string
	}{
		{"the first page", "GET", "/", 200, "text/html", "first"},
		{"a version", "GET", "/dev/", 200, "text/html", "<h1>dev</h1>"},
		{"a page by its name", "GET", "/dev/index.html", 200, "text/html", "<h1>dev</h1>"},
		{"a script", "GET", "/dev/site.js", 200, "text/javascript", "let a;"},
		{"a folder without a slash", "GET", "/dev", 302, "text/html", ""},
		{"a folder is not listed", "GET", "/dev/empty/", 404, "text/plain", ""},
		{"no such file", "GET", "/dev/none.html", 404, "text/plain", ""},
		{"out of the folder", "GET", "/../secret", 404, "text/plain", ""},
		{"a link out of the folder", "GET", "/out.html", 404, "text/plain", ""},
		{"a file as a folder", "GET", "/index.html/x", 404, "text/plain", ""},
		{"writing", "POST", "/", 405, "text/plain", ""},
		{"only the headers", "HEAD", "/dev/site.js", 200, "text/javascript", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequest(tt.method, tt.path, nil))
			if w.Code != tt.status || !strings.HasPrefix(w.Header().Get("Content-Type"), tt.kind) || strings.Contains(w.Body.String(), "secret") {
				t.Errorf("%d %s: %s", w.Code, w.Header(), w.Body)
			}
			if tt.status == 200 && w.Body.String() != tt.body {
				t.Errorf("body %q", w.Body)
			}
			if w.Header().Get("Content-Security-Policy") != docsPolicy || w.Header().Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("headers %v", w.Header())
			}
		})
	}
}

// TestREL_docsPages checks that each page that is embedded in the binary is served at its path, and that the index and
// llms.txt link to it.
func TestREL_docsPages(t *testing.T) {
	get := func(path string) (int, string, string) {
		w := httptest.NewRecorder()
		pagesHandler().ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		return w.Code, w.Header().Get("Content-Type"), w.Body.String()
	}
	_, kind, list := get("/")
	_, _, index := get("/llms.txt")
	if kind != "text/html; charset=utf-8" {
		t.Errorf("the list is %s", kind)
	}
	var listed, indexed []string
	for _, m := range regexp.MustCompile(`href="/([^"]+\.md)"`).FindAllStringSubmatch(list, -1) {
		listed = append(listed, m[1])
	}
	for _, m := range regexp.MustCompile(`\]\(([^)]+\.md)\)`).FindAllStringSubmatch(index, -1) {
		indexed = append(indexed, m[1])
	}
	if d := cmp.Diff(indexed, listed); d != "" || len(listed) != len(docs.Pages()) {
		t.Errorf("%d pages; links (-llms.txt +list):\n%s", len(docs.Pages()), d)
	}
	for i, p := range docs.Pages() {
		if status, kind, text := get("/" + listed[i]); status != 200 || text != p.Text || kind != "text/plain; charset=utf-8" {
			t.Errorf("%s: %d %s", listed[i], status, kind)
		}
	}
	if status, _, _ := get("/guide/none.md"); status != 404 {
		t.Errorf("a page that does not exist: %d", status)
	}
}

// TestREL_docsServe runs tenon docs serve until its context ends.
func TestREL_docsServe(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"a site":  {[]string{"--site", siteFolder(t)}, "first"},
		"no site": {nil, "<h1>tenon</h1>"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			r, w := io.Pipe()
			done := make(chan int, 1)
			go func() {
				args := append([]string{"docs", "--serve", "--listen", "127.0.0.1:0"}, tt.args...)
				done <- run(ctx, args, stdio{strings.NewReader(""), io.Discard, w})
				_ = w.Close()
			}()
			line, err := bufio.NewReader(r).ReadString('\n')
			url := regexp.MustCompile(`http://127\.0\.0\.1:\d+/`).FindString(line)
			if err != nil || url == "" {
				t.Fatalf("%q, %v", line, err)
			}
			res, err := http.Get(url)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(res.Body)
			if res.Body.Close() != nil || err != nil || !strings.Contains(string(body), tt.want) {
				t.Errorf("%s, %v", body, err)
			}
			http.DefaultClient.CloseIdleConnections()
			stop()
			go func() { _, _ = io.Copy(io.Discard, r) }()
			if status := <-done; status != exitOK {
				t.Errorf("status %d", status)
			}
		})
	}
	for _, tt := range []struct{ args, want string }{
		{"--serve scripts", "leave scripts out"},
		{"--site .", "need --serve"},
		{"--serve --listen 0.0.0.0:0", "serves this machine only"},
		{"--serve --listen off", "must be ADDRESS:PORT"},
		{"--serve --site testdata", "has no index.html"},
		{"--serve --site testdata/none", "make docs-site builds a site"},
	} {
		if status, _, stderr := runHere(t, append([]string{"docs"}, strings.Fields(tt.args)...)...); status == exitOK ||
			!strings.Contains(stderr, tt.want) {
			t.Errorf("%s: status %d, %s", tt.args, status, stderr)
		}
	}
}
