package sqlite

import (
	"context"
	"database/sql"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/forms"
)

// selectSignals reads signals; the last column says whether the row is damaged.
func selectSignals() string {
	return "SELECT id, run, kind, step, by, data, time, seq, mac, " + sumsOf("signals").damaged() + " FROM signals"
}

// PutSignal implements [store.Inbox].
func (s *Store) PutSignal(ctx context.Context, g store.Signal) (store.Signal, error) {
	if g.ID == "" || g.Kind == "" {
		return store.Signal{}, tenon.Errorf(tenon.CodeInvalid, "store: a signal needs an id and a kind")
	}
	if g.Time.IsZero() {
		g.Time = s.now()
	}
	mac := s.key.Signal(&g)
	var data any
	if len(g.Data) > 0 {
		data = []byte(g.Data)
	}
	err := s.submit(ctx, func(w *writer) error {
		pos, err := w.position(g.Run)
		if err != nil {
			return err
		}
		if pos == nil {
			return refuse(tenon.CodeNotFound, "no run %s", g.Run)
		}
		if pos.foreign {
			return refused{store.ErrForeign(g.Run)}
		}
		if err := w.dropForeignSignal(g.ID); err != nil {
			return err
		}
		_, err = w.stmts.putSignal.exec(g.ID, g.Run, g.Kind, g.Step, g.By, data, forms.Nanos(g.Time), 0, mac)
		return err
	})
	if err != nil {
		return store.Signal{}, err
	}
	return s.Signal(ctx, g.ID)
}

// dropForeignSignal deletes a signal with an id if somebody else has written it.
func (w *writer) dropForeignSignal(id string) error {
	if w.s.key == nil {
		return nil
	}
	foreign := false
	err := w.query(selectSignals()+" WHERE id = ?", []any{id}, func(rows *sql.Rows) error {
		g, mac, _, err := scanSignal(rows)
		foreign = err == nil && !w.s.key.OwnSignal(&g, mac)
		return err
	})
	if err == nil && foreign {
		_, err = w.exec("DELETE FROM signals WHERE id = ?", id)
	}
	return err
}

// Signals implements [store.Inbox].
func (s *Store) Signals(ctx context.Context, run string) ([]store.Signal, error) {
	if run == "" {
		return s.signals(ctx, selectSignals()+" INDEXED BY signals_open WHERE seq = 0 ORDER BY n")
	}
	return s.signals(ctx, selectSignals()+" WHERE seq = 0 AND run = ? ORDER BY n", run)
}

// Signal implements [store.Inbox].
func (s *Store) Signal(ctx context.Context, id string) (store.Signal, error) {
	return one(id)(s.signals(ctx, selectSignals()+" WHERE id = ?", id))
}

// Settled implements [store.Inbox].
func (s *Store) Settled(ctx context.Context, run, step, kind string) (store.Signal, error) {
	signals, err := s.signals(ctx,
		selectSignals()+" WHERE run = ? AND step = ? AND kind = ? AND seq > 0 ORDER BY seq DESC, n", run, step, kind)
	if err != nil {
		return store.Signal{}, err
	}
	for _, g := range signals { // few: one for each round of questions, and late ones
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
	return s.submit(ctx, func(w *writer) error {
		res, err := w.stmts.settleSignal.exec(int64(seq), id)
		if err != nil {
			return err
		}
		n, err := res.RowsAffected()
		if err != nil || n > 0 {
			return err
		}
		var there int
		if w.conn.QueryRowContext(context.Background(), "SELECT 1 FROM signals WHERE id = ?", id).Scan(&there) != nil {
			return refuse(tenon.CodeNotFound, "no signal %s", id)
		}
		return nil
	})
}

func one(name string) func([]store.Signal, error) (store.Signal, error) {
	return func(signals []store.Signal, err error) (store.Signal, error) {
		if err != nil {
			return store.Signal{}, err
		}
		if len(signals) == 0 {
			return store.Signal{}, tenon.Errorf(tenon.CodeNotFound, "no signal %s", name)
		}
		return signals[0], nil
	}
}

func (s *Store) signals(ctx context.Context, query string, args ...any) ([]store.Signal, error) {
	var signals []store.Signal
	err := s.each(ctx, query, args, func(rows *sql.Rows) error {
		g, mac, damaged, err := scanSignal(rows)
		if err != nil {
			return s.readError(ctx, err)
		}
		if s.key.OwnSignal(&g, mac) {
			if damaged {
				return s.damaged("signal " + g.ID + " of run " + g.Run)
			}
			signals = append(signals, g)
		}
		return nil
	})
	return signals, err
}

// scanSignal reads a row of selectSignals, its MAC, and whether it is damaged.
func scanSignal(rows *sql.Rows) (g store.Signal, mac []byte, damaged bool, err error) {
	var at int64
	var data []byte
	err = rows.Scan(&g.ID, &g.Run, &g.Kind, &g.Step, &g.By, &data, &at, &g.Seq, &mac, &damaged)
	if len(data) > 0 {
		g.Data = data
	}
	g.Time = forms.FromNanos(at)
	return g, mac, damaged, err
}
