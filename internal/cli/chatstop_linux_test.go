package cli

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/tenonhq/tenon"
)

// TestUX4_StopWhileReading checks that Ctrl-C ends a question whose file is not read to its end, such as one of a file
// system that hangs. A pipe without a writer stands in for it.
func TestUX4_StopWhileReading(t *testing.T) {
	path := filepath.Join(t.TempDir(), "slow.txt")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := readParts(ctx, []string{path}); tenon.ErrorCode(err) != tenon.CodeCancelled {
		t.Errorf("%v", err)
	}
	// A writer lets the read end, so that the test leaves no goroutine.
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
}
