package sqlite

import (
	"context"
	"errors"
	"os"
)

// Writes go into the -wal file first and must later be copied into the store's file. SQLite copies on commit, which
// stops the writer. Here a goroutine copies every few thousand writes beside the writer. Beside a busy writer, the
// copy never reaches the end of the file. At a larger size, SQLite's own checkpoint therefore restarts the file; it
// is short by then.
const (
	checkpointEvery = 4_000  // writes; each makes about one page of the -wal file
	checkpointPages = 16_000 // of the -wal file, where SQLite does it
)

// checkpoint copies on each notification until the store is closed.
func (s *Store) checkpoint() {
	for {
		select {
		case <-s.full:
		case <-s.ended:
			return
		}
		if _, err := s.read.ExecContext(context.Background(), "PRAGMA wal_checkpoint(PASSIVE)"); err != nil {
			s.log.Warn("the store's -wal file could not be copied", "path", s.path, "error", err)
		}
	}
}

// leaveUpTo is how large a -wal file may stay behind, in bytes. The next process
// has to read it: 1 MB in about half a millisecond.
const leaveUpTo = 1 << 20

// leave ends the use of a store whose process ends. SQLite would copy the -wal
// file now and remove it, which takes longer than to read it the next time.
func (s *Store) leave() error {
	if info, err := os.Stat(s.path + "-wal"); err == nil && info.Size() > leaveUpTo {
		if _, err := s.conn.ExecContext(context.Background(), "PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
			s.log.Warn("the store's -wal file could not be copied", "path", s.path, "error", err)
		}
	}
	if err := errors.Join(s.ledger.Close(), s.leases.close()); err != nil {
		return storeError(s.path, "close", err)
	}
	return nil
}
