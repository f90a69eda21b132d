package sqlite

import (
	"context"
	"database/sql"
	"strings"
	"unicode/utf8"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
)

// The index of texts is no part of the schema: it is made with the first text,
// since its tables would cost every start of the program time, and it can always
// be made again from the journals. A release that needs another form of it drops
// these tables and begins anew.
//
// Its words are all sequences of three characters (FTS5's trigram tokenizer), so
// that parts of words are found and languages without spaces are no different.
const makeTexts = `
CREATE TABLE texts (
	n    INTEGER PRIMARY KEY,
	run  INTEGER NOT NULL,
	seq  INTEGER NOT NULL,
	role TEXT NOT NULL,
	text TEXT NOT NULL
);
CREATE INDEX texts_run ON texts(run);
CREATE TABLE texts_upto (
	run INTEGER PRIMARY KEY,
	seq INTEGER NOT NULL
);
CREATE VIRTUAL TABLE texts_index USING fts5(text, content='texts', content_rowid='n', tokenize='trigram');
INSERT INTO texts_index(texts_index, rank) VALUES('secure-delete', 1);
`

const textsThere = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'texts_index')"

func (w *writer) hasTexts() (there bool, err error) {
	err = w.row(textsThere, nil, &there)
	return there, err
}

// hasTexts reports whether there is an index. It does not go away.
func (s *Store) hasTexts(ctx context.Context) (there bool, err error) {
	err = s.each(ctx, textsThere, nil, func(rows *sql.Rows) error { return rows.Scan(&there) })
	return there, err
}

// Unindexed implements [store.Texts].
func (s *Store) Unindexed(ctx context.Context, limit int) ([]store.Gap, error) {
	if limit <= 0 {
		limit = 100
	}
	there, err := s.hasTexts(ctx)
	if err != nil {
		return nil, err
	}
	const last = "coalesce((SELECT e.seq + e.n - 1 " + lastRow + "), 0)"
	query := "SELECT id, 0, " + last + " AS last FROM runs WHERE last > 0 ORDER BY id DESC LIMIT ?"
	if there {
		query = "SELECT id, coalesce(u.seq, 0) AS upto, " + last + ` AS last FROM runs LEFT JOIN texts_upto u ON u.run = runs.n
			WHERE last > upto ORDER BY id DESC LIMIT ?`
	}
	var gaps []store.Gap
	err = s.each(ctx, query, []any{limit}, func(rows *sql.Rows) error {
		var g store.Gap
		if err := rows.Scan(&g.Run, &g.After, &g.Last); err != nil {
			return s.readError(ctx, err)
		}
		gaps = append(gaps, g)
		return nil
	})
	return gaps, err
}

// PutText implements [store.Texts].
func (s *Store) PutText(ctx context.Context, run string, upTo uint64, texts []store.Text) error {
	clean := make([]store.Text, 0, len(texts))
	for _, t := range texts {
		t.Text = cleanText(t.Text)
		if t.Text != "" && t.Seq <= upTo {
			clean = append(clean, t)
		}
	}
	return s.submit(ctx, func(w *writer) error { return w.putText(run, upTo, clean) })
}

// cleanText makes one line of a text, which is not longer than it may be.
func cleanText(text string) string {
	if len(text) > store.MaxText {
		end := store.MaxText
		for end > 0 && !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end]
	}
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", " ")
	return strings.Join(strings.Fields(text), " ")
}

func (w *writer) putText(run string, upTo uint64, texts []store.Text) error {
	pos, err := w.position(run)
	if err != nil {
		return err
	}
	if pos == nil {
		return refuse(tenon.CodeNotFound, "no run %s", run)
	}
	there, err := w.hasTexts()
	if err != nil {
		return err
	}
	if !there {
		if _, err := w.conn.ExecContext(context.Background(), makeTexts); err != nil {
			return err
		}
	}
	var done uint64
	if err := w.row("SELECT coalesce(max(seq), 0) FROM texts_upto WHERE run = ?", []any{pos.n}, &done); err != nil {
		return err
	}
	for _, t := range texts {
		if t.Seq <= done {
			continue
		}
		if _, err := w.exec("INSERT INTO texts (run, seq, role, text) VALUES (?,?,?,?)", pos.n, int64(t.Seq), t.Role, t.Text); err != nil {
			return err
		}
		if _, err := w.exec("INSERT INTO texts_index (rowid, text) VALUES (last_insert_rowid(), ?)", t.Text); err != nil {
			return err
		}
	}
	if upTo > done {
		_, err = w.exec("INSERT INTO texts_upto (run, seq) VALUES (?,?) ON CONFLICT DO UPDATE SET seq = excluded.seq", pos.n, int64(upTo))
	}
	return err
}

// deleteTexts takes the texts of a run out of the index, which has to be told
// what they were.
func (w *writer) deleteTexts(run int64) error {
	for _, q := range []string{
		"INSERT INTO texts_index (texts_index, rowid, text) SELECT 'delete', n, text FROM texts WHERE run = ?",
		"DELETE FROM texts WHERE run = ?",
		"DELETE FROM texts_upto WHERE run = ?",
	} {
		if _, err := w.exec(q, run); err != nil {
			return err
		}
	}
	return nil
}
