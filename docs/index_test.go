package docs

import (
	"os"
	"strings"
	"testing"
)

// TestREL_llms checks llms.txt: each page has a link to its file, a title and a sentence.
func TestREL_llms(t *testing.T) {
	links, headings := 0, 0
	for line := range strings.Lines(Index()) {
		switch {
		case strings.HasPrefix(line, "## "):
			headings++
		case strings.HasPrefix(line, "- ["):
			links++
			title, rest, _ := strings.Cut(strings.TrimPrefix(line, "- ["), "](")
			file, sentence, _ := strings.Cut(strings.TrimSpace(rest), "): ")
			if _, err := os.Stat(file); err != nil || title == "" || len(sentence) < 10 || !strings.HasSuffix(sentence, ".") {
				t.Errorf("%q: title %q, file %q, sentence %q, %v", line, title, file, sentence, err)
			}
		}
	}
	if links != len(Pages()) || headings != 2 {
		t.Errorf("%d links for %d pages, %d headings", links, len(Pages()), headings)
	}
}
