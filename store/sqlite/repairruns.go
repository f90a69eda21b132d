package sqlite

import (
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"slices"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store/signed"
)

// repairedRun is a run of the new store.
type repairedRun struct {
	n        int64
	id       string
	state    tenon.RunState
	imported bool
	least    uint64 // the journal had at least this many events
	chapters []*repairedChapter
}

type repairedChapter struct {
	n      int64
	first  uint64
	events []repairedEvents
}

type repairedEvents struct {
	seq, n uint64
	lacks  bool // its blob is lost
}

// cutJournals cuts each journal at its first gap. It marks such a run as imported, so that no event is ever added to
// it: its lost events may be calls that were made. If uncertain is true, it also marks all runs that have not ended.
func (r *repairer) cutJournals(ctx context.Context, uncertain bool) error {
	runs, err := r.readRuns(ctx)
	if err != nil {
		return err
	}
	for _, run := range runs {
		end, whole := run.follow()
		if !whole {
			r.result.lose("run %s: its journal is incomplete: the first %d events are kept, and it cannot resume",
				run.id, end)
		} else if uncertain && !run.state.Ended() && !run.imported {
			r.result.lose("run %s: its last events may be lost, so it cannot resume", run.id)
		}
		if whole && (!uncertain || run.state.Ended()) || run.imported && whole {
			continue
		}
		if err := r.cut(ctx, run, end); err != nil {
			return err
		}
	}
	for _, q := range []string{
		"DELETE FROM main.events WHERE chapter NOT IN (SELECT n FROM main.chapters)",
		"DELETE FROM main.run_blobs WHERE blob NOT IN (SELECT digest FROM main.blobs) OR " +
			"run NOT IN (SELECT n FROM main.runs)",
		"DELETE FROM main.signals WHERE run NOT IN (SELECT id FROM main.runs)",
	} {
		if err := r.delete(ctx, q); err != nil {
			return err
		}
	}
	// The summaries and the index of texts are made again.
	_, err = r.conn.ExecContext(ctx, "INSERT OR REPLACE INTO main.pending (run, todo) SELECT n, ? FROM main.runs",
		todoCount|todoText)
	return err
}

// delete deletes rows that belong to lost rows, and counts them as lost.
func (r *repairer) delete(ctx context.Context, query string) error {
	res, err := r.conn.ExecContext(ctx, query)
	if err != nil {
		return err
	}
	n, err := res.RowsAffected()
	if n > 0 {
		r.result.lose("%d rows that belonged to lost ones (%s)", n, query[len("DELETE FROM main."):])
	}
	return err
}

// readRuns reads the runs of the new store with the positions of their events. It removes chapters without a run.
func (r *repairer) readRuns(ctx context.Context) (runs []*repairedRun, err error) {
	if err := r.delete(ctx, "DELETE FROM main.chapters WHERE run NOT IN (SELECT n FROM main.runs)"); err != nil {
		return nil, err
	}
	byRun, byChapter := map[int64]*repairedRun{}, map[int64]*repairedChapter{}
	each := func(query string, row func(*sql.Rows) error) {
		if err == nil {
			err = eachOf(ctx, r.conn, query, row)
		}
	}
	each("SELECT n, id, state, imported IS NOT NULL, mac FROM main.runs ORDER BY id", func(rows *sql.Rows) error {
		run := &repairedRun{}
		var mac []byte
		if err := rows.Scan(&run.n, &run.id, &run.state, &run.imported, &mac); err != nil {
			return err
		}
		if len(mac) == 2*signed.Size+8 { // the number of the last event is between its two parts
			run.least = binary.BigEndian.Uint64(mac[signed.Size:])
		}
		runs, byRun[run.n] = append(runs, run), run
		return nil
	})
	if r.version >= 10 && err == nil { // a summary has the number of the last event
		err = ignoreDamage(eachOf(ctx, r.conn, "SELECT run, seq FROM old.tallies", func(rows *sql.Rows) error {
			var n int64
			var seq uint64
			err := rows.Scan(&n, &seq)
			if run := byRun[n]; err == nil && run != nil {
				run.least = max(run.least, seq)
			}
			return err
		}))
	}
	each("SELECT run, first, n FROM main.chapters ORDER BY run, first", func(rows *sql.Rows) error {
		var run int64
		c := &repairedChapter{}
		err := rows.Scan(&run, &c.first, &c.n)
		if of := byRun[run]; err == nil && of != nil {
			of.chapters, byChapter[c.n] = append(of.chapters, c), c
		}
		return err
	})
	each(`SELECT e.chapter, e.seq, e.n, e.blob IS NOT NULL AND b.digest IS NULL FROM main.events e
		LEFT JOIN main.blobs b ON b.digest = e.blob ORDER BY e.chapter, e.seq`, func(rows *sql.Rows) error {
		var chapter int64
		var e repairedEvents
		err := rows.Scan(&chapter, &e.seq, &e.n, &e.lacks)
		if c := byChapter[chapter]; err == nil && c != nil {
			c.events = append(c.events, e)
		}
		return err
	})
	return runs, err
}

// eachOf reads the rows of a query.
func eachOf(ctx context.Context, conn *sql.Conn, query string, row func(*sql.Rows) error, args ...any) error {
	rows, err := conn.QueryContext(ctx, query, args...)
	return eachRow(rows, err, row)
}

// follow returns the number of the last event before the first gap, and whether there is no gap.
func (run *repairedRun) follow() (end uint64, whole bool) {
	slices.SortFunc(run.chapters, func(a, b *repairedChapter) int { return int(int64(a.first) - int64(b.first)) })
	for _, c := range run.chapters {
		if c.first != end+1 || len(c.events) == 0 {
			return end, false
		}
		for _, e := range c.events {
			if e.seq != end+1 || e.lacks || e.n < 1 {
				return end, false
			}
			end += e.n
		}
	}
	return end, end >= run.least
}

// cut removes the events of a run after a number, and marks the run.
func (r *repairer) cut(ctx context.Context, run *repairedRun, end uint64) error {
	imported, state := tenon.Imported{At: time.Now().UTC()}, "state"
	if !run.state.Ended() {
		imported.State, state = run.state, "'"+string(tenon.RunFailed)+"'"
	}
	mark, err := json.Marshal(imported)
	if err != nil {
		return err
	}
	t := sumsOf("runs")
	for _, q := range []struct {
		sql  string
		args []any
	}{
		{"DELETE FROM main.events WHERE seq > ? AND chapter IN (SELECT n FROM main.chapters WHERE run = ?)",
			[]any{int64(end), run.n}},
		{"DELETE FROM main.chapters WHERE first > ? AND run = ?", []any{int64(end), run.n}},
		{"UPDATE main.runs" + t.set("state", state, "waiting", "NULL", "imported", "?1") + "WHERE n = ?2",
			[]any{mark, run.n}},
	} {
		if _, err := r.conn.ExecContext(ctx, q.sql, q.args...); err != nil {
			return err
		}
	}
	return nil
}
