package sqlite

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/signed"
	"github.com/tenonhq/tenon/store/storetest"
)

func TestMain(m *testing.M) {
	childMain()
	goleak.VerifyTestMain(m)
}

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) func() store.Store {
		// The path contains characters that have a meaning in a URI.
		path := filepath.Join(t.TempDir(), "a b?c#d%e", "tenon.db")
		t.Cleanup(func() { checkSums(t, path) }) // checks the checksums after all writes of the suite
		return func() store.Store { return mustOpen(t, path, migrations) }
	})
}

// TestSignedStore runs the suite about rows with MACs, and the whole suite on a store
// with a key.
func TestSignedStore(t *testing.T) {
	t.Parallel()
	storetest.RunSigned(t, func(t *testing.T) func(*signed.Key) store.Store {
		path := filepath.Join(t.TempDir(), "tenon.db")
		t.Cleanup(func() { checkSums(t, path) })
		return func(key *signed.Key) store.Store {
			s, err := Open(t.Context(), Config{Path: path, Key: key})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			return s
		}
	})
}

func mustOpen(t *testing.T, path string, steps []string) *Store {
	t.Helper()
	older := len(steps) < len(migrations) // an older schema may lack the table in which copies are marked
	s, err := open(t.Context(), Config{Path: path, Moving: older}, steps, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// putBlob stores a blob in a separate run.
func putBlob(t *testing.T, s *Store, data []byte) (digest string) {
	t.Helper()
	err := s.Append(t.Context(), store.Append{Create: &tenon.Run{ID: "blob"}, Run: "blob"})
	if err == nil {
		digest, err = s.PutBlob(t.Context(), "blob", data)
	}
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

func TestModes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "home", "tenon.db")
	s := mustOpen(t, path, migrations)
	if err := s.PutSession(t.Context(), tenon.Session{ID: "s"}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{
		"": 0o700, "tenon.db": 0o600, "tenon.db-wal": 0o600, "tenon.db-shm": 0o600,
	} {
		info, err := os.Stat(filepath.Join(filepath.Dir(path), name))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%q has mode %o, want %o", name, got, want)
		}
	}
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1"} {
		var got string
		if err := s.submit(t.Context(), func(w *writer) error {
			return w.conn.QueryRowContext(context.Background(), "PRAGMA "+pragma).Scan(&got)
		}); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("%s is %s, want %s", pragma, got, want)
		}
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text.db")
	if err := os.WriteFile(text, []byte(strings.Repeat("this is no database\n", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(dir, "foreign.db")
	db, err := sql.Open("sqlite", foreign)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("CREATE TABLE t (x)"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		path, want string
		code       tenon.Code
	}{
		"no path":         {"", "no path", tenon.CodeInvalid},
		"no database":     {text, "put back a backup", tenon.CodeStore},
		"other program's": {foreign, "another program", tenon.CodeStore},
		"file as parent":  {filepath.Join(text, "tenon.db"), "--home", tenon.CodeStore},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(t.Context(), Config{Path: c.path})
			if tenon.ErrorCode(err) != c.code || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want code %s and %q", err, c.code, c.want)
			}
		})
	}
}

// TestFull fills a store whose file may not grow, as on a full disk.
func TestFull(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "tenon.db"), migrations)
	ctx := t.Context()
	if err := s.Append(ctx, store.Append{Create: &tenon.Run{ID: "r"}, Run: "r"}); err != nil {
		t.Fatal(err)
	}
	limit := func(pages string) {
		if err := s.submit(ctx, func(w *writer) error {
			var n int
			return w.conn.QueryRowContext(context.Background(), "PRAGMA max_page_count = "+pages).Scan(&n)
		}); err != nil {
			t.Fatal(err)
		}
	}
	limit("60")
	data := make([]byte, 30<<10)
	var stored uint64
	var err error
	for err == nil && stored < 100 {
		if err = s.Append(ctx, store.Append{Run: "r", Events: []tenon.Event{{Seq: stored + 1, Kind: "k", Data: data}}}); err == nil {
			stored++
		}
	}
	if tenon.ErrorCode(err) != tenon.CodeStore || !strings.Contains(err.Error(), "free some space") {
		t.Fatalf("a full disk: %v", err)
	}
	if r, err := s.Run(ctx, "r"); err != nil || r.Seq != stored {
		t.Errorf("reading goes on: %+v, %v; want %d events", r, err, stored)
	}
	limit("100000")
	if err := s.Append(ctx, store.Append{Run: "r", Events: []tenon.Event{{Seq: stored + 1, Kind: "k", Data: data}}}); err != nil {
		t.Errorf("after space was made: %v", err)
	}
}

// TestDamagedBlob changes a blob with plain SQL.
func TestDamagedBlob(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "tenon.db"), migrations)
	digest := putBlob(t, s, []byte("whole"))
	if err := s.submit(t.Context(), func(w *writer) error {
		_, err := w.conn.ExecContext(context.Background(), "UPDATE blobs SET data = x'00'")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Blob(t.Context(), digest); tenon.ErrorCode(err) != tenon.CodeStore {
		t.Errorf("a damaged blob: %v", err)
	}
}
