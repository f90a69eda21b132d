package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/forms"
)

const selectSignals = "SELECT id, run, kind, step, by, data, time, seq, mac FROM @signals"

// PutSignal implements [store.Inbox].
func (s *Store) PutSignal(ctx context.Context, g store.Signal) (store.Signal, error) {
	if g.ID == "" || g.Kind == "" {
		return store.Signal{}, tenon.Errorf(tenon.CodeInvalid, "store: a signal needs an id and a kind")
	}
	if g.Time.IsZero() {
		g.Time = s.now()
	}
	mac := s.key.Signal(&g)
	var data []byte
	if len(g.Data) > 0 {
		data = g.Data
	}
	err := s.single(ctx, func(t *tx) error {
		// The lock prevents the run from being deleted before the signal is stored.
		var n int64
		if err := t.row("SELECT count(*) FROM (SELECT 1 FROM @runs WHERE id = $1 FOR KEY SHARE) r", []any{g.Run},
			&n); err != nil {
			return err
		}
		pos, err := t.position(g.Run)
		switch {
		case err != nil:
			return err
		case pos == nil:
			return refuse(tenon.CodeNotFound, "no run %s", g.Run)
		case pos.foreign:
			return refused{store.ErrForeign(g.Run)}
		}
		if err := t.dropForeignSignal(g.ID); err != nil {
			return err
		}
		t.queue(`INSERT INTO @signals (id, run, kind, step, by, data, time, seq, mac)
			VALUES ($1, $2, $3, $4, $5, $6, $7, 0, $8) ON CONFLICT (id) DO NOTHING`, g.ID, g.Run, g.Kind, g.Step,
			g.By, data, forms.Nanos(g.Time), mac)
		return nil
	})
	if err != nil {
		return store.Signal{}, err
	}
	return s.Signal(ctx, g.ID)
}

// dropForeignSignal deletes the signal with an id if somebody else wrote it.
func (t *tx) dropForeignSignal(id string) error {
	if t.s.key == nil {
		return nil
	}
	foreign := false
	err := t.query(selectSignals+" WHERE id = $1", []any{id}, func(rows pgx.Rows) error {
		g, mac, err := scanSignal(rows)
		foreign = err == nil && !t.s.key.OwnSignal(&g, mac)
		return err
	})
	if err == nil && foreign {
		t.queue("DELETE FROM @signals WHERE id = $1", id)
	}
	return err
}

// Signals implements [store.Inbox].
func (s *Store) Signals(ctx context.Context, run string) ([]store.Signal, error) {
	if run == "" {
		return s.signals(ctx, selectSignals+" WHERE seq = 0 ORDER BY n")
	}
	list, err := s.calls.signals.get(ctx, s, run)
	if err != nil {
		return nil, err
	}
	return slices.Clone(list), nil
}

// signalsOf reads the waiting signals of runs.
func (s *Store) signalsOf(ctx context.Context, runs []string) ([]answer[[]store.Signal], error) {
	list, err := s.signals(ctx, selectSignals+" WHERE seq = 0 AND run = ANY ($1::text[]) ORDER BY n", runs)
	if err != nil {
		return nil, err
	}
	byRun := map[string][]store.Signal{}
	for _, g := range list {
		byRun[g.Run] = append(byRun[g.Run], g)
	}
	answers := make([]answer[[]store.Signal], len(runs))
	for i, run := range runs {
		answers[i].value = byRun[run]
	}
	return answers, nil
}

// Signal implements [store.Inbox].
func (s *Store) Signal(ctx context.Context, id string) (store.Signal, error) {
	signals, err := s.signals(ctx, selectSignals+" WHERE id = $1", id)
	switch {
	case err != nil:
		return store.Signal{}, err
	case len(signals) == 0:
		return store.Signal{}, tenon.Errorf(tenon.CodeNotFound, "no signal %s", id)
	}
	return signals[0], nil
}

// Settled implements [store.Inbox].
func (s *Store) Settled(ctx context.Context, run, step, kind string) (store.Signal, error) {
	signals, err := s.signals(ctx,
		selectSignals+" WHERE run = $1 AND step = $2 AND kind = $3 AND seq > 0 ORDER BY seq DESC, n", run, step, kind)
	if err != nil {
		return store.Signal{}, err
	}
	for _, g := range signals { // there are few: one for each round of questions, and late ones
		events, err := s.Events(ctx, run, g.Seq-1, 1)
		if err != nil {
			return store.Signal{}, err
		}
		if len(events) == 1 && events[0].Step == step && events[0].Kind == kind {
			return g, nil
		}
	}
	return store.Signal{}, tenon.Errorf(tenon.CodeNotFound, "no signal %s for step %s of run %s", kind, step, run)
}

// SettleSignal implements [store.Inbox].
func (s *Store) SettleSignal(ctx context.Context, id string, seq uint64) error {
	return s.single(ctx, func(t *tx) error {
		n, err := t.exec("UPDATE @signals SET seq = CASE seq WHEN 0 THEN $1 ELSE seq END WHERE id = $2", int64(seq), id)
		if err == nil && n == 0 {
			err = refuse(tenon.CodeNotFound, "no signal %s", id)
		}
		return err
	})
}

func (s *Store) signals(ctx context.Context, query string, args ...any) ([]store.Signal, error) {
	var signals []store.Signal
	err := s.each(ctx, query, args, func(rows pgx.Rows) error {
		g, mac, err := scanSignal(rows)
		if err == nil && s.key.OwnSignal(&g, mac) {
			signals = append(signals, g)
		}
		return err
	})
	return signals, err
}

// scanSignal reads a row of selectSignals, and its MAC.
func scanSignal(rows pgx.Rows) (g store.Signal, mac []byte, err error) {
	var at int64
	var data []byte
	err = scan(rows, &g.ID, &g.Run, &g.Kind, &g.Step, &g.By, &data, &at, &g.Seq, &mac)
	if len(data) > 0 {
		g.Data = data
	}
	g.Time = forms.FromNanos(at)
	return g, mac, err
}
