package sqlite

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
)

var update = flag.Bool("update", false, "write the empty store anew")

// TestEmptyStore compares the embedded empty store with one that the migrations create.
func TestEmptyStore(t *testing.T) {
	made := filepath.Join(t.TempDir(), "tenon.db")
	if err := mustOpen(t, made, migrations).Close(); err != nil {
		t.Fatal(err)
	}
	if *update {
		b, err := os.ReadFile(made)
		if err == nil {
			err = os.WriteFile("empty.packed", pack(b), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		packedEmpty = pack(b)
	}
	copied := filepath.Join(t.TempDir(), "tenon.db")
	if err := linkEmpty(copied); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(schemaOf(t, made), schemaOf(t, copied)); diff != "" {
		t.Errorf("empty.packed is not what the migrations make (-migrations +empty.db); run go test ./store/sqlite -update\n%s", diff)
	}
}

// FuzzUnpack unpacks what pack made of any file, and anything else without a panic.
func FuzzUnpack(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 2, 3, 0})
	f.Add(packedEmpty[:100])
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = unpack(b)
		if got, err := unpack(pack(b)); err != nil || !bytes.Equal(got, b) {
			t.Errorf("unpack(pack(%q)) = %q, %v", b, got, err)
		}
	})
}

// schemaOf reads everything in which empty stores can differ.
func schemaOf(t *testing.T, path string) map[string]string {
	t.Helper()
	s := mustOpen(t, path, migrations)
	got := map[string]string{}
	for _, name := range []string{"user_version", "application_id", "page_size", "auto_vacuum", "encoding", "journal_mode", "integrity_check"} {
		var v string
		if err := s.read.QueryRow("PRAGMA " + name).Scan(&v); err != nil {
			t.Fatal(err)
		}
		got[name] = v
	}
	rows, err := s.read.Query("SELECT type || ' ' || name || ' of ' || tbl_name, coalesce(sql, '') FROM sqlite_schema")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var name, text string
		if err := rows.Scan(&name, &text); err != nil {
			t.Fatal(err)
		}
		got[name] = text
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return got
}

// TestNewStore creates stores in several ways, with the same result.
func TestNewStore(t *testing.T) {
	t.Run("at_once", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "tenon.db")
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				s, err := Open(t.Context(), Config{Path: path})
				if err != nil {
					t.Error(err)
					return
				}
				if err := s.PutSession(t.Context(), tenon.Session{ID: "s"}); err != nil {
					t.Error(err)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		// The store and the leases.
		if left, err := filepath.Glob(path + "*"); err != nil || len(left) != 2 {
			t.Errorf("what is left of %s: %v, %v", path, left, err)
		}
	})
	for _, rest := range []string{"-wal", "-shm", "-journal", "-locks", ".v7.bak"} {
		for _, state := range []string{"missing", "empty"} {
			t.Run("RP-25_"+state+"_next_to_"+rest, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "tenon.db")
				if err := os.WriteFile(path+rest, []byte("rest"), 0o600); err != nil {
					t.Fatal(err)
				}
				if state == "empty" {
					if err := os.WriteFile(path, nil, 0o600); err != nil {
						t.Fatal(err)
					}
				}
				for _, reading := range []bool{false, true} {
					_, err := Open(t.Context(), Config{Path: path, ReadOnly: reading})
					if tenon.ErrorCode(err) != tenon.CodeStore || !strings.Contains(err.Error(), "is "+state) ||
						!strings.Contains(err.Error(), "tenon store restore") {
						t.Errorf("%v", err)
					}
				}
				if got, err := os.ReadFile(path + rest); err != nil || string(got) != "rest" {
					t.Errorf("the rest is %q, %v", got, err)
				}
				if info, err := os.Stat(path); state == "empty" && (err != nil || info.Size() > 0) || state == "missing" && err == nil {
					t.Errorf("the file is %v, %v", info, err)
				}
			})
		}
	}
	t.Run("RP-25_empty_alone", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "tenon.db")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := mustOpen(t, path, migrations).PutSession(t.Context(), tenon.Session{ID: "s"}); err != nil {
			t.Fatal(err)
		}
	})
}

// TestBrief opens a store as a short command does. It leaves its writes in the log, and the next process moves them
// into the file.
func TestBrief(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tenon.db")
	s, err := Open(t.Context(), Config{Path: path, ShortLived: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.closeDBs() }) // the process does not end here
	if err := s.PutSession(t.Context(), tenon.Session{ID: "s"}); err != nil {
		t.Fatal(err)
	}
	putBlob(t, s, make([]byte, 2*leaveUpTo))
	if got, err := s.Session(t.Context(), "s"); err != nil || got.ID != "s" {
		t.Errorf("%+v, %v", got, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path + "-wal"); err != nil || info.Size() > leaveUpTo {
		t.Errorf("a large log stays behind: %v, %v", info, err)
	}
	if _, err := s.Session(t.Context(), "s"); tenon.ErrorCode(err) != tenon.CodeStore {
		t.Errorf("reading after Close: %v", err)
	}
	next := mustOpen(t, path, migrations)
	if got, err := next.Session(t.Context(), "s"); err != nil || got.ID != "s" {
		t.Errorf("the next process: %+v, %v", got, err)
	}
}
