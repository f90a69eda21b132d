package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
)

// fullDisk is a file on a disk that has room for a few bytes.
type fullDisk struct{ room int }

func (d *fullDisk) Write(b []byte) (int, error) {
	if d.room -= len(b); d.room < 0 {
		return 0, fmt.Errorf("write /x/.table-1: %w", syscall.ENOSPC)
	}
	return len(b), nil
}

// TestUX12_Receive checks the errors of an upload that does not fit, and that an error of the client stays as it is.
func TestUX12_Receive(t *testing.T) {
	h := tablesHandle{&Host{config: &config.Config{}}}
	h.host.config.Tables.MaxBytes = 100
	broke := errors.New("the client left")
	ended, end := context.WithCancel(t.Context())
	end()
	for name, tt := range map[string]struct {
		ctx  context.Context
		in   io.Reader
		disk int
		code tenon.Code
		want string
	}{
		"fits":          {t.Context(), strings.NewReader(strings.Repeat("x", 100)), 100, "", ""},
		"the bound":     {t.Context(), strings.NewReader(strings.Repeat("x", 101)), 200, tenon.CodeTooLarge, "'a.arrow' has more than 100 bytes, as tables.max_bytes says"},
		"the disk":      {t.Context(), strings.NewReader(strings.Repeat("x", 51)), 50, tenon.CodeStore, "the table cannot be stored: the disk is full; free some of it"},
		"the client":    {t.Context(), io.MultiReader(strings.NewReader("x"), failing{broke}), 100, "", broke.Error()},
		"the context":   {ended, strings.NewReader("x"), 100, tenon.CodeCancelled, "the upload was stopped"},
		"nothing comes": {t.Context(), strings.NewReader(""), 100, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := h.receive(tt.ctx, "a.arrow", &fullDisk{tt.disk}, tt.in)
			switch {
			case (err == nil) != (tt.want == ""):
				t.Errorf("%v", err)
			case err == nil:
			case !strings.Contains(err.Error(), tt.want) || tt.code != "" && tenon.ErrorCode(err) != tt.code || strings.Contains(err.Error(), "/x/"):
				t.Errorf("%v (%s)", err, tenon.ErrorCode(err))
			}
		})
	}
}

// failing is a reader that fails.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// almostFull opens a host whose uploaded tables leave room for 100 bytes. The large file has no blocks on the disk.
func almostFull(t *testing.T, name string) (tablesHandle, string) {
	t.Helper()
	home := t.TempDir()
	h, err := Open(t.Context(), Config{Config: &config.Config{}, Home: home, LookupEnv: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	root, err := h.uploads()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(root, 0o700); err != nil {
		t.Fatal(err)
	}
	large := filepath.Join(root, name)
	if err := os.WriteFile(large, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, maxUploads-100); err != nil {
		t.Fatal(err)
	}
	return tablesHandle{h}, root
}

// steps is a reader that calls a function for each Read.
type steps []func(b []byte) (int, error)

func (s *steps) Read(b []byte) (int, error) {
	step := (*s)[0]
	*s = (*s)[1:]
	return step(b)
}

// TestUX12_UploadsAtOnce checks that uploads at the same time share the room, and that a refused one gives its room
// back.
func TestUX12_UploadsAtOnce(t *testing.T) {
	h, root := almostFull(t, "large.arrow")
	sixty := func(b []byte) (int, error) { return copy(b, strings.Repeat("x", 60)), nil }
	end := func([]byte) (int, error) { return 0, io.EOF }
	began, goOn, second := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	_, first := h.PutFrom(t.Context(), "one.arrow", &steps{
		func(b []byte) (int, error) { // the second upload begins before the first has sent anything
			go func() {
				_, err := h.PutFrom(context.WithoutCancel(t.Context()), "two.arrow", &steps{func(b []byte) (int, error) {
					close(began)
					<-goOn
					return sixty(b)
				}, end})
				second <- err
			}()
			<-began
			return sixty(b)
		},
		func([]byte) (int, error) {
			close(goOn)
			if err := <-second; tenon.ErrorCode(err) != tenon.CodeTooLarge || !strings.Contains(err.Error(), "there is no room for more tables") {
				t.Errorf("the second upload: %v", err)
			}
			return 0, io.EOF
		},
	})
	if tenon.ErrorCode(first) != tenon.CodeInvalid { // it is no table
		t.Errorf("the first upload: %v", first)
	}
	if _, err := h.PutFrom(t.Context(), "three.arrow", &steps{sixty, end}); tenon.ErrorCode(err) != tenon.CodeInvalid {
		t.Errorf("the third upload: %v", err)
	}
	if list, err := os.ReadDir(root); err != nil || len(list) != 1 {
		t.Errorf("the folder has %v, %v", list, err)
	}
}

// TestUX12_Leftover checks that the file of an upload of a killed process is removed, and that one which may still be
// written stays.
func TestUX12_Leftover(t *testing.T) {
	for name, tt := range map[string]struct {
		file string
		age  time.Duration
		code tenon.Code
		left bool
	}{
		"stale":     {".table-1.arrow", staleTable + time.Minute, tenon.CodeInvalid, false}, // it is no table
		"arrives":   {".table-1.arrow", time.Minute, tenon.CodeTooLarge, true},
		"old table": {"one.arrow", 1000 * staleTable, tenon.CodeTooLarge, true},
	} {
		t.Run(name, func(t *testing.T) {
			h, root := almostFull(t, tt.file)
			path, changed := filepath.Join(root, tt.file), time.Now().Add(-tt.age)
			if err := os.Chtimes(path, changed, changed); err != nil {
				t.Fatal(err)
			}
			if _, err := h.Put(t.Context(), "new.arrow", make([]byte, 200)); tenon.ErrorCode(err) != tt.code {
				t.Errorf("%v", err)
			}
			if _, err := os.Lstat(path); (err == nil) != tt.left {
				t.Errorf("%v", err)
			}
		})
	}
}
