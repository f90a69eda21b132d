package sqlite

import (
	"context"
	"database/sql"
	"net/url"

	"github.com/tenonhq/tenon/store/signed"
)

// Signers counts the runs of a store with a MAC, or its pins and grants if it has no such run: own ones have the MAC of
// the key, which may be nil, and others the MAC of another key. It changes nothing and reads no journals. A store of
// another schema has no counts, because its rows may have other columns. Errors: not_found (no store), store,
// cancelled.
func Signers(ctx context.Context, path string, key *signed.Key) (own, others int64, err error) {
	if path, err = existing(path); err != nil {
		return 0, 0, err
	}
	db, err := connectWith(path, 2, url.Values{"mode": {"ro"}, "_pragma": {"busy_timeout(5000)"}})
	if err != nil {
		return 0, 0, storeError(path, "open", err)
	}
	defer func() { _ = db.Close() }() // it was only read
	var version int
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return 0, 0, storeError(path, "read", err)
	}
	if version != len(migrations) {
		return 0, 0, nil
	}
	c := signers{s: &Store{path: path, key: key}, db: db}
	if err = c.read(ctx, selectRuns(), c.run); err == nil && c.own+c.others == 0 {
		if err = c.read(ctx, selectPins, c.pin); err == nil {
			err = c.read(ctx, selectGrants, c.grant)
		}
	}
	return c.own, c.others, err
}

// signers counts rows by who signed them. Without a key, every row is somebody else's.
type signers struct {
	s           *Store
	db          *sql.DB
	own, others int64
}

func (c *signers) count(own bool) {
	if own && c.s.key != nil {
		c.own++
	} else {
		c.others++
	}
}

// read reads the rows of a query that have a MAC.
func (c *signers) read(ctx context.Context, query string, row func(*sql.Rows) error) error {
	rows, err := c.db.QueryContext(ctx, query+" WHERE length(mac) > 0")
	if err != nil {
		return c.s.readError(ctx, err)
	}
	defer func() { _ = rows.Close() }() // Err has its error
	for rows.Next() {
		if err := row(rows); err != nil {
			return c.s.readError(ctx, err)
		}
	}
	if err := rows.Err(); err != nil {
		return c.s.readError(ctx, err)
	}
	return nil
}

func (c *signers) run(rows *sql.Rows) error {
	r, _, err := c.s.scanRun(rows)
	c.count(!r.Foreign)
	return err
}

func (c *signers) pin(rows *sql.Rows) error {
	p, mac, err := scanPin(rows)
	c.count(c.s.key.OwnPin(&p, mac))
	return err
}

func (c *signers) grant(rows *sql.Rows) error {
	g, mac, err := scanGrant(rows)
	c.count(c.s.key.OwnGrant(&g, mac))
	return err
}
