package postgres

import (
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// appendRows is the only statement that may be prepared, because it is most of the statements of a busy store. It
	// calls the function append_rows; see era.go.
	appendRows = `SELECT @append_rows($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`
	// preparedName is the name of this statement in a session, and the key of what is known about a connection.
	preparedName = "tenon_append_rows"
)

// appendRows queues the statement that adds the rows of events if the guess is right. It is the last one of the
// transaction, so that its locks last only until the commit.
func (t *tx) appendRows(sl *slot) error {
	e := &t.inserts
	values, oids, formats, err := t.binary([]any{t.s.replica, t.era, sl.last, sl.n, e.runs, e.seqs, e.ns, e.lasts,
		e.events, e.blobs, e.macs})
	if err != nil {
		return err
	}
	prepared, err := t.prepared(oids)
	if err != nil {
		return err
	}
	if !prepared {
		t.add(nil, appendRows, values, oids, formats)
		return nil
	}
	t.batch.ExecPrepared(preparedName, values, formats, nil)
	t.queued++
	return nil
}

// prepared reports whether the statement is prepared in the session of the connection, and prepares it at the first
// use of a connection. Behind a pooler, each transaction may have another session, so nothing is prepared. The id of
// the server's process shows a pooler, as in [Store.examinePooler].
func (t *tx) prepared(oids []uint32) (bool, error) {
	conn := t.conn.Conn().PgConn()
	state := conn.CustomData()
	if t.s.unnamed.Load() {
		return false, nil
	}
	if is, ok := state[preparedName].(bool); ok {
		return is, nil
	}
	var pid uint32
	if err := t.conn.QueryRow(t.ctx, "SELECT pg_backend_pid()").Scan(&pid); err != nil {
		return false, err
	}
	direct := pid == conn.PID()
	if direct {
		if _, err := conn.Prepare(t.ctx, preparedName, t.s.sql(appendRows), oids); err != nil {
			return false, t.s.withoutName(err)
		}
	}
	state[preparedName] = direct
	return direct, nil
}

// withoutName turns an error that only a pooler causes into errGuess, and prepares nothing from now on. Such a pooler
// passes on the process id of a server, and then uses another one.
func (s *Store) withoutName(err error) error {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || pg.Code != "26000" && pg.Code != "42P05" { // there is no such statement; there is one already
		return err
	}
	s.unnamed.Store(true)
	return errGuess
}
