package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// write makes files in a new folder.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const servers = `<!doctype html><html><head><link rel="stylesheet" href="../site.css"></head><body>
<nav><a href="../index.html">Overview</a></nav>
<article><h1 id="servers">Servers</h1><p>A server <!-- not -- run --> is a program.</p>
<h2 id="add">Add <code>one</code> <a class="anchor" href="#add" aria-label="Link">#</a></h2>
<table><tr><td>key</td><td>meaning</td></tr></table><p>Then&nbsp;call it.</p></article></body></html>`

func TestREL_siteReadsPages(t *testing.T) {
	p, err := readPage("guide/servers.html", servers)
	if err != nil {
		t.Fatal(err)
	}
	want := []section{{text: "A server is a program."}, {id: "add", heading: "Add one", text: "key meaning Then call it."}}
	if d := cmp.Diff(want, p.sections, cmp.AllowUnexported(section{})); d != "" || p.title != "Servers" {
		t.Errorf("title %q, sections (-want +got):\n%s", p.title, d)
	}
	if d := cmp.Diff([]link{{"../site.css", true}, {"../index.html", false}, {"#add", false}}, p.links,
		cmp.AllowUnexported(link{})); d != "" {
		t.Errorf("links (-want +got):\n%s", d)
	}
	for name, text := range map[string]string{
		"no heading":    "<article><p>text</p></article>",
		"an id twice":   `<article><h1 id="a">A</h1><p id="a">b</p></article>`,
		"broken markup": "<article><h1>A</h1><p a=>",
	} {
		if _, err := readPage("x.html", text); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestREL_siteLinks(t *testing.T) {
	repo := write(t, map[string]string{"examples/ask.go": ""})
	const blob = "https://github.com/tenonhq/tenon/blob/main/"
	for _, tt := range []struct{ name, body, markdown, want string }{
		{"a page", `<a href="other.html">x</a>`, "[x](other.md)", ""},
		{"a heading", `<a href="other.html#there">x</a><a href="#top">x</a>`, "", ""},
		{"a file of the repository", `<a href="` + blob + `examples/ask.go#L3">x</a>`, "", ""},
		{"another host", `<a href="https://example.com/">x</a>`, "[x](https://example.com/)", ""},
		{"no page", `<a href="none.html">x</a>`, "", "no such file"},
		{"no heading", `<a href="other.html#nowhere">x</a>`, "", `no heading "nowhere"`},
		{"a folder", `<a href=".">x</a>`, "", "no such file"},
		{"outside", `<a href="../../x.html">x</a>`, "", "no such file"},
		{"no file of the repository", `<a href="` + blob + `none.go">x</a>`, "", "the repository has no none.go"},
		{"a picture of another host", `<img src="https://example.com/x.png">`, "", "from another host"},
		{"a script of another host", `<script src="//example.com/x.js"></script>`, "", "from another host"},
		{"a style of another host", `<link rel="stylesheet" href="https://example.com/x.css">`, "", "from another host"},
		{"Markdown that leads nowhere", ``, "[x](none.md#there)", "none.md leads nowhere"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := write(t, map[string]string{
				"guide/a.html": `<article><h1 id="top">A</h1>` + tt.body + `</article>`, "guide/a.md": "# A\n" + tt.markdown,
				"guide/other.html": `<article><h1>B</h1><h2 id="there">C</h2></article>`, "guide/other.md": "# B\n",
			})
			pages, err := readPages(dir)
			if err != nil {
				t.Fatal(err)
			}
			err = checkLinks(dir, repo, pages)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
	t.Run("no Markdown of a page", func(t *testing.T) {
		dir := write(t, map[string]string{"a.html": `<article><h1>A</h1></article>`})
		pages, _ := readPages(dir)
		if err := checkLinks(dir, repo, pages); err == nil || !strings.Contains(err.Error(), "a.md: the site lacks the Markdown") {
			t.Error(err)
		}
	})
}

func TestREL_siteVersions(t *testing.T) {
	order := []string{"v1.10.0", "v1.9.1", "v1.9.1-rc.10", "v1.9.1-rc.2", "v1.9.1-beta", "v1.9.1-2", "v0.1.0", "dev"}
	got := slices.Clone(order)
	slices.Sort(got)
	slices.SortFunc(got, func(a, b string) int { return compareVersions(b, a) })
	if d := cmp.Diff(order, got); d != "" {
		t.Errorf("versions (-want +got):\n%s", d)
	}
	const page = `<article><h1>A</h1></article>`
	dir := write(t, map[string]string{"v0.2.0/index.html": page, "dev/index.html": page, "dev/guide/new.html": page,
		"v0.10.0/index.html": page, "other/index.html": page})
	if err := writeVersions(dir); err != nil {
		t.Fatal(err)
	}
	list, _ := os.ReadFile(filepath.Join(dir, "versions.js"))
	want := `window.tenonVersions = [{"name":"v0.10.0","pages":["index.html"]},{"name":"v0.2.0","pages":["index.html"]},` +
		`{"name":"dev","pages":["guide/new.html","index.html"]}];` + "\n"
	if d := cmp.Diff(want, string(list)); d != "" {
		t.Errorf("versions.js (-want +got):\n%s", d)
	}
	if first, _ := os.ReadFile(filepath.Join(dir, "index.html")); !strings.Contains(string(first), "url=v0.10.0/index.html") {
		t.Errorf("index.html: %s", first)
	}
	for _, name := range []string{"versions.js", "index.html"} { // as after archives of releases are unpacked
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := run(t.Context(), []string{"-list", dir}); err != nil {
		t.Fatal(err)
	}
	if again, _ := os.ReadFile(filepath.Join(dir, "versions.js")); string(again) != string(list) {
		t.Errorf("-list wrote another versions.js:\n%s", again)
	}
	if err := run(t.Context(), []string{"-list", t.TempDir()}); err == nil || !strings.Contains(err.Error(), "no folder of a") {
		t.Errorf("-list of an empty folder: %v", err)
	}
	for _, name := range []string{"", "main", "1.2.3", "v1.2", "v1.2.3/..", "v1.2.3-a b", "../dev"} {
		if err := run(t.Context(), []string{"-version", name, t.TempDir()}); err == nil || !strings.Contains(err.Error(), "want dev") {
			t.Errorf("version %q: %v", name, err)
		}
	}
}

// TestREL_siteKeepsTheOld runs a program in the place of Hugo: a site with an error leaves what is there alone.
func TestREL_siteKeepsTheOld(t *testing.T) {
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("the program in Hugo's place is a shell script")
	}
	repo := write(t, map[string]string{"docs/guide/a.md": "# A\n", "docs/README.md": ""})
	hugo := filepath.Join(t.TempDir(), "hugo")
	script := `#!/bin/sh
while [ "$1" != --destination ]; do shift; done
mkdir -p "$2/guide" "$2/project"
for p in guide/a index project/index; do
  printf '<article><h1>%s</h1><a href="%s">x</a></article>' "$HUGO_PARAMS_URL" "$LINK" >"$2/$p.html"
  echo >"$2/$p.md"
done
`
	if err := os.WriteFile(hugo, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	s := site{hugo: hugo, repo: repo, version: "v1.0.0", url: "https://docs.example.com/", folder: filepath.Join(t.TempDir(), "site")}
	t.Setenv("LINK", "https://example.com/")
	if err := s.build(t.Context()); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(s.folder, "v1.0.0", "guide", "a.html")
	before, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(before), "https://docs.example.com/v1.0.0/") {
		t.Fatalf("%s, %v", before, err)
	}
	t.Setenv("LINK", "none.html")
	if err := s.build(t.Context()); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Fatal(err)
	}
	t.Setenv("LINK", "https://example.com/")
	if err := os.WriteFile(filepath.Join(repo, "docs", "guide", "b.md"), []byte("# B\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := s.build(t.Context()); err == nil || !strings.Contains(err.Error(), "no page of") {
		t.Fatal(err)
	}
	after, err := os.ReadFile(file)
	if d := cmp.Diff(string(before), string(after)); d != "" || err != nil {
		t.Errorf("%v\n%s", err, d)
	}
	if entries, _ := os.ReadDir(s.folder); len(entries) != 3 { // the version, its list, index.html
		t.Errorf("left behind: %v", entries)
	}
}

// TestREL_siteMounts checks that hugo.yaml has every document, without Hugo.
func TestREL_siteMounts(t *testing.T) {
	text, err := os.ReadFile("../../docs/site/hugo.yaml")
	if err != nil {
		t.Fatal(err)
	}
	conf := string(text)
	guide, err := filepath.Glob("../../docs/guide/*.md")
	if err != nil || len(guide) < 5 {
		t.Fatal(guide, err)
	}
	_, order, _ := strings.Cut(conf, "  guide: [")
	order, _, _ = strings.Cut(order, "]")
	listed := strings.FieldsFunc(order, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' })
	for i, g := range guide {
		guide[i] = strings.TrimSuffix(filepath.Base(g), ".md")
	}
	slices.Sort(listed)
	if d := cmp.Diff(guide, listed); d != "" {
		t.Errorf("params.guide of docs/site/hugo.yaml (-docs/guide +list):\n%s", d)
	}
	top, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(top) < 3 {
		t.Fatal(top, err)
	}
	for _, f := range top {
		name := filepath.Base(f)
		if !strings.Contains(conf, "{source: ../"+name+", target: content/project/") || !strings.Contains(conf, "file: docs/"+name+"}") {
			t.Errorf("docs/site/hugo.yaml mounts and lists no docs/%s", name)
		}
	}
}

func FuzzREL_siteReadsPages(f *testing.F) {
	f.Add(servers)
	f.Add("<article><h1>A</h1></article></article><h2>")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := readPage("x.html", text)
		if err == nil && (p.title == "" || len(p.sections) == 0) {
			t.Errorf("%q: %+v", text, p)
		}
	})
}
