package postgres

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/forms"
)

// PutSession implements [store.Sessions].
func (s *Store) PutSession(ctx context.Context, v tenon.Session) error {
	if v.ID == "" {
		return tenon.Errorf(tenon.CodeInvalid, "store: a session needs an id")
	}
	s.setTimes(&v)
	return s.single(ctx, func(t *tx) error {
		v := v // the write may be made again
		var seq int64
		err := t.row("SELECT head, head_seq FROM @sessions WHERE id = $1 AND runs > 0 FOR UPDATE", []any{v.ID}, &v.Head,
			&seq)
		switch {
		case err == nil:
			v.HeadSeq = uint64(seq)
		case !errors.Is(err, pgx.ErrNoRows):
			return err
		}
		t.putSession(v)
		return nil
	})
}

// setTimes sets the missing times of a session.
func (s *Store) setTimes(v *tenon.Session) {
	if v.Created.IsZero() {
		v.Created = s.now()
	}
	if v.Updated.IsZero() {
		v.Updated = v.Created
	}
}

func (t *tx) putSession(v tenon.Session) {
	mac := t.s.key.Session(v.ID, v.Principal)
	if v.Foreign { // a session that was foreign when it was read stays foreign
		mac = nil
	}
	t.queue(`INSERT INTO @sessions (id, title, agent, principal, parent, head, head_seq, runs, created, updated,
			imported, mac) VALUES ($1, $2, $3, $4, $5, $6, $7, 0, $8, $9, $10, $11)
		ON CONFLICT (id) DO UPDATE SET title = excluded.title, agent = excluded.agent, principal = excluded.principal,
			parent = excluded.parent, head = excluded.head, head_seq = excluded.head_seq, created = excluded.created,
			updated = excluded.updated, imported = excluded.imported, mac = excluded.mac`,
		v.ID, v.Title, v.Agent, string(v.Principal), v.Parent, v.Head, int64(v.HeadSeq), forms.Nanos(v.Created),
		forms.Nanos(v.Updated), forms.Nanos(v.Imported), mac)
}

const selectSessions = "SELECT id, title, agent, principal, parent, head, head_seq, runs, created, updated, " +
	"imported, mac FROM @sessions AS sessions"

// noOpenRun is the condition that all runs of a session have ended.
const noOpenRun = `NOT EXISTS (SELECT 1 FROM @runs WHERE session = sessions.id
	AND state IN ('working', 'input_required'))`

// Session implements [store.Sessions].
func (s *Store) Session(ctx context.Context, id string) (tenon.Session, error) {
	list, err := s.sessions(ctx, selectSessions+" WHERE id = $1", id)
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
	var c conditions
	if f.Before != "" {
		if f.BeforeAt.IsZero() {
			last, err := s.Session(ctx, f.Before)
			if err != nil {
				return nil, err
			}
			f.BeforeAt = last.Updated
		}
		c.add("(updated, id) < (?, ?)", forms.Nanos(f.BeforeAt), f.Before)
	}
	if f.Principal != "" {
		c.add("principal = ?", string(f.Principal))
	}
	if f.Parent != "" {
		c.add("parent = ? AND parent <> ''", f.Parent) // the condition lets PostgreSQL use the partial index
	}
	if f.Prefix != "" {
		c.add("id >= ? AND starts_with(id, ?)", f.Prefix, f.Prefix)
	}
	if !f.UpdatedBefore.IsZero() {
		at := forms.Nanos(f.UpdatedBefore)
		c.add("updated < ? AND imported < ?", at, at)
	}
	if f.Ended {
		c.add(noOpenRun)
	}
	if f.Limit <= 0 {
		f.Limit = 100
	}
	c.args = append(c.args, int64(f.Limit))
	list, err := s.sessions(ctx, selectSessions+c.String()+" ORDER BY updated DESC, id DESC LIMIT "+c.last(), c.args...)
	if f.Principal != "" { // nobody owns a foreign session
		list = slices.DeleteFunc(list, func(v tenon.Session) bool { return v.Foreign })
	}
	return list, err
}

func (s *Store) sessions(ctx context.Context, query string, args ...any) ([]tenon.Session, error) {
	var list []tenon.Session
	err := s.each(ctx, query, args, func(rows pgx.Rows) error {
		var v tenon.Session
		var created, updated, imported int64
		var mac []byte
		if err := scan(rows, &v.ID, &v.Title, &v.Agent, &v.Principal, &v.Parent, &v.Head, &v.HeadSeq, &v.Runs, &created,
			&updated, &imported, &mac); err != nil {
			return err
		}
		v.Foreign = !s.key.OwnSession(v.ID, v.Principal, mac)
		v.Created, v.Updated, v.Imported = forms.FromNanos(created), forms.FromNanos(updated), forms.FromNanos(imported)
		list = append(list, v)
		return nil
	})
	return list, err
}

// importedRun is a run of an import, in its stored form.
type importedRun struct {
	run   tenon.Run
	rows  []forms.Row
	blobs []blob
}

// ImportSession implements [store.Sessions].
func (s *Store) ImportSession(ctx context.Context, im store.Import) error {
	if err := forms.CheckImport(&im); err != nil {
		return err
	}
	blobs := make(map[string]blob, len(im.Blobs))
	for _, data := range im.Blobs {
		b := blobOf(data)
		blobs[forms.DigestName(b.digest)] = b
	}
	runs := make([]importedRun, len(im.Runs))
	for i, r := range im.Runs {
		x := importedRun{run: r.Run, rows: forms.RowsOf(r.Events, new([]byte))}
		forms.Sign(s.key, r.Run.ID, r.Events, x.rows)
		for _, digest := range r.Uses {
			x.blobs = append(x.blobs, blobs[digest])
		}
		runs[i] = x
	}
	return s.single(ctx, func(t *tx) error { return t.importSession(im.Sessions, runs) })
}

func (t *tx) importSession(sessions []tenon.Session, runs []importedRun) error {
	seen := map[string]bool{}
	for _, v := range sessions {
		var there bool
		if err := t.row("SELECT EXISTS (SELECT 1 FROM @sessions WHERE id = $1)", []any{v.ID}, &there); err != nil {
			return err
		}
		if there || seen[v.ID] {
			return refuse(tenon.CodeConflict, "session %s exists", v.ID)
		}
		seen[v.ID] = true
	}
	for _, r := range runs {
		pos, err := t.position(r.run.ID)
		if err != nil {
			return err
		}
		if pos != nil {
			return refuse(tenon.CodeConflict, "run %s exists", r.run.ID)
		}
		if !seen[r.run.Session] {
			return refuse(tenon.CodeInvalid, "store: run %s of an import is of session %s, which is not part of it",
				r.run.ID, r.run.Session)
		}
		a := store.Append{Create: &r.run, Run: r.run.ID}
		if t.runs[a.Run], err = t.create(&a, r.rows, r.blobs, nil); err != nil {
			return err
		}
	}
	for _, v := range sessions { // after the runs, which change the heads of their sessions
		t.s.setTimes(&v)
		t.putSession(v)
	}
	return nil
}

// scanID returns a function that appends the only column of a row to a list.
func scanID(list *[]string) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var id string
		err := scan(rows, &id)
		*list = append(*list, id)
		return err
	}
}
