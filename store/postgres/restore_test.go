//go:build unix

package postgres

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// TestRestore makes a base backup and an archive of the write-ahead log as described in docs/operations.md, and
// restores the state at a point in time. The store then has the events up to that time, and accepts new ones.
func TestRestore(t *testing.T) {
	c := newFolder(t)
	archive := filepath.Join(c.dir, "archive")
	c.run(t, "initdb", "-D", c.data(), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
	if err := os.Mkdir(archive, 0o700); err != nil {
		t.Fatal(err)
	}
	c.own(t, archive)
	c.start(t, "wal_level=replica", "archive_mode=on", "archive_command=test ! -f "+archive+"/%f && cp %p "+archive+"/%f")
	s := mustOpen(t, Config{DSN: c.dsn()})
	create(t, s, "r")
	backup := newFolder(t)
	backup.run(t, "pg_basebackup", "-D", backup.data(), "-h", c.dir, "-U", "postgres", "-X", "none", "-c", "fast",
		"--no-sync")
	for n := uint64(2); n <= 5; n++ {
		if err := appendTo(t, s, "r", n); err != nil {
			t.Fatal(err)
		}
	}
	c.exec(t, "SELECT pg_create_restore_point('before')")
	if err := appendTo(t, s, "r", 6); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), c.dsn())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var last string
	if err := conn.QueryRow(t.Context(), "SELECT pg_walfile_name(pg_switch_wal())").Scan(&last); err != nil {
		t.Fatal(err)
	}
	wait(t, "the log is archived", func() bool {
		var done bool
		err := conn.QueryRow(t.Context(), "SELECT coalesce(last_archived_wal, '') >= $1 FROM pg_stat_archiver",
			last).Scan(&done)
		return err == nil && done
	})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	c.kill()
	signal := filepath.Join(backup.data(), "recovery.signal")
	if err := os.WriteFile(signal, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	backup.own(t, signal)
	backup.start(t, "restore_command=cp "+archive+"/%f %p", "recovery_target_name=before",
		"recovery_target_action=promote", "archive_mode=off")
	wait(t, "the restored server is promoted", func() bool {
		var err error
		s, err = Open(t.Context(), Config{DSN: backup.dsn()})
		return err == nil
	})
	t.Cleanup(func() { _ = s.Close() })
	wantEvents(t, s, "r", 5)
	if err := appendTo(t, s, "r", 6); err != nil {
		t.Error(err)
	}
}

// TestPartitioned partitions the table of events with docs/operations/partition.sql. Replicas still work, and two
// events of a run still cannot have the same number.
func TestPartitioned(t *testing.T) {
	conf := place(t)
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "operations", "partition.sql"))
	if err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, conf)
	create(t, s, "before")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	admin(t, "DO $do$ BEGIN\n"+strings.ReplaceAll(string(text), "search_path = tenon", "search_path = "+conf.Schema)+
		"\nEND $do$")
	a, b := mustOpen(t, conf), mustOpen(t, conf)
	wantEvents(t, a, "before", 1)
	l := newLoad(t, a, b)
	l.moves(t)
	l.check(t)
	conn, err := pgx.Connect(t.Context(), server(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	_, err = conn.Exec(t.Context(), "INSERT INTO "+conf.Schema+".events SELECT * FROM "+conf.Schema+".events LIMIT 1")
	if pg, ok := errors.AsType[*pgconn.PgError](err); !ok || pg.Code != "23505" {
		t.Errorf("a number of a run has two events: %v", err)
	}
}
