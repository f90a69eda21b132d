package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/forms"
	"github.com/tenonhq/tenon/store/signed"
)

// position is the end of a journal as the transaction sees it.
type position struct {
	n        int64 // primary key of the run's row
	seq      uint64
	imported bool
	base     []byte // the part of the row's MAC that later appends do not change; nil without a key
	foreign  bool
}

// errExpired means that the leases of this store have expired but that nobody has taken them yet. The heartbeat can
// still renew them.
var errExpired = errors.New("the leases of this replica have expired")

// hold locks the leases of runs that this store has, so that nobody can take them before the transaction ends. It
// returns the runs whose lease was lost. Expired leases cause errExpired, or count as lost if expiredIsLost is set.
func (t *tx) hold(runs []string, expiredIsLost bool) (lost map[string]bool, err error) {
	var names []string
	var epochs []int64
	lost = map[string]bool{}
	epochOf := map[string]int64{}
	t.s.mu.Lock()
	for _, run := range runs {
		if epoch := t.s.leases[run]; epoch != 0 {
			names, epochs, lost[run] = append(names, run), append(epochs, epoch), true
			epochOf[run] = epoch
		}
	}
	t.s.mu.Unlock()
	if len(names) == 0 {
		return nil, nil
	}
	expired := false
	err = t.query(`SELECT l.run, `+live+`, (SELECT w.era FROM @writers w WHERE w.replica = $3 AND w.slot = 0)
		FROM @leases l JOIN unnest($1::text[], $2::bigint[]) AS u (run, epoch)
		ON l.run = u.run AND l.epoch = u.epoch AND l.owner = $3 ORDER BY l.run FOR SHARE OF l`,
		[]any{names, epochs, t.s.replica},
		func(rows pgx.Rows) error {
			var run string
			var works bool
			err := scan(rows, &run, &works, &t.era)
			expired = expired || !works
			if works || !expiredIsLost {
				delete(lost, run)
				t.epochs[run] = epochOf[run]
			}
			return err
		})
	if err == nil && expired && !expiredIsLost {
		err = errExpired
	}
	return lost, err
}

// positions reads the positions of runs.
func (t *tx) positions(runs []string) error {
	return t.query(selectRuns+" WHERE id = ANY ($1::text[])", []any{runs}, func(rows pgx.Rows) error {
		r, err := t.s.scanRun(rows)
		if err != nil {
			return err
		}
		p := &position{n: r.n, seq: r.Seq, imported: r.Imported != nil, foreign: r.Foreign}
		if t.s.key != nil && !r.Foreign {
			p.base = r.mac[:signed.Size]
		}
		t.runs[r.ID] = p
		return nil
	})
}

// position returns the position of a run. It reads it if necessary.
func (t *tx) position(run string) (*position, error) {
	if p := t.runs[run]; p != nil {
		return p, nil
	}
	err := t.positions([]string{run})
	return t.runs[run], err
}

// Append implements [store.Journal].
func (s *Store) Append(ctx context.Context, a store.Append) error {
	switch {
	case a.Create != nil && a.Create.ID != a.Run:
		return tenon.Errorf(tenon.CodeInvalid, "store: the row of run %q is appended to run %q", a.Create.ID, a.Run)
	case a.Run == "":
		return tenon.Errorf(tenon.CodeInvalid, "store: an append without a run")
	}
	var waiting []byte
	if len(a.Waiting) > 0 {
		var err error
		if waiting, err = json.Marshal(a.Waiting); err != nil {
			return tenon.Errorf(tenon.CodeInvalid, "store: what run %s waits for is not JSON: %w", a.Run, err)
		}
	}
	rows := forms.RowsOf(a.Events, new([]byte))
	forms.Sign(s.key, a.Run, a.Events, rows)
	blobs := make([]blob, 0, len(a.Blobs)+len(a.Uses))
	for _, data := range a.Blobs {
		blobs = append(blobs, blobOf(data))
	}
	for _, digest := range a.Uses {
		sum, ok := forms.DigestOf(digest)
		if !ok {
			return forms.ErrNoBlob(digest)
		}
		blobs = append(blobs, blob{digest: sum})
	}
	return s.submit(ctx, a.Run, a.Create != nil, func(t *tx) error { return t.append(&a, rows, blobs, waiting) })
}

func (t *tx) append(a *store.Append, rows []forms.Row, blobs []blob, waiting []byte) error {
	pos := t.runs[a.Run]
	// Everything that may refuse the append is checked before the first write.
	switch {
	case t.lost[a.Run]:
		return refuse(tenon.CodeConflict, "run %s: the lease of this process has ended, and another replica may have "+
			"taken it over; nothing was stored", a.Run)
	case a.Create == nil && t.guess && (pos == nil || pos.n == 0):
		return errGuess
	case a.Create == nil && pos == nil:
		return refuse(tenon.CodeNotFound, "no run %s", a.Run)
	case a.Create != nil && pos != nil:
		return refuse(tenon.CodeConflict, "run %s exists", a.Run)
	case pos != nil && pos.imported:
		return refuse(tenon.CodeConflict, "run %s was imported, so that nothing is added to it", a.Run)
	case pos != nil && pos.foreign:
		return refused{store.ErrForeign(a.Run)}
	}
	var last uint64
	if pos != nil {
		last = pos.seq
	}
	for i := range a.Events {
		if got, want := a.Events[i].Seq, last+1+uint64(i); got != want {
			return refuse(tenon.CodeConflict,
				"run %s: event %d cannot be appended, the next one is %d: another process appends to this run", a.Run,
				got, want)
		}
	}
	if a.Create != nil {
		var err error
		if t.runs[a.Run], err = t.create(a, rows, blobs, waiting); err != nil {
			return err
		}
	} else {
		t.events(&t.inserts, pos, rows)
		if a.State != "" {
			t.state(pos, a, waiting)
		}
	}
	for id, seq := range a.Taken {
		t.queue("UPDATE @signals SET seq = $1 WHERE id = $2 AND seq = 0", int64(seq), id)
	}
	return nil
}

// free refuses an exclusive run if another run of its session has not ended, or if it does not continue the session at
// its end. It locks the session, because other replicas may begin a run at the same time.
func (t *tx) free(lock string, r *tenon.Run) error {
	if lock == "" {
		return nil
	}
	t.queue("SELECT pg_advisory_xact_lock(hashtextextended($1, 7429))", lock)
	var other, head string
	var headSeq, last int64
	err := t.row(`SELECT coalesce((SELECT id FROM @runs WHERE session = $1 AND state IN ('working', 'input_required')
			AND caller = '' LIMIT 1), ''), s.head, s.head_seq FROM @sessions AS s WHERE s.id = $1`,
		[]any{r.Session}, &other, &head, &headSeq)
	switch {
	case errors.Is(err, pgx.ErrNoRows): // a new session has no runs
		return nil
	case err != nil:
		return err
	case other != "":
		return refused{store.ErrBusy(r.Session, other)}
	}
	if headSeq == 0 && head != "" {
		p, err := t.position(head)
		if err != nil {
			return err
		}
		if p != nil {
			last = int64(p.seq)
		}
	}
	if err := store.Continues(r, head, uint64(headSeq), uint64(last)); err != nil {
		return refused{err}
	}
	return nil
}

// events adds the rows of events of an append to e.
func (t *tx) events(e *eventRows, pos *position, rows []forms.Row) {
	for i := range rows {
		r := &rows[i]
		if r.Digest != nil {
			t.queue(insertBlob, r.Digest, r.Blob)
		}
		e.runs, e.seqs, e.ns = append(e.runs, pos.n), append(e.seqs, int64(pos.seq+1)), append(e.ns, int64(r.N))
		e.lasts, e.events = append(e.lasts, forms.Nanos(r.Last)), append(e.events, r.Packed)
		e.blobs, e.macs = append(e.blobs, r.Digest), append(e.macs, r.MAC)
		pos.seq += uint64(r.N)
	}
}

// eventRows collects the rows of events of a transaction. One statement inserts all of them at the end of the
// transaction, so that the server parses one statement for all appends.
type eventRows struct {
	runs, seqs, ns, lasts []int64
	events, blobs, macs   [][]byte
}

// insertEvents queues the statement for the rows of all appends.
func (t *tx) insertEvents() {
	e := &t.inserts
	if len(e.runs) == 0 {
		return
	}
	t.queueArrays(`INSERT INTO @events (run, seq, n, last, events, blob, mac)
		SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]::int[], $4::bigint[], $5::bytea[], $6::bytea[],
			$7::bytea[])`, e.runs, e.seqs, e.ns, e.lasts, e.events, e.blobs, e.macs)
	t.inserts = eventRows{}
}

// idle is the value of idle_in_transaction_session_timeout.
func (s *Store) idle() string { return strconv.FormatInt((s.lease + time.Second).Milliseconds(), 10) }
