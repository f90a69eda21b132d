package sqlite

import (
	"context"
	"os"
)

// What is written goes into the -wal file first and has to be copied into the
// store's file at some time. SQLite does so on commit, which stops the writer;
// here it is done beside the writer every few thousand writes. A copy made beside
// a busy writer never reaches the end of the file, so at a larger size SQLite's
// own way, by then a short one, starts the file over.
const (
	checkpointEvery = 4_000  // writes; each makes about one page of the -wal file
	checkpointPages = 16_000 // of the -wal file, where SQLite does it
)

// checkpoint copies when it is told to, until the store is closed.
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
	if err := s.leases.close(); err != nil {
		return storeError(s.path, "close", err)
	}
	return nil
}
