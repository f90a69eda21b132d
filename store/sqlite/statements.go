package sqlite

import (
	"context"
	"database/sql"
)

// statements are those of the writer, prepared once.
type statements struct {
	begin, commit, rollback, version *sql.Stmt

	position, busy            *sql.Stmt
	insertRun, updateRun      *sql.Stmt
	insertEvents              *sql.Stmt
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
		{&st.insertEvents, `INSERT INTO events (run, seq, n, last, events, blob) VALUES (?,?,?,?,?,?)`},
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
	return nil
}
