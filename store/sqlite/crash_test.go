package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/longtest"
	"github.com/tenonhq/tenon/store"
)

// TestMigrationKilled kills processes at random moments of the migration from every older schema, which begins with a
// backup. Afterwards the store is complete in the old or the new version, and the backup is complete, too.
func TestMigrationKilled(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	for version := 1; version < len(migrations); version++ {
		t.Run(fmt.Sprint("v", version), func(t *testing.T) {
			old := copyOld(t, version)
			inflate(t, old)
			image, err := os.ReadFile(old)
			if err != nil {
				t.Fatal(err)
			}
			took := migrateElsewhere(t, old, 0)
			most := took // the latest time of a kill; adapted so that half of the kills come before the end
			found := map[int]int{}
			backups := 0
			kills := times(t, 10)
			if version < len(migrations)-2 { // the migrations of older stores end with the same steps
				kills = max(kills/5, 10)
			}
			for range kills {
				dir := t.TempDir()
				path := filepath.Join(dir, "tenon.db")
				if err := os.WriteFile(path, image, 0o600); err != nil {
					t.Fatal(err)
				}
				for range 2 { // the second kill happens during the recovery from the first one
					migrateElsewhere(t, path, 1+rand.N(most))
					v := versionOf(t, path)
					found[v]++
					if v != version && v != len(migrations) {
						t.Fatalf("a killed migration left version %d", v)
					}
					if _, err := os.Stat(backupPath(path, version)); err == nil {
						backups++
						if v := versionOf(t, backupPath(path, version)); v != version {
							t.Fatalf("the backup has version %d", v)
						}
					} else if v != version {
						t.Error("there is no backup of a migrated store")
					} else {
						most = min(most+took/8, 100*took)
					}
					if v != version {
						most = max(most-took/8, took/4)
					}
				}
				s, err := Open(t.Context(), Config{Path: path})
				if err != nil {
					t.Fatal(err)
				}
				checkOld(t, s)
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				// The way back: the backup replaces the store.
				if v := versionOf(t, backupPath(path, version)); v != version {
					t.Errorf("the backup has version %d", v)
				}
				// the store, the backup and the file of the leases
				if left, err := filepath.Glob(path + "*"); err != nil || len(left) != 3 {
					t.Errorf("what is left: %v, %v", left, err)
				}
				_ = os.RemoveAll(dir) // a long test run would fill the disk
			}
			t.Logf("a migration takes %v; versions left behind: %v; with a backup: %d", took, found, backups)
		})
	}
}

// migrateElsewhere opens the store in another process and returns how long that took. If kill is not 0, the process is
// killed after this time.
func migrateElsewhere(t *testing.T, path string, kill time.Duration) (took time.Duration) {
	t.Helper()
	cmd := childCommand(t.Context(), t, "open", path, 0)
	cmd.Stderr = os.Stderr
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if kill > 0 {
		time.Sleep(kill)
		_ = cmd.Process.Kill() // it may have ended
	}
	err := cmd.Wait()
	if kill == 0 && err != nil {
		t.Fatal(err)
	}
	return time.Since(begun)
}

// inflate adds unreferenced values to an old store, so that migrating it takes long enough to be killed.
func inflate(t *testing.T, path string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.Exec(`WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c WHERE i < 400)
		INSERT INTO blobs (digest, data) SELECT randomblob(32), randomblob(20000) FROM c`)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// versionOf returns the version of a store that no process has open, and checks the whole store.
func versionOf(t *testing.T, path string) (version int) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	var sound string
	if err := db.QueryRow("PRAGMA integrity_check").Scan(&sound); err != nil || sound != "ok" {
		t.Fatalf("%s is %s, %v", path, sound, err)
	}
	if err := db.QueryRow("PRAGMA user_version").Scan(&version); err != nil {
		t.Fatal(err)
	}
	var runs int
	if err := db.QueryRow("SELECT count(*) FROM runs").Scan(&runs); err != nil || runs != 3 {
		t.Fatalf("%s has %d runs, %v", path, runs, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return version
}

// TestTornLog truncates or damages the write-ahead log at every 512 bytes after some acknowledged appends, as a power
// failure may. All data in complete frames is there, and the journal is a prefix of the written events.
func TestTornLog(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "tenon.db")
	s := mustOpen(t, path, migrations)
	ctx := t.Context()
	if err := s.Append(ctx, store.Append{Create: &tenon.Run{ID: "r", Session: "s"}, Run: "r", Events: numbered(1, 1, 0)}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.read.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		t.Fatal(err)
	}
	ends := []int64{0} // size of the log after each append
	seqs := []uint64{1}
	random := rand.New(rand.NewPCG(3, 4))
	for i := range 8 {
		n := 1 + random.IntN(3)
		a := store.Append{Run: "r", Events: numbered(int(seqs[i])+1, n, random.IntN(4_000))}
		if i%3 == 0 {
			a.State, a.Waiting = tenon.RunInputRequired, []tenon.Waiting{{Step: "1"}}
		}
		if err := s.Append(ctx, a); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		ends, seqs = append(ends, info.Size()), append(seqs, seqs[i]+uint64(n))
	}
	image, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the log has %d bytes after %d appends", len(log), len(ends)-1)
	step := 512
	if os.Getenv(envLong) == "" {
		step = 1536 // three of a kind
	}
	for at := 0; at <= len(log); at += step {
		damaged := append([]byte(nil), log...)
		for i := at; i < min(at+512, len(damaged)); i++ {
			damaged[i] ^= 0x5a
		}
		for name, torn := range map[string][]byte{"cut": log[:at], "damaged": damaged} {
			copied := filepath.Join(t.TempDir(), "tenon.db")
			for end, b := range map[string][]byte{"": image, "-wal": torn} {
				if err := os.WriteFile(copied+end, b, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			least := uint64(0)
			for i, end := range ends {
				if end <= int64(at) {
					least = seqs[i]
				}
			}
			checkTorn(t, copied, fmt.Sprintf("%s at %d", name, at), least)
		}
	}
}

// checkTorn opens a store whose log was truncated or damaged.
func checkTorn(t *testing.T, path, what string, least uint64) {
	t.Helper()
	s, err := Open(t.Context(), Config{Path: path})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if last := checkNumbered(t, s, what); last < least {
		t.Errorf("%s: %d events are there, %d were acknowledged and whole", what, last, least)
	} else if err := s.Append(t.Context(), store.Append{Run: "r", Events: numbered(int(last)+1, 1, 10)}); err != nil {
		t.Errorf("%s: an append afterwards: %v", what, err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

// numbered makes events whose data contain their numbers.
func numbered(from, n, size int) (list []tenon.Event) {
	for i := range n {
		data := fmt.Sprintf(`{"n":%d,"x":"%0*d"}`, from+i, size, 0)
		list = append(list, tenon.Event{Seq: uint64(from + i), Kind: "k", Data: []byte(data)})
	}
	return list
}

// checkNumbered reads run r and returns its last number.
func checkNumbered(t *testing.T, s *Store, what string) (last uint64) {
	t.Helper()
	last, err := readNumbered(s, 0)
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
	return last
}

// readNumbered reads the events of run r after a number and returns the number of the last one.
func readNumbered(s *Store, after uint64) (last uint64, err error) {
	events, err := s.Events(context.Background(), "r", after, 0)
	if err != nil {
		return 0, err
	}
	for i, e := range events {
		var n int
		if _, err := fmt.Sscanf(string(e.Data), `{"n":%d,`, &n); err != nil || uint64(n) != after+uint64(i+1) || e.Seq != uint64(n) {
			return 0, fmt.Errorf("event %d has number %d and holds %.20s", after+uint64(i+1), e.Seq, e.Data)
		}
	}
	return after + uint64(len(events)), nil
}

// TestClockJumps writes with a clock that jumps in both directions. The order of events comes from their numbers, and
// the time of a session never goes back.
func TestClockJumps(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	begun := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := func() time.Time { return begun.Add(time.Duration(random.Int64N(int64(2000 * time.Hour)))) }
	s, err := Open(t.Context(), Config{Path: filepath.Join(t.TempDir(), "tenon.db"), Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	ctx := t.Context()
	var updated time.Time
	for i := range 50 {
		run := fmt.Sprintf("r%02d", i)
		a := store.Append{Create: &tenon.Run{ID: run, Session: "s"}, Run: run, Events: numbered(1, 3, 5)}
		for j := range a.Events {
			a.Events[j].Time = clock()
		}
		if err := s.Append(ctx, a); err != nil {
			t.Fatal(err)
		}
		if err := s.Append(ctx, store.Append{Run: run, State: tenon.RunCompleted}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.PutSignal(ctx, store.Signal{ID: run, Run: run, Kind: "k"}); err != nil {
			t.Fatal(err)
		}
		got, err := s.Events(ctx, run, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		for j, e := range got {
			if e.Seq != uint64(j+1) || !e.Time.Equal(a.Events[j].Time) {
				t.Errorf("event %d: %+v", j+1, e)
			}
		}
		v, err := s.Session(ctx, "s")
		if err != nil || v.Updated.Before(updated) || v.Head != run || v.Runs != i+1 {
			t.Errorf("session %+v after %v, %v", v, updated, err)
		}
		updated = v.Updated
	}
	signals, err := s.Signals(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	for i, g := range signals {
		if g.ID != fmt.Sprintf("r%02d", i) {
			t.Errorf("signal %d is %s", i, g.ID)
		}
	}
}
