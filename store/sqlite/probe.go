package sqlite

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/forms"
)

const (
	// probeEvery is how long the result of a probe is valid.
	probeEvery = time.Second
	// probePatience bounds one probe.
	probePatience = 5 * time.Second
	// probeSize is the size of the written row: the first events of a run with a few tools.
	probeSize = 32 << 10
	// minFree is the free space below which a store is not ready. A write may still fit into the log, which keeps its
	// size after a checkpoint.
	minFree = 1 << 20
)

// probe contains the last result of [Store.Probe].
type probe struct {
	mu     sync.Mutex
	until  time.Time
	err    error
	failed atomic.Uint64 // writes
}

// Probe implements [store.Health].
func (s *Store) Probe(ctx context.Context) error {
	s.probe.mu.Lock()
	defer s.probe.mu.Unlock()
	if time.Now().Before(s.probe.until) {
		return s.probe.err
	}
	limited, stop := context.WithTimeout(ctx, probePatience)
	defer stop()
	err := s.probeNow(limited)
	if ctx.Err() != nil {
		return cancelled(s, ctx.Err()) // says nothing about the store
	}
	s.probe.until, s.probe.err = time.Now().Add(probeEvery), err
	return err
}

func (s *Store) probeNow(ctx context.Context) error {
	if err := writable(s.path); err != nil {
		return tenon.Errorf(tenon.CodeStore,
			"store %s: it cannot be written: %w; check owner, mode, attributes and mount", s.path, err)
	}
	if free := freeSpace(filepath.Dir(s.path)); free >= 0 && free < minFree {
		return tenon.Errorf(tenon.CodeStore, "store %s: the disk has %d bytes left; free some space", s.path, free)
	}
	if err := s.probeRead(ctx); err != nil {
		return err
	}
	data := make([]byte, probeSize)
	_, _ = rand.Read(data) // never fails
	return s.submit(ctx, func(w *writer) error {
		_, err := w.exec("INSERT OR REPLACE INTO probe (n, time, data) VALUES (1, ?, ?)", forms.Nanos(time.Now()), data)
		return err
	})
}

// probed are the tables to which a new run adds rows, at the end of each.
var probed = []string{
	"SELECT length(id) + length(title) FROM runs ORDER BY n DESC LIMIT 1",
	"SELECT length(id) FROM runs ORDER BY id DESC LIMIT 1",
	"SELECT length(events) + coalesce(length(mac), 0) FROM events ORDER BY rowid DESC LIMIT 1",
	"SELECT length(events) FROM events ORDER BY chapter DESC, seq DESC LIMIT 1",
	"SELECT n FROM chapters ORDER BY run DESC, first DESC LIMIT 1",
	"SELECT length(title) FROM sessions ORDER BY id DESC LIMIT 1",
	"SELECT length(title) FROM sessions ORDER BY updated DESC LIMIT 1",
	"SELECT length(data) FROM blobs ORDER BY rowid DESC LIMIT 1",
	"SELECT length(data) FROM blobs ORDER BY digest DESC LIMIT 1",
	"SELECT length(data) FROM signals ORDER BY n DESC LIMIT 1",
}

// probeRead reads the ends of the tables through a new connection, because the connections of the store may have the
// pages in memory.
func (s *Store) probeRead(ctx context.Context) (err error) {
	db, err := connectWith(s.path, 1, url.Values{"mode": {"rw"},
		"_pragma": {"busy_timeout(5000)", "query_only(1)", "cell_size_check(1)"}})
	if err != nil {
		return storeError(s.path, "open", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	conn, err := db.Conn(ctx)
	if err != nil {
		return storeError(s.path, "open", err)
	}
	defer func() { _ = conn.Close() }() // db.Close says what went wrong
	version, app, _, err := identify(ctx, conn, s.path)
	if err != nil {
		return storeError(s.path, "read", err)
	}
	if version < len(migrations) || app != applicationID {
		err := fmt.Errorf("the schema has version %d, and the file the mark %x", version, app)
		return storeError(s.path, "read", err)
	}
	for _, q := range probed {
		var n sql.NullInt64
		if err := conn.QueryRowContext(ctx, q).Scan(&n); err != nil && !errors.Is(err, sql.ErrNoRows) {
			return storeError(s.path, "read", err)
		}
	}
	return nil
}

// Usage implements [store.Health].
func (s *Store) Usage() store.Usage {
	return store.Usage{Free: freeSpace(filepath.Dir(s.path)), FailedWrites: s.probe.failed.Load()}
}
