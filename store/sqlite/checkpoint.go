package sqlite

import (
	"context"
	"errors"
	"os"
)

// Writes first go into the -wal file and must later be copied into the store's file. SQLite copies at a commit, which
// stops the writer. Instead, a goroutine here copies every few thousand writes while the writer continues. If the
// writer is busy, this copy never reaches the end of the -wal file. So SQLite's own checkpoint restarts the file at a
// larger size; the checkpoint is then short.
const (
	checkpointEvery = 4_000  // writes after which the goroutine here copies
	checkpointPages = 16_000 // pages of the -wal file after which SQLite itself copies
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

// leaveUpTo is the maximum size, in bytes, of a -wal file that is left behind. The next process has to read it: 1 MB
// in about half a millisecond.
const leaveUpTo = 1 << 20

// leave ends the use of a store whose process ends. Otherwise SQLite would copy and remove the -wal file now, which
// takes longer than reading it the next time.
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
