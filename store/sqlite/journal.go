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
)

// Events implements [store.Journal].
func (s *Store) Events(ctx context.Context, run string, after uint64, limit int) ([]tenon.Event, error) {
	if limit <= 0 {
		limit = math.MaxInt
	}
	var events []tenon.Event
	err := s.each(ctx, selectEvents, []any{run, int64(after)}, func(rows *sql.Rows) (err error) {
		// Rows come in the order of the index, so those after the last one are not
		// read. With a limit in its text there would be many such statements.
		if events, err = s.scanEvents(ctx, rows, events, run, after, limit); err == nil && len(events) == limit {
			err = errEnough
		}
		return err
	})
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

// scanEvents adds the events of a row that come after the given one.
func (s *Store) scanEvents(ctx context.Context, rows *sql.Rows, events []tenon.Event, run string, after uint64, limit int) ([]tenon.Event, error) {
	var seq uint64
	var n int
	var packed, digest, blob []byte
	if err := rows.Scan(&seq, &n, &packed, &digest, &blob); err != nil {
		return nil, s.readError(ctx, err)
	}
	for ; n > 0 && len(events) < limit; n, seq = n-1, seq+1 {
		e := tenon.Event{Run: run, Seq: seq}
		var err error
		if packed, err = unpack(packed, &e); err != nil {
			return nil, s.damaged(fmt.Sprintf("event %d of run %s", seq, run))
		}
		if digest != nil {
			if sum := sha256.Sum256(blob); string(sum[:]) != string(digest) {
				return nil, s.damaged(digestName(digest))
			}
			e.Data = blob
		}
		if seq > after {
			events = append(events, e)
		}
	}
	return events, nil
}

const selectRuns = `SELECT id, session, principal, caller, parent, parent_seq, core, agent, model, title, state, stop, created,
	max(updated, coalesce((SELECT e.last ` + lastRow + `), 0)),
	coalesce((SELECT e.seq + e.n - 1 ` + lastRow + `), 0), waiting, imported FROM runs`

// Run implements [store.Journal].
func (s *Store) Run(ctx context.Context, id string) (tenon.Run, error) {
	rows, err := s.runs(ctx, selectRuns+" WHERE id = ?", id)
	if err != nil {
		return tenon.Run{}, err
	}
	if len(rows) == 0 {
		return tenon.Run{}, tenon.Errorf(tenon.CodeNotFound, "no run %s", id)
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
	return s.runs(ctx, selectRuns+cond+fmt.Sprint(" ORDER BY id DESC LIMIT ", f.Limit), args...)
}

// runsExcept reads the ids first, since a whole row takes several times longer.
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
		case tenon.ErrorCode(err) == tenon.CodeNotFound: // deleted a moment ago
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
		var r tenon.Run
		var created, updated int64
		var waiting, imported []byte
		if err := rows.Scan(&r.ID, &r.Session, &r.Principal, &r.Caller, &r.Parent, &r.ParentSeq, &r.Core, &r.Agent, &r.Model, &r.Title,
			&r.State, &r.Stop, &created, &updated, &r.Seq, &waiting, &imported); err != nil {
			return s.readError(ctx, err)
		}
		r.Created, r.Updated = fromNanos(created), fromNanos(updated)
		if len(waiting) > 0 {
			if err := json.Unmarshal(waiting, &r.Waiting); err != nil {
				return s.damaged("the row of run " + r.ID)
			}
		}
		if len(imported) > 0 {
			if err := json.Unmarshal(imported, &r.Imported); err != nil || r.Imported == nil {
				return s.damaged("the row of run " + r.ID)
			}
		}
		runs = append(runs, r)
		return nil
	})
	return runs, err
}

func (s *Store) readError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return tenon.Errorf(tenon.CodeCancelled, "store %s: not read: %w", s.path, ctx.Err())
	}
	return storeError(s.path, "read", err)
}

func (s *Store) damaged(what string) error {
	return tenon.Errorf(tenon.CodeStore, "store %s: %s is damaged: put back a backup", s.path, what)
}
