package sqlite

import (
	"context"
	"database/sql"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/tenonhq/tenon"
)

// openReading opens a store that cannot be written, because its file system is mounted read-only or somebody else
// owns it. The store is neither migrated nor locked.
//
// SQLite needs the -shm file if there is a log with contents. Without a log, the file is opened as immutable: nobody
// can change it.
func openReading(ctx context.Context, c Config) (_ *Store, err error) {
	path, err := filepath.Abs(c.Path)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	if err := checkRemains(path); err != nil {
		return nil, err // SQLite would remove the log of an empty file
	}
	s := &Store{path: path, log: c.Logger, now: time.Now, key: c.Key, ledger: c.Ledger,
		prepared: map[string]*sql.Stmt{}, quit: make(chan struct{}), ended: make(chan struct{})}
	s.watch.wake = make(chan struct{}, 1)
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	close(s.ended) // there is no writer
	q := url.Values{"mode": {"ro"}, "_pragma": {"busy_timeout(5000)", "query_only(1)"}}
	if log, err := os.Stat(path + "-wal"); err != nil || log.Size() == 0 {
		q.Set("immutable", "1")
	}
	defer func() {
		if err != nil {
			_ = s.closeDBs() // err says more
		}
	}()
	if s.read, err = connectWith(path, readers, q); err != nil {
		return nil, err
	}
	conn, err := s.read.Conn(ctx)
	if err != nil {
		return nil, err
	}
	version, app, _, err := identify(ctx, conn, path)
	if err == nil && app == applicationID && version == len(migrations) {
		err = s.greet(ctx, conn)
	}
	cerr := conn.Close()
	if err == nil {
		err = cerr
	}
	if err == nil && (app != applicationID || version != len(migrations)) {
		err = tenon.Errorf(tenon.CodeStore, "store %s: its schema has version %d, and it cannot be migrated here", path,
			version)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}
