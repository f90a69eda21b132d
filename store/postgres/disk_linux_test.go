package postgres

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
)

// TestDiskFull_PG fills the disk of the tables: a small tmpfs with a tablespace. An append is refused and stores
// nothing, reads work, and appends work again after space was freed. A full disk of the write-ahead log is another
// fault: the server ends itself then, as in TestServerCrash.
func TestDiskFull_PG(t *testing.T) {
	c := newCluster(t)
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
