package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
)

// statements are those of the writer. Each is prepared when it is first used:
// a command line needs few of them, once.
type statements struct {
	conn *sql.Conn

	begin, commit, rollback, version statement

	position, busy            statement
	insertRun, updateRun      statement
	insertEvents              direct
	insertBlob                statement
	headSession, touchSession statement
	putSession                statement
	putSignal, settleSignal   statement
}

func newStatements(conn *sql.Conn) statements {
	st := statements{conn: conn}
	for _, p := range []struct {
		dest *statement
		sql  string
	}{
		{&st.begin, "BEGIN IMMEDIATE"},
		{&st.commit, "COMMIT"},
		{&st.rollback, "ROLLBACK"},
		{&st.version, "PRAGMA data_version"},
		{&st.position, `SELECT n, coalesce((SELECT e.seq + e.n - 1 FROM events e WHERE e.run = runs.n ORDER BY e.seq DESC LIMIT 1), 0)
			FROM runs WHERE id = ?`},
		{&st.busy, `SELECT id FROM runs WHERE session = ? AND state IN ('working', 'input_required') LIMIT 1`},
		{&st.insertRun, `INSERT INTO runs
			(id, session, parent, parent_seq, core, agent, model, title, state, stop, created, updated, waiting)
			VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)`},
		{&st.updateRun, `UPDATE runs SET state = ?, stop = ?, waiting = ?, updated = ? WHERE n = ?`},
		{&st.insertBlob, `INSERT INTO blobs (digest, data) VALUES (?, ?) ON CONFLICT DO NOTHING`},
		{&st.headSession, `INSERT INTO sessions (id, title, agent, head, runs, created, updated) VALUES (?,?,?,?,1,?,?)
			ON CONFLICT (id) DO UPDATE SET head = excluded.head, runs = runs + 1, updated = excluded.updated,
				title = iif(title = '', excluded.title, title), agent = iif(agent = '', excluded.agent, agent)`},
		{&st.touchSession, `UPDATE sessions SET updated = max(updated, ?) WHERE id = (SELECT session FROM runs WHERE n = ?)`},
		{&st.putSession, `INSERT INTO sessions (id, title, agent, head, runs, created, updated) VALUES (?,?,?,?,0,?,?)
			ON CONFLICT (id) DO UPDATE SET title = excluded.title, agent = excluded.agent, head = excluded.head,
				created = excluded.created, updated = excluded.updated`},
		{&st.putSignal, `INSERT INTO signals (id, run, kind, step, by, data, time, seq) VALUES (?,?,?,?,?,?,?,0)
			ON CONFLICT (id) DO NOTHING`},
		{&st.settleSignal, `UPDATE signals SET seq = ? WHERE id = ? AND seq = 0`},
	} {
		p.dest.sql, p.dest.conn = p.sql, conn
	}
	st.insertEvents.sql, st.insertEvents.conn = `INSERT INTO events (run, seq, n, last, events, blob) VALUES (?,?,?,?,?,?)`, conn
	return st
}

// close ends the statements, without which the connection would stay open.
func (st *statements) close() {
	for _, s := range []*statement{&st.begin, &st.commit, &st.rollback, &st.version, &st.position, &st.busy, &st.insertRun, &st.updateRun,
		&st.insertBlob, &st.headSession, &st.touchSession, &st.putSession, &st.putSignal, &st.settleSignal} {
		if s.stmt != nil {
			_ = s.stmt.Close() // nothing is under way
		}
	}
	st.insertEvents.close()
}

// statement is one of the writer's. Its use does not end early: the write that
// it belongs to is under way.
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

// direct is a statement without database/sql around it, for the one that every
// step of every run needs. The connection is the writer's for as long as it
// lives, and so are these arguments.
type direct struct {
	conn *sql.Conn
	sql  string
	stmt driver.StmtExecContext
	args []driver.NamedValue
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
		exec, ok := stmt.(driver.StmtExecContext)
		if !ok {
			return errors.Join(errors.New("the driver's statements take no context"), stmt.Close())
		}
		d.stmt = exec
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
	clear(d.args) // keep no event's data alive
	return err
}

// close ends the statement; the connection must be open.
func (d *direct) close() {
	if c, ok := d.stmt.(driver.Stmt); ok {
		_ = c.Close() // nothing is under way
	}
}
