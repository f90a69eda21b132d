package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
)

// statements are those of the writer, prepared once.
type statements struct {
	begin, commit, rollback, version *sql.Stmt

	position, busy            *sql.Stmt
	insertRun, updateRun      *sql.Stmt
	insertEvents              direct
	insertBlob                *sql.Stmt
	headSession, touchSession *sql.Stmt
	putSession                *sql.Stmt
	putSignal, settleSignal   *sql.Stmt
}

func (st *statements) prepare(ctx context.Context, conn *sql.Conn) error {
	for _, p := range []struct {
		dest **sql.Stmt
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
		stmt, err := conn.PrepareContext(ctx, p.sql)
		if err != nil {
			return err
		}
		*p.dest = stmt
	}
	return st.insertEvents.prepare(ctx, conn, `INSERT INTO events (run, seq, n, last, events, blob) VALUES (?,?,?,?,?,?)`)
}

// direct is a statement without database/sql around it, for the one that every
// step of every run needs. The connection is the writer's for as long as it
// lives, and so are these arguments.
type direct struct {
	stmt driver.StmtExecContext
	args []driver.NamedValue
}

func (d *direct) prepare(ctx context.Context, conn *sql.Conn, query string) error {
	return conn.Raw(func(c any) error {
		p, ok := c.(driver.ConnPrepareContext)
		if !ok {
			return errors.New("the driver cannot prepare statements")
		}
		stmt, err := p.PrepareContext(ctx, query)
		if err != nil {
			return err
		}
		if d.stmt, ok = stmt.(driver.StmtExecContext); !ok {
			return errors.Join(errors.New("the driver's statements take no context"), stmt.Close())
		}
		return nil
	})
}

func (d *direct) exec(values ...driver.Value) error {
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
