//go:build unix

package script_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model/script"
)

// TestPipe checks that a pipe, to which nobody writes, is refused and not waited for.
func TestPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, t.TempDir(), "/dev/zero"} {
		_, err := script.Load(path)
		if tenon.ErrorCode(err) != tenon.CodeInvalid || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("%s: %v", path, err)
		}
	}
}
