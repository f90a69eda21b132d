package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
)

// statements contains the writer's prepared statements. Each is prepared at its first use, because a command of the
// command line needs only a few of them.
type statements struct {
	conn *sql.Conn

	begin, commit, version direct
	isRun, textsEnd        direct
	rollback               statement

	position, busy, head      statement
	updateRun                 statement
	insertRun                 direct
	pend, pendText, putTally  direct
	insertEvents              direct
	insertText, indexText     direct
	putUpTo                   direct
	newChapter, putChapter    direct
	insertBlob                statement
	runBlob                   direct
	isBlob                    statement
	headSession, touchSession statement
	putSession                statement
	putSignal, settleSignal   statement
	reserve, settle           statement
	limitBudget, useBudget    statement

	rare map[string]*sql.Stmt // by text
}

func newStatements(conn *sql.Conn) statements {
	st := statements{conn: conn, rare: map[string]*sql.Stmt{}}
	sessions, signals, upTo := sumsOf("sessions"), sumsOf("signals"), sumsOf("texts_upto")
	budgets, reservations := sumsOf("budgets"), sumsOf("reservations")
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
		{&st.head, "SELECT head, head_seq, runs FROM sessions WHERE id = ?"},
		{&st.updateRun, "UPDATE runs" + sumsOf("runs").set("state", "?1", "stop", "?2", "waiting", "?3",
			"updated", "?4", "mac", "?5") + "WHERE n = ?6"},
		{&st.insertBlob, `INSERT INTO blobs (digest, data) VALUES (?, ?) ON CONFLICT DO NOTHING`},
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
		{&st.reserve, reservations.insert()},
		{&st.settle, "UPDATE reservations" + reservations.set("open", "0", "mac", "?1") +
			"WHERE run = ?2 AND id = ?3 AND n = ?4"},
		{&st.limitBudget, budgets.insert() + " ON CONFLICT DO UPDATE" + budgets.set("most", "excluded.most")},
		{&st.useBudget, budgets.insert() + " ON CONFLICT DO UPDATE" + budgets.set("used", "excluded.used", "most",
			"excluded.most")},
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
		{&st.isRun, `SELECT EXISTS (SELECT 1 FROM runs WHERE id = ?)`},
		{&st.textsEnd, textsEnd},
		{&st.newChapter, `SELECT coalesce(max(chapter), 0) + 1 FROM events`},
		{&st.putChapter, sumsOf("chapters").insert()},
		{&st.insertEvents, `INSERT INTO events (chapter, seq, n, last, events, blob, mac, sum)
			VALUES (?,?,?,?,?,?,?,?)`},
		{&st.insertRun, sumsOf("runs").insert()},
		{&st.runBlob, `INSERT INTO run_blobs (run, blob) VALUES (?, ?) ON CONFLICT DO NOTHING`},
		{&st.pend, markPending},
		{&st.pendText, markPendingText},
		{&st.putTally, sumsOf("tallies").insert()},
		{&st.insertText, sumsOf("texts").insert()},
		{&st.indexText, "INSERT INTO texts_index (rowid, text) VALUES (?, ?)"},
		{&st.putUpTo, upTo.insert() + " ON CONFLICT DO UPDATE" + upTo.set("seq", "excluded.seq")},
	} {
		p.dest.sql, p.dest.conn = p.sql, conn
	}
	return st
}

// close closes the statements; otherwise the connection would stay open.
func (st *statements) close() {
	for _, d := range []*direct{&st.begin, &st.commit, &st.version, &st.isRun, &st.textsEnd, &st.newChapter,
		&st.putChapter, &st.insertEvents, &st.insertRun, &st.runBlob, &st.pend, &st.pendText, &st.putTally,
		&st.insertText, &st.indexText, &st.putUpTo} {
		d.close()
	}
	for _, s := range []*statement{&st.rollback, &st.position, &st.busy, &st.updateRun,
		&st.insertBlob, &st.isBlob, &st.head, &st.headSession, &st.touchSession, &st.putSession, &st.putSignal,
		&st.settleSignal, &st.reserve, &st.settle, &st.limitBudget, &st.useBudget} {
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
	_, err := d.insert(values...)
	return err
}

// bind sets the arguments.
func (d *direct) bind(values []driver.Value) {
	d.args = d.args[:0]
	for i, v := range values {
		d.args = append(d.args, driver.NamedValue{Ordinal: i + 1, Value: v})
	}
}

// insert is exec, and returns the number of the inserted row.
func (d *direct) insert(values ...driver.Value) (n int64, err error) {
	if err := d.prepare(); err != nil {
		return 0, err
	}
	d.bind(values)
	res, err := d.stmt.ExecContext(context.Background(), d.args)
	clear(d.args) // so that the data of events can be freed
	if err != nil {
		return 0, err
	}
	return res.LastInsertId()
}

// number reads the single value of the single row.
func (d *direct) number(values ...driver.Value) (n int64, err error) {
	var list [1]int64
	found, err := d.numbers(list[:], values...)
	if err == nil && !found {
		err = io.EOF
	}
	return list[0], err
}

// numbers reads the numbers of the only row. There may be no row.
func (d *direct) numbers(list []int64, values ...driver.Value) (found bool, err error) {
	if err := d.prepare(); err != nil {
		return false, err
	}
	d.bind(values)
	rows, err := d.stmt.QueryContext(context.Background(), d.args)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	row := make([]driver.Value, len(list))
	if err := rows.Next(row); err != nil {
		if err == io.EOF {
			err = nil
		}
		return false, err
	}
	for i, v := range row {
		n, ok := v.(int64)
		if !ok {
			return false, fmt.Errorf("%s gave a %T", d.sql, v)
		}
		list[i] = n
	}
	return true, nil
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
	return eachRow(rows, err, row)
}

// eachRow reads the rows that a query returned, with its error, and closes them.
func eachRow(rows *sql.Rows, err error, row func(*sql.Rows) error) error {
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
