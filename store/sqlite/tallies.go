package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/signed"
)

// The bits of a row of pending.
const (
	todoCount = 1 // the summary is missing or out of date
	todoText  = 2 // the index of texts may lack events
)

// The statements about pending runs.
const (
	markPending = `INSERT INTO pending (run, todo) VALUES (?, 3) ON CONFLICT (run) DO UPDATE SET todo = 3`
	// markPendingText is for a new run that has its summary.
	markPendingText = `INSERT INTO pending (run, todo) VALUES (?, 2)`
	// pendingRuns is a condition on rows of runs. Its parameter is a bit.
	pendingRuns = "n IN (SELECT run FROM pending WHERE todo & ? <> 0)"
	endedRuns   = "state IN ('completed', 'failed', 'cancelled')"
	// runEnd reads the end of a run: its number, whether it has ended, its last event.
	runEnd = "SELECT n, " + endedRuns + ", coalesce((SELECT e.seq + e.n - 1 " + lastRow + "), 0) FROM runs WHERE id = ?"
	// recountAll is for adopted stores, whose summaries have other MACs or do not exist.
	recountAll = `INSERT INTO pending (run, todo) SELECT n, 1 FROM runs WHERE true
		ON CONFLICT (run) DO UPDATE SET todo = todo | 1`
)

// pend records that the summary and the index of a run are out of date, unless the writer has already recorded it.
func (w *writer) pend(pos *position) error {
	if pos.pending {
		return nil
	}
	if err := w.stmts.pend.exec(pos.n); err != nil {
		return err
	}
	pos.pending = true
	return nil
}

// tallyMAC returns the MAC of the summary that comes with an append.
func tallyMAC(key *signed.Key, a *store.Append) []byte {
	if len(a.Tally) == 0 || len(a.Events) == 0 {
		return nil
	}
	return key.Tally(a.Run, a.Events[len(a.Events)-1].Seq, a.Tally)
}

// counted stores the summary that comes with the first append of a run. Only the index of texts is then out of date.
func (w *writer) counted(a *store.Append, mac []byte) error {
	pos := w.runs[a.Run]
	if err := w.stmts.putTally.exec(pos.n, a.Run, int64(pos.seq), a.Tally, mac); err != nil {
		return err
	}
	return w.stmts.pendText.exec(pos.n)
}

// caughtUp clears a bit of a run.
func (w *writer) caughtUp(run string, n int64, bit int) error {
	if pos := w.runs[run]; pos != nil {
		pos.pending = false
	}
	deleted, err := w.exec("DELETE FROM pending WHERE run = ? AND todo & ~? = 0", n, bit)
	if err == nil && deleted == 0 {
		_, err = w.exec("UPDATE pending SET todo = todo & ~?2 WHERE run = ?1", n, bit)
	}
	return err
}

// Uncounted implements [store.Tallies].
func (s *Store) Uncounted(ctx context.Context, ended bool, limit int) (runs []tenon.Run, total int, err error) {
	limit = cmp.Or(limit, 100)
	cond := " WHERE " + pendingRuns
	count := "SELECT count(*) FROM pending WHERE todo & ? <> 0"
	if ended {
		cond += " AND " + endedRuns
		count = "SELECT count(*) FROM runs" + cond
	}
	err = s.each(ctx, count, []any{todoCount}, func(rows *sql.Rows) error { return rows.Scan(&total) })
	if err != nil || total == 0 || limit < 0 {
		return nil, total, err
	}
	runs, err = s.runs(ctx, selectRuns()+cond+" ORDER BY n DESC LIMIT ?", todoCount, limit)
	return runs, total, err
}

// PutTallies implements [store.Tallies].
func (s *Store) PutTallies(ctx context.Context, list []store.Tally) error {
	if len(list) == 0 {
		return nil
	}
	macs := make([][]byte, len(list))
	for i, t := range list {
		macs[i] = s.key.Tally(t.Run, t.Seq, t.Data)
	}
	return s.submitRelaxed(ctx, func(w *writer) error { // the journals have everything
		for i, t := range list {
			if err := w.putTally(t, macs[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

func (w *writer) putTally(t store.Tally, mac []byte) error {
	var n int64
	var ended bool
	var last uint64
	switch err := w.row(runEnd, []any{t.Run}, &n, &ended, &last); {
	case errors.Is(err, sql.ErrNoRows):
		return nil // deleted since its journal was read
	case err != nil:
		return err
	}
	_, err := w.exec("DELETE FROM tallies WHERE run = ? AND seq <= ?", n, int64(t.Seq))
	if err == nil && len(t.Data) > 0 {
		_, err = w.exec(sumsOf("tallies").insert()+" ON CONFLICT DO NOTHING", n, t.Run, int64(t.Seq), t.Data, mac)
	}
	if err == nil && ended && t.Seq == last {
		err = w.caughtUp(t.Run, n, todoCount)
	}
	return err
}

// Tallies implements [store.Tallies].
func (s *Store) Tallies(ctx context.Context, each func(store.Tally) error) error {
	return s.each(ctx, "SELECT id, seq, data, mac FROM tallies ORDER BY run DESC", nil, func(rows *sql.Rows) error {
		var t store.Tally
		var data, mac sql.RawBytes
		if err := rows.Scan(&t.Run, &t.Seq, &data, &mac); err != nil {
			return s.readError(ctx, err)
		}
		t.Data = data
		if !s.key.OwnTally(t.Run, t.Seq, t.Data, mac) {
			return nil
		}
		return each(t)
	})
}
