package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"unicode"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/forms"
	"github.com/tenonhq/tenon/store/signed"
)

// Events implements [store.Journal].
func (s *Store) Events(ctx context.Context, run string, after uint64, limit int) ([]tenon.Event, error) {
	if limit <= 0 {
		limit = math.MaxInt
	}
	r := eventReader{s: s, run: run, after: after, limit: limit, strict: s.key != nil && store.IsOwnOnly(ctx)}
	err := s.each(ctx, selectEvents, []any{run, int64(after)}, func(rows *sql.Rows) error {
		// Rows come in the order of the index, so the rows after the last one needed are not read. With the limit in
		// its text, there would be many different statements.
		err := r.scan(ctx, rows)
		if err == nil && len(r.events) == limit {
			err = errEnough
		}
		return err
	})
	events := r.events
	if err != nil {
		return nil, err
	}
	if len(events) == 0 {
		there := false
		err := s.each(ctx, "SELECT 1 FROM runs WHERE id = ?", []any{run}, func(*sql.Rows) error {
			there = true
			return nil
		})
		if err == nil && !there {
			err = tenon.Errorf(tenon.CodeNotFound, "no run %s", run)
		}
		if err != nil {
			return nil, err
		}
	}
	return events, nil
}

// eventReader reads the events of a run after a given one.
type eventReader struct {
	s      *Store
	run    string
	after  uint64
	limit  int
	strict bool // rows must be the user's own, without a gap between them
	end    uint64
	events []tenon.Event
}

// scan adds the events of a row.
func (r *eventReader) scan(ctx context.Context, rows *sql.Rows) error {
	e := signed.Events{Run: r.run}
	var at, chapter int64
	var blob, mac []byte
	var sum sql.NullInt64
	if err := rows.Scan(&e.Seq, &e.N, &at, &e.Packed, &e.Blob, &blob, &mac, &chapter, &sum); err != nil {
		return r.s.readError(ctx, err)
	}
	e.Last = forms.FromNanos(at)
	if r.strict && (!r.s.key.OwnEvents(&e, mac) || e.Seq > max(r.after, r.end)+1) {
		return store.ErrForeign(r.run)
	}
	if sum.Valid && sum.Int64 != eventsSum(chapter, e.Seq, e.N, at, e.Packed, e.Blob, mac) {
		return r.s.damaged(fmt.Sprintf("event %d of run %s", e.Seq, r.run))
	}
	r.end = e.Seq + uint64(e.N) - 1
	packed := e.Packed
	for seq := e.Seq; seq <= r.end && len(r.events) < r.limit; seq++ {
		event := tenon.Event{Run: r.run, Seq: seq}
		var err error
		if packed, err = forms.Unpack(packed, &event); err != nil {
			return r.s.damaged(fmt.Sprintf("event %d of run %s", seq, r.run))
		}
		if e.Blob != nil {
			if sum := sha256.Sum256(blob); string(sum[:]) != string(e.Blob) {
				return r.s.damaged(forms.DigestName(e.Blob))
			}
			event.Data = blob
		}
		if seq > r.after {
			r.events = append(r.events, event)
		}
	}
	return nil
}

// selectRuns reads rows of runs; the last column says whether the row is damaged.
func selectRuns() string { return selectRunColumns + ", " + sumsOf("runs").damaged() + " FROM runs" }

const selectRunColumns = `SELECT id, session, principal, caller, parent, parent_seq, core, agent, model, title, state,
	stop, created,
	max(updated, coalesce((SELECT e.last ` + lastRow + `), 0)),
	coalesce((SELECT e.seq + e.n - 1 ` + lastRow + `), 0), waiting, imported, mac`

// Run implements [store.Journal].
func (s *Store) Run(ctx context.Context, id string) (tenon.Run, error) {
	rows, err := s.runs(ctx, selectRuns()+" WHERE id = ?", id)
	if err != nil {
		return tenon.Run{}, err
	}
	if len(rows) == 0 {
		return tenon.Run{}, tenon.Errorf(tenon.CodeNotFound, "no run %s", id)
	}
	if rows[0].Foreign && store.IsOwnOnly(ctx) {
		return tenon.Run{}, store.ErrForeign(id)
	}
	return rows[0], nil
}

// Runs implements [store.Journal].
func (s *Store) Runs(ctx context.Context, f store.RunFilter) ([]tenon.Run, error) {
	var where []string
	var args []any
	add := func(cond string, arg any) { where, args = append(where, cond), append(args, arg) }
	if f.Session != "" {
		add("session = ?", f.Session)
	}
	if f.State != "" {
		add("state = ?", string(f.State))
	}
	if f.Parent != "" {
		add("parent = ?", f.Parent)
	}
	if f.Principal != "" {
		add("principal = ?", string(f.Principal))
	}
	if f.Caller != "" {
		add("caller = ?", f.Caller)
	}
	if f.Top {
		where = append(where, "caller = ''")
	}
	if f.Prefix != "" {
		add("id >= ?", f.Prefix)
		add("id <= ?", f.Prefix+string(unicode.MaxRune))
		add("instr(id, ?) = 1", f.Prefix)
	}
	if f.Before != "" {
		add("id < ?", f.Before)
	}
	if !f.Expired.IsZero() {
		where = append(where, "state = 'input_required' AND instr(waiting, '\"expires\":') > 0")
	}
	cond := ""
	if len(where) > 0 {
		cond = " WHERE " + strings.Join(where, " AND ")
	}
	if f.Limit <= 0 {
		f.Limit = 100
	}
	if f.Except != nil {
		return s.runsExcept(ctx, "SELECT id FROM runs"+cond+" ORDER BY id DESC", args, f)
	}
	return s.runs(ctx, selectRuns()+cond+fmt.Sprint(" ORDER BY id DESC LIMIT ", f.Limit), args...)
}

// runsExcept reads only the ids first, because reading a whole row takes several times longer.
func (s *Store) runsExcept(ctx context.Context, query string, args []any, f store.RunFilter) ([]tenon.Run, error) {
	var ids []string
	err := s.each(ctx, query, args, func(rows *sql.Rows) error {
		var id string
		if err := rows.Scan(&id); err != nil {
			return s.readError(ctx, err)
		}
		if !f.Except(id) {
			ids = append(ids, id)
		}
		if len(ids) == f.Limit {
			return errEnough
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var runs []tenon.Run
	for _, id := range ids {
		r, err := s.Run(ctx, id)
		switch {
		case tenon.ErrorCode(err) == tenon.CodeNotFound: // deleted in the meantime
		case err != nil:
			return nil, err
		case f.State == "" || r.State == f.State:
			runs = append(runs, r)
		}
	}
	return runs, nil
}

func (s *Store) runs(ctx context.Context, query string, args ...any) ([]tenon.Run, error) {
	var runs []tenon.Run
	err := s.each(ctx, query, args, func(rows *sql.Rows) error {
		r, _, err := s.scanRun(rows)
		if err != nil {
			return s.readError(ctx, err)
		}
		runs = append(runs, r)
		return nil
	})
	return runs, err
}

// scanRun reads a row of selectRuns, and its MAC.
func (s *Store) scanRun(rows *sql.Rows) (r tenon.Run, mac []byte, err error) {
	var created, updated int64
	var waiting, imported []byte
	var damaged bool
	if err := rows.Scan(&r.ID, &r.Session, &r.Principal, &r.Caller, &r.Parent, &r.ParentSeq, &r.Core, &r.Agent,
		&r.Model, &r.Title,
		&r.State, &r.Stop, &created, &updated, &r.Seq, &waiting, &imported, &mac, &damaged); err != nil {
		return r, nil, err
	}
	r.Created, r.Updated = forms.FromNanos(created), forms.FromNanos(updated)
	if len(waiting) > 0 {
		if err := json.Unmarshal(waiting, &r.Waiting); err != nil {
			return r, nil, s.damaged("the row of run " + r.ID)
		}
	}
	if len(imported) > 0 {
		if err := json.Unmarshal(imported, &r.Imported); err != nil || r.Imported == nil {
			return r, nil, s.damaged("the row of run " + r.ID)
		}
	}
	r.Foreign = !s.key.OwnRun(&r, waiting, imported, mac)
	if damaged && !r.Foreign { // a foreign row is returned with its mark
		return r, nil, s.damaged("the row of run " + r.ID)
	}
	return r, mac, nil
}

func (s *Store) readError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return tenon.Errorf(tenon.CodeCancelled, "store %s: not read: %w", s.path, ctx.Err())
	}
	return storeError(s.path, "read", err)
}

func (s *Store) damaged(what string) error {
	return tenon.Errorf(tenon.CodeStore, "store %s: %s is damaged; "+remedyDamaged, s.path, what)
}
