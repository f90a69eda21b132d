package host

import (
	"os"
	"path/filepath"
	"testing"
)

// TestSpareFolderIsOne checks that all hosts of a user share one temporary folder if the state folder is unusable.
// Otherwise each host would leave another folder behind.
func TestSpareFolderIsOne(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, home := range []string{"", file} { // no state folder, and a path in which no folder can be created
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

// TestSpareFolderIsOnlyOurs checks that the shared temporary folder is not used if other users can access it or if it
// is a link, because its name is predictable.
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
