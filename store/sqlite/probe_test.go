package sqlite

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
)

// TestProbe probes stores that are damaged or removed while they are open.
func TestProbe(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(t *testing.T, path string){
		"no_header":  func(t *testing.T, path string) { overwrite(t, path, 0) },
		"all_tables": func(t *testing.T, path string) { overwrite(t, path, 8192) },
		"removed": func(t *testing.T, path string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		},
		"cut": func(t *testing.T, path string) {
			if err := os.Truncate(path, 8192); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run("RP-24_"+name, func(t *testing.T) {
			s, path := probedStore(t)
			if err := s.Probe(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.emptyLog(t.Context()) // otherwise emptying the log later would replace the damaged pages
			harm(t, path)
			s.probe.until = time.Time{}
			if err := s.Probe(t.Context()); tenon.ErrorCode(err) != tenon.CodeStore {
				t.Errorf("the probe says %v", err)
			}
		})
	}
	t.Run("RP-24_sound", testProbeOfSoundStore)
	t.Run("RP-24_cancelled", func(t *testing.T) {
		s, _ := probedStore(t)
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if err := s.Probe(ctx); tenon.ErrorCode(err) != tenon.CodeCancelled {
			t.Errorf("%v", err)
		}
		if err := s.Probe(t.Context()); err != nil {
			t.Errorf("the next caller gets the error of the last one: %v", err)
		}
	})
	t.Run("RP-24_read_only", func(t *testing.T) {
		s, path := probedStore(t)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		r, err := openReading(t.Context(), Config{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.closeDBs() })
		if err := r.Probe(t.Context()); tenon.ErrorCode(err) != tenon.CodeStore {
			t.Error(fmt.Sprint("a store that is only read is ready: ", err))
		}
	})
}

func testProbeOfSoundStore(t *testing.T) {
	s, path := probedStore(t)
	for range 3 {
		s.probe.until = time.Time{}
		if err := s.Probe(t.Context()); err != nil {
			t.Error(err)
		}
	}
	var rows int
	if err := s.read.QueryRow("SELECT count(*) FROM probe").Scan(&rows); err != nil || rows != 1 {
		t.Errorf("%d rows of probes, %v", rows, err)
	}
	if u := s.Usage(); u.FailedWrites != 0 || u.Free == 0 {
		t.Errorf("usage %+v", u)
	}
	// A second probe within a short time returns the result of the last one.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	s.probe.until = time.Now().Add(time.Hour)
	if err := s.Probe(t.Context()); err != nil {
		t.Errorf("the probe looked again: %v", err)
	}
}

// overwrite replaces the file's contents with random bytes from an offset on.
func overwrite(t *testing.T, path string, from int) {
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for i := from; i < len(b); i++ {
		b[i] = byte(random.Uint32())
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteAt(b, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// probedStore returns a store of 20 runs whose log is empty, and its path.
func probedStore(t *testing.T) (*Store, string) {
	path := filepath.Join(t.TempDir(), "tenon.db")
	s := mustOpen(t, path, migrations)
	t.Cleanup(func() { _ = s.Close() })
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 20 {
		plant(t, s, random, i, map[string]uint64{})
	}
	s.emptyLog(t.Context())
	return s, path
}
