package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/forms"
)

// The bounds of kept results.
const (
	maxResult  = 1 << 20  // bytes of one result
	maxResults = 64 << 20 // bytes of all results
	// evicted is how many results are deleted at once if there are too many.
	evicted = 64
)

// PutResult implements [store.Results].
func (s *Store) PutResult(ctx context.Context, r store.KeptResult) error {
	switch {
	case r.Key == "" || r.Run == "":
		return tenon.Errorf(tenon.CodeInvalid, "store: a kept result needs a key and a run")
	case len(r.Data) > maxResult:
		return tenon.Errorf(tenon.CodeTooLarge, "store: a result of %d bytes is not kept; at most %d are", len(r.Data),
			maxResult)
	}
	mac := s.key.Result(&r)
	return s.submit(ctx, func(w *writer) error {
		var is bool
		if err := w.row("SELECT EXISTS (SELECT 1 FROM runs WHERE id = ?)", []any{r.Run}, &is); err != nil {
			return err
		}
		if !is {
			return refuse(tenon.CodeNotFound, "no run %s", r.Run)
		}
		if _, err := w.exec("DELETE FROM results WHERE expires <= ?", forms.Nanos(s.now())); err != nil {
			return err
		}
		results := sumsOf("results")
		if _, err := w.exec(results.insert()+" ON CONFLICT (key) DO UPDATE"+results.set("run", "excluded.run",
			"step", "excluded.step", "expires", "excluded.expires", "bytes", "excluded.bytes", "data", "excluded.data",
			"mac", "excluded.mac"),
			r.Key, r.Run, r.Step, forms.Nanos(r.Expires), len(r.Data), []byte(r.Data), mac); err != nil {
			return err
		}
		for {
			var sum int64
			if err := w.row("SELECT coalesce(sum(bytes), 0) FROM results", nil, &sum); err != nil || sum <= maxResults {
				return err
			}
			if _, err := w.exec("DELETE FROM results WHERE rowid IN (SELECT rowid FROM results ORDER BY expires "+
				"LIMIT ?)", evicted); err != nil {
				return err
			}
		}
	})
}

// Result implements [store.Results].
func (s *Store) Result(ctx context.Context, key string, now time.Time) (store.KeptResult, error) {
	var r store.KeptResult
	err := s.each(ctx, "SELECT run, step, expires, data, mac, "+sumsOf("results").damaged()+
		" FROM results WHERE key = ? AND expires > ?",
		[]any{key, forms.Nanos(now)}, func(rows *sql.Rows) error {
			got := store.KeptResult{Key: key}
			var expires int64
			var data, mac []byte
			var damaged bool
			if err := rows.Scan(&got.Run, &got.Step, &expires, &data, &mac, &damaged); err != nil {
				return s.readError(ctx, err)
			}
			got.Expires, got.Data = forms.FromNanos(expires), json.RawMessage(data)
			if !damaged && s.key.OwnResult(&got, mac) { // for a damaged result, the call is made again
				r = got
			}
			return nil
		})
	if err == nil && r.Run == "" {
		err = tenon.Errorf(tenon.CodeNotFound, "store: no result is kept for this call")
	}
	return r, err
}

// ResultKeys implements [store.Results].
func (s *Store) ResultKeys(ctx context.Context, prefix string, now time.Time, limit int) (keys []string, err error) {
	err = s.each(ctx, "SELECT key FROM results WHERE key >= ? AND key < ? AND expires > ? LIMIT ?",
		[]any{prefix, forms.AfterPrefix(prefix), forms.Nanos(now), limit}, func(rows *sql.Rows) error {
			var key string
			if err := rows.Scan(&key); err != nil {
				return s.readError(ctx, err)
			}
			keys = append(keys, key)
			return nil
		})
	return keys, err
}

// Admit implements [store.Rates].
func (s *Store) Admit(ctx context.Context, key string, calls int, per, most time.Duration,
	now time.Time) (wait time.Duration, ok bool, err error) {
	if key == "" || calls < 1 || calls > forms.MaxTurns || per < 1 {
		return 0, false, tenon.Errorf(tenon.CodeInvalid, "store: a rate needs a key, a number of calls and a time")
	}
	err = s.submit(ctx, func(w *writer) error {
		var packed []byte
		err := w.row("SELECT turns FROM rates WHERE key = ?", []any{key}, &packed)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		known, err := s.ledger.turns(s.home, key)
		if err != nil {
			return err
		}
		turns := mergeTurns(forms.UnpackTurns(packed, now.Add(most+per)), forms.UnpackTurns(known, now.Add(most+per)))
		turn := forms.NextTurn(turns, calls, per, now)
		if wait, ok = turn.Sub(now), turn.Sub(now) <= most; !ok {
			return nil
		}
		if packed == nil {
			// Delete the rates of other tools whose windows are over.
			if _, err := w.exec("DELETE FROM rates WHERE past <= ?", forms.Nanos(now)); err != nil {
				return err
			}
		}
		packed, past := forms.PackTurns(append(turns, turn)), turn.Add(max(per, time.Hour))
		if err := s.ledger.take(s.home, key, packed, past, now); err != nil {
			return err
		}
		rates := sumsOf("rates")
		_, err = w.exec(rates.insert()+" ON CONFLICT (key) DO UPDATE"+rates.set("turns", "excluded.turns",
			"past", "excluded.past"), key, packed, forms.Nanos(past))
		return err
	})
	return wait, ok && err == nil, err
}

// mergeTurns merges the turns of a rate in the store and in the ledger. A time that occurs in both is kept as often
// as it occurs in the list with more of it.
func mergeTurns(a, b []time.Time) []time.Time {
	if len(b) == 0 {
		return a
	}
	var all []time.Time
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].Before(b[0]):
			all, a = append(all, a[0]), a[1:]
		case len(a) == 0 || b[0].Before(a[0]):
			all, b = append(all, b[0]), b[1:]
		default:
			all, a, b = append(all, a[0]), a[1:], b[1:]
		}
	}
	return all
}

// PutPins implements [store.Pins].
func (s *Store) PutPins(ctx context.Context, pins []store.Pin, fresh bool) error {
	for _, p := range pins {
		if p.Server == "" || p.Digest == "" {
			return tenon.Errorf(tenon.CodeInvalid, "store: a pin needs a server and a digest")
		}
	}
	macs := make([][]byte, len(pins))
	for i := range pins {
		macs[i] = s.key.Pin(&pins[i])
	}
	write := func(w *writer) error {
		for i := range pins {
			if err := w.putPin(&pins[i], macs[i], fresh); err != nil {
				return err
			}
		}
		return nil
	}
	if fresh { // pins must be stored before the tools are used
		return s.submitSoon(ctx, write)
	}
	return s.submit(ctx, write)
}

// putPin stores one definition. If fresh is true, it replaces a foreign pin, which does not count as a pin.
func (w *writer) putPin(p *store.Pin, mac []byte, fresh bool) error {
	rows := sumsOf("pins")
	query := rows.insert() + " ON CONFLICT DO "
	if fresh {
		if err := w.dropForeignPin(p.Server, p.Remote); err != nil {
			return err
		}
		query += "NOTHING"
	} else {
		query += "UPDATE" + rows.set("raw", "excluded.raw", "digest", "excluded.digest",
			"definition", "excluded.definition", "by", "excluded.by", "created", "excluded.created",
			"mac", "excluded.mac")
	}
	_, err := w.exec(query, p.Server, p.Remote, p.Raw, p.Digest, []byte(p.Definition), p.By,
		forms.Nanos(p.Created), mac)
	return err
}

func (w *writer) dropForeignPin(server, remote string) error {
	if w.s.key == nil {
		return nil
	}
	foreign := false
	err := w.query(selectPins+" WHERE server = ? AND remote = ?", []any{server, remote}, func(rows *sql.Rows) error {
		p, mac, err := scanPin(rows)
		foreign = err == nil && !w.s.key.OwnPin(&p, mac)
		return err
	})
	if err == nil && foreign {
		_, err = w.exec("DELETE FROM pins WHERE server = ? AND remote = ?", server, remote)
	}
	return err
}

// selectPins reads pins with their definitions, and listPins without them.
const (
	selectPins = "SELECT server, remote, raw, digest, definition, by, created, mac FROM pins"
	listPins   = "SELECT server, remote, raw, digest, x'', by, created, mac FROM pins"
)

// Pins implements [store.Pins].
func (s *Store) Pins(ctx context.Context, server string) ([]store.Pin, error) {
	return s.pins(ctx, listPins+" WHERE ?1 IN ('', server) ORDER BY server, remote", server)
}

// Pin implements [store.Pins].
func (s *Store) Pin(ctx context.Context, server, remote string) (store.Pin, error) {
	list, err := s.pins(ctx, selectPins+" WHERE server = ? AND remote = ?", server, remote)
	switch {
	case err != nil:
		return store.Pin{}, err
	case len(list) == 0:
		return store.Pin{}, tenon.Errorf(tenon.CodeNotFound, "store: tool '%s' of server '%s' is not pinned", remote,
			server)
	}
	return list[0], nil
}

func (s *Store) pins(ctx context.Context, query string, args ...any) ([]store.Pin, error) {
	var list []store.Pin
	err := s.each(ctx, query, args, func(rows *sql.Rows) error {
		p, mac, err := scanPin(rows)
		if err != nil {
			return s.readError(ctx, err)
		}
		if s.key.OwnPin(&p, mac) {
			list = append(list, p)
		}
		return nil
	})
	return list, err
}

// scanPin reads a row of selectPins or listPins.
func scanPin(rows *sql.Rows) (p store.Pin, mac []byte, err error) {
	var definition []byte
	var created int64
	err = rows.Scan(&p.Server, &p.Remote, &p.Raw, &p.Digest, &definition, &p.By, &created, &mac)
	p.Created = forms.FromNanos(created)
	if len(definition) > 0 {
		p.Definition = definition
	}
	return p, mac, err
}

// DeletePins implements [store.Pins].
func (s *Store) DeletePins(ctx context.Context, server string, remotes ...string) error {
	return s.submit(ctx, func(w *writer) error {
		query, args, gone := "DELETE FROM pins WHERE server = ?", [][]any{{server}}, false
		if len(remotes) > 0 {
			query, args = query+" AND remote = ?", nil
			for _, remote := range remotes {
				args = append(args, []any{server, remote})
			}
		}
		for _, a := range args {
			n, err := w.exec(query, a...)
			if err != nil {
				return err
			}
			gone = gone || n > 0
		}
		if !gone {
			return refuse(tenon.CodeNotFound, "nothing of that is pinned of server %s", server)
		}
		return nil
	})
}
