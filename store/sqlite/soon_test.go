package sqlite

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
)

// TestSoon pins tools in a short-lived store, which delays the write and stores it together with the next operation.
func TestSoon(t *testing.T) {
	pin := []store.Pin{{Server: "s", Remote: "tool", Digest: "d", Definition: []byte("{}")}}
	for name, next := range map[string]func(*Store) error{
		"write": func(s *Store) error { return s.PutSession(context.Background(), tenon.Session{ID: "x"}) },
		"read": func(s *Store) error {
			_, err := s.Pin(context.Background(), "s", "tool")
			return err
		},
		"close": (*Store).Close,
		"many": func(s *Store) error {
			for range maxSoon {
				if err := s.PutPins(context.Background(), pin, true); err != nil {
					return err
				}
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, path := openBriefly(t, nil)
			other := mustOpen(t, path, migrations)
			if err := s.PutPins(t.Context(), pin, true); err != nil {
				t.Fatal(err)
			}
			if n := countPins(t, other); n != 0 {
				t.Errorf("%d pins before the next write", n)
			}
			if err := next(s); err != nil {
				t.Fatal(err)
			}
			if n := countPins(t, other); n != 1 {
				t.Errorf("%d pins after it", n)
			}
		})
	}
	t.Run("one_commit", func(t *testing.T) { testOneCommit(t, pin) })
	t.Run("fails_alone", testFailsAlone)
	t.Run("closed", func(t *testing.T) {
		s, _ := openBriefly(t, nil)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err := s.PutPins(t.Context(), pin, true); tenon.ErrorCode(err) != tenon.CodeStore {
			t.Errorf("a closed store: %v", err)
		}
	})
}

func testOneCommit(t *testing.T, pin []store.Pin) {
	s, path := openBriefly(t, nil)
	if err := s.PutSession(t.Context(), tenon.Session{ID: "before"}); err != nil {
		t.Fatal(err)
	}
	before := commits(t, path)
	if err := s.PutPins(t.Context(), pin, true); err != nil {
		t.Fatal(err)
	}
	if err := s.Append(t.Context(), store.Append{Create: &tenon.Run{ID: "r"}, Run: "r", Events: numbered(1, 2, 0)}); err != nil {
		t.Fatal(err)
	}
	if n := commits(t, path) - before; n != 1 {
		t.Errorf("pins and the first events of a run are %d commits", n)
	}
}

func testFailsAlone(t *testing.T) {
	var said strings.Builder
	s, _ := openBriefly(t, slog.New(slog.NewTextHandler(&said, nil)))
	if err := s.submitSoon(t.Context(), func(w *writer) error {
		_, err := w.exec("INSERT INTO pins (server) VALUES (NULL)")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.PutSession(t.Context(), tenon.Session{ID: "x"}); err != nil {
		t.Errorf("the write that it went with: %v", err)
	}
	if !strings.Contains(said.String(), "NOT NULL") {
		t.Errorf("the log says %q", &said)
	}
}

// openBriefly opens a store in the mode for short-lived processes.
func openBriefly(t *testing.T, log *slog.Logger) (*Store, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tenon.db")
	s, err := Open(t.Context(), Config{Path: path, ShortLived: true, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.Close()
		_ = s.closeDBs() // the process does not end here
	})
	return s, path
}

func countPins(t *testing.T, s *Store) int {
	t.Helper()
	list, err := s.Pins(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// commits counts the frames of the log that end a transaction.
func commits(t *testing.T, path string) (n int) {
	t.Helper()
	log, err := os.ReadFile(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	const header, frame = 32, 24 + 4096
	for at := header; at+frame <= len(log); at += frame {
		if string(log[at+4:at+8]) != "\x00\x00\x00\x00" {
			n++
		}
	}
	return n
}
