package sqlite

import (
	"context"
	"database/sql"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/forms"
)

// PutSession implements [store.Sessions].
func (s *Store) PutSession(ctx context.Context, v tenon.Session) error {
	if v.ID == "" {
		return tenon.Errorf(tenon.CodeInvalid, "store: a session needs an id")
	}
	if v.Created.IsZero() {
		v.Created = s.now()
	}
	if v.Updated.IsZero() {
		v.Updated = v.Created
	}
	return s.submit(ctx, func(w *writer) error {
		head, seq, runs, err := w.headOf(v.ID)
		if err != nil {
			return err
		}
		v := v // the write may be made again
		if runs > 0 {
			v.Head, v.HeadSeq = head, seq
		}
		return w.putSession(v)
	})
}

func (w *writer) putSession(v tenon.Session) error {
	mac := w.s.key.Session(v.ID, v.Principal)
	if v.Foreign { // it was read as foreign, and stays foreign
		mac = nil
	}
	_, err := w.stmts.putSession.exec(v.ID, v.Title, v.Agent, string(v.Principal), v.Parent, v.Head,
		int64(v.HeadSeq), 0, forms.Nanos(v.Created), forms.Nanos(v.Updated), forms.Nanos(v.Imported), mac)
	return err
}

// selectSessions reads sessions; the last column says whether the row is damaged.
func selectSessions() string {
	return "SELECT id, title, agent, principal, parent, head, head_seq, runs, created, updated, imported, mac, " +
		sumsOf("sessions").damaged() + " FROM sessions"
}

// noOpenRun is true for a session whose runs have all ended.
const noOpenRun = `NOT EXISTS (SELECT 1 FROM runs WHERE session = sessions.id
	AND state IN ('working', 'input_required'))`

// Session implements [store.Sessions].
func (s *Store) Session(ctx context.Context, id string) (tenon.Session, error) {
	list, err := s.sessions(ctx, selectSessions()+" WHERE id = ?", id)
	if err != nil {
		return tenon.Session{}, err
	}
	if len(list) == 0 {
		return tenon.Session{}, tenon.Errorf(tenon.CodeNotFound, "no session %s", id)
	}
	return list[0], nil
}

// Sessions implements [store.Sessions].
func (s *Store) Sessions(ctx context.Context, f store.SessionFilter) ([]tenon.Session, error) {
	var where []string
	var args []any
	add := func(cond string, arg ...any) { where, args = append(where, cond), append(args, arg...) }
	if f.Before != "" {
		if f.BeforeAt.IsZero() {
			last, err := s.Session(ctx, f.Before)
			if err != nil {
				return nil, err
			}
			f.BeforeAt = last.Updated
		}
		add("(updated, id) < (?, ?)", forms.Nanos(f.BeforeAt), f.Before)
	}
	if f.Principal != "" {
		add("principal = ?", string(f.Principal))
	}
	if f.Parent != "" {
		add("parent = ? AND parent <> ''", f.Parent) // the index has only parents
	}
	if f.Prefix != "" {
		add("id >= ? AND instr(id, ?) = 1", f.Prefix, f.Prefix)
	}
	if !f.UpdatedBefore.IsZero() {
		at := forms.Nanos(f.UpdatedBefore)
		add("updated < ? AND imported < ?", at, at)
	}
	if f.Ended {
		add(noOpenRun)
	}
	q := selectSessions()
	if len(where) > 0 {
		q += " WHERE " + strings.Join(where, " AND ")
	}
	if f.Limit <= 0 {
		f.Limit = 100
	}
	list, err := s.sessions(ctx, q+" ORDER BY updated DESC, id DESC LIMIT ?", append(args, f.Limit)...)
	if f.Principal != "" { // a foreign session has no owner
		list = slices.DeleteFunc(list, func(v tenon.Session) bool { return v.Foreign })
	}
	return list, err
}

func (s *Store) sessions(ctx context.Context, query string, args ...any) ([]tenon.Session, error) {
	var list []tenon.Session
	err := s.each(ctx, query, args, func(rows *sql.Rows) error {
		var v tenon.Session
		var created, updated, imported int64
		var mac []byte
		var damaged bool
		if err := rows.Scan(&v.ID, &v.Title, &v.Agent, &v.Principal, &v.Parent, &v.Head, &v.HeadSeq, &v.Runs, &created,
			&updated, &imported, &mac, &damaged); err != nil {
			return s.readError(ctx, err)
		}
		v.Foreign = !s.key.OwnSession(v.ID, v.Principal, mac)
		if damaged && !v.Foreign {
			return s.damaged("session " + v.ID)
		}
		v.Created, v.Updated, v.Imported = forms.FromNanos(created), forms.FromNanos(updated), forms.FromNanos(imported)
		list = append(list, v)
		return nil
	})
	return list, err
}
