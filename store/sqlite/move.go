package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/forms"
)

// selectMove reads the name of the mark of a move. There is at most one.
const selectMove = "SELECT name FROM marks WHERE substr(name, 1, ?) = ?"

// readMove reads the mark of a move; query runs selectMove.
func readMove(query func(dest *[]byte) error) (store.Move, error) {
	var name []byte
	switch err := query(&name); {
	case errors.Is(err, sql.ErrNoRows):
		return store.Move{}, nil
	case err != nil:
		return store.Move{}, err
	}
	return store.ReadMove(name), nil
}

// checkMove returns an error for a transaction in a store that is being copied, except in the process that copies.
func (w *writer) checkMove() error {
	if w.s.moving {
		return nil
	}
	m, err := readMove(func(dest *[]byte) error {
		return w.row(selectMove, []any{len(store.MoveMark), store.MoveMark}, dest)
	})
	w.moved = m.Err(w.s.path)
	return err
}

// openMove returns an error if the store is the unfinished target of a copy.
func (s *Store) openMove(ctx context.Context, conn *sql.Conn) error {
	if s.moving {
		return nil
	}
	m, err := readMove(func(dest *[]byte) error {
		return conn.QueryRowContext(context.WithoutCancel(ctx), selectMove, len(store.MoveMark),
			store.MoveMark).Scan(dest)
	})
	if err != nil {
		return storeError(s.path, "read", err)
	}
	if m.State == store.Filling {
		return m.Err(s.path)
	}
	return nil
}

// Move implements [store.Movable].
func (s *Store) Move(ctx context.Context) (store.Move, error) {
	var m store.Move
	err := s.each(ctx, selectMove, []any{len(store.MoveMark), store.MoveMark}, func(rows *sql.Rows) error {
		var name []byte
		err := rows.Scan(&name)
		m = store.ReadMove(name)
		return err
	})
	return m, err
}

// SetMove implements [store.Movable]. Write transactions run one after another, so none is running now.
func (s *Store) SetMove(ctx context.Context, m store.Move) error {
	return s.submit(ctx, func(w *writer) error {
		if _, err := w.exec("DELETE FROM marks WHERE substr(name, 1, ?) = ?", len(store.MoveMark),
			store.MoveMark); err != nil || m.State == "" {
			return err
		}
		name := m.Name()
		mac := s.key.Mark(name)
		if mac == nil {
			mac = []byte{}
		}
		_, err := w.exec(sumsOf("marks").insert(), name, mac)
		return err
	})
}

// moveTable returns the SELECT of a table for a copy, without its columns: FROM and ORDER BY.
func moveTable(t forms.Table) (columns []string, from string) {
	names := map[string]string{}
	switch t.Name {
	case "runs", "signals":
		from = "FROM " + t.Name + " t ORDER BY t.n"
	case "run_blobs", "tallies":
		from = "FROM " + t.Name + " t JOIN runs r ON r.n = t.run ORDER BY r.n"
		if t.Name == "run_blobs" {
			from += ", t.blob"
		}
		names["run"] = "r.id"
	case "events":
		from = "FROM runs r JOIN chapters c ON c.run = r.n JOIN events t ON t.chapter = c.n " +
			"ORDER BY r.n, c.first, t.seq"
		names["run"] = "r.id"
	case "pending": // the index of texts is not copied, so all runs are pending
		from = "FROM runs r LEFT JOIN pending t ON t.run = r.n ORDER BY r.n"
		names["run"], names["todo"] = "r.id", fmt.Sprintf("coalesce(t.todo, 0) | %d", todoText)
	case "reservations":
		from = "FROM reservations t ORDER BY t.run, t.id, t.n"
	case "grant_uses":
		from = "FROM grant_uses t ORDER BY t.grant_id, t.run, t.step"
	case "pins":
		from = "FROM pins t ORDER BY t.server, t.remote"
	default:
		from = "FROM " + t.Name + " t ORDER BY t." + t.Columns[0].Name
	}
	for _, c := range t.Columns {
		if name, ok := names[c.Name]; ok {
			columns = append(columns, name)
		} else {
			columns = append(columns, "t."+c.Name)
		}
	}
	return columns, from
}

// Count implements [store.Movable].
func (s *Store) Count(ctx context.Context, table string) (n int64, err error) {
	t, err := forms.TableOf(table)
	if err != nil {
		return 0, err
	}
	err = s.each(ctx, "SELECT count(*) FROM "+t.Name, nil, func(rows *sql.Rows) error { return rows.Scan(&n) })
	return n, err
}

// Rows implements [store.Movable].
func (s *Store) Rows(ctx context.Context, table string, from int64, each func([]any) error) error {
	t, err := forms.TableOf(table)
	if err != nil {
		return err
	}
	columns, rest := moveTable(t)
	damaged := "0"
	if t.Name != "blobs" && t.Name != "run_blobs" && t.Name != "pending" {
		sum := sumsOf(t.Name)
		names := make([]string, len(sum.cols))
		for i, c := range sum.cols {
			names[i] = "t." + c
		}
		damaged = "coalesce(t.sum <> " + sumFunction + "('" + t.Name + "', " + strings.Join(names, ", ") + "), 0)"
	}
	scanner := forms.NewScanner(t)
	var bad bool
	dest := append(scanner.Dest(), &bad)
	query := "SELECT " + strings.Join(append(columns, damaged), ", ") + " " + rest + " LIMIT -1 OFFSET ?"
	return s.each(ctx, query, []any{from}, func(rows *sql.Rows) error {
		if err := rows.Scan(dest...); err != nil {
			return s.readError(ctx, err)
		}
		row := scanner.Row()
		if bad {
			return tenon.Errorf(tenon.CodeStore, "store %s: a row of %s is damaged (%s); %s", s.path, t.Name,
				tenon.Visible(fmt.Sprint(row[0])), remedyDamaged)
		}
		return each(row)
	})
}

// Fill implements [store.Movable].
func (s *Store) Fill(ctx context.Context, table string, rows [][]any) error {
	t, err := forms.TableOf(table)
	if err != nil {
		return err
	}
	list := make([][]any, len(rows))
	for i, row := range rows {
		if list[i], err = t.Args(row); err != nil {
			return err
		}
	}
	return s.submit(ctx, func(w *writer) error {
		for _, row := range list {
			if err := w.fill(t.Name, row); err != nil {
				return err
			}
		}
		return nil
	})
}

func (w *writer) fill(table string, row []any) error {
	switch table {
	case "events":
		return w.fillEvents(row)
	case "blobs":
		_, err := w.exec("INSERT INTO blobs (digest, data) VALUES (?, ?) ON CONFLICT DO NOTHING", row...)
		return err
	case "run_blobs":
		_, err := w.exec(`INSERT INTO run_blobs (run, blob) SELECT n, ?2 FROM runs WHERE id = ?1
			ON CONFLICT DO NOTHING`, row...)
		return err
	case "pending":
		_, err := w.exec(`INSERT INTO pending (run, todo) SELECT n, ?2 FROM runs WHERE id = ?1
			ON CONFLICT (run) DO NOTHING`, row...)
		return err
	case "tallies":
		var n int64
		if err := w.row("SELECT n FROM runs WHERE id = ?", row[:1], &n); err != nil {
			return err
		}
		row = append([]any{n}, row...)
	case "results": // with the size of its data, for their bound
		data, _ := row[4].([]byte)
		row = append(append(append([]any{}, row[:4]...), int64(len(data))), row[4:]...)
	}
	_, err := w.exec(sumsOf(table).insert()+" ON CONFLICT DO NOTHING", row...)
	return err
}

// fillEvents inserts a row of events into its chapter. The rows of a run must come in the order of their events.
func (w *writer) fillEvents(row []any) error {
	run, _ := row[0].(string)
	seq, _ := row[1].(int64)
	n, _ := row[2].(int64)
	last, _ := row[3].(int64)
	packed, _ := row[4].([]byte)
	digest, _ := row[5].([]byte)
	mac, _ := row[6].([]byte)
	pos := w.runs[run]
	if pos == nil {
		pos = &position{}
		if err := w.stmts.position.scan([]any{run}, &pos.n, &pos.seq, &pos.chapter, &pos.first,
			&pos.imported); err != nil {
			return err
		}
		w.remember(run, pos)
	}
	if uint64(seq) <= pos.seq {
		return nil // already inserted
	}
	if uint64(seq) != pos.seq+1 {
		return tenon.Errorf(tenon.CodeStore, "store %s: run %s has no event %d, so its journal is not copied", w.s.path,
			tenon.Visible(run), pos.seq+1)
	}
	if err := w.turnTo(pos); err != nil {
		return err
	}
	sum := eventsSum(pos.chapter, uint64(seq), int(n), last, packed, digest, mac)
	if err := w.stmts.insertEvents.exec(pos.chapter, seq, n, last, packed, row[5], mac, sum); err != nil {
		return err
	}
	pos.seq += uint64(n)
	return nil
}

var _ store.Movable = (*Store)(nil)
