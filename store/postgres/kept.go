package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/forms"
)

// maxResults bounds the bytes of all kept results.
const maxResults = 64 << 20

// maxResult bounds the bytes of one result, see [store.Results].
const maxResult = 1 << 20

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
	return s.single(ctx, func(t *tx) error {
		var is bool
		if err := t.row("SELECT EXISTS (SELECT 1 FROM @runs WHERE id = $1)", []any{r.Run}, &is); err != nil {
			return err
		}
		if !is {
			return refuse(tenon.CodeNotFound, "no run %s", r.Run)
		}
		t.queue("DELETE FROM @results WHERE expires <= $1", forms.Nanos(s.now()))
		t.queue(`INSERT INTO @results (key, run, step, expires, data, mac) VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (key) DO UPDATE SET run = excluded.run, step = excluded.step, expires = excluded.expires,
				data = excluded.data, mac = excluded.mac`,
			r.Key, r.Run, r.Step, forms.Nanos(r.Expires), []byte(r.Data), mac)
		// Remove the results that expire first, until the others fit.
		t.queue(`DELETE FROM @results WHERE key IN (SELECT key FROM (SELECT key,
			sum(length(data)) OVER (ORDER BY expires DESC, key) AS total FROM @results) r WHERE total > $1)`,
			int64(maxResults))
		return nil
	})
}

// Result implements [store.Results].
func (s *Store) Result(ctx context.Context, key string, now time.Time) (store.KeptResult, error) {
	var r store.KeptResult
	err := s.each(ctx, "SELECT run, step, expires, data, mac FROM @results WHERE key = $1 AND expires > $2",
		[]any{key, forms.Nanos(now)}, func(rows pgx.Rows) error {
			got := store.KeptResult{Key: key}
			var expires int64
			var data, mac []byte
			if err := scan(rows, &got.Run, &got.Step, &expires, &data, &mac); err != nil {
				return err
			}
			got.Expires, got.Data = forms.FromNanos(expires), json.RawMessage(data)
			if s.key.OwnResult(&got, mac) {
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
	err = s.each(ctx, `SELECT key FROM @results WHERE key COLLATE "C" >= $1 AND key COLLATE "C" < $2 AND expires > $3
		LIMIT $4::bigint`, []any{prefix, forms.AfterPrefix(prefix), forms.Nanos(now), limit},
		func(rows pgx.Rows) error {
			var key string
			err := scan(rows, &key)
			keys = append(keys, key)
			return err
		})
	return keys, err
}

// Admit implements [store.Rates]. It locks the row of the key, so that the calls of all replicas get their turns one
// after another.
func (s *Store) Admit(ctx context.Context, key string, calls int, per, most time.Duration,
	now time.Time) (wait time.Duration, ok bool, err error) {
	if key == "" || calls < 1 || calls > forms.MaxTurns || per < 1 {
		return 0, false, tenon.Errorf(tenon.CodeInvalid, "store: a rate needs a key, a number of calls and a time")
	}
	err = s.single(ctx, func(t *tx) error {
		t.queue("INSERT INTO @rates (key, turns, past) VALUES ($1, '', $2) ON CONFLICT DO NOTHING", key,
			forms.Nanos(now.Add(time.Hour)))
		var packed []byte
		if err := t.row("SELECT turns FROM @rates WHERE key = $1 FOR UPDATE", []any{key}, &packed); err != nil {
			return err
		}
		turns := forms.UnpackTurns(packed, now.Add(most+per))
		turn := forms.NextTurn(turns, calls, per, now)
		if wait, ok = turn.Sub(now), turn.Sub(now) <= most; !ok {
			return nil
		}
		t.queue("UPDATE @rates SET turns = $1, past = $2 WHERE key = $3", forms.PackTurns(append(turns, turn)),
			forms.Nanos(turn.Add(max(per, time.Hour))), key)
		if len(packed) == 0 { // the key is new; delete some expired keys
			t.queue(`DELETE FROM @rates WHERE key IN (SELECT key FROM @rates WHERE past <= $1 AND key <> $2
				LIMIT 100 FOR UPDATE SKIP LOCKED)`, forms.Nanos(now), key)
		}
		return nil
	})
	return wait, ok && err == nil, err
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
	query := `INSERT INTO @pins (server, remote, raw, digest, definition, by, created, mac)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (server, remote) DO `
	if fresh {
		query += "NOTHING"
	} else {
		query += `UPDATE SET raw = excluded.raw, digest = excluded.digest, definition = excluded.definition,
			by = excluded.by, created = excluded.created, mac = excluded.mac`
	}
	return s.single(ctx, func(t *tx) error {
		for i, p := range pins {
			if fresh { // a foreign pin does not count
				if err := t.dropForeignPin(p.Server, p.Remote); err != nil {
					return err
				}
			}
			definition := []byte(p.Definition)
			if definition == nil {
				definition = []byte{}
			}
			t.queue(query, p.Server, p.Remote, p.Raw, p.Digest, definition, p.By, forms.Nanos(p.Created), macs[i])
		}
		return nil
	})
}

func (t *tx) dropForeignPin(server, remote string) error {
	if t.s.key == nil {
		return nil
	}
	foreign := false
	err := t.query(selectPins+" WHERE server = $1 AND remote = $2", []any{server, remote}, func(rows pgx.Rows) error {
		p, mac, err := scanPin(rows)
		foreign = err == nil && !t.s.key.OwnPin(&p, mac)
		return err
	})
	if err == nil && foreign {
		t.queue("DELETE FROM @pins WHERE server = $1 AND remote = $2", server, remote)
	}
	return err
}

// selectPins begins a query for pins with their definitions, listPins one for pins without them.
const (
	selectPins = "SELECT server, remote, raw, digest, definition, by, created, mac FROM @pins"
	listPins   = "SELECT server, remote, raw, digest, ''::bytea, by, created, mac FROM @pins"
)

// Pins implements [store.Pins].
func (s *Store) Pins(ctx context.Context, server string) ([]store.Pin, error) {
	return s.pins(ctx, listPins+" WHERE $1::text IN ('', server) ORDER BY server, remote", server)
}

// Pin implements [store.Pins].
func (s *Store) Pin(ctx context.Context, server, remote string) (store.Pin, error) {
	list, err := s.pins(ctx, selectPins+" WHERE server = $1 AND remote = $2", server, remote)
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
	err := s.each(ctx, query, args, func(rows pgx.Rows) error {
		p, mac, err := scanPin(rows)
		if err == nil && s.key.OwnPin(&p, mac) {
			list = append(list, p)
		}
		return err
	})
	return list, err
}

// scanPin reads a row of selectPins or listPins.
func scanPin(rows pgx.Rows) (p store.Pin, mac []byte, err error) {
	var definition []byte
	var created int64
	err = scan(rows, &p.Server, &p.Remote, &p.Raw, &p.Digest, &definition, &p.By, &created, &mac)
	p.Created = forms.FromNanos(created)
	if len(definition) > 0 {
		p.Definition = definition
	}
	return p, mac, err
}

// DeletePins implements [store.Pins].
func (s *Store) DeletePins(ctx context.Context, server string, remotes ...string) error {
	return s.single(ctx, func(t *tx) error {
		query, args := "DELETE FROM @pins WHERE server = $1", []any{server}
		if len(remotes) > 0 {
			query, args = query+" AND remote = ANY ($2::text[])", append(args, remotes)
		}
		n, err := t.exec(query, args...)
		if err == nil && n == 0 {
			err = refuse(tenon.CodeNotFound, "nothing of that is pinned of server %s", server)
		}
		return err
	})
}

// isNone reports whether a statement found no row.
func isNone(err error) bool { return errors.Is(err, pgx.ErrNoRows) }
