package host

import (
	"os"
	"path/filepath"
	"testing"
)

// Without a usable state folder all hosts of a user share one folder among the temporary
// files; each left one of its own.
func TestSpareFolderIsOne(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, home := range []string{"", file} { // none, and one in which nothing can be made
		c := Config{LookupEnv: func(name string) (string, bool) { return home, name == "HOME" && home != "" }}
		for range 2 {
			h, err := Open(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			if err := h.Close(); err != nil {
				t.Error(err)
			}
		}
		if !Stored(c) {
			t.Errorf("HOME=%q: what was kept is not found again", home)
		}
	}
	entries, err := os.ReadDir(os.TempDir())
	if err != nil || len(entries) != 1 {
		t.Errorf("left are %v %v, want one folder", entries, err)
	}
}

// A folder that others can reach into, or a link, is left alone: its name can be foreseen.
func TestSpareFolderIsOnlyOurs(t *testing.T) {
	for name, lay := range map[string]func(dir string) error{
		"open": func(dir string) error {
			if err := os.Mkdir(dir, 0o700); err != nil {
				return err
			}
			return os.Chmod(dir, 0o777)
		},
		"link": func(dir string) error { return os.Symlink(t.TempDir(), dir) },
		"file": func(dir string) error { return os.WriteFile(dir, nil, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			tmp := t.TempDir()
			if err := lay(filepath.Join(tmp, fallbackName())); err != nil {
				t.Fatal(err)
			}
			if dir, err := makeFallbackDir(tmp); err != nil || filepath.Base(dir) == fallbackName() {
				t.Errorf("used is %s, %v", dir, err)
			}
		})
	}
}
