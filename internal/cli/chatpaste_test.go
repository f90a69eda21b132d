package cli

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUX4_PastedImages checks which pasted texts become mentions of pictures: paths in every form in which terminals
// paste them, and nothing else.
func TestUX4_PastedImages(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"a.png": "\x89PNG\r\n\x1a\n", "my pic.JPG": "\xff\xd8\xff", "it's.gif": "GIF89a",
		"notes.txt": "x", "text.png": "root:x:0:0", "empty.png": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, tt := range map[string]struct{ text, want string }{
		"a path":           {at("a.png"), "@" + at("a.png") + " "},
		"with a line end":  {at("a.png") + "\n", "@" + at("a.png") + " "},
		"a blank":          {at("my pic.JPG"), `@"` + at("my pic.JPG") + `" `},
		"quoted":           {"'" + at("my pic.JPG") + "'", `@"` + at("my pic.JPG") + `" `},
		"double quotes":    {`"` + at("my pic.JPG") + `" `, `@"` + at("my pic.JPG") + `" `},
		"backslashes":      {strings.ReplaceAll(at("my pic.JPG"), " ", `\ `), `@"` + at("my pic.JPG") + `" `},
		"a URL":            {(&url.URL{Scheme: "file", Path: at("my pic.JPG")}).String(), `@"` + at("my pic.JPG") + `" `},
		"two":              {at("a.png") + " '" + at("my pic.JPG") + "'", "@" + at("a.png") + ` @"` + at("my pic.JPG") + `" `},
		"an apostrophe":    {strings.ReplaceAll(at("it's.gif"), "'", `\'`), "@" + at("it's.gif") + " "},
		"no picture":       {at("notes.txt"), at("notes.txt")},
		"one is no file":   {at("a.png") + " " + at("none.png"), at("a.png") + " " + at("none.png")},
		"a text so named":  {at("text.png"), at("text.png")},
		"an empty file":    {at("empty.png"), at("empty.png")},
		"a sentence":       {"look at " + at("a.png"), "look at " + at("a.png")},
		"a folder":         {dir, dir},
		"another machine":  {"file://elsewhere" + at("a.png"), "file://elsewhere" + at("a.png")},
		"an open quote":    {"'" + at("a.png"), "'" + at("a.png")},
		"nothing":          {" ", " "},
		"several lines":    {"one\ntwo", "one\ntwo"},
		"an end backslash": {at("a.png") + ` \`, at("a.png") + ` \`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := pastedImages(tt.text); got != tt.want {
				t.Errorf("%q becomes %q, want %q", tt.text, got, tt.want)
			}
		})
	}
}

// FuzzPastedImages checks that a pasted text stays as it is unless files of its names exist.
func FuzzPastedImages(f *testing.F) {
	for _, text := range []string{"", "a b", `'x' "y"`, `\`, "file:///nonexistent/a.png", "a.png", "\xff.png"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		t.Chdir(t.TempDir())
		if strings.ContainsAny(text, "/~") {
			return // a file of the machine may exist
		}
		if got := pastedImages(text); got != text {
			t.Errorf("%q becomes %q", text, got)
		}
	})
}
