package sqlite

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/longtest"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/forms"
	"github.com/tenonhq/tenon/store/signed"
)

// backedUp is a store that TestBackup backs up while others write to it. Every run that ended before a backup began
// must be in the backup, with the same journal, byte for byte.
type backedUp struct {
	key  *signed.Key
	path string
	s    *Store

	mu    sync.Mutex
	ended []string // runs
}

func TestBackup(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	key, err := signed.NewKey(make([]byte, signed.MinSecret))
	if err != nil {
		t.Fatal(err)
	}
	b := &backedUp{key: key, path: filepath.Join(t.TempDir(), "tenon.db")}
	if b.s, err = Open(t.Context(), Config{Path: b.path, Key: key}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.s.Close() })
	writing, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() { b.write(writing, t, w) })
	}
	t.Cleanup(func() { stop(); writers.Wait() })
	for round := range 2 {
		t.Run(fmt.Sprint("RP-25_under_writes_", round), func(t *testing.T) { b.testRound(t, round) })
	}
}

// write appends runs of a session until the context ends.
func (b *backedUp) write(ctx context.Context, t *testing.T, w int) {
	for i := 0; ctx.Err() == nil && i < 25; i++ {
		time.Sleep(5 * time.Millisecond)
		id := fmt.Sprintf("run_%d_%d", w, i)
		blob := []byte(strings.Repeat(id, 5000))
		whole := context.WithoutCancel(ctx) // a run that has begun is also ended
		err := b.s.Append(whole, store.Append{Run: id, Create: &tenon.Run{ID: id, Session: fmt.Sprint("ses_", w)},
			Blobs: [][]byte{blob}, Events: numbered(1, 3, 200)})
		if err == nil {
			err = b.s.Append(whole, store.Append{Run: id, Events: numbered(4, 1, forms.BlobFrom), State: tenon.RunCompleted})
		}
		if err != nil {
			t.Error(err)
			return
		}
		b.mu.Lock()
		b.ended = append(b.ended, id)
		b.mu.Unlock()
	}
}

// testRound waits for more runs, makes a backup and restores it. The runs that had ended before must be the same.
func (b *backedUp) testRound(t *testing.T, round int) {
	ctx := t.Context()
	for enough := false; !enough; time.Sleep(time.Millisecond) {
		b.mu.Lock()
		enough = len(b.ended) > 5*round+5
		b.mu.Unlock()
	}
	b.mu.Lock()
	before := append([]string(nil), b.ended...)
	b.mu.Unlock()
	folder := filepath.Join(t.TempDir(), "backup")
	info, err := Backup(ctx, b.path, folder, nil, nil)
	if err != nil || info.Runs < int64(len(before)) {
		t.Fatalf("%+v, %v", info, err)
	}
	if files, err := os.ReadDir(folder); err != nil || len(files) != 2 {
		t.Errorf("the backup has %v, %v", files, err)
	}
	elsewhere := filepath.Join(t.TempDir(), "new", "tenon.db")
	if _, err := Restore(ctx, folder, elsewhere, nil); err != nil {
		t.Fatal(err)
	}
	restored, err := Open(ctx, Config{Path: elsewhere, Key: b.key})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range before {
		sameRun(t, b.s, restored, id)
	}
	if err := restored.Append(ctx, store.Append{Run: "later", Create: &tenon.Run{ID: "later"}, Events: numbered(1, 1, 1)}); err != nil {
		t.Error(err)
	}
	if err := restored.Close(); err != nil {
		t.Error(err)
	}
	if left, err := filepath.Glob(elsewhere + "*"); err != nil || len(left) != 2 {
		t.Errorf("files: %v, %v", left, err)
	}
	if _, err := Restore(ctx, folder, elsewhere, nil); tenon.ErrorCode(err) != tenon.CodeConflict {
		t.Errorf("a store is overwritten: %v", err)
	}
	if _, err := Backup(ctx, b.path, folder, nil, nil); tenon.ErrorCode(err) != tenon.CodeConflict {
		t.Errorf("a backup is overwritten: %v", err)
	}
	changedBackup(t, folder)
}

// changedBackup flips a bit of the backup and checks that the backup is then refused.
func changedBackup(t *testing.T, folder string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(folder, backupFile))
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(filepath.Join(folder, backupFile), b, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(t.Context(), folder, filepath.Join(t.TempDir(), "x.db"), nil); tenon.ErrorCode(err) != tenon.CodeStore {
		t.Errorf("a changed backup is restored: %v", err)
	}
}

// sameRun compares a run in two stores.
func sameRun(t *testing.T, a, b *Store, id string) {
	t.Helper()
	ctx := store.OwnOnly(t.Context())
	var rows [2]tenon.Run
	var events [2][]tenon.Event
	for i, s := range []*Store{a, b} {
		var err error
		if rows[i], err = s.Run(ctx, id); err != nil {
			t.Fatal(err)
		}
		if events[i], err = s.Events(ctx, id, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(rows[0], rows[1]); diff != "" {
		t.Error(diff)
	}
	if !cmp.Equal(events[0], events[1]) {
		t.Errorf("run %s: the journals differ", id)
	}
	if _, err := b.Blob(ctx, store.Digest([]byte(strings.Repeat(id, 5000)))); err != nil {
		t.Error(err)
	}
}

// TestCompact returns free space to the disk while another process writes.
func TestCompact(t *testing.T) {
	t.Parallel()
	t.Run("RP-25_online", func(t *testing.T) {
		ctx := t.Context()
		path := filepath.Join(t.TempDir(), "tenon.db")
		s := mustOpen(t, path, migrations)
		for round := range 2 {
			for i := range 40 {
				id := fmt.Sprintf("run_%d_%d", round, i)
				if err := s.Append(ctx, store.Append{Run: id, Create: &tenon.Run{ID: id, Session: id}, State: tenon.RunCompleted,
					Events: numbered(1, 1, 100_000+i)}); err != nil {
					t.Fatal(err)
				}
			}
			for i := range 39 {
				if err := s.DeleteSession(ctx, fmt.Sprintf("run_%d_%d", round, i)); err != nil {
					t.Fatal(err)
				}
			}
			writing, stop := context.WithCancel(ctx)
			var writer sync.WaitGroup
			writer.Go(func() {
				for i := 0; writing.Err() == nil; i++ {
					time.Sleep(time.Millisecond)
					id := fmt.Sprintf("beside_%d_%d", round, i)
					if err := s.Append(ctx, store.Append{Run: id, Create: &tenon.Run{ID: id}, Events: numbered(1, 1, 10)}); err != nil {
						t.Error(err)
					}
				}
			})
			steps := 0
			c, err := Compact(ctx, path, func(string, int64, int64) { steps++ })
			stop()
			writer.Wait()
			if err != nil || c.After > c.Before/2 || steps == 0 {
				t.Fatalf("%+v, %d steps, %v", c, steps, err)
			}
			if r, err := Check(ctx, CheckConfig{Path: path}); err != nil || !r.OK() {
				t.Errorf("%+v, %v", r, err)
			}
		}
	})
}

// TestCompactLarge checks that a large store is not compacted while a process uses it, and that the error says what to
// do.
func TestCompactLarge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tenon.db")
	s := mustOpen(t, path, migrations)
	release, ok, err := s.Acquire("run_1")
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	defer release()
	const mb = (1 << 20) / storePageSize
	err = rewriteAll(t.Context(), nil, path, 300*mb, 40*mb, nil)
	if tenon.ErrorCode(err) != tenon.CodeConflict {
		t.Fatal(err)
	}
	for _, want := range []string{"(300 MB)", "40 MB are unused", "new data fills them", "stop tenon serve"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("RP-25: the error lacks %q: %v", want, err)
		}
	}
}
