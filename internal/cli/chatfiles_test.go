package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenonhq/tenon/host"
)

// TestUX1_LinesAttachFiles checks UX-1: chat in plain lines attaches local files in the same way as chat on the whole
// screen.
func TestUX1_LinesAttachFiles(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for name, text := range map[string]string{"notes.txt": "the notes", "two words.txt": "more"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		text  string
		files int
		said  string
	}{
		"a file":        {"read @notes.txt please", 1, "attached notes.txt, 9 bytes"},
		"quoted":        {`read @"two words.txt"`, 1, "attached two words.txt, 4 bytes"},
		"a wrong name":  {"read @note.txt", 0, "did you mean '@notes.txt'?"},
		"an address":    {"mail me@notes.txt", 0, ""},
		"a folder":      {"read @.", 0, "is a folder"},
		"of the server": {"read @files:notes", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			a := newApp(stdio{&bytes.Buffer{}, &out, &out})
			q := host.Question{Text: c.text}
			if err := a.attachFiles(t.Context(), &q); err != nil {
				t.Fatal(err)
			}
			if len(q.Files) != c.files {
				t.Errorf("%d files are attached, not %d", len(q.Files), c.files)
			}
			if !strings.Contains(out.String(), c.said) || c.said == "" && out.Len() > 0 {
				t.Errorf("it says %q, which does not contain %q", out.String(), c.said)
			}
		})
	}
}
