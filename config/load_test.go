package config

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
)

func env(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

// write writes files into a new folder and returns the folder.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		p := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

var wantLine = regexp.MustCompile(`(?m)^# want: (\d+:\d+): (.*)$`)

// TestBad checks that every malformed file causes exactly the errors in its comments `# want: LINE:COL: TEXT`, in their
// order. Load cannot start a process or open a socket, so nothing runs before a file is valid.
func TestBad(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "bad", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 60 {
		t.Fatalf("%d files, want at least 60", len(files))
	}
	var all strings.Builder
	for _, file := range files {
		t.Run("HD-FR-026_"+strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			wants := wantLine.FindAllStringSubmatch(string(data), -1)
			_, err = Load(context.Background(), Options{File: file, Home: t.TempDir(), LookupEnv: env()})
			var got Errors
			if !errors.As(err, &got) {
				t.Fatalf("error is %T: %v", err, err)
			}
			if tenon.ErrorCode(err) != tenon.CodeConfig {
				t.Errorf("code %s", tenon.ErrorCode(err))
			}
			all.WriteString(err.Error() + "\n")
			if len(got) != len(wants) {
				t.Fatalf("%d errors, want %d:\n%v", len(got), len(wants), err)
			}
			for i, want := range wants {
				if at := fmt.Sprintf("%d:%d", got[i].Line, got[i].Col); at != want[1] {
					t.Errorf("at %s, want %s: %v", at, want[1], got[i])
				}
				if line := fmt.Sprintf("%s: %s", got[i].Path, got[i].Message); !strings.Contains(line, want[2]) {
					t.Errorf("%q is not in %v", want[2], got[i])
				}
			}
		})
	}
	if t.Failed() {
		return
	}
	dir, err := filepath.Abs(filepath.Join("testdata", "bad"))
	if err != nil {
		t.Fatal(err)
	}
	// All messages with their hints in one golden file, for a person to read.
	text := strings.ReplaceAll(all.String(), filepath.ToSlash(dir)+"/", "DIR/")
	golden(t, filepath.Join("testdata", "bad.golden"), []byte(strings.ReplaceAll(text, "testdata/bad/", "")))
}
