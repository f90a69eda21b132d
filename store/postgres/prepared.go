package postgres

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// function is a call of a function of the schema. Only these calls may be prepared, because they are most of the
// statements of a busy store.
type function struct {
	name string // of the prepared statement in a session, and the key of what is known about a connection
	sql  string
}

var (
	appendRows = function{"tenon_append_rows", `SELECT @append_rows(` + parameters(11) + `)`} // see era.go
	beginRun   = function{"tenon_begin_run", `SELECT @begin_run(` + parameters(31) + `)`}     // see start.go
	setState   = function{"tenon_set_state", `SELECT @set_state(` + parameters(7) + `)`}
)

func parameters(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprint("$", i+1)
	}
	return strings.Join(list, ", ")
}

// appendRows queues the statement that adds the rows of events if the guess is right. It is the last one of the
// transaction, so that its locks last only until the commit.
func (t *tx) appendRows(sl *slot) error {
	e := &t.inserts
	return t.call(&appendRows, t.s.replica, t.era, sl.last, sl.n, e.runs, e.seqs, e.ns, e.lasts, e.events, e.blobs,
		e.macs)
}

// call queues the call of a function.
func (t *tx) call(f *function, args ...any) error {
	values, oids, formats, err := t.binary(args)
	if err != nil {
		return err
	}
	prepared, err := t.prepared(f, oids)
	if err != nil {
		return err
	}
	if !prepared {
		t.add(nil, f.sql, values, oids, formats)
		return nil
	}
	t.batch.ExecPrepared(f.name, values, formats, nil)
	t.queued++
	return nil
}

// prepared reports whether the statement is prepared in the session of the connection, and prepares it at the first
// use of a connection. Behind a pooler, each transaction may have another session, so nothing is prepared. The id of
// the server's process shows a pooler, as in [Store.examinePooler].
func (t *tx) prepared(f *function, oids []uint32) (bool, error) {
	conn := t.conn.Conn().PgConn()
	state := conn.CustomData()
	if !t.guess || t.s.unnamed.Load() {
		return false, nil
	}
	if is, ok := state[f.name].(bool); ok {
		return is, nil
	}
	var pid uint32
	if err := t.conn.QueryRow(t.ctx, "SELECT pg_backend_pid()").Scan(&pid); err != nil {
		return false, err
	}
	direct := pid == conn.PID()
	if direct {
		if _, err := conn.Prepare(t.ctx, f.name, t.s.sql(f.sql), oids); err != nil {
			return false, t.s.withoutName(err)
		}
	}
	state[f.name] = direct
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
