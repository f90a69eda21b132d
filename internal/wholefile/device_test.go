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

// What is no file stays what it is: a pipe in the place of a device, which only root can make.
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
