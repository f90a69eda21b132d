package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/forms"
	"github.com/tenonhq/tenon/store/signed"
)

// Reserve implements [store.Budgets].
func (s *Store) Reserve(ctx context.Context, run, id string, charges []store.Charge) ([]store.Balance, error) {
	if err := forms.CheckCharges(run, id, charges); err != nil {
		return nil, err
	}
	var balances []store.Balance
	err := s.submitRelaxed(ctx, func(w *writer) (err error) {
		balances, err = w.reserve(run, id, charges)
		return err
	})
	if err != nil {
		return nil, err
	}
	return balances, nil
}

func (w *writer) reserve(run, id string, charges []store.Charge) ([]store.Balance, error) {
	held, err := w.reservation(run, id)
	if amounts := forms.SettlesNow(held, charges); err == nil && amounts != nil {
		err = w.settle(run, id, held, amounts)
	}
	if err != nil {
		return nil, err
	}
	balances := make([]store.Balance, len(charges))
	refused := false
	for i, c := range charges {
		b, err := w.balance(c.Key)
		if err != nil {
			return nil, err
		}
		b.Limit = c.Limit
		if held == nil && !forms.Admits(&b, c) {
			if err := w.giveBack(c.Key, run); err != nil {
				return nil, err
			}
			if b, err = w.balance(c.Key); err != nil {
				return nil, err
			}
			b.Limit = c.Limit
			b.Refused = !forms.Admits(&b, c)
		}
		refused = refused || b.Refused
		balances[i] = b
	}
	if refused || held != nil {
		return balances, nil
	}
	for i, c := range charges {
		open := !c.Made
		mac := w.s.key.Held(&signed.Held{Run: run, ID: id, N: i, Key: c.Key, Amount: c.Amount, Open: open})
		if _, err := w.stmts.reserve.exec(run, id, i, c.Key, c.Amount, open, mac); err != nil {
			return nil, err
		}
		if open {
			_, err = w.stmts.limitBudget.exec(c.Key, 0, c.Limit)
			balances[i].Reserved = forms.Plus(balances[i].Reserved, c.Amount)
		} else {
			balances[i].Used = forms.Plus(balances[i].Used, c.Amount)
			err = w.used(c.Key, balances[i].Used, c.Limit)
		}
		if err != nil {
			return nil, err
		}
	}
	return balances, nil
}

// used records the amount that a budget has used, and its limit.
func (w *writer) used(key string, amount, limit int64) error {
	if _, err := w.stmts.useBudget.exec(key, amount, limit); err != nil {
		return err
	}
	return w.s.ledger.spend(w.s.home, key, amount)
}

// reservation returns the charges of a reservation, or nil if there is none. It deletes a reservation that somebody
// else wrote or changed: with it, a step could seem to be settled and cost nothing.
func (w *writer) reservation(run, id string) ([]signed.Held, error) {
	var list []signed.Held
	foreign := false
	err := w.query("SELECT n, key, amount, open, mac FROM reservations WHERE run = ? AND id = ? ORDER BY n",
		[]any{run, id}, func(rows *sql.Rows) error {
			h := signed.Held{Run: run, ID: id}
			var mac []byte
			err := rows.Scan(&h.N, &h.Key, &h.Amount, &h.Open, &mac)
			foreign = foreign || !w.s.key.OwnHeld(&h, mac) || h.N != len(list)
			list = append(list, h)
			return err
		})
	if err == nil && foreign {
		list = nil
		_, err = w.exec("DELETE FROM reservations WHERE run = ? AND id = ?", run, id)
	}
	return list, err
}

// balance returns a budget's balance from the table, including reservations of dead runs. The used amount is at least
// the amount in the ledger, because somebody may have replaced the table by an older one.
func (w *writer) balance(key string) (store.Balance, error) {
	b := store.Balance{Key: key}
	// no row makes room
	err := w.row("SELECT max(used, 0), most FROM budgets WHERE key = ?", []any{key}, &b.Used, &b.Limit)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return b, err
	}
	known, err := w.s.ledger.spent(w.s.home, key)
	if err != nil {
		return b, err
	}
	b.Used = max(b.Used, known)
	err = w.query("SELECT max(amount, 0) FROM reservations WHERE key = ? AND open = 1", []any{key},
		func(rows *sql.Rows) error {
			var amount int64
			err := rows.Scan(&amount)
			b.Reserved = forms.Plus(b.Reserved, amount)
			return err
		})
	return b, err
}

// giveBack deletes the reservations of runs on which no process works. The run asks is working and keeps its
// reservations.
func (w *writer) giveBack(key, asks string) error {
	var runs []string
	err := w.query("SELECT DISTINCT run FROM reservations WHERE key = ? AND open = 1 AND run <> ?", []any{key, asks},
		func(rows *sql.Rows) error {
			var run string
			err := rows.Scan(&run)
			runs = append(runs, run)
			return err
		})
	if err != nil {
		return err
	}
	for _, run := range runs {
		if held, err := w.s.Held(run); err != nil {
			return err
		} else if held {
			continue
		}
		if _, err := w.exec("DELETE FROM reservations WHERE run = ? AND open = 1", run); err != nil {
			return err
		}
	}
	return nil
}

// Settle implements [store.Budgets].
func (s *Store) Settle(ctx context.Context, run, id string, amounts []int64) error {
	for _, a := range amounts {
		if a < 0 {
			return tenon.Errorf(tenon.CodeInvalid,
				"store: the reservation %s of run %s cannot be settled with the negative amount %d", id, run, a)
		}
	}
	return s.submitRelaxed(ctx, func(w *writer) error {
		held, err := w.reservation(run, id)
		switch {
		case err != nil:
			return err
		case held == nil:
			return refuse(tenon.CodeNotFound, "no reservation %s of run %s", id, run)
		case len(held) != len(amounts):
			return refuse(tenon.CodeInvalid, "the reservation %s of run %s has %d charges, not %d", id, run, len(held),
				len(amounts))
		case !held[0].Open:
			return nil
		}
		return w.settle(run, id, held, amounts)
	})
}

// settle settles an open reservation.
func (w *writer) settle(run, id string, held []signed.Held, amounts []int64) error {
	for i, h := range held {
		b, err := w.balance(h.Key)
		if err != nil {
			return err
		}
		if err := w.used(h.Key, forms.Plus(b.Used, amounts[i]), b.Limit); err != nil {
			return err
		}
		h.Open = false
		if _, err := w.stmts.settle.exec(w.s.key.Held(&h), run, id, h.N); err != nil {
			return err
		}
	}
	return nil
}

// Release implements [store.Budgets].
func (s *Store) Release(ctx context.Context, run string) error {
	return s.submit(ctx, func(w *writer) error {
		_, err := w.exec("DELETE FROM reservations WHERE run = ?", run)
		return err
	})
}

// Balances implements [store.Budgets].
func (s *Store) Balances(ctx context.Context, prefix string) ([]store.Balance, error) {
	var balances []store.Balance
	dead := map[string]bool{}
	err := s.each(ctx, `SELECT b.key, b.used, b.most, coalesce(r.run, ''), coalesce(r.amount, 0) FROM budgets b
		LEFT JOIN reservations r ON r.key = b.key AND r.open = 1
		WHERE b.key >= ?1 AND instr(b.key, ?1) = 1 ORDER BY b.key`, []any{prefix}, func(rows *sql.Rows) error {
		var b store.Balance
		var run string
		var amount int64
		if err := rows.Scan(&b.Key, &b.Used, &b.Limit, &run, &amount); err != nil {
			return s.readError(ctx, err)
		}
		if n := len(balances); n == 0 || balances[n-1].Key != b.Key {
			known, err := s.ledger.spent(s.home, b.Key)
			if err != nil {
				return err
			}
			b.Used = max(b.Used, known)
			balances = append(balances, b)
		}
		if run == "" {
			return nil
		}
		gone, known := dead[run]
		if !known {
			held, err := s.Held(run)
			if err != nil {
				return err
			}
			gone = !held
			dead[run] = gone
		}
		last := &balances[len(balances)-1]
		if !gone {
			last.Reserved = forms.Plus(last.Reserved, amount)
		}
		return nil
	})
	return balances, err
}
