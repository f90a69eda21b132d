package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/forms"
	"github.com/tenonhq/tenon/store/signed"
)

// Foreign implements [store.Owners].
func (s *Store) Foreign(ctx context.Context) (store.Foreign, error) {
	w := survey{s: s, query: func(query string, args []any, row func(*sql.Rows) error) error {
		return s.each(ctx, query, args, func(rows *sql.Rows) error {
			if err := row(rows); err != nil {
				return s.readError(ctx, err)
			}
			return nil
		})
	}}
	return w.all()
}

// Adopt implements [store.Owners].
func (s *Store) Adopt(ctx context.Context, seen string) error {
	err := s.submit(ctx, func(w *writer) error {
		v := survey{s: s, query: w.query, exec: w.exec}
		found, err := v.all()
		switch {
		case err != nil:
			return err
		case found.IsEmpty():
			return nil
		case found.Digest != seen: // the transaction is rolled back
			return errChanged
		case found.TooMany:
			return errTooMany
		}
		clear(w.runs) // what the cache knows about foreign runs is outdated
		_, err = w.exec(recountAll)
		return err
	})
	switch {
	case errors.Is(err, errChanged):
		return tenon.Errorf(tenon.CodeConflict,
			"store %s: its foreign rows have changed since they were shown; show them again: tenon store show", s.path)
	case errors.Is(err, errTooMany):
		return tenon.Errorf(tenon.CodeTooLarge,
			"store %s: it holds more foreign rows than anybody would read (more than %d of a kind); revoke grants "+
				"and delete sessions first, or move the store away",
			s.path, store.MaxForeign)
	}
	return err
}

// Adopt may fail after its writes. So it returns these errors instead of errors of refuse, after which earlier writes
// are committed.
var (
	errChanged = errors.New("the foreign rows have changed")
	errTooMany = errors.New("too many foreign rows")
)

// survey checks all rows of a store. If exec is set, it also signs the foreign rows.
type survey struct {
	s     *Store
	query func(query string, args []any, row func(*sql.Rows) error) error
	exec  func(query string, args ...any) (int64, error)

	f      store.Foreign
	digest hash.Hash
	writes []write // the statements for the rows that were read last
}

// write is a statement that stores the MAC of a row.
type write struct {
	query string
	args  []any
}

func (v *survey) all() (store.Foreign, error) {
	v.f.Pinned, v.digest = map[string]int{}, sha256.New()
	if v.s.key == nil {
		return v.f, nil
	}
	for _, look := range []func() error{v.runs, v.signals, v.results, v.pins, v.grants, v.sessions} {
		if err := look(); err != nil {
			return v.f, err
		}
	}
	if !v.f.IsEmpty() {
		v.f.Digest = hex.EncodeToString(v.digest.Sum(nil))
	}
	return v.f, nil
}

// found counts a foreign row and prepares the statement that stores its MAC. The MAC depends on all values of the
// row, and so does the digest of the survey.
func (v *survey) found(mac []byte, query string, args ...any) {
	_, _ = v.digest.Write(mac) // a hash never fails
	if v.exec != nil {
		v.writes = append(v.writes, write{query, append([]any{mac}, args...)})
	}
}

// signRow returns a statement that stores the MAC (the first parameter) of a row, which it finds by the given columns.
func signRow(table string, by ...string) string {
	q := "UPDATE " + table + sumsOf(table).set("mac", "?1") + "WHERE "
	for i, c := range by {
		if i > 0 {
			q += " AND "
		}
		q += fmt.Sprint(c, " = ?", i+2)
	}
	return q
}

// flush writes the MACs of the rows that were read last.
func (v *survey) flush() error {
	for _, w := range v.writes {
		if _, err := v.exec(w.query, w.args...); err != nil {
			return err
		}
	}
	clear(v.writes)
	v.writes = v.writes[:0]
	return nil
}

// runsAtOnce is how many runs are read at a time.
const runsAtOnce = 200

func (v *survey) runs() error {
	for last := ""; ; {
		var page []surveyed
		err := v.query(selectRuns()+" WHERE id > ? ORDER BY id LIMIT ?", []any{last, runsAtOnce},
			func(rows *sql.Rows) error {
				r, _, err := v.s.scanRun(rows)
				page = append(page, surveyed{Run: r})
				return err
			})
		if err != nil || len(page) == 0 {
			return err
		}
		last = page[len(page)-1].ID
		for i := range page {
			if err := v.run(&page[i]); err != nil {
				return err
			}
		}
	}
}

// surveyed is the row of a run, with the JSON of its columns.
type surveyed struct {
	tenon.Run
	n                 int64
	waiting, imported []byte
}

func (v *survey) run(r *surveyed) error {
	err := v.query("SELECT n, waiting, imported FROM runs WHERE id = ?", []any{r.ID}, func(rows *sql.Rows) error {
		return rows.Scan(&r.n, &r.waiting, &r.imported)
	})
	if err != nil {
		return err
	}
	foreign := r.Foreign
	if r.Foreign {
		base := v.s.key.RunBase(&r.Run, r.imported)
		v.found(v.s.key.RunRow(base, r.ID, r.State, r.Stop, r.waiting, r.Seq), signRow("runs", "n"),
			r.n)
	}
	err = v.query(`SELECT e.rowid, e.seq, e.n, e.last, e.events, e.blob, e.mac FROM chapters c JOIN events e
		ON e.chapter = c.n
		WHERE c.run = ? ORDER BY c.first, e.seq`, []any{r.n}, func(rows *sql.Rows) error {
		e := signed.Events{Run: r.ID}
		var id, at int64
		var mac []byte
		if err := rows.Scan(&id, &e.Seq, &e.N, &at, &e.Packed, &e.Blob, &mac); err != nil {
			return err
		}
		e.Last = forms.FromNanos(at)
		if !v.s.key.OwnEvents(&e, mac) {
			foreign = true
			v.f.Events++
			v.found(v.s.key.Events(&e), signRow("events", "rowid"), id)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if foreign {
		v.f.Runs++
		if !r.State.Ended() {
			if len(v.f.Unended) < store.MaxForeign {
				v.f.Unended = append(v.f.Unended, r.Run)
			} else {
				v.f.TooMany = true
			}
		}
	}
	return v.flush()
}

func (v *survey) signals() error {
	err := v.query(selectSignals()+" ORDER BY n", nil, func(rows *sql.Rows) error {
		g, mac, _, err := scanSignal(rows)
		if err != nil || v.s.key.OwnSignal(&g, mac) {
			return err
		}
		v.f.Signals++
		if g.Seq == 0 {
			if len(v.f.Open) < store.MaxForeign {
				v.f.Open = append(v.f.Open, g)
			} else {
				v.f.TooMany = true
			}
		}
		v.found(v.s.key.Signal(&g), signRow("signals", "id"), g.ID)
		return nil
	})
	if err != nil {
		return err
	}
	return v.flush()
}

func (v *survey) results() error {
	err := v.query("SELECT key, run, step, expires, data, mac FROM results ORDER BY key", nil,
		func(rows *sql.Rows) error {
			var r store.KeptResult
			var expires int64
			var data, mac []byte
			if err := rows.Scan(&r.Key, &r.Run, &r.Step, &expires, &data, &mac); err != nil {
				return err
			}
			r.Expires, r.Data = forms.FromNanos(expires), json.RawMessage(data)
			if !v.s.key.OwnResult(&r, mac) {
				v.f.Results++
				v.found(v.s.key.Result(&r), signRow("results", "key"), r.Key)
			}
			return nil
		})
	if err != nil {
		return err
	}
	return v.flush()
}

func (v *survey) pins() error {
	err := v.query(selectPins+" ORDER BY server, remote", nil, func(rows *sql.Rows) error {
		p, mac, err := scanPin(rows)
		if err == nil && !v.s.key.OwnPin(&p, mac) {
			v.f.Pins++
			if _, known := v.f.Pinned[p.Server]; known || len(v.f.Pinned) < store.MaxForeign {
				v.f.Pinned[p.Server]++
			} else {
				v.f.TooMany = true
			}
			v.found(v.s.key.Pin(&p), signRow("pins", "server", "remote"), p.Server, p.Remote)
		}
		return err
	})
	if err != nil {
		return err
	}
	return v.flush()
}

func (v *survey) grants() error {
	err := v.query(selectGrants+" ORDER BY principal, name, remote, created, id", nil, func(rows *sql.Rows) error {
		g, mac, err := scanGrant(rows)
		if err == nil && !v.s.key.OwnGrant(&g, mac) {
			g.Foreign = true
			v.f.Grants++
			if len(v.f.Granted) < store.MaxForeign {
				v.f.Granted = append(v.f.Granted, g)
			} else {
				v.f.TooMany = true
			}
			v.found(v.s.key.Grant(&g), signRow("grants", "id"), g.ID)
		}
		return err
	})
	if err != nil {
		return err
	}
	return v.flush()
}

func (v *survey) sessions() error {
	err := v.query("SELECT id, principal, mac FROM sessions ORDER BY id", nil, func(rows *sql.Rows) error {
		var id, owner string
		var mac []byte
		err := rows.Scan(&id, &owner, &mac)
		if err == nil && !v.s.key.OwnSession(id, tenon.Principal(owner), mac) {
			v.f.Sessions++
			v.found(v.s.key.Session(id, tenon.Principal(owner)), signRow("sessions", "id"), id)
		}
		return err
	})
	if err != nil {
		return err
	}
	return v.flush()
}
