package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/forms"
	"github.com/tenonhq/tenon/store/signed"
)

// Reserve implements [store.Budgets]. It locks the rows of the budgets, so that the reservations of all replicas are
// made one after another.
func (s *Store) Reserve(ctx context.Context, run, id string, charges []store.Charge) ([]store.Balance, error) {
	if err := forms.CheckCharges(run, id, charges); err != nil {
		return nil, err
	}
	var balances []store.Balance
	err := s.single(ctx, func(t *tx) (err error) {
		balances, err = t.reserve(run, id, charges)
		return err
	})
	if err != nil {
		return nil, err
	}
	return balances, nil
}

func (t *tx) reserve(run, id string, charges []store.Charge) ([]store.Balance, error) {
	keys := make([]string, len(charges))
	for i, c := range charges {
		keys[i] = c.Key
	}
	held, err := t.reservation(run, id)
	if err == nil {
		err = t.lockBudgets(keys)
	}
	if amounts := forms.SettlesNow(held, charges); err == nil && amounts != nil {
		err = t.settle(run, id, held, amounts)
	}
	if err != nil {
		return nil, err
	}
	balances := make([]store.Balance, len(charges))
	refused := false
	for i, c := range charges {
		b, err := t.balance(c.Key)
		if err != nil {
			return nil, err
		}
		b.Limit = c.Limit
		if held == nil && !forms.Admits(&b, c) {
			if err := t.giveBack(c.Key, run); err != nil {
				return nil, err
			}
			if b, err = t.balance(c.Key); err != nil {
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
		mac := t.s.key.Held(&signed.Held{Run: run, ID: id, N: i, Key: c.Key, Amount: c.Amount, Open: !c.Made})
		t.queue(`INSERT INTO @reservations (run, id, n, key, amount, open, mac) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
			run, id, i, c.Key, c.Amount, !c.Made, mac)
		if c.Made {
			balances[i].Used = forms.Plus(balances[i].Used, c.Amount)
		} else {
			balances[i].Reserved = forms.Plus(balances[i].Reserved, c.Amount)
		}
		t.queue("UPDATE @budgets SET used = $1, most = $2 WHERE key = $3", balances[i].Used, c.Limit, c.Key)
	}
	return balances, nil
}

// lockBudgets locks the rows of budgets in the order of their keys, and creates missing rows. The balances do not
// contain a new budget before its first reservation.
func (t *tx) lockBudgets(keys []string) error {
	keys = slices.Sorted(slices.Values(keys))
	t.queue(`INSERT INTO @budgets (key, used, most) SELECT k, 0, -1 FROM unnest($1::text[]) k ORDER BY k
		ON CONFLICT DO NOTHING`, slices.Clone(keys))
	t.queue("SELECT 1 FROM @budgets WHERE key = ANY ($1::text[]) ORDER BY key FOR UPDATE", keys)
	return t.flush()
}

// reservation returns the charges of a reservation, or nil if it does not exist. It deletes a reservation that somebody
// else wrote or changed. Otherwise the step of that reservation could count as settled, and would cost nothing.
func (t *tx) reservation(run, id string) ([]signed.Held, error) {
	var list []signed.Held
	foreign := false
	err := t.query(`SELECT n, key, amount, open, mac FROM @reservations WHERE run = $1 AND id = $2
		ORDER BY n FOR UPDATE`,
		[]any{run, id}, func(rows pgx.Rows) error {
			h := signed.Held{Run: run, ID: id}
			var mac []byte
			err := scan(rows, &h.N, &h.Key, &h.Amount, &h.Open, &mac)
			foreign = foreign || !t.s.key.OwnHeld(&h, mac) || h.N != len(list)
			list = append(list, h)
			return err
		})
	if err == nil && foreign {
		list = nil
		t.queue("DELETE FROM @reservations WHERE run = $1 AND id = $2", run, id)
	}
	return list, err
}

// balance returns the balance of a budget from its rows. It includes the reservations of dead runs. The caller has
// created and locked the row of the budget.
func (t *tx) balance(key string) (store.Balance, error) {
	b := store.Balance{Key: key}
	err := t.row("SELECT greatest(used, 0), most FROM @budgets WHERE key = $1", []any{key}, &b.Used, &b.Limit)
	if err != nil {
		return b, err
	}
	err = t.query("SELECT greatest(amount, 0) FROM @reservations WHERE key = $1 AND open", []any{key},
		func(rows pgx.Rows) error {
			var amount int64
			err := rows.Scan(&amount)
			b.Reserved = forms.Plus(b.Reserved, amount)
			return err
		})
	return b, err
}

// giveBack deletes the reservations of runs that no replica works on. It keeps the reservations of the run asks, which
// is making a reservation.
func (t *tx) giveBack(key, asks string) error {
	_, err := t.exec(`DELETE FROM @reservations WHERE open AND run IN (
			SELECT run FROM @reservations d WHERE d.key = $1 AND d.open AND d.run <> $2
				AND NOT EXISTS (SELECT 1 FROM @leases l WHERE l.run = d.run AND `+live+`))`, key, asks)
	return err
}

// Settle implements [store.Budgets].
func (s *Store) Settle(ctx context.Context, run, id string, amounts []int64) error {
	for _, a := range amounts {
		if a < 0 {
			return tenon.Errorf(tenon.CodeInvalid,
				"store: the reservation %s of run %s cannot be settled with the negative amount %d", id, run, a)
		}
	}
	return s.single(ctx, func(t *tx) error {
		held, err := t.reservation(run, id)
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
		var keys []string
		for _, h := range held {
			keys = append(keys, h.Key)
		}
		if err := t.lockBudgets(keys); err != nil {
			return err
		}
		return t.settle(run, id, held, amounts)
	})
}

// settle settles an open reservation. The caller has locked its budgets.
func (t *tx) settle(run, id string, held []signed.Held, amounts []int64) error {
	for i, h := range held {
		b, err := t.balance(h.Key)
		if err != nil {
			return err
		}
		t.queue("UPDATE @budgets SET used = $1 WHERE key = $2", forms.Plus(b.Used, amounts[i]), h.Key)
		h.Open = false
		t.queue("UPDATE @reservations SET open = false, mac = $1 WHERE run = $2 AND id = $3 AND n = $4",
			t.s.key.Held(&h), run, id, h.N)
	}
	return nil
}

// Release implements [store.Budgets].
func (s *Store) Release(ctx context.Context, run string) error {
	return s.single(ctx, func(t *tx) error {
		t.queue("DELETE FROM @reservations WHERE run = $1", run)
		return nil
	})
}

// Balances implements [store.Budgets].
func (s *Store) Balances(ctx context.Context, prefix string) ([]store.Balance, error) {
	var balances []store.Balance
	err := s.each(ctx, `SELECT b.key, b.used, b.most, coalesce(r.amount, 0) FROM @budgets b
		LEFT JOIN @reservations r ON r.key = b.key AND r.open
			AND EXISTS (SELECT 1 FROM @leases l WHERE l.run = r.run AND `+live+`)
		WHERE b.most >= 0 AND b.key >= $1 AND starts_with(b.key, $1) ORDER BY b.key`, []any{prefix},
		func(rows pgx.Rows) error {
			var b store.Balance
			var amount int64
			if err := scan(rows, &b.Key, &b.Used, &b.Limit, &amount); err != nil {
				return err
			}
			if n := len(balances); n == 0 || balances[n-1].Key != b.Key {
				balances = append(balances, b)
			}
			last := &balances[len(balances)-1]
			last.Reserved = forms.Plus(last.Reserved, amount)
			return nil
		})
	return balances, err
}
