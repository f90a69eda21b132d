package postgres

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tenonhq/tenon"
)

// storeError describes an error of the store, and what to do about it. The text contains no password, because pgx omits
// it.
func (s *Store) storeError(what string, err error) error {
	if _, ok := errors.AsType[*tenon.Error](err); ok {
		return err
	}
	if moved := s.movedError(err); moved != nil {
		return moved
	}
	return &tenon.Error{Code: tenon.CodeStore, Message: "store " + s.name + ": " + what + ": " + err.Error() + "; " +
		remedy(err), Err: err}
}

const rightsRemedy = "open the store once with a role that may CREATE in the database, and grant the other role " +
	"USAGE on the schema and SELECT, INSERT, UPDATE and DELETE on its tables, and USAGE on its sequences"

func remedy(err error) string {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	_, connecting := errors.AsType[*pgconn.ConnectError](err)
	switch {
	case errors.Is(err, errUnknown):
		return "read the run before the write is repeated"
	case ok && pg.Code == "42501": // insufficient_privilege
		return rightsRemedy
	case ok && (pg.Code == "28P01" || pg.Code == "28000"):
		return "check the role and the password of the DSN, and pg_hba.conf of the server"
	case ok && pg.Code == "3D000":
		return "create the database: CREATE DATABASE … ENCODING 'UTF8'"
	case ok && pg.Code == "25006":
		return "the server is read-only: connect to the primary"
	case ok && (pg.Code == "53100" || pg.Code == "53200"):
		return "the server has no space left: free some; nothing of this write was stored"
	case ok && (pg.Code == "53300" || pg.Code == "53400"):
		return "the server has no connection left: raise max_connections, or use a pooler"
	case ok && strings.HasPrefix(pg.Code, "XX"):
		return "the database is damaged: put back a backup"
	case connecting || isNet(err):
		return "check that the server runs and can be reached, and the host, port and sslmode of the DSN"
	}
	return "see the cause"
}

func (s *Store) readError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return tenon.Errorf(tenon.CodeCancelled, "store %s: not read: %w", s.name, ctx.Err())
	}
	select {
	case <-s.quit:
		return s.closedError()
	default:
	}
	return s.storeError("read", err)
}

func (s *Store) cancelled(err error) error {
	return tenon.Errorf(tenon.CodeCancelled, "store %s: not written: %w", s.name, err)
}

func (s *Store) closedError() error {
	return tenon.Errorf(tenon.CodeStore, "store %s: it was closed", s.name)
}

func (s *Store) damaged(what string) error {
	return tenon.Errorf(tenon.CodeStore, "store %s: %s is damaged; put back a backup", s.name, what)
}

// isNet reports whether a connection failed.
func isNet(err error) bool {
	_, ok := errors.AsType[net.Error](err)
	return ok || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		pgconn.SafeToRetry(err) || strings.Contains(err.Error(), "conn closed")
}

// passes reports whether a transaction that was not committed can succeed if it is made again.
func passes(err error) bool {
	if errors.Is(err, errUnknown) {
		return false
	}
	if errors.Is(err, errExpired) {
		return true
	}
	if _, ok := errors.AsType[notCommitted](err); ok {
		return true
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch pg.Code {
		case "40001", "40P01", "23505", // serialization failure; deadlock; unique violation by another writer
			notAlone,
			"57P01", "57P02", "57P03", // the server is stopping, has crashed, or is starting
			"25P03", "25006", // idle for too long; read-only during a fail-over
			"57014", "55P03": // statement_timeout; lock_timeout
			return true
		}
		return strings.HasPrefix(pg.Code, "08") // connection exceptions
	}
	return isNet(err)
}

// readsAgain reports whether a read can succeed if it is made again at once. A read that took too long would only take
// as long again.
func readsAgain(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return passes(err) && !(ok && (pg.Code == "57014" || pg.Code == "55P03"))
}

// refused is the error of a write that was refused and changed nothing. The other writes of its transaction are
// committed.
type refused struct{ err error }

func (r refused) Error() string { return r.err.Error() }
func (r refused) Unwrap() error { return r.err }

func refuse(code tenon.Code, format string, args ...any) error {
	return refused{tenon.Errorf(code, format, args...)}
}

// escaped is the prefix of the stored form of a text that PostgreSQL cannot store: a text with NUL, or one that is not
// UTF-8. The bytes of the text follow in hexadecimal digits.
const escaped = "\x01"

// plainText returns the stored form of a text.
func plainText(s string) string {
	if utf8.ValidString(s) && !strings.Contains(s, "\x00") && !strings.HasPrefix(s, escaped) {
		return s
	}
	return escaped + hex.EncodeToString([]byte(s))
}

// fromPlain is the inverse of [plainText].
func fromPlain(s string) string {
	if text, ok := strings.CutPrefix(s, escaped); ok {
		if b, err := hex.DecodeString(text); err == nil {
			return string(b)
		}
	}
	return s
}

// encode replaces each text in the arguments of a statement by its stored form.
func encode(args []any) []any {
	stored := make([]any, len(args))
	for i, a := range args {
		stored[i] = a
		switch a := a.(type) {
		case string:
			stored[i] = plainText(a)
		case []string:
			list := make([]string, len(a))
			for j, s := range a {
				list[j] = plainText(s)
			}
			stored[i] = list
		}
	}
	return stored
}

// scan reads the values of a row.
func scan(rows pgx.Rows, dest ...any) error {
	if err := rows.Scan(dest...); err != nil {
		return err
	}
	for _, d := range dest {
		switch d := d.(type) {
		case *string:
			*d = fromPlain(*d)
		case *tenon.Principal:
			*d = tenon.Principal(fromPlain(string(*d)))
		}
	}
	return nil
}
