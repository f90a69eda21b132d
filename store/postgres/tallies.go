package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
)

// The bits of pending.todo.
const (
	todoCount = 1 // the summary is missing or outdated
	todoText  = 2 // the index of texts may lack events
)

const (
	// pendingRuns is a condition on rows of runs. Its parameter is one of the bits.
	pendingRuns = "n IN (SELECT run FROM @pending WHERE todo & $1::int <> 0)"
	endedRuns   = "state IN ('completed', 'failed', 'cancelled')"
	// runEnd is a query for the end of a run: its primary key, whether it has ended, and its last event. It locks the
	// run against deletion.
	runEnd = "SELECT n, " + endedRuns + ", " + lastEvent + " FROM @runs AS runs WHERE id = $1 FOR SHARE"
)

// caughtUp clears a bit of a run in pending.
func (t *tx) caughtUp(n int64, bit int) {
	t.queue("UPDATE @pending SET todo = todo & ~$2::int WHERE run = $1", n, bit)
	t.queue("DELETE FROM @pending WHERE run = $1 AND todo = 0", n)
}

// Uncounted implements [store.Tallies].
func (s *Store) Uncounted(ctx context.Context, ended bool, limit int) (runs []tenon.Run, total int, err error) {
	if limit == 0 {
		limit = 100
	}
	cond := " WHERE " + pendingRuns
	count := "SELECT count(*) FROM @pending WHERE todo & $1::int <> 0"
	if ended {
		cond += " AND " + endedRuns
		count = "SELECT count(*) FROM @runs" + cond
	}
	err = s.each(ctx, count, []any{todoCount}, func(rows pgx.Rows) error { return rows.Scan(&total) })
	if err != nil || total == 0 || limit < 0 {
		return nil, total, err
	}
	runs, err = s.runs(ctx, selectRuns+cond+" ORDER BY n DESC LIMIT $2::bigint", todoCount, limit)
	return runs, total, err
}

// PutTallies implements [store.Tallies].
func (s *Store) PutTallies(ctx context.Context, list []store.Tally) error {
	if len(list) == 0 {
		return nil
	}
	macs := make([][]byte, len(list))
	for i, v := range list {
		macs[i] = s.key.Tally(v.Run, v.Seq, v.Data)
	}
	return s.single(ctx, func(t *tx) error {
		for i, v := range list {
			if err := t.putTally(v, macs[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

func (t *tx) putTally(v store.Tally, mac []byte) error {
	var n int64
	var ended bool
	var last uint64
	switch err := t.row(runEnd, []any{v.Run}, &n, &ended, &last); {
	case isNone(err):
		return nil // the run was deleted after its journal was read
	case err != nil:
		return err
	}
	t.queue("DELETE FROM @tallies WHERE run = $1 AND seq <= $2", n, int64(v.Seq))
	if len(v.Data) > 0 {
		t.queue("INSERT INTO @tallies (run, id, seq, data, mac) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING", n,
			v.Run, int64(v.Seq), v.Data, mac)
	}
	if ended && v.Seq == last {
		t.caughtUp(n, todoCount)
	}
	return nil
}

// Tallies implements [store.Tallies].
func (s *Store) Tallies(ctx context.Context, each func(store.Tally) error) error {
	return s.each(ctx, "SELECT id, seq, data, mac FROM @tallies ORDER BY run DESC", nil, func(rows pgx.Rows) error {
		var v store.Tally
		var mac []byte
		if err := scan(rows, &v.Run, &v.Seq, &v.Data, &mac); err != nil {
			return err
		}
		if !s.key.OwnTally(v.Run, v.Seq, v.Data, mac) {
			return nil
		}
		return callerError(each(v))
	})
}
