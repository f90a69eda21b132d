package tenon_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// firstColumns returns the first cells of all table rows below a heading, up to the next heading.
func firstColumns(t *testing.T, file, heading string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), "\n"+heading+"\n")
	if !ok {
		t.Fatalf("%s has no heading %q", file, heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var all []string
	for line := range strings.SplitSeq(section, "\n") {
		if cell, ok := strings.CutPrefix(line, "| "); ok {
			cell, _, _ = strings.Cut(cell, " |")
			all = append(all, cell)
		}
	}
	return all
}

// TestArchitecturePackages compares the package table of docs/architecture.md with go list.
func TestArchitecturePackages(t *testing.T) {
	out, err := exec.Command("go", "list", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, p := range strings.Fields(string(out)) {
		p = strings.TrimPrefix(strings.TrimPrefix(p, module), "/")
		if strings.HasPrefix(p, "internal/figures/") || strings.HasPrefix(p, "examples/go/") { // parts of one program; programs
			continue
		}
		want = append(want, p)
	}
	mods, err := filepath.Glob("*/*/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mods {
		want = append(want, filepath.ToSlash(filepath.Dir(m)))
	}
	want[slices.Index(want, "")] = "tenon"
	var got []string
	for _, cell := range firstColumns(t, "docs/architecture.md", "## Packages") {
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cell, -1) {
			got = append(got, m[1])
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the package table of docs/architecture.md (-go list +table):\n%s", d)
	}
}

// TestDependencyDecision compares the table of decision 2 with the direct dependencies in go.mod.
func TestDependencyDecision(t *testing.T) {
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(mod), "require (")
	list, _, _ = strings.Cut(list, ")")
	var want []string
	for line := range strings.SplitSeq(strings.TrimSpace(list), "\n") {
		want = append(want, strings.TrimSpace(line))
	}
	page, err := os.ReadFile("docs/decisions/0002-dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range regexp.MustCompile(`(?m)^\| (\S+/\S+) \| (v\S+) \|`).FindAllStringSubmatch(string(page), -1) {
		got = append(got, m[1]+" "+m[2])
	}
	slices.Sort(want)
	slices.Sort(got)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("docs/decisions/0002-dependencies.md (-go.mod +table):\n%s", d)
	}
}

// TestDocsStayInside checks that no document refers to something outside the repository.
func TestDocsStayInside(t *testing.T) {
	var files []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "docs/*/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	link := regexp.MustCompile(`\]\(([^)#]+)(#[^)]*)?\)`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		// The roadmap is the list of work; it names the acceptance rows, which are kept elsewhere.
		if strings.Contains(string(text), "../shared") && file != filepath.Join("docs", "roadmap.md") {
			t.Errorf("%s refers to ../shared, which is no part of the repository", file)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			target := filepath.Join(filepath.Dir(file), filepath.FromSlash(m[1]))
			if _, err := os.Stat(target); err != nil || strings.HasPrefix(target, "..") {
				t.Errorf("%s: the link to %s leads nowhere", file, m[1])
			}
		}
	}
}
