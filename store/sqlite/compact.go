package sqlite

import (
	"context"
	"database/sql"
	"os"
	"time"

	"github.com/tenonhq/tenon"
)

// compactOnline is the maximum size of a store that is compacted while other processes use it. Their writes wait
// meanwhile, for less than lockPatience.
const compactOnline = 256 << 20

// Compacted is the result of [Compact].
type Compacted struct {
	Before int64 `json:"bytes_before"`
	After  int64 `json:"bytes_after"`
	Pages  int64 `json:"pages"` // that were given back
}

// Compact returns the unused space of a store to the file system. If the store has at most 256 MB, other processes
// may use it meanwhile: they can read it, and their writes wait. Errors: not_found, conflict (the store is larger,
// and a process uses it), store, cancelled.
//
// SQLite's automatic compacting is not enabled: connections that are already open do not notice that and damage the
// file. A copy that replaces the file does not help either: other processes would continue to use the old file.
func Compact(ctx context.Context, path string, progress Progress) (*Compacted, error) {
	path, err := existing(path)
	if err != nil {
		return nil, err
	}
	db, err := connect(path, 1, "synchronous(FULL)", "secure_delete(1)", "journal_size_limit(67108864)")
	if err != nil {
		return nil, storeError(path, "open", err)
	}
	defer func() { _ = db.Close() }() // each transaction has reported its errors
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, storeError(path, "open", err)
	}
	defer func() { _ = conn.Close() }() // as above
	if _, app, _, err := identify(ctx, conn, path); err != nil {
		return nil, storeError(path, "read", err)
	} else if app != applicationID {
		return nil, tenon.Errorf(tenon.CodeStore, "store %s: the file is a database of another program", path)
	}
	c := &Compacted{}
	if info, err := os.Stat(path); err == nil {
		c.Before = info.Size()
	}
	var free, pages int64
	err = conn.QueryRowContext(ctx, "SELECT freelist_count, page_count FROM pragma_freelist_count, pragma_page_count").
		Scan(&free, &pages)
	if err != nil {
		return nil, storeError(path, "read", err)
	}
	c.Pages = free
	err = rewriteAll(ctx, conn, path, pages, free, progress)
	if err == nil {
		progress.report("copy the log", 0, 0)
		_, err = conn.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
	}
	if ctx.Err() != nil {
		return nil, tenon.Errorf(tenon.CodeCancelled, "store %s: not compacted as a whole: %w", path, ctx.Err())
	}
	if err != nil {
		return nil, storeError(path, "compact", err)
	}
	if info, err := os.Stat(path); err == nil {
		c.After = info.Size()
	}
	return c, nil
}

// rewriteAll writes the file again, without its free pages.
func rewriteAll(ctx context.Context, conn *sql.Conn, path string, pages, free int64, progress Progress) error {
	busy, err := inUse(path)
	if err != nil {
		return busyError(path, err)
	}
	if busy && pages*storePageSize > compactOnline {
		return tenon.Errorf(tenon.CodeConflict, "store %s: compacting writes the whole file again (%d MB), "+
			"and a process works on it, whose writes would fail meanwhile; %d MB are unused: new data fills them "+
			"without compacting; to give them back, stop tenon serve, let its runs end, and try again", path,
			pages*storePageSize>>20, free*storePageSize>>20)
	}
	progress.report("write the file again", 0, pages*storePageSize)
	stop := watchSize(path+"-wal", func(size int64) {
		progress.report("write the file again", size, pages*storePageSize)
	})
	defer stop()
	for deadline := time.Now().Add(lockPatience); ; {
		_, err := conn.ExecContext(ctx, "VACUUM")
		if err == nil || !isBusy(err) || time.Now().After(deadline) {
			return err
		}
	}
}
