package postgres

import (
	"cmp"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// queue adds a statement. It is sent together with the next statement that needs an answer. The arguments are sent as
// text, and the database determines their types.
func (t *tx) queue(query string, args ...any) {
	var b pgx.ExtendedQueryBuilder
	err := b.Build(t.conn.Conn().TypeMap(), nil, encode(args))
	t.add(err, query, b.ParamValues, nil, b.ParamFormats)
}

// queueArrays adds a statement whose arguments are arrays of numbers or of bytes. They are sent in their binary format:
// the text format of 1 KiB of bytes has 2 KiB, and both sides spend most of their time on it.
func (t *tx) queueArrays(query string, args ...any) {
	values, oids, formats, err := t.binary(args)
	t.add(err, query, values, oids, formats)
}

// binary encodes numbers, texts, and arrays of numbers or of bytes in their binary format.
func (t *tx) binary(args []any) (values [][]byte, oids []uint32, formats []int16, err error) {
	values, oids, formats = make([][]byte, len(args)), make([]uint32, len(args)), make([]int16, len(args))
	for i, a := range args {
		formats[i] = pgtype.BinaryFormatCode
		switch list := a.(type) {
		case int64:
			oids[i] = pgtype.Int8OID
		case string:
			oids[i] = pgtype.TextOID
		case []int64:
			oids[i], a = pgtype.Int8ArrayOID, pgtype.FlatArray[int64](list)
		case [][]byte:
			oids[i], a = pgtype.ByteaArrayOID, pgtype.FlatArray[[]byte](list)
		}
		var ierr error
		values[i], ierr = t.conn.Conn().TypeMap().Encode(oids[i], formats[i], a, nil)
		err = cmp.Or(err, ierr)
	}
	return values, oids, formats, err
}

func (t *tx) add(err error, query string, values [][]byte, oids []uint32, formats []int16) {
	t.broken = cmp.Or(t.broken, err)
	if t.broken == nil {
		t.batch.ExecParams(t.s.sql(query), values, oids, formats, nil)
		t.queued++
	}
}

// send sends the queued statements together. It returns the tag of the last one.
func (t *tx) send() (tag pgconn.CommandTag, err error) {
	if t.broken != nil {
		return tag, t.broken
	}
	if t.queued == 0 {
		return tag, nil
	}
	b := t.batch
	t.batch, t.queued = pgconn.Batch{}, 0
	res := t.conn.Conn().PgConn().ExecBatch(t.ctx, &b)
	for res.NextResult() {
		if tag, err = res.ResultReader().Close(); err != nil {
			break
		}
	}
	return tag, cmp.Or(err, res.Close())
}

// flush sends the queued statements.
func (t *tx) flush() error {
	if t.guess {
		return errGuess
	}
	_, err := t.send()
	return err
}

// exec sends a statement and returns the number of rows that it changed.
func (t *tx) exec(query string, args ...any) (changed int64, err error) {
	t.queue(query, args...)
	if t.guess {
		return 0, errGuess
	}
	tag, err := t.send()
	return tag.RowsAffected(), err
}
