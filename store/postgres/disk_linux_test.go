package postgres

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
)

// smallDisk mounts a tmpfs of 24 MB in the folder of a server, and returns its path.
func smallDisk(t *testing.T, c *cluster) string {
	t.Helper()
	dir := filepath.Join(c.dir, "small")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=24m,mode=0777"); err != nil {
		t.Skip("a file system of limited size cannot be mounted here: " + err.Error())
	}
	t.Cleanup(func() {
		c.kill()
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	c.own(t, dir)
	return dir
}

// TestWALFull_PG fills the disk of the write-ahead log while two replicas write. The server ends itself, because it
// cannot write its log any more. After space was freed, it is started again: the replicas continue by themselves, and
// each write is stored exactly once.
func TestWALFull_PG(t *testing.T) {
	c := newFolder(t)
	dir := smallDisk(t, c)
	c.run(t, "initdb", "-D", c.data(), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync",
		"--waldir="+filepath.Join(dir, "wal"), "--wal-segsize=1")
	settings := []string{"wal_recycle=off", "min_wal_size=2MB", "max_wal_size=1GB", "checkpoint_timeout=1h"}
	c.start(t, settings...)
	conf := Config{DSN: c.dsn(), Lease: time.Second}
	l := newLoad(t, mustOpen(t, conf), mustOpen(t, conf))
	l.moves(t)
	filler := filepath.Join(dir, "filler")
	f, err := os.Create(filler)
	if err != nil {
		t.Fatal(err)
	}
	block := make([]byte, 64<<10)
	for err == nil {
		_, err = f.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	wait(t, "the server ends itself", func() bool { return !c.logs() })
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	c.kill() // it may be trying to recover
	c.start(t, settings...)
	l.moves(t)
	l.check(t)
}

// logs writes a megabyte into the write-ahead log, so that the test does not depend on the speed of the load. It reports
// whether the server could.
func (c *cluster) logs() bool {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, c.dsn())
	if err != nil {
		return false
	}
	_, err = conn.Exec(ctx, "SELECT pg_logical_emit_message(true, 'x', repeat('x', 1000000))")
	_ = conn.Close(ctx) // err says more
	return err == nil
}

// TestDiskFull_PG fills the disk of the tables: a small tmpfs with a tablespace. An append is refused and stores
// nothing, reads work, and appends work again after space was freed. A full disk of the write-ahead log is another
// fault: see TestWALFull_PG.
func TestDiskFull_PG(t *testing.T) {
	c := newCluster(t)
	dir := smallDisk(t, c)
	filler := filepath.Join(dir, "filler")
	if err := os.WriteFile(filler, make([]byte, 12<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	tables := filepath.Join(dir, "tables")
	if err := os.Mkdir(tables, 0o700); err != nil {
		t.Fatal(err)
	}
	c.own(t, tables)
	c.exec(t, "CREATE TABLESPACE small LOCATION '"+tables+"'")
	s := mustOpen(t, Config{DSN: c.dsn() + " default_tablespace=small", Schema: "full"})
	create(t, s, "r")
	stored, err := 1, error(nil)
	for ; err == nil; stored++ {
		if stored > 200 {
			t.Fatal("the disk does not get full")
		}
		err = s.Append(t.Context(), store.Append{Run: "r", Events: []tenon.Event{bigEvent(uint64(stored + 1))}})
	}
	stored-- // the last one was refused
	if tenon.ErrorCode(err) != tenon.CodeStore || !strings.Contains(err.Error(), "free some") {
		t.Errorf("error %v", err)
	}
	if s.Usage().FailedWrites == 0 {
		t.Error("the failed write was not counted")
	}
	wantEvents(t, s, "r", stored)
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if err := s.Append(t.Context(), store.Append{Run: "r",
		Events: []tenon.Event{bigEvent(uint64(stored + 1))}}); err != nil {
		t.Errorf("after space was freed: %v", err)
	}
	wantEvents(t, s, "r", stored+1)
}

// bigEvent returns an event with 192 KiB of data that cannot be compressed.
func bigEvent(seq uint64) tenon.Event {
	raw := make([]byte, 192<<10)
	_, _ = rand.Read(raw) // never fails
	e := event(seq)
	e.Data, _ = json.Marshal(base64.StdEncoding.EncodeToString(raw)) // a text
	return e
}
