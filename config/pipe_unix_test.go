//go:build unix

package config

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tenonhq/tenon"
)

// TestLoadFromPipe reads a configuration from a named pipe. If nobody writes to the pipe, or the writer never closes
// it, Load returns when the caller's context is cancelled.
func TestLoadFromPipe(t *testing.T) {
	pipe := func() string {
		path := filepath.Join(t.TempDir(), "tenon.yaml")
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Skipf("no pipes here: %v", err)
		}
		return path
	}
	load := func(ctx context.Context, path string) (*Config, error) {
		return Load(ctx, Options{File: path, Dir: t.TempDir(), Home: t.TempDir(), NoUser: true, LookupEnv: func(string) (string, bool) { return "", false }})
	}
	t.Run("written", func(t *testing.T) {
		path := pipe()
		written := make(chan error, 1)
		go func() { written <- os.WriteFile(path, []byte("servers: {a: {command: x}}\n"), 0o600) }()
		c, err := load(t.Context(), path)
		if err != nil || len(c.Servers) != 1 {
			t.Errorf("%+v %v", c, err)
		}
		if err := <-written; err != nil {
			t.Error(err)
		}
	})
	given := func(t *testing.T, path string) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { _, err := load(ctx, path); ended <- err }()
		cancel() // wherever it is by now
		if err := <-ended; tenon.ErrorCode(err) != tenon.CodeCancelled {
			t.Errorf("%v, want cancelled", err)
		}
	}
	t.Run("no writer", func(t *testing.T) { given(t, pipe()) })
	t.Run("nothing written", func(t *testing.T) {
		path := pipe()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { _, err := load(ctx, path); ended <- err }()
		w, err := os.OpenFile(path, os.O_WRONLY, 0) // returns when the pipe is being read
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		cancel()
		if err := <-ended; tenon.ErrorCode(err) != tenon.CodeCancelled || !strings.Contains(err.Error(), "tenon.yaml") {
			t.Errorf("%v, want cancelled", err)
		}
	})
}
