package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestREL_siteArchive packs a site with a stand-in of internal/docsite: the release passes it the version and the
// address, and the archive has what it wrote.
func TestREL_siteArchive(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs tar")
	}
	root := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module m\n", "internal/docsite/main.go": `package main

import (
	"os"
	"path/filepath"
	"strings"
)

func main() {
	to := os.Args[len(os.Args)-1]
	page := filepath.Join(to, os.Args[4], "guide", "a.html")
	_ = os.MkdirAll(filepath.Dir(page), 0o755)
	_ = os.WriteFile(page, []byte(strings.Join(os.Args[1:len(os.Args)-1], " ")), 0o600)
	_ = os.WriteFile(filepath.Join(to, "index.html"), []byte("x"), 0o600)
}
`} {
		if err := writeFile(filepath.Join(root, filepath.FromSlash(name)), []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	p := packaging{version: "1.2.3", to: t.TempDir(), made: time.Unix(1e9, 0).UTC()}
	if err := p.site(t.Context(), "/opt/hugo", root); err != nil {
		t.Fatal(err)
	}
	to := t.TempDir()
	command(t, to, "tar", "-xzf", filepath.Join(p.to, "tenon_1.2.3_docs.tar.gz"))
	got := map[string]string{}
	for _, name := range []string{"index.html", "v1.2.3/guide/a.html"} {
		text, err := os.ReadFile(filepath.Join(to, name))
		if err != nil {
			t.Error(err)
		}
		got[name] = string(text)
	}
	want := map[string]string{"index.html": "x",
		"v1.2.3/guide/a.html": "-hugo /opt/hugo -version v1.2.3 -url " + siteURL}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestReleaseSite unpacks the site of the release: pages, their Markdown, the search and the list of versions.
func TestReleaseSite(t *testing.T) {
	dir, to := released(t), t.TempDir()
	archive := the(t, dir, "tenon_*_docs.tar.gz")
	command(t, to, "tar", "-xzf", archive)
	version := "v" + strings.TrimSuffix(strings.TrimPrefix(filepath.Base(archive), "tenon_"), "_docs.tar.gz")
	for name, want := range map[string]string{"index.html": version + "/index.html", "versions.js": version,
		version + "/guide/operating.html": "systemctl", version + "/guide/operating.md": "systemctl",
		version + "/search.js": "operating", version + "/llms.txt": siteURL + version} {
		text, err := os.ReadFile(filepath.Join(to, name))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s has no %q: %v", name, want, err)
		}
	}
}
