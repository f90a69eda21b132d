//go:build unix

package wholefile

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestWriteInPlace checks that a pipe remains a pipe. It stands for a device, which only root can create.
func TestWriteInPlace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	got := make(chan string)
	go func() {
		f, err := os.Open(path)
		if err != nil {
			got <- err.Error()
			return
		}
		defer f.Close()
		b, _ := io.ReadAll(f)
		got <- string(b)
	}()
	write(t, path, "through")
	if text := <-got; text != "through" {
		t.Errorf("the pipe gave %q", text)
	}
	if st, err := os.Lstat(path); err != nil || st.Mode()&fs.ModeNamedPipe == 0 {
		t.Errorf("the pipe became %v, %v", st.Mode(), err)
	}
	alone(t, path)
}
