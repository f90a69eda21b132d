package postgres

import (
	"cmp"
	"strconv"

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

// binary encodes numbers, texts, bytes, and arrays of numbers or of bytes in their binary format.
func (t *tx) binary(args []any) (values [][]byte, oids []uint32, formats []int16, err error) {
	values, oids, formats = make([][]byte, len(args)), make([]uint32, len(args)), make([]int16, len(args))
	for i, a := range args {
		formats[i] = pgtype.BinaryFormatCode
		size := 8
		switch list := a.(type) {
		case int64:
			oids[i] = pgtype.Int8OID
		case string:
			oids[i], a, size = pgtype.TextOID, plainText(list), len(list)
		case []byte:
			oids[i], size = pgtype.ByteaOID, len(list)
		case []int64:
			oids[i], a, size = pgtype.Int8ArrayOID, pgtype.FlatArray[int64](list), 20+12*len(list)
		case [][]byte:
			oids[i], a, size = pgtype.ByteaArrayOID, pgtype.FlatArray[[]byte](list), 20
			for _, b := range list {
				size += 4 + len(b)
			}
		}
		var ierr error
		values[i], ierr = t.conn.Conn().TypeMap().Encode(oids[i], formats[i], a, make([]byte, 0, size))
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
	b, keys := t.batch, t.keys
	t.batch, t.queued, t.keys = pgconn.Batch{}, 0, nil
	res := t.conn.Conn().PgConn().ExecBatch(t.ctx, &b)
	for i := 0; res.NextResult(); i++ {
		r := res.ResultReader()
		if p := keys[i]; p != nil && r.NextRow() {
			p.n, err = strconv.ParseInt(string(r.Values()[0]), 10, 64)
		}
		var rerr error
		if tag, rerr = r.Close(); rerr != nil || err != nil {
			err = cmp.Or(rerr, err)
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
