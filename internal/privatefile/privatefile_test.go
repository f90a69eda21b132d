//go:build unix

package privatefile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenonhq/tenon/internal/privatefile"
)

// TestRead checks which files are refused because of their mode, owner, folder or links.
func TestRead(t *testing.T) {
	const secret = "a secret of the user"
	root := os.Geteuid() == 0
	tests := map[string]struct {
		file, dir fs.FileMode
		uid       int // of the file; -1: ours
		dirUID    int
		link      bool
		needRoot  bool
		want      string // part of the error; if empty, the file is read
	}{
		"only its owner":               {file: 0o600, dir: 0o700, uid: -1, dirUID: -1},
		"only read":                    {file: 0o400, dir: 0o755, uid: -1, dirUID: -1},
		"the group reads":              {file: 0o640, dir: 0o700, uid: -1, dirUID: -1, want: "mode 0640"},
		"the group writes":             {file: 0o620, dir: 0o700, uid: -1, dirUID: -1, want: "mode 0620"},
		"others read":                  {file: 0o604, dir: 0o700, uid: -1, dirUID: -1, want: "mode 0604"},
		"all read":                     {file: 0o644, dir: 0o700, uid: -1, dirUID: -1, want: "mode 0644"},
		"others may start it":          {file: 0o601, dir: 0o700, uid: -1, dirUID: -1, want: "mode 0601"},
		"a folder for all":             {file: 0o600, dir: 0o777, uid: -1, dirUID: -1, want: "can replace files"},
		"a folder for others":          {file: 0o600, dir: 0o707, uid: -1, dirUID: -1, want: "can replace files"},
		"a sticky folder for all":      {file: 0o600, dir: 0o777 | fs.ModeSticky, uid: -1, dirUID: -1},
		"a link to a good file":        {file: 0o600, dir: 0o700, uid: -1, dirUID: -1, link: true},
		"a link to one that all read":  {file: 0o644, dir: 0o700, uid: -1, dirUID: -1, link: true, want: "mode 0644"},
		"a link into a folder for all": {file: 0o600, dir: 0o777, uid: -1, dirUID: -1, link: true, want: "can replace files"},
		"another's file":               {file: 0o600, dir: 0o700, uid: 65534, dirUID: -1, needRoot: true, want: "another user"},
		"another's folder, for root":   {file: 0o600, dir: 0o700, uid: -1, dirUID: 65534, needRoot: true},
		"another's in a sticky folder": {file: 0o600, dir: 0o777 | fs.ModeSticky, uid: 65534, dirUID: -1, needRoot: true, want: "another user"},
	}
	for name, tt := range tests {
		t.Run("SEC-F3_"+name, func(t *testing.T) {
			if tt.needRoot && !root {
				t.Skip("only root gives files away")
			}
			dir := filepath.Join(t.TempDir(), "d")
			path := filepath.Join(dir, "token")
			check := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			check(os.Mkdir(dir, 0o700))
			check(os.WriteFile(path, []byte(secret), 0o600))
			check(os.Chown(path, tt.uid, -1))
			check(os.Chmod(path, tt.file))
			check(os.Chown(dir, tt.dirUID, -1))
			check(os.Chmod(dir, tt.dir))
			if tt.link {
				link := filepath.Join(t.TempDir(), "link")
				check(os.Symlink(path, link))
				path = link
			}
			b, err := privatefile.Read(path, 100)
			var refused *privatefile.Refused
			switch {
			case tt.want == "" && (err != nil || string(b) != secret):
				t.Errorf("%q, %v", b, err)
			case tt.want != "" && (len(b) > 0 || !errors.As(err, &refused) || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("%q, %v; want %q", b, err, tt.want)
			}
			if (privatefile.Check(path) == nil) != (tt.want == "") {
				t.Errorf("Check: %v", privatefile.Check(path))
			}
		})
	}
}

// TestReadBounds checks that the size of a file is limited, and that a folder is refused.
func TestReadBounds(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "token")
	if err := os.WriteFile(path, make([]byte, 101), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := privatefile.Read(path, 100); err == nil || !strings.Contains(err.Error(), "100 bytes") {
		t.Errorf("too large: %v", err)
	}
	if _, err := privatefile.Read(dir, 100); err == nil {
		t.Error("a folder was read")
	}
	if _, err := privatefile.Read(filepath.Join(dir, "none"), 100); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("none: %v", err)
	}
	if err := privatefile.Check(filepath.Join(dir, "none")); err != nil {
		t.Errorf("none: %v", err)
	}
}
