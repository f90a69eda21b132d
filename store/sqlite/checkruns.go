package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"slices"

	"github.com/tenonhq/tenon/store/forms"
)

// chapterOf is a chapter of a journal.
type chapterOf struct {
	run         int64
	first, next uint64 // next is the number after its last event
}

// journals checks all journals: no event may be missing, and every row must belong to a run.
func (k *checker) journals(ctx context.Context) error {
	return k.damage(ctx, ProblemRun, "journals", k.follow(ctx))
}

func (k *checker) follow(ctx context.Context) error {
	if k.report.Version < 5 {
		return nil // before chapters
	}
	ids := map[int64]string{}
	err := k.each(ctx, "SELECT n, id FROM runs", func(rows *sql.Rows) error {
		var n int64
		var id string
		err := rows.Scan(&n, &id)
		ids[n] = id
		return err
	})
	if err != nil {
		return err
	}
	k.report.Runs = int64(len(ids))
	chapters := map[int64]*chapterOf{}
	err = k.each(ctx, "SELECT n, run, first FROM chapters", func(rows *sql.Rows) error {
		var n int64
		c := &chapterOf{}
		if err := rows.Scan(&n, &c.run, &c.first); err != nil {
			return err
		}
		if chapters[n] != nil {
			k.report.add(ProblemRun, "two parts of journals have the number %d", n)
		}
		c.next = c.first
		chapters[n] = c
		if _, ok := ids[c.run]; !ok {
			k.report.add(ProblemRun, "events from %d on belong to no run", c.first)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := k.followEvents(ctx, ids, chapters); err != nil {
		return err
	}
	k.followChapters(ids, chapters)
	return k.references(ctx)
}

// followEvents checks that the events of each chapter follow each other.
func (k *checker) followEvents(ctx context.Context, ids map[int64]string, chapters map[int64]*chapterOf) error {
	return k.each(ctx, "SELECT chapter, seq, n FROM events ORDER BY chapter, seq", func(rows *sql.Rows) error {
		var chapter int64
		var seq, n uint64
		if err := rows.Scan(&chapter, &seq, &n); err != nil {
			return err
		}
		c := chapters[chapter]
		switch {
		case c == nil:
			k.report.add(ProblemRun, "event %d belongs to no run", seq)
		case seq != c.next || n < 1:
			k.report.add(ProblemRun, "run %s: after event %d comes event %d", ids[c.run], c.next-1, seq)
			c.next = seq + n
		default:
			c.next = seq + n
		}
		return nil
	})
}

// followChapters checks that the chapters of each run follow each other.
func (k *checker) followChapters(ids map[int64]string, chapters map[int64]*chapterOf) {
	byRun := map[int64][]*chapterOf{}
	for _, c := range chapters {
		byRun[c.run] = append(byRun[c.run], c)
	}
	for run, list := range byRun {
		slices.SortFunc(list, func(a, b *chapterOf) int { return int(int64(a.first) - int64(b.first)) })
		next := uint64(1)
		for _, c := range list {
			switch {
			case c.first != next:
				k.report.add(ProblemRun, "run %s: after event %d comes event %d", ids[run], next-1, c.first)
			case c.next == c.first:
				k.report.add(ProblemRun, "run %s: the events from %d on are missing", ids[run], c.first)
			}
			next = c.next
		}
	}
}

// references checks that the rows exist to which other rows refer.
func (k *checker) references(ctx context.Context) error {
	err := k.each(ctx, "PRAGMA foreign_key_check", func(rows *sql.Rows) error {
		var table, parent string
		var row sql.NullInt64
		var key int
		if err := rows.Scan(&table, &row, &parent, &key); err != nil {
			return err
		}
		k.report.problem(Problem{ProblemRun, table, fmt.Sprint(row.Int64), "it refers to a missing row of " + parent})
		return nil
	})
	if err != nil {
		return err
	}
	return k.each(ctx, `SELECT hex(blob), coalesce(r.id, ''), b.digest IS NULL FROM run_blobs u
		LEFT JOIN runs r ON r.n = u.run LEFT JOIN blobs b ON b.digest = u.blob
		WHERE r.id IS NULL OR b.digest IS NULL`, func(rows *sql.Rows) error {
		var digest, run string
		var lost bool
		if err := rows.Scan(&digest, &run, &lost); err != nil {
			return err
		}
		if lost {
			k.report.add(ProblemBlob, "run %s: blob %s%s is missing", run, forms.DigestPrefix, digest)
		} else {
			k.report.add(ProblemRun, "blob %s%s belongs to a run that is missing", forms.DigestPrefix, digest)
		}
		return nil
	})
}

// search compares the index of texts with the texts. SQLite does this only with an index that can be written, so a copy
// of the index in a temporary file is compared.
func (k *checker) search(ctx context.Context) (err error) {
	if !k.texts {
		return nil
	}
	d, err := summing()
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector{"", d}) // a temporary file of SQLite
	defer func() { _ = db.Close() }()  // it is removed
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // as above
	at := url.URL{Scheme: "file", Path: uriPath(k.path), RawQuery: "mode=ro"}
	if k.alone {
		at.RawQuery = "immutable=1"
	}
	for _, q := range []string{"ATTACH '" + sqlQuote(at.String()) + "' AS store", "BEGIN", copyTexts} {
		if _, err := conn.ExecContext(ctx, q); err != nil {
			return k.damage(ctx, ProblemSearch, "search index", err)
		}
	}
	_, err = conn.ExecContext(ctx, "INSERT INTO main.texts_index(texts_index, rank) VALUES('integrity-check', 1)")
	if err != nil && ctx.Err() == nil && isDamage(err) {
		k.report.add(ProblemSearch, "the index does not match the texts")
		return nil
	}
	return err
}

// copyTexts copies the index of texts of an attached store.
const copyTexts = `
CREATE TABLE main.texts (n INTEGER PRIMARY KEY, text TEXT NOT NULL);
INSERT INTO main.texts SELECT n, text FROM store.texts;
CREATE VIRTUAL TABLE main.texts_index USING fts5(text, content='texts', content_rowid='n', tokenize='trigram');
DELETE FROM main.texts_index_data;
INSERT INTO main.texts_index_data SELECT * FROM store.texts_index_data;
DELETE FROM main.texts_index_idx;
INSERT INTO main.texts_index_idx SELECT * FROM store.texts_index_idx;
DELETE FROM main.texts_index_docsize;
INSERT INTO main.texts_index_docsize SELECT * FROM store.texts_index_docsize;
DELETE FROM main.texts_index_config;
INSERT INTO main.texts_index_config SELECT * FROM store.texts_index_config;
`
