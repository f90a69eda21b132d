package floor

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"

	_ "modernc.org/sqlite" // the driver that store/sqlite uses as well
)

// Commits is a bare SQLite file with one table of numbered rows, in WAL mode with
// synchronous FULL, so that a commit is on disk when it returns.
type Commits struct {
	db     *sql.DB
	insert *sql.Stmt
	rows   chan row
	ended  chan struct{}
}

// row waits in a group for its commit.
type row struct {
	data []byte
	done chan error
}

// maxGroup bounds the rows of one group commit.
const maxGroup = 256

// OpenCommits makes the file.
func OpenCommits(ctx context.Context, path string) (*Commits, error) {
	pragmas := url.Values{"_pragma": {"journal_mode(WAL)", "synchronous(FULL)", "wal_autocheckpoint(4000)"}}
	db, err := sql.Open("sqlite", "file:"+path+"?"+pragmas.Encode())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(ctx, `CREATE TABLE rows (n INTEGER PRIMARY KEY, data BLOB NOT NULL) STRICT`); err != nil {
		return nil, errors.Join(fmt.Errorf("floor: making %s: %w", path, err), db.Close())
	}
	insert, err := db.PrepareContext(ctx, `INSERT INTO rows (data) VALUES (?)`)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	c := &Commits{db: db, insert: insert, rows: make(chan row, maxGroup), ended: make(chan struct{})}
	go c.write()
	return c, nil
}

// One inserts one row in a transaction of its own. It must not be mixed with
// Group.
func (c *Commits) One(ctx context.Context, data []byte) error {
	_, err := c.insert.ExecContext(ctx, data)
	return err
}

// Group inserts one row together with those of all other callers that wait at
// the same time, and returns after their common commit.
func (c *Commits) Group(data []byte) error {
	r := row{data, make(chan error, 1)}
	c.rows <- r
	return <-r.done
}

func (c *Commits) write() {
	defer close(c.ended)
	for first := range c.rows {
		group := []row{first}
	more:
		for len(group) < maxGroup {
			select {
			case r, ok := <-c.rows:
				if !ok {
					break more
				}
				group = append(group, r)
			default:
				break more
			}
		}
		err := c.commit(group)
		for _, r := range group {
			r.done <- err
		}
	}
}

func (c *Commits) commit(group []row) error {
	tx, err := c.db.Begin()
	if err != nil {
		return err
	}
	insert := tx.Stmt(c.insert)
	for _, r := range group {
		if _, err := insert.Exec(r.data); err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	return tx.Commit()
}

// Close ends the writer, which must have no callers any more, and closes the
// file.
func (c *Commits) Close() error {
	close(c.rows)
	<-c.ended
	return errors.Join(c.insert.Close(), c.db.Close())
}
