package web_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/tenonhq/tenon/web"
)

// TestPages requests paths that the workbench has, and paths that it does not have.
func TestPages(t *testing.T) {
	h := web.Files()
	for path, want := range map[string]struct {
		status int
		kind   string
	}{
		"/":                     {200, "text/html; charset=utf-8"},
		"/runs/run_1/1.0":       {200, "text/html; charset=utf-8"},
		"/sessions/ses_1":       {200, "text/html; charset=utf-8"},
		"/tools":                {200, "text/html; charset=utf-8"},
		"/icon.svg":             {200, "image/svg+xml"},
		"/index.html":           {404, ""},
		"/nothing":              {404, ""},
		"/assets/nothing.js":    {404, ""},
		"/assets/../web.go":     {404, ""},
		"/api/v1/runs":          {404, ""},
		"/assets/%2e%2e/web.go": {404, ""},
		"/dist/index.html":      {404, ""},
	} {
		res := get(h, path, "")
		if res.StatusCode != want.status {
			t.Errorf("%s: status %d, want %d", path, res.StatusCode, want.status)
		}
		if want.status == 200 && res.Header.Get("Content-Type") != want.kind {
			t.Errorf("%s is %q, want %q", path, res.Header.Get("Content-Type"), want.kind)
		}
		if h.Has(path) != (res.StatusCode == 200) {
			t.Errorf("%s: Has says %v", path, h.Has(path))
		}
	}
	req := httptest.NewRequest(http.MethodPost, "/", nil)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("a POST: status %d", w.Code)
	}
}

// TestNavigation requests each page of the workbench's navigation by its address, as a bookmark does.
func TestNavigation(t *testing.T) {
	source, err := os.ReadFile("app/src/shell.tsx")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`\{ page: "([^"]*)", title:`).FindAllSubmatch(source, -1)
	if len(found) < 10 {
		t.Fatalf("%d pages are found in shell.tsx", len(found))
	}
	h := web.Files()
	for _, m := range found {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/"+string(m[1]), nil))
		if w.Code != http.StatusOK {
			t.Errorf("/%s is answered with %d", m[1], w.Code)
		}
	}
}

// TestBuiltFiles checks the built pages against their content security policy: all files that index.html names exist,
// no file comes from another origin, and no script is inline.
func TestBuiltFiles(t *testing.T) {
	h := web.Files()
	res := get(h, "/", "")
	page := body(t, res)
	for _, name := range []string{"Content-Security-Policy", "X-Content-Type-Options", "Referrer-Policy", "Cross-Origin-Opener-Policy"} {
		if res.Header.Get(name) == "" {
			t.Errorf("the page has no header %s", name)
		}
	}
	if p := res.Header.Get("Content-Security-Policy"); !strings.Contains(p, "default-src 'none'") || strings.Contains(p, "unsafe") {
		t.Errorf("the policy is %q", p)
	}
	names := regexp.MustCompile(`<(?:script|link|img)[^>]* (?:src|href)="([^"]+)"`).FindAllStringSubmatch(page, -1)
	if len(names) < 3 {
		t.Fatalf("the page names %d files:\n%s", len(names), page)
	}
	total := 0
	for _, n := range names {
		if !strings.HasPrefix(n[1], "/") || !h.Has(n[1]) {
			t.Errorf("the page names %q, which is not here", n[1])
			continue
		}
		res := get(h, n[1], "gzip")
		if strings.HasPrefix(n[1], "/assets/") && !strings.Contains(res.Header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s is not kept by browsers", n[1])
		}
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		total += len(b)
		if res.Header.Get("Content-Encoding") == "gzip" {
			z, err := gzip.NewReader(strings.NewReader(string(b)))
			if err != nil {
				t.Fatal(err)
			}
			plain, err := io.ReadAll(z)
			if err != nil || string(plain) != body(t, get(h, n[1], "gzip;q=0, br")) {
				t.Errorf("%s differs when it is compressed: %v", n[1], err)
			}
		}
	}
	if first, err := h.FirstPage(); err != nil || first < total || first > 350<<10 {
		t.Errorf("the first page has %d bytes, compressed, of which its files have %d; at most 350 KiB: %v", first, total, err)
	}
	if regexp.MustCompile(`<script>|<script [^>]*>[^<]|style="|onload=|javascript:`).MatchString(page) {
		t.Errorf("something runs inline:\n%s", page)
	}
}

func get(h http.Handler, path, encoding string) *http.Response {
	req := httptest.NewRequest(http.MethodGet, "/", nil)
	req.URL.Path = path
	if encoding != "" {
		req.Header.Set("Accept-Encoding", encoding)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	return w.Result()
}

func body(t *testing.T, res *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
