package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"

	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/forms"
)

// The index of texts is not part of the schema. It is created with the first text, because its tables would slow down
// every start of the program. It can always be rebuilt from the journals; a release with another form of the index
// drops these tables and rebuilds them.
//
// The index contains all sequences of three characters (FTS5's trigram tokenizer). So it finds parts of words, and
// works with languages without spaces.
const makeTexts = `
CREATE TABLE texts (
	n    INTEGER PRIMARY KEY,
	run  INTEGER NOT NULL,
	seq  INTEGER NOT NULL,
	role TEXT NOT NULL,
	text TEXT NOT NULL,
	sum  INTEGER
);
CREATE INDEX texts_run ON texts(run);
CREATE TABLE texts_upto (
	run INTEGER PRIMARY KEY,
	seq INTEGER NOT NULL,
	sum INTEGER
);
CREATE VIRTUAL TABLE texts_index USING fts5(text, content='texts', content_rowid='n', tokenize='trigram');
INSERT INTO texts_index(texts_index, rank) VALUES('secure-delete', 1);
`

// textsEnd reads the end of a run, as runEnd, and the number of its last event that is indexed.
const textsEnd = "SELECT n, " + endedRuns + ", coalesce((SELECT e.seq + e.n - 1 " + lastRow + "), 0), " +
	"coalesce((SELECT u.seq FROM texts_upto u WHERE u.run = runs.n), 0) FROM runs WHERE id = ?"

const textsThere = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'texts_index')"

func (w *writer) hasTexts() (there bool, err error) {
	err = w.row(textsThere, nil, &there)
	return there, err
}

// hasTexts reports whether there is an index. Once created, it is never removed.
func (s *Store) hasTexts(ctx context.Context) (there bool, err error) {
	err = s.each(ctx, textsThere, nil, func(rows *sql.Rows) error { return rows.Scan(&there) })
	return there, err
}

// Unindexed implements [store.Texts].
func (s *Store) Unindexed(ctx context.Context, f store.GapFilter) (gaps []store.Gap, total int, err error) {
	if f.Limit <= 0 {
		f.Limit = 100
	}
	cond, args := " WHERE "+pendingRuns, []any{todoText}
	count := "SELECT count(*) FROM pending WHERE todo & ? <> 0"
	if f.Session != "" {
		cond, args = cond+" AND session = ?", append(args, f.Session)
		count = "SELECT count(*) FROM runs" + cond
	}
	if f.Ended {
		cond += " AND " + endedRuns
		count = "SELECT count(*) FROM runs" + cond
	}
	err = s.each(ctx, count, args, func(rows *sql.Rows) error { return rows.Scan(&total) })
	if err != nil || total == 0 {
		return nil, 0, err
	}
	there, err := s.hasTexts(ctx)
	if err != nil {
		return nil, 0, err
	}
	const last = "coalesce((SELECT e.seq + e.n - 1 " + lastRow + "), 0) AS last"
	upto := "0"
	if there {
		upto = "coalesce((SELECT u.seq FROM texts_upto u WHERE u.run = n), 0)"
	}
	query := "SELECT id, " + upto + " AS upto, " + last + " FROM runs" + cond +
		" AND (last > upto OR " + endedRuns + ") ORDER BY n DESC LIMIT ?"
	err = s.each(ctx, query, append(args, f.Limit), func(rows *sql.Rows) error {
		var g store.Gap
		if err := rows.Scan(&g.Run, &g.After, &g.Last); err != nil {
			return s.readError(ctx, err)
		}
		gaps = append(gaps, g)
		return nil
	})
	return gaps, total, err
}

// PutTexts implements [store.Texts].
func (s *Store) PutTexts(ctx context.Context, list []store.RunTexts) error {
	if len(list) == 0 {
		return nil
	}
	clean := forms.CleanTexts(list)
	return s.submitRelaxed(ctx, func(w *writer) error { return w.putTexts(clean) }) // the journals have them
}

func (w *writer) putTexts(list []store.RunTexts) error {
	if err := w.makeTexts(); err != nil {
		return err
	}
	for _, r := range list {
		if err := w.putText(&r); err != nil {
			return err
		}
	}
	return nil
}

// makeTexts creates the index unless there is one.
func (w *writer) makeTexts() error {
	if w.indexed {
		return nil
	}
	there, err := w.hasTexts()
	if err == nil && !there { // the transaction may fail, so the next one looks again
		_, err = w.conn.ExecContext(context.Background(), makeTexts)
	}
	w.indexed = there
	return err
}

// insertTexts indexes the texts of a run after an event.
func (w *writer) insertTexts(run int64, texts []store.Text, after uint64) error {
	for _, t := range texts {
		if t.Seq <= after {
			continue
		}
		n, err := w.stmts.insertText.insert(run, int64(t.Seq), t.Role, t.Text)
		if err != nil {
			return err
		}
		if err := w.stmts.indexText.exec(n, t.Text); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) putText(r *store.RunTexts) error {
	var row [4]int64
	found, err := w.stmts.textsEnd.numbers(row[:], r.Run)
	if err != nil || !found { // a run may have been deleted since its journal was read
		return err
	}
	n, ended, last, done := row[0], row[1] != 0, uint64(row[2]), uint64(row[3])
	if err := w.insertTexts(n, r.Texts, done); err != nil {
		return err
	}
	if r.UpTo > done {
		if err := w.stmts.putUpTo.exec(n, int64(r.UpTo)); err != nil {
			return err
		}
	}
	if ended && max(r.UpTo, done) >= last {
		return w.caughtUp(r.Run, n, todoText)
	}
	return nil
}

// The statements of deleteTexts. Their parameter is a JSON array of the numbers of runs.
const doomedRuns = " WHERE run IN (SELECT value FROM json_each(?))"

var deleteTextRows = []string{
	"INSERT INTO texts_index (texts_index, rowid, text) SELECT 'delete', n, text FROM texts" + doomedRuns,
	"DELETE FROM texts" + doomedRuns,
	"DELETE FROM texts_upto" + doomedRuns,
}

// deleteTexts removes the texts of runs from the index, which needs the old texts for that.
func (w *writer) deleteTexts(runs []int64) error {
	there, err := w.hasTexts()
	if err != nil || !there || len(runs) == 0 {
		return err
	}
	list, err := json.Marshal(runs)
	if err != nil {
		return err
	}
	for _, q := range deleteTextRows {
		if _, err := w.exec(q, string(list)); err != nil {
			return err
		}
	}
	return nil
}
