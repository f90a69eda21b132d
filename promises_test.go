package tenon_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPromises checks RELIABILITY.md and SECURITY.md: every list item names an existing test in backticks, as
// package.TestName or internal/cli/NAME.txtar.
func TestPromises(t *testing.T) {
	tests := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && p != "." && (strings.HasPrefix(d.Name(), ".") || p == filepath.Join("web", "app")) {
			return filepath.SkipDir
		}
		switch {
		case strings.HasSuffix(p, ".txtar"):
			tests[d.Name()] = true
		case strings.HasSuffix(p, "_test.go"):
			src, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			dir := filepath.ToSlash(filepath.Dir(p))
			for _, m := range declared.FindAllStringSubmatch(string(src), -1) {
				tests[strings.TrimPrefix(dir+".", "..")+m[1]] = true // tests of the root package: TestName
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	quoted := regexp.MustCompile("`([^`]+)`")
	for _, doc := range []string{"RELIABILITY.md", "SECURITY.md"} {
		text, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(strings.ReplaceAll(string(text), "\n  ", " "), "\n") {
			if !strings.HasPrefix(line, "- ") {
				continue
			}
			named := 0
			for _, m := range quoted.FindAllStringSubmatch(line, -1) {
				name, _, _ := strings.Cut(m[1], "/Test") // subtests are not checked
				if !strings.HasPrefix(m[1], "Test") && !strings.Contains(m[1], ".Test") &&
					!strings.Contains(m[1], ".Fuzz") && !strings.HasSuffix(m[1], ".txtar") {
					continue
				}
				named++
				if !tests[name] {
					t.Errorf("%s, item %d names %q, which does not exist", doc, i, m[1])
				}
			}
			if named == 0 {
				t.Errorf("%s: no test is named for: %.80s", doc, line)
			}
		}
	}
}
