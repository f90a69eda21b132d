//go:build unix

package table

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tenonhq/tenon"
)

// TestPipesEndWithContext ends opening, reading and writing of named pipes whose other end does nothing.
func TestPipesEndWithContext(t *testing.T) {
	table := func(t *testing.T) []byte {
		var out bytes.Buffer
		if err := WriteTexts(context.Background(), "-", "c", []string{"a"}, []string{"b"},
			WriteOptions{Stdout: &out}); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	stopped := errors.New("stopped")
	tests := map[string]func(t *testing.T, ctx context.Context, stop func(), pipe string) error{
		"open for reading": func(t *testing.T, ctx context.Context, stop func(), pipe string) error {
			stop()
			_, err := Open(ctx, pipe, Options{})
			return err
		},
		"open for writing": func(t *testing.T, ctx context.Context, stop func(), pipe string) error {
			stop()
			return WriteTexts(ctx, pipe, "c", []string{"a"}, []string{"b"}, WriteOptions{})
		},
		"read": func(t *testing.T, ctx context.Context, stop func(), pipe string) error {
			w, err := os.OpenFile(pipe, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			whole := table(t)
			if _, err := w.Write(whole[:len(whole)/2]); err != nil {
				t.Fatal(err)
			}
			go stop()
			r, err := Open(ctx, pipe, Options{})
			if err != nil {
				return err
			}
			defer r.Close()
			_, _, err = r.Count(context.Background())
			return err
		},
		"write": func(t *testing.T, ctx context.Context, stop func(), pipe string) error {
			r, err := os.OpenFile(pipe, os.O_RDWR|syscall.O_NONBLOCK, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			go func() {
				_, _ = io.ReadFull(r, make([]byte, 100)) // something was written
				stop()
			}()
			texts := make([]string, 1000)
			for i := range texts {
				texts[i] = string(bytes.Repeat([]byte("x"), 1000))
			}
			return WriteTexts(ctx, pipe, "c", make([]string, len(texts)), texts, WriteOptions{})
		},
	}
	for name, run := range tests {
		t.Run(name, func(t *testing.T) {
			pipe := filepath.Join(t.TempDir(), "pipe")
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Skipf("no named pipes here: %v", err)
			}
			ctx, cancel := context.WithCancelCause(context.Background())
			err := run(t, ctx, func() { cancel(stopped) }, pipe)
			if tenon.ErrorCode(err) != tenon.CodeCancelled {
				t.Errorf("got %v (%s), want code cancelled", err, tenon.ErrorCode(err))
			}
		})
	}
}

// TestPipeIsRead reads a table from a named pipe whose writer comes later.
func TestPipeIsRead(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skipf("no named pipes here: %v", err)
	}
	wrote := make(chan error, 1)
	go func() {
		wrote <- WriteTexts(context.Background(), pipe, "c", []string{"a"}, []string{"b"}, WriteOptions{})
	}()
	r, err := Open(context.Background(), pipe, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if n, _, err := r.Count(context.Background()); n != 1 || err != nil {
		t.Errorf("got %d rows and %v, want 1 row", n, err)
	}
	if err := <-wrote; err != nil {
		t.Error(err)
	}
	if r.columns[0].Type != arrow.BinaryTypes.String.String() {
		t.Errorf("the column has type %s", r.columns[0].Type)
	}
}
