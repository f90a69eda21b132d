package postgres

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/forms"
)

// isMove is the condition that a row of marks is the mark of a move.
var isMove = fmt.Sprintf(`starts_with(encode(name, 'hex'), '%x')`, store.MoveMark)

// beginWrite is the first statement of each transaction that writes. It stores the number of the transaction (see
// lookUp). If the row already has this number or a later one, the statement fails with a division by zero: lookUp has
// decided by now that the transaction is not committed. If the store takes part in a copy, the statement fails,
// because the conversion of the mark's name to a number fails. The statement also locks the table of writers in a mode
// that conflicts with the lock of SetMove. So when SetMove has its lock, no transaction that writes is under way. The
// copying process itself uses beginAnyWrite.
var (
	beginAnyWrite = numbered("$3::bigint")
	beginWrite    = numbered(`$3::bigint +
		coalesce((SELECT encode(name, 'hex')::int FROM @marks WHERE ` + isMove + ` LIMIT 1), 0)`)
)

// numbered is a statement that stores the number $3 of a transaction. A missing row gets an era. If the last
// transaction that was committed, $4, is not in the database any more, it has lost commits, and the row gets a new era.
// Afterwards, the number in the row does not show this loss any more.
func numbered(n string) string {
	return `WITH stored AS (INSERT INTO @writers AS w (replica, slot, n, era)
		VALUES ($1, $2, ` + n + `, ` + newEra + `)
		ON CONFLICT (replica, slot) DO UPDATE SET n = excluded.n,
			era = CASE WHEN w.era = 0 OR w.n < $4 THEN excluded.era ELSE w.era END
		WHERE w.n < excluded.n RETURNING 1)
		SELECT 1 / count(*) FROM stored`
}

// movedError returns the error for a write that beginWrite refused. It returns nil for all other errors.
func (s *Store) movedError(err error) error {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || pg.Code != "22P02" {
		return nil
	}
	_, text, _ := strings.Cut(pg.Message, `"`)
	name, _ := hex.DecodeString(strings.TrimSuffix(text, `"`))
	if !bytes.HasPrefix(name, store.MoveMark) {
		return nil
	}
	return store.ReadMove(name).Err(s.name)
}

// openMove returns an error if the store is the target of a copy that has not ended.
func (s *Store) openMove(ctx context.Context) error {
	if s.moving {
		return nil
	}
	m, err := s.Move(ctx)
	if err == nil && m.State == store.Filling {
		err = m.Err(s.name)
	}
	return err
}

// Place identifies the store for people: server, database and schema, without a password.
func (s *Store) Place() string { return s.name + " (schema " + strings.Trim(s.schema, `"`) + ")" }

// Move implements [store.Movable].
func (s *Store) Move(ctx context.Context) (m store.Move, err error) {
	err = s.each(ctx, "SELECT name FROM @marks WHERE "+isMove, nil, func(rows pgx.Rows) error {
		var name []byte
		err := rows.Scan(&name)
		m = store.ReadMove(name)
		return err
	})
	return m, err
}

// SetMove implements [store.Movable].
func (s *Store) SetMove(ctx context.Context, m store.Move) error {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		// The lock waits until all transactions that write have ended, and new ones wait for the lock.
		if _, err := tx.Exec(ctx, s.sql("LOCK TABLE @writers IN SHARE ROW EXCLUSIVE MODE")); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, s.sql("DELETE FROM @marks WHERE "+isMove)); err != nil || m.State == "" {
			return err
		}
		name := m.Name()
		mac := s.key.Mark(name)
		if mac == nil {
			mac = []byte{}
		}
		_, err := tx.Exec(ctx, s.sql("INSERT INTO @marks (name, mac) VALUES ($1, $2)"), name, mac)
		return err
	})
	if err != nil {
		return s.storeError("mark the store as moved", err)
	}
	return nil
}

// moveTable returns the columns of a table for a copy, and the rest of the SELECT, which begins with FROM. It omits
// grants that have expired for good. They never apply again, and a store in a file has no column for this state.
func moveTable(t forms.Table) (columns []string, rest string) {
	names := map[string]string{}
	order := map[string]string{"runs": "t.n", "signals": "t.n", "run_blobs": "r.n, t.blob", "tallies": "r.n",
		"events": "r.n, t.seq", "reservations": "t.run, t.id, t.n", "grant_uses": "t.grant_id, t.run, t.step",
		"pins": "t.server, t.remote", "pending": "r.n"}[t.Name]
	if order == "" {
		order = "t." + t.Columns[0].Name
	}
	rest = "FROM @" + t.Name + " t"
	switch t.Name {
	case "run_blobs", "tallies", "events":
		rest += " JOIN @runs r ON r.n = t.run"
		names["run"] = "r.id"
	case "pending": // all runs are behind, because the index of texts is not copied
		rest = "FROM @runs r LEFT JOIN @pending t ON t.run = r.n"
		names["run"], names["todo"] = "r.id", "(coalesce(t.todo, 0) | 2)::bigint"
	case "reservations":
		names["open"] = "t.open::int"
	case "grants":
		rest += " WHERE NOT t.expired"
	}
	for _, c := range t.Columns {
		name, ok := names[c.Name]
		if !ok {
			name = "t." + c.Name
		}
		columns = append(columns, name)
	}
	return columns, rest + " ORDER BY " + order
}

// Count implements [store.Movable].
func (s *Store) Count(ctx context.Context, table string) (n int64, err error) {
	t, err := forms.TableOf(table)
	if err != nil {
		return 0, err
	}
	err = s.each(ctx, "SELECT count(*) FROM @"+t.Name, nil, func(rows pgx.Rows) error { return rows.Scan(&n) })
	return n, err
}

// Rows implements [store.Movable].
func (s *Store) Rows(ctx context.Context, table string, from int64, each func([]any) error) error {
	t, err := forms.TableOf(table)
	if err != nil {
		return err
	}
	columns, rest := moveTable(t)
	scanner := forms.NewScanner(t)
	return s.each(ctx, "SELECT "+strings.Join(columns, ", ")+" "+rest+" OFFSET $1", []any{from},
		func(rows pgx.Rows) error {
			if err := scan(rows, scanner.Dest()...); err != nil {
				return err
			}
			return each(scanner.Row())
		})
}

// Fill implements [store.Movable].
func (s *Store) Fill(ctx context.Context, table string, rows [][]any) error {
	t, err := forms.TableOf(table)
	if err != nil {
		return err
	}
	query := fillStatement(t)
	return s.single(ctx, func(tx *tx) error {
		for _, row := range rows {
			args, err := t.Args(row)
			if err != nil {
				return refused{err}
			}
			if t.Name == "events" {
				if err := s.checkEvents(row); err != nil {
					return err
				}
			}
			tx.queue(query, args...)
		}
		return nil
	})
}

// checkEvents refuses a row that contains no events, because UNIQUE(run, seq) would not be sufficient for it.
func (s *Store) checkEvents(row []any) error {
	if n, ok := row[2].(int64); ok && n > 0 {
		return nil
	}
	return refuse(tenon.CodeStore, "store %s: run %s has a row of events without events, so its journal is not copied",
		s.name, tenon.Visible(fmt.Sprint(row[0])))
}

// fillStatement returns the statement that inserts a row into a table. The row contains the id of its run instead of
// the primary key.
func fillStatement(t forms.Table) string {
	names, values := make([]string, len(t.Columns)), make([]string, len(t.Columns))
	for i, c := range t.Columns {
		names[i] = c.Name
		kind := map[byte]string{forms.TextColumn: "text", forms.NumberColumn: "bigint"}[c.Kind]
		if kind == "" {
			kind = "bytea"
		}
		values[i] = fmt.Sprintf("$%d::%s", i+1, kind)
		if c.Name == "open" {
			values[i] += " <> 0"
		}
	}
	from := ""
	switch t.Name {
	case "run_blobs", "events", "pending":
		values[0], from = "r.n", " FROM @runs r WHERE r.id = $1"
	case "tallies":
		names, values = append([]string{"id"}, names...), append([]string{"$1::text"}, values...)
		values[1], from = "r.n", " FROM @runs r WHERE r.id = $1"
	}
	return "INSERT INTO @" + t.Name + " (" + strings.Join(names, ", ") + ") SELECT " + strings.Join(values, ", ") +
		from + " ON CONFLICT DO NOTHING"
}

var _ store.Movable = (*Store)(nil)
