package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"slices"
	"strings"
)

// schemaRow is an entry of a schema.
type schemaRow struct {
	id                   int64
	kind, name, of, text string
	root                 int64 // the first page of its tree
}

// schemaRows reads the entries of a schema. If the schema is damaged, it returns the entries before and after the
// damage, and the error.
func schemaRows(ctx context.Context, db *sql.DB) (list []schemaRow, err error) {
	seen := map[int64]bool{}
	for _, order := range []string{"rowid", "rowid DESC"} {
		if err = readSchema(ctx, db, order, func(s schemaRow) {
			if !seen[s.id] {
				seen[s.id], list = true, append(list, s)
			}
		}); err == nil {
			break
		}
	}
	return list, err
}

func readSchema(ctx context.Context, db *sql.DB, order string, row func(schemaRow)) error {
	rows, err := db.QueryContext(ctx, `SELECT rowid, coalesce(CAST(type AS TEXT), ''), coalesce(CAST(name AS TEXT), ''),
		coalesce(CAST(tbl_name AS TEXT), ''), coalesce(CAST(sql AS TEXT), ''), coalesce(CAST(rootpage AS INTEGER), 0)
		FROM sqlite_schema ORDER BY `+order)
	return eachRow(rows, err, func(rows *sql.Rows) error {
		var s schemaRow
		err := rows.Scan(&s.id, &s.kind, &s.name, &s.of, &s.text, &s.root)
		if err == nil {
			row(s)
		}
		return err
	})
}

// fixSchema replaces the schema of the copy. The texts of the entries come from the migrations, the root pages of their
// trees from the damaged entries. If an entry cannot be read, its root page is assumed to be as in a new store; the
// checksums of rows from a wrong tree do not match. The index of texts is omitted.
func (r *repairer) fixSchema(ctx context.Context) error {
	var list []schemaRow
	if err := r.withSchema(func(db *sql.DB) error {
		if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&r.version); err != nil {
			return err
		}
		if r.version < 1 || r.version > len(migrations) {
			r.version = len(migrations)
		}
		got, err := schemaRows(ctx, db)
		if err != nil && !isDamage(err) {
			return err
		}
		want, err := madeSchema(ctx, r.version)
		if err != nil {
			return err
		}
		list = matchSchema(got, want)
		_, err = db.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)") // moves page 1 from the log into the file
		return err
	}); err != nil {
		return err
	}
	if err := clearSchema(r.old); err != nil {
		return err
	}
	return r.withSchema(func(db *sql.DB) error {
		for _, s := range list {
			text := any(s.text)
			if s.text == "" {
				text = nil
			}
			if _, err := db.ExecContext(ctx, "INSERT INTO sqlite_schema (type, name, tbl_name, rootpage, sql) "+
				"VALUES (?, ?, ?, ?, ?)", s.kind, s.name, s.of, s.root, text); err != nil {
				return err
			}
		}
		return nil
	})
}

// withSchema opens the copy with settings under which its schema can be written and may be damaged.
func (r *repairer) withSchema(do func(*sql.DB) error) error {
	db, err := connectWith(r.old, 1, url.Values{"_pragma": {"writable_schema(1)", "trusted_schema(0)"}})
	if err != nil {
		return err
	}
	return errors.Join(do(db), db.Close())
}

// clearSchema empties page 1, the root of the schema. The other pages of the schema remain, unused.
func clearSchema(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	page := make([]byte, storePageSize-100)
	page[0] = 13                   // a leaf of a table (SQLite file format, section 1.6)
	page[5] = storePageSize >> 8   // its contents begin at the end
	page[6] = storePageSize & 0xff // of the page
	_, err = f.WriteAt(page, 100)
	return errors.Join(err, f.Close())
}

// madeSchema returns the schema of a version as the migrations make it.
func madeSchema(ctx context.Context, version int) ([]schemaRow, error) {
	d, err := summing()
	if err != nil {
		return nil, err
	}
	memory := sql.OpenDB(connector{":memory:", d})
	defer func() { _ = memory.Close() }() // in memory
	memory.SetMaxOpenConns(1)
	for _, s := range migrations[:version] {
		if _, err := memory.ExecContext(ctx, s); err != nil {
			return nil, err
		}
	}
	return schemaRows(ctx, memory)
}

// matchSchema returns the entries that a schema should have, with the root pages of the damaged entries. If no entry
// matches, a similar entry provides the root page. If none is similar, the root page stays, unless another entry has
// the same.
func matchSchema(got, want []schemaRow) []schemaRow {
	trees := map[int64]bool{0: true}
	take := func(w *schemaRow, like func(schemaRow) bool) bool {
		i := slices.IndexFunc(got, func(g schemaRow) bool { return !trees[g.root] && like(g) })
		if i >= 0 {
			w.root = got[i].root
			trees[w.root] = true
			got = slices.Delete(got, i, i+1)
		}
		return i >= 0
	}
	var open []*schemaRow
	for i := range want {
		w := &want[i]
		if !take(w, func(g schemaRow) bool {
			return w.kind == g.kind && w.name == g.name && w.of == g.of && w.text == g.text
		}) {
			open = append(open, w)
		}
	}
	got = slices.DeleteFunc(got, func(g schemaRow) bool {
		return strings.HasPrefix(g.name, "texts") || strings.HasPrefix(g.of, "texts")
	})
	lost := map[string]bool{}
	for _, w := range open {
		if take(w, func(g schemaRow) bool { return g.name == w.name || g.text == w.text && w.text != "" }) ||
			!trees[w.root] || take(w, func(g schemaRow) bool { return g.kind == w.kind }) {
			trees[w.root] = true
			continue
		}
		lost[w.kind+" "+w.name] = true
	}
	return slices.DeleteFunc(want, func(w schemaRow) bool { return lost[w.kind+" "+w.name] || lost["table "+w.of] })
}
