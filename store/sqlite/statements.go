package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
)

// statements contains the writer's prepared statements. Each is prepared at its first use, because a command of the
// command line needs only a few of them.
type statements struct {
	conn *sql.Conn

	begin, commit, version direct
	rollback               statement

	position, busy            statement
	insertRun, updateRun      statement
	pend                      statement
	insertEvents              direct
	newChapter, putChapter    direct
	insertBlob                statement
	runBlob, isBlob           statement
	headSession, touchSession statement
	putSession                statement
	putSignal, settleSignal   statement

	rare map[string]*sql.Stmt // by text
}

func newStatements(conn *sql.Conn) statements {
	st := statements{conn: conn, rare: map[string]*sql.Stmt{}}
	sessions, signals := sumsOf("sessions"), sumsOf("signals")
	for _, p := range []struct {
		dest *statement
		sql  string
	}{
		{&st.rollback, "ROLLBACK"},
		{&st.position, `SELECT n, coalesce((SELECT e.seq + e.n - 1 ` + lastRow + `), 0),
			coalesce((SELECT n ` + lastChapter + `), 0),
			coalesce((SELECT first ` + lastChapter + `), 0), imported IS NOT NULL FROM runs WHERE id = ?`},
		{&st.busy, `SELECT id FROM runs WHERE session = ? AND state IN ('working', 'input_required') AND caller = ''
			LIMIT 1`},
		{&st.insertRun, sumsOf("runs").insert()},
		{&st.updateRun, "UPDATE runs" + sumsOf("runs").set("state", "?1", "stop", "?2", "waiting", "?3",
			"updated", "?4", "mac", "?5") + "WHERE n = ?6"},
		{&st.pend, markPending},
		{&st.insertBlob, `INSERT INTO blobs (digest, data) VALUES (?, ?) ON CONFLICT DO NOTHING`},
		{&st.runBlob, `INSERT INTO run_blobs (run, blob) VALUES (?, ?) ON CONFLICT DO NOTHING`},
		{&st.isBlob, `SELECT EXISTS (SELECT 1 FROM blobs WHERE digest = ?)`},
		{&st.headSession, sessions.insert() + " ON CONFLICT (id) DO UPDATE" + sessions.set("head", "excluded.head",
			"head_seq", "0", "runs", "runs + 1", "updated", "max(updated, excluded.updated)",
			"title", "iif(title = '', excluded.title, title)", "agent", "iif(agent = '', excluded.agent, agent)",
			"mac", "iif(principal = '', excluded.mac, mac)",
			"principal", "iif(principal = '', excluded.principal, principal)")},
		{&st.touchSession, "UPDATE sessions" + sessions.set("updated", "max(updated, ?1)") +
			"WHERE id = (SELECT session FROM runs WHERE n = ?2)"},
		{&st.putSession, sessions.insert() + " ON CONFLICT (id) DO UPDATE" + sessions.set("title", "excluded.title",
			"agent", "excluded.agent", "principal", "excluded.principal", "parent", "excluded.parent",
			"head", "excluded.head", "head_seq", "excluded.head_seq", "created", "excluded.created",
			"updated", "excluded.updated", "imported", "excluded.imported", "mac", "excluded.mac")},
		{&st.putSignal, signals.insert() + " ON CONFLICT (id) DO NOTHING"},
		{&st.settleSignal, "UPDATE signals" + signals.set("seq", "?1") + "WHERE id = ?2 AND seq = 0"},
	} {
		p.dest.sql, p.dest.conn = p.sql, conn
	}
	for _, p := range []struct {
		dest *direct
		sql  string
	}{
		{&st.begin, "BEGIN IMMEDIATE"},
		{&st.commit, "COMMIT"},
		{&st.version, "PRAGMA data_version"},
		{&st.newChapter, `SELECT coalesce(max(chapter), 0) + 1 FROM events`},
		{&st.putChapter, sumsOf("chapters").insert()},
		{&st.insertEvents, `INSERT INTO events (chapter, seq, n, last, events, blob, mac, sum)
			VALUES (?,?,?,?,?,?,?,?)`},
	} {
		p.dest.sql, p.dest.conn = p.sql, conn
	}
	return st
}

// close closes the statements; otherwise the connection would stay open.
func (st *statements) close() {
	for _, d := range []*direct{&st.begin, &st.commit, &st.version, &st.newChapter, &st.putChapter, &st.insertEvents} {
		d.close()
	}
	for _, s := range []*statement{&st.rollback, &st.position, &st.busy, &st.insertRun, &st.updateRun, &st.pend,
		&st.insertBlob, &st.runBlob, &st.isBlob, &st.headSession, &st.touchSession, &st.putSession, &st.putSignal,
		&st.settleSignal} {
		if s.stmt != nil {
			_ = s.stmt.Close() // no query is running
		}
	}
	for _, s := range st.rare {
		_ = s.Close() // no query is running
	}
}

// statement is a prepared statement of the writer. It has no context, because a write that has begun is not
// cancelled.
type statement struct {
	conn *sql.Conn
	sql  string
	stmt *sql.Stmt
}

func (s *statement) prepare() (err error) {
	if s.stmt == nil {
		s.stmt, err = s.conn.PrepareContext(context.Background(), s.sql)
	}
	return err
}

func (s *statement) exec(args ...any) (sql.Result, error) {
	if err := s.prepare(); err != nil {
		return nil, err
	}
	return s.stmt.Exec(args...)
}

// scan runs the statement and reads its only row. Errors: sql.ErrNoRows.
func (s *statement) scan(args []any, dest ...any) error {
	if err := s.prepare(); err != nil {
		return err
	}
	return s.stmt.QueryRow(args...).Scan(dest...)
}

// direct is a statement that bypasses database/sql, for the statements of each step of a run. The writer owns the
// connection permanently, so it can reuse the arguments.
type direct struct {
	conn *sql.Conn
	sql  string
	stmt directly
	args []driver.NamedValue
}

// directly contains the methods of the driver's statements that direct uses.
type directly interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

func (d *direct) prepare() error {
	if d.stmt != nil {
		return nil
	}
	return d.conn.Raw(func(c any) error {
		p, ok := c.(driver.ConnPrepareContext)
		if !ok {
			return errors.New("the driver cannot prepare statements")
		}
		stmt, err := p.PrepareContext(context.Background(), d.sql)
		if err != nil {
			return err
		}
		can, ok := stmt.(directly)
		if !ok {
			return errors.Join(errors.New("the driver's statements take no context"), stmt.Close())
		}
		d.stmt = can
		return nil
	})
}

func (d *direct) exec(values ...driver.Value) error {
	if err := d.prepare(); err != nil {
		return err
	}
	d.args = d.args[:0]
	for i, v := range values {
		d.args = append(d.args, driver.NamedValue{Ordinal: i + 1, Value: v})
	}
	_, err := d.stmt.ExecContext(context.Background(), d.args)
	clear(d.args) // so that the data of events can be freed
	return err
}

// number reads the single value of the single row.
func (d *direct) number() (n int64, err error) {
	if err := d.prepare(); err != nil {
		return 0, err
	}
	rows, err := d.stmt.QueryContext(context.Background(), nil)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var row [1]driver.Value
	if err := rows.Next(row[:]); err != nil {
		return 0, err
	}
	n, ok := row[0].(int64)
	if !ok {
		return 0, fmt.Errorf("%s gave a %T", d.sql, row[0])
	}
	return n, nil
}

// close closes the statement. The connection must be open.
func (d *direct) close() {
	if d.stmt != nil {
		_ = d.stmt.Close() // no query is running
	}
}

// rare returns the prepared statement of a less frequent write. The texts of these statements are constant.
func (w *writer) rare(query string) (*sql.Stmt, error) {
	if stmt := w.stmts.rare[query]; stmt != nil {
		return stmt, nil
	}
	stmt, err := w.conn.PrepareContext(context.Background(), query)
	if err == nil {
		w.stmts.rare[query] = stmt
	}
	return stmt, err
}

// exec runs a less frequent statement and returns how many rows it changed.
func (w *writer) exec(query string, args ...any) (changed int64, err error) {
	stmt, err := w.rare(query)
	if err != nil {
		return 0, err
	}
	res, err := stmt.Exec(args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// query runs a query within a write.
func (w *writer) query(query string, args []any, row func(*sql.Rows) error) error {
	stmt, err := w.rare(query)
	if err != nil {
		return err
	}
	rows, err := stmt.Query(args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // rows.Err says what went wrong
	for rows.Next() {
		if err := row(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// row reads one row. Errors: sql.ErrNoRows.
func (w *writer) row(query string, args []any, dest ...any) error {
	stmt, err := w.rare(query)
	if err != nil {
		return err
	}
	return stmt.QueryRow(args...).Scan(dest...)
}
