package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"

	"github.com/jackc/pgx/v5"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/forms"
	"github.com/tenonhq/tenon/store/signed"
)

// Foreign implements [store.Owners].
func (s *Store) Foreign(ctx context.Context) (store.Foreign, error) {
	v := survey{s: s, query: func(query string, args []any, row func(pgx.Rows) error) error {
		return s.each(ctx, query, args, row)
	}}
	return v.all()
}

// Adopt implements [store.Owners].
func (s *Store) Adopt(ctx context.Context, seen string) error {
	err := s.single(ctx, func(t *tx) error {
		v := survey{s: s, query: t.query, exec: func(query string, args ...any) error {
			_, err := t.exec(query, args...)
			return err
		}}
		found, err := v.all()
		switch {
		case err != nil:
			return err
		case found.IsEmpty():
			return nil
		case found.Digest != seen: // the transaction is rolled back
			return refused{errSeen}
		case found.TooMany:
			return refused{errTooMany}
		}
		// The summaries of foreign runs have other MACs, or do not exist.
		t.queue(`INSERT INTO @pending AS p (run, todo) SELECT n, 1 FROM @runs
			ON CONFLICT (run) DO UPDATE SET todo = p.todo | 1`)
		if s.key != nil { // all rows belong to this key now
			name := s.newMark()
			t.queue("DELETE FROM @marks")
			t.queue("INSERT INTO @marks (name, mac) VALUES ($1, $2)", name, s.key.Mark(name))
		}
		return nil
	})
	switch {
	case errors.Is(err, errSeen):
		return tenon.Errorf(tenon.CodeConflict,
			"store %s: its foreign rows have changed since they were shown; show them again: tenon store show", s.name)
	case errors.Is(err, errTooMany):
		return tenon.Errorf(tenon.CodeTooLarge,
			"store %s: it holds more foreign rows than anybody would read (more than %d of a kind); revoke grants "+
				"and delete sessions first", s.name, store.MaxForeign)
	}
	return err
}

var (
	errSeen    = errors.New("the foreign rows have changed")
	errTooMany = errors.New("too many foreign rows")
)

// survey checks all rows of a store. If exec is not nil, it signs the foreign rows.
type survey struct {
	s     *Store
	query func(query string, args []any, row func(pgx.Rows) error) error
	exec  func(query string, args ...any) error

	f      store.Foreign
	digest hash.Hash
	writes []write // updates for the rows that were read last
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
		if err := v.flush(); err != nil {
			return v.f, err
		}
	}
	if !v.f.IsEmpty() {
		v.f.Digest = hex.EncodeToString(v.digest.Sum(nil))
	}
	return v.f, nil
}

// found counts a foreign row. mac is the MAC that the row would have. It depends on all values of the row, so the
// digest of the MACs depends on them, too. condition selects the row.
func (v *survey) found(mac []byte, table, condition string, args ...any) {
	_, _ = v.digest.Write(mac) // a hash never fails
	if v.exec != nil {
		v.writes = append(v.writes, write{"UPDATE @" + table + " SET mac = $1 WHERE " + condition,
			append([]any{mac}, args...)})
	}
}

// flush executes the collected writes.
func (v *survey) flush() error {
	for _, w := range v.writes {
		if err := v.exec(w.query, w.args...); err != nil {
			return err
		}
	}
	v.writes = v.writes[:0]
	return nil
}

// runsAtOnce is the number of runs that are read at a time.
const runsAtOnce = 200

func (v *survey) runs() error {
	for last := ""; ; {
		var page []*runRow
		err := v.query(selectRuns+" WHERE id > $1 ORDER BY id LIMIT $2::bigint", []any{last, runsAtOnce},
			func(rows pgx.Rows) error {
				r, err := v.s.scanRun(rows)
				page = append(page, r)
				return err
			})
		if err != nil || len(page) == 0 {
			return err
		}
		last = page[len(page)-1].ID
		for _, r := range page {
			if err := v.run(r); err != nil {
				return err
			}
		}
	}
}

func (v *survey) run(r *runRow) error {
	foreign := r.Foreign
	if r.Foreign {
		base := v.s.key.RunBase(&r.Run, r.imported)
		v.found(v.s.key.RunRow(base, r.ID, r.State, r.Stop, r.waiting, r.Seq), "runs", "n = $2", r.n)
	}
	err := v.query("SELECT seq, n, last, events, blob, mac FROM @events WHERE run = $1 ORDER BY seq", []any{r.n},
		func(rows pgx.Rows) error {
			e := signed.Events{Run: r.ID}
			var at int64
			var mac []byte
			if err := rows.Scan(&e.Seq, &e.N, &at, &e.Packed, &e.Blob, &mac); err != nil {
				return err
			}
			e.Last = forms.FromNanos(at)
			if !v.s.key.OwnEvents(&e, mac) {
				foreign = true
				v.f.Events++
				v.found(v.s.key.Events(&e), "events", "run = $2 AND seq = $3", r.n, int64(e.Seq))
			}
			return nil
		})
	if err != nil {
		return err
	}
	if foreign {
		v.f.Runs++
		if !r.State.Ended() {
			if v.room(len(v.f.Unended)) {
				v.f.Unended = append(v.f.Unended, r.Run)
			}
		}
	}
	return v.flush()
}

// room reports whether a list may get one more row.
func (v *survey) room(n int) bool {
	v.f.TooMany = v.f.TooMany || n >= store.MaxForeign
	return n < store.MaxForeign
}

func (v *survey) signals() error {
	return v.query(selectSignals+" ORDER BY n", nil, func(rows pgx.Rows) error {
		g, mac, err := scanSignal(rows)
		if err != nil || v.s.key.OwnSignal(&g, mac) {
			return err
		}
		v.f.Signals++
		if g.Seq == 0 && v.room(len(v.f.Open)) {
			v.f.Open = append(v.f.Open, g)
		}
		v.found(v.s.key.Signal(&g), "signals", "id = $2", g.ID)
		return nil
	})
}

func (v *survey) results() error {
	return v.query("SELECT key, run, step, expires, data, mac FROM @results ORDER BY key", nil,
		func(rows pgx.Rows) error {
			var r store.KeptResult
			var expires int64
			var data, mac []byte
			if err := scan(rows, &r.Key, &r.Run, &r.Step, &expires, &data, &mac); err != nil {
				return err
			}
			r.Expires, r.Data = forms.FromNanos(expires), json.RawMessage(data)
			if !v.s.key.OwnResult(&r, mac) {
				v.f.Results++
				v.found(v.s.key.Result(&r), "results", "key = $2", r.Key)
			}
			return nil
		})
}

func (v *survey) pins() error {
	return v.query(selectPins+" ORDER BY server, remote", nil, func(rows pgx.Rows) error {
		p, mac, err := scanPin(rows)
		if err == nil && !v.s.key.OwnPin(&p, mac) {
			v.f.Pins++
			if _, known := v.f.Pinned[p.Server]; known || v.room(len(v.f.Pinned)) {
				v.f.Pinned[p.Server]++
			}
			v.found(v.s.key.Pin(&p), "pins", "server = $2 AND remote = $3", p.Server, p.Remote)
		}
		return err
	})
}

func (v *survey) grants() error {
	return v.query(selectGrants+" ORDER BY principal, name, remote, created, id", nil, func(rows pgx.Rows) error {
		g, mac, err := scanGrant(rows)
		if err == nil && !v.s.key.OwnGrant(&g, mac) {
			g.Foreign = true
			v.f.Grants++
			if v.room(len(v.f.Granted)) {
				v.f.Granted = append(v.f.Granted, g)
			}
			v.found(v.s.key.Grant(&g), "grants", "id = $2", g.ID)
		}
		return err
	})
}

func (v *survey) sessions() error {
	return v.query("SELECT id, principal, mac FROM @sessions ORDER BY id", nil, func(rows pgx.Rows) error {
		var id string
		var owner tenon.Principal
		var mac []byte
		err := scan(rows, &id, &owner, &mac)
		if err == nil && !v.s.key.OwnSession(id, owner, mac) {
			v.f.Sessions++
			v.found(v.s.key.Session(id, owner), "sessions", "id = $2", id)
		}
		return err
	})
}
