package wholefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

func TestWrite(t *testing.T) {
	t.Run("new", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "a")
		write(t, path, "new")
		wants(t, path, "new")
		if st, err := os.Stat(path); runtime.GOOS != "windows" && (err != nil || st.Mode().Perm() != 0o600) {
			t.Errorf("mode %v, %v; want 0600", st.Mode(), err)
		}
	})
	t.Run("in place of another", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "a")
		write(t, path, "old")
		write(t, path, "new")
		wants(t, path, "new")
		alone(t, path)
	})
	t.Run("behind a link", func(t *testing.T) {
		dir := t.TempDir()
		path, link := filepath.Join(dir, "a"), filepath.Join(dir, "link")
		write(t, path, "old")
		if err := os.Symlink(path, link); err != nil {
			t.Skip(err) // Windows requires a privilege for links
		}
		write(t, link, "new")
		wants(t, path, "new")
		if st, err := os.Lstat(link); err != nil || st.Mode()&fs.ModeSymlink == 0 {
			t.Errorf("the link became %v, %v", st.Mode(), err)
		}
	})
	t.Run("folder", func(t *testing.T) {
		if err := Write(t.TempDir(), nil, 0o600); err == nil || err.Error() != "it is a folder" {
			t.Errorf("error %v", err)
		}
	})
	t.Run("no folder for it", func(t *testing.T) {
		err := Write(filepath.Join(t.TempDir(), "none", "a"), nil, 0o600)
		if path := (*fs.PathError)(nil); !errors.Is(err, fs.ErrNotExist) || errors.As(err, &path) {
			t.Errorf("error %v, want a not-exist error without a file name", err)
		}
	})
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := Write(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func wants(t *testing.T, path, text string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil || string(b) != text {
		t.Errorf("%s has %q, %v; want %q", path, b, err, text)
	}
}

// alone checks that no other file is left in the folder.
func alone(t *testing.T, path string) {
	t.Helper()
	list, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(list) != 1 {
		t.Errorf("beside %s lies %v, %v", path, list, err)
	}
}
