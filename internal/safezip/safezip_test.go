package safezip_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/longtest"
	"github.com/tenonhq/tenon/internal/safezip"
	"github.com/tenonhq/tenon/internal/safezip/ziptest"
)

var limits = safezip.Limits{Files: 10_000, Directory: 4 << 20, Unpacked: 256 << 20}

// hostile returns the hostile archives. They take long to make.
var hostile = sync.OnceValue(func() []ziptest.Case { return ziptest.Hostile("workflow.yaml", "kind: workflow\n") })

// readAll opens an archive and reads all files.
func readAll(data []byte) (map[string]int64, error) {
	a, err := safezip.Open("evil.zip", bytes.NewReader(data), int64(len(data)), limits)
	if err != nil {
		return nil, err
	}
	sizes := map[string]int64{}
	files := a.Files()
	for i := range files {
		if err := files[i].CopyTo(io.Discard); err != nil {
			return nil, err
		}
		sizes[files[i].Name] = files[i].Unpacked
	}
	return sizes, nil
}

func TestHostile(t *testing.T) {
	for _, c := range hostile() {
		t.Run("SEC-F14_"+c.Name, func(t *testing.T) {
			a, err := safezip.Open("evil.zip", bytes.NewReader(c.Zip), int64(len(c.Zip)), limits)
			if c.Deep {
				if err != nil {
					t.Fatalf("the directory is legal, but: %v", err)
				}
				f, ok := a.File("0")
				if !ok {
					t.Fatal("there is no file 0")
				}
				err = f.CopyTo(io.Discard)
			}
			if err == nil || !strings.Contains(err.Error(), c.Want) || !strings.HasPrefix(err.Error(), "evil.zip: ") {
				t.Errorf("error %v, want %s", err, c.Want)
			}
			if code := tenon.ErrorCode(err); code != tenon.CodeInvalid && code != tenon.CodeTooLarge {
				t.Errorf("code %s", code)
			}
			if err != nil && (tenon.Visible(err.Error()) != err.Error() || strings.ContainsAny(err.Error(), "\n\x00")) {
				t.Errorf("hidden characters in %q", err)
			}
		})
	}
}

// TestHostileMemory checks that the bytes that are allocated for a refusal do not depend on what an archive claims.
func TestHostileMemory(t *testing.T) {
	longtest.Skip(t)
	for _, c := range hostile() {
		t.Run("SEC-F14_memory_"+c.Name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if _, err := readAll(c.Zip); err == nil {
				t.Error("it was read")
			}
			runtime.ReadMemStats(&after)
			// This counts all allocations, so it is more than the peak.
			if n := after.TotalAlloc - before.TotalAlloc; n > 8<<20 {
				t.Errorf("%d bytes were allocated", n)
			}
		})
	}
}

func TestLegal(t *testing.T) {
	for _, c := range ziptest.Legal("workflow.yaml", "kind: workflow\n") {
		t.Run("SEC-F14_legal_"+c.Name, func(t *testing.T) {
			got, err := readAll(c.Zip)
			if err != nil {
				t.Fatal(err)
			}
			// archive/zip sees the same files.
			z, err := zip.NewReader(bytes.NewReader(c.Zip), int64(len(c.Zip)))
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]int64{}
			for _, f := range z.File {
				if !strings.HasSuffix(f.Name, "/") {
					want[f.Name] = int64(f.UncompressedSize64)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("SEC-F14_legal_written by Go", func(t *testing.T) {
		if _, err := readAll(written(t, "a", "b/c")); err != nil {
			t.Error(err)
		}
	})
	t.Run("SEC-F14_legal_empty", func(t *testing.T) {
		if got, err := readAll(written(t)); err != nil || len(got) != 0 {
			t.Errorf("%v %v", got, err)
		}
	})
}

// written returns an archive of archive/zip. Each file contains its name.
func written(t testing.TB, names ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range names {
		w, err := z.Create(name)
		if err == nil {
			_, err = io.WriteString(w, name)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestNoZip(t *testing.T) {
	for name, data := range map[string]string{"empty": "", "short": "PK", "text": strings.Repeat("PK nothing", 10_000)} {
		t.Run(name, func(t *testing.T) {
			if _, err := readAll([]byte(data)); !errors.Is(err, safezip.ErrFormat) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestTruncated cuts an archive at every byte, and flips every byte of another one.
func TestTruncated(t *testing.T) {
	data := written(t, "a", "b/c")
	for n := range data {
		if _, err := readAll(data[:n]); err == nil {
			t.Fatalf("the first %d of %d bytes were read", n, len(data))
		}
		changed := slices.Clone(data)
		changed[n] ^= 0xff
		_, _ = readAll(changed) // the only requirement is that it does not panic
	}
}

type failing struct{ io.ReaderAt }

func (failing) ReadAt([]byte, int64) (int, error) { return 0, fs.ErrPermission }

func TestReadError(t *testing.T) {
	_, err := safezip.Open("x.zip", failing{}, 100, limits)
	if tenon.ErrorCode(err) != tenon.CodeStore || !errors.Is(err, fs.ErrPermission) {
		t.Errorf("%v", err)
	}
}

func TestSub(t *testing.T) {
	data := written(t, "table.arrow", "filestore/a", "filestore/d/x", "filestore/d-e", "filestore/d/e/y", "filestore2/z")
	a, err := safezip.Open("b", bytes.NewReader(data), int64(len(data)), limits)
	if err != nil {
		t.Fatal(err)
	}
	files := a.Sub("filestore")
	if err := fstest.TestFS(files, "a", "d/x", "d-e", "d/e/y"); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"z", "../table.arrow", "/a", "d/nothing"} {
		if _, err := files.Open(name); err == nil {
			t.Errorf("%s was opened", name)
		}
	}
	if f, ok := a.File("d/x"); ok {
		t.Errorf("%v is in the archive", f)
	}
}

func TestSpool(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	fill := func(n int) func(io.Writer) error {
		return safezip.From(strings.NewReader(strings.Repeat("x", n)))
	}
	for name, n := range map[string]int{"empty": 0, "in memory": 100, "in a file": 3 << 20} {
		t.Run(name, func(t *testing.T) {
			s, err := safezip.NewSpool("s", 4<<20, fill(n))
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(s.Section())
			if err != nil || len(b) != n || s.Size() != int64(n) {
				t.Errorf("%d bytes, size %d, %v", len(b), s.Size(), err)
			}
			for range 2 {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	if _, err := safezip.NewSpool("s", 2<<20, fill(3<<20)); tenon.ErrorCode(err) != tenon.CodeTooLarge {
		t.Errorf("%v", err)
	}
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	if _, err := safezip.NewSpool("s", 4<<20, fill(3<<20)); tenon.ErrorCode(err) != tenon.CodeStore {
		t.Errorf("%v", err)
	}
}

// FuzzOpen reads arbitrary bytes. Archives that are accepted must have the same files for archive/zip.
func FuzzOpen(f *testing.F) {
	for _, c := range slices.Concat(ziptest.Legal("a", "text"), hostile()) {
		if len(c.Zip) < 1<<16 {
			f.Add(c.Zip)
		}
	}
	small := safezip.Limits{Files: 100, Directory: 1 << 16, Unpacked: 1 << 20}
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := safezip.Open("fuzz", bytes.NewReader(data), int64(len(data)), small)
		if err != nil {
			if tenon.ErrorCode(err) == tenon.CodeInternal || tenon.ErrorCode(err) == tenon.CodeStore {
				t.Errorf("%v", err)
			}
			return
		}
		z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatalf("only safezip reads it: %v", err)
		}
		byName := map[string]*zip.File{}
		for _, e := range z.File {
			byName[e.Name] = e
		}
		files := a.Files()
		for i := range files {
			name := files[i].Name
			if !fs.ValidPath(name) || byName[name] == nil {
				t.Fatalf("the name %q", name)
			}
			var b bytes.Buffer
			if files[i].CopyTo(&b) != nil {
				continue
			}
			r, err := byName[name].Open()
			if err != nil {
				t.Fatal(err)
			}
			other, err := io.ReadAll(r)
			if err != nil || !bytes.Equal(b.Bytes(), other) {
				t.Errorf("'%s' has two contents: %v", name, err)
			}
		}
	})
}
