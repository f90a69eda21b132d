//go:build unix

package table

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestPipeInStore puts a pipe without a writer where the file of a workflow is expected.
func TestPipeInStore(t *testing.T) {
	const name = "workflow_66666666-7777-4888-9999-aaaaaaaaaaaa"
	table := seed9(t, "w.arrow", &report)
	if err := os.Mkdir(table+".filestore", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(table+".filestore", name), 0o600); err != nil {
		t.Skip(err)
	}
	noFile(t, table, name, "it is not a regular file")
}

// TestRoundtripOfPipe checks that a pipe, which cannot be read twice, is refused.
func TestRoundtripOfPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	for _, name := range []string{path, "-"} {
		if _, err := Roundtrip(t.Context(), name, Options{}, WriteOptions{}); err == nil || !strings.Contains(err.Error(), "reads its table twice") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
