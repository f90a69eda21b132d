package floor

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"

	_ "modernc.org/sqlite" // the driver that store/sqlite uses as well
)

// Commits is a bare SQLite file with one table of numbered rows. It uses WAL mode with synchronous FULL, so
// that a commit is on disk when it returns. Package durable has a variant with commits shared by many
// writers.
type Commits struct {
	db     *sql.DB
	insert *sql.Stmt
}

// OpenCommits creates the file.
func OpenCommits(ctx context.Context, path string) (*Commits, error) {
	pragmas := url.Values{"_pragma": {"journal_mode(WAL)", "synchronous(FULL)", "wal_autocheckpoint(4000)"}}
	db, err := sql.Open("sqlite", "file:"+path+"?"+pragmas.Encode())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(ctx,
		`CREATE TABLE rows (n INTEGER PRIMARY KEY, data BLOB NOT NULL) STRICT`); err != nil {
		return nil, errors.Join(fmt.Errorf("floor: making %s: %w", path, err), db.Close())
	}
	insert, err := db.PrepareContext(ctx, `INSERT INTO rows (data) VALUES (?)`)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &Commits{db: db, insert: insert}, nil
}

// One inserts one row in its own transaction.
func (c *Commits) One(ctx context.Context, data []byte) error {
	_, err := c.insert.ExecContext(ctx, data)
	return err
}

// Close closes the file.
func (c *Commits) Close() error { return errors.Join(c.insert.Close(), c.db.Close()) }
