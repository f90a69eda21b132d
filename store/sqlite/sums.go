package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"slices"
	"strings"
	"sync"

	"modernc.org/sqlite"
)

// Each row has a checksum in its column sum: the CRC-32C of the table's name and of the row's values, each with its
// type and length. SQLite itself notices damage to the structure of a file, but not to values. A CRC detects every
// single flipped bit. It does not protect against deliberate changes; package store/signed does.
//
// The tables blobs and run_blobs have no such column: the digest is the checksum of a blob, and an index contains the
// whole row of run_blobs. The same is true of unsummed. The contents of probe do not matter. The tables of the index
// of texts are compared with the texts.
//
// An UPDATE adds the difference between the checksums of the new and the old values. If the old values were damaged,
// the new checksum does not match either: a later write does not hide damage.

// summed is a table whose rows have checksums, with the columns that the checksum covers. The columns and their order
// are part of the file format. Row numbers (rowid) are not covered, because indexes contain them.
type summed struct {
	table string
	cols  []string
	key   string // SQL that names a row for people
}

func summedTables() []summed { return slices.Clone(sumColumns()) }

var sumColumns = sync.OnceValue(func() []summed {
	list := []summed{
		{"runs", []string{"id", "session", "principal", "caller", "parent", "parent_seq", "core", "agent", "model",
			"title", "state", "stop", "created", "updated", "waiting", "imported", "mac"}, "id"},
		{"events", []string{"chapter", "seq", "n", "last", "events", "blob", "mac"}, eventsKey},
		{"chapters", []string{"run", "first", "n"},
			"coalesce((SELECT id FROM runs WHERE runs.n = chapters.run), run) || ', events from ' || first"},
		{"signals", []string{"id", "run", "kind", "step", "by", "data", "time", "seq", "mac"},
			"id || ' of run ' || run"},
		{"sessions", []string{"id", "title", "agent", "principal", "parent", "head", "head_seq", "runs", "created",
			"updated", "imported", "mac"}, "id"},
		{"grants", []string{"id", "principal", "server", "name", "remote", "target", "definition", "condition", "uses",
			"used", "expires", "by", "created", "mac"}, "id || ' of ' || principal || ' for ' || remote"},
		{"grant_uses", []string{"grant_id", "run", "step", "mac"}, "grant_id || ' in ' || run || '/' || step"},
		{"session_grants", []string{"id", "session", "key", "principal", "server", "remote", "by", "created", "mac"},
			"id || ' of session ' || session"},
		{"budgets", []string{"key", "used", "most"}, "key"},
		{"reservations", []string{"run", "id", "n", "key", "amount", "open", "mac"}, "key || ' of run ' || run"},
		{"results", []string{"key", "run", "step", "expires", "bytes", "data", "mac"}, "run || '/' || step"},
		{"rates", []string{"key", "turns", "past"}, "key"},
		{"pins", []string{"server", "remote", "raw", "digest", "definition", "by", "created", "mac"},
			"server || '.' || remote"},
		{"marks", []string{"name", "mac"}, "hex(name)"},
		{"texts", []string{"run", "seq", "role", "text"}, textsKey},
		{"tallies", []string{"run", "id", "seq", "data", "mac"}, "id"},
		{"texts_upto", []string{"run", "seq"}, "coalesce((SELECT id FROM runs WHERE n = run), run)"},
	}
	return list
})

const (
	eventsKey = `'events ' || seq || ' to ' || (seq + n - 1) || ' of run ' || coalesce((SELECT r.id FROM chapters c
		JOIN runs r ON r.n = c.run WHERE c.n = events.chapter LIMIT 1), '?')`
	textsKey = "seq || ' of run ' || coalesce((SELECT id FROM runs WHERE runs.n = texts.run), '?')"
)

// sumsOf returns the summed table with a name. The table must exist.
func sumsOf(table string) summed {
	list := sumColumns()
	return list[slices.IndexFunc(list, func(t summed) bool { return t.table == table })]
}

// withoutRowid reports whether the rows of the table have no numbers.
func (t summed) withoutRowid() bool {
	switch t.table {
	case "chapters", "sessions", "grants", "grant_uses", "session_grants", "budgets", "reservations", "rates", "pins":
		return true
	}
	return false
}

// since returns the version of the schema that has the table with checksums.
func (t summed) since() int {
	switch t.table {
	case "tallies":
		return 10
	case "session_grants":
		return 11
	}
	return 9
}

// sum returns SQL for the checksum of a row.
func (t summed) sum() string { return t.sumWith(nil) }

// sumWith returns SQL for the checksum of a row with other values in some columns.
func (t summed) sumWith(set map[string]string) string {
	values := make([]string, len(t.cols))
	for i, c := range t.cols {
		values[i] = c
		if v, ok := set[c]; ok {
			values[i] = v
		}
	}
	return sumFunction + "('" + t.table + "', " + strings.Join(values, ", ") + ")"
}

// damaged returns SQL that is true for a row whose checksum does not match.
func (t summed) damaged() string { return "coalesce(sum <> " + t.sum() + ", 0)" }

// insert returns a statement that inserts a row, with a parameter for each column that the checksum covers.
func (t summed) insert() string {
	params := make([]string, len(t.cols))
	for i := range t.cols {
		params[i] = fmt.Sprint("?", i+1)
	}
	list := strings.Join(params, ", ")
	return "INSERT INTO " + t.table + " (" + strings.Join(t.cols, ", ") + ", sum) VALUES (" + list + ", " +
		sumFunction + "('" + t.table + "', " + list + "))"
}

// set returns the SET clause of an UPDATE that changes some columns. pairs are columns, each followed by the SQL of
// its new value.
func (t summed) set(pairs ...string) string {
	set := map[string]string{}
	var b strings.Builder
	b.WriteString(" SET ")
	for i := 0; i < len(pairs); i += 2 {
		set[pairs[i]] = pairs[i+1]
		b.WriteString(pairs[i] + " = " + pairs[i+1] + ", ")
	}
	fmt.Fprintf(&b, "sum = (sum - %s + %s) & %d ", t.sum(), t.sumWith(set), math.MaxUint32)
	return b.String()
}

// sumFunction is the SQL function of checksums: tenon_sum(table, value, …).
const sumFunction = "tenon_sum"

// rowSum is a checksum that is being computed.
type rowSum struct {
	crc uint32
	buf [9]byte
}

var castagnoli = sync.OnceValue(func() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) })

// The types of values in a checksum.
const (
	sumNull = iota
	sumInteger
	sumReal
	sumText
	sumBlob
)

func (s *rowSum) head(kind byte, n uint64) {
	s.buf[0] = kind
	binary.BigEndian.PutUint64(s.buf[1:], n)
	s.crc = crc32.Update(s.crc, castagnoli(), s.buf[:])
}

func (s *rowSum) number(n int64) { s.head(sumInteger, uint64(n)) }

func (s *rowSum) text(v string) {
	s.head(sumText, uint64(len(v)))
	s.crc = crc32.Update(s.crc, castagnoli(), []byte(v))
}

// blob adds a blob, or NULL if it is nil.
func (s *rowSum) blob(v []byte) {
	if v == nil {
		s.head(sumNull, 0)
		return
	}
	s.head(sumBlob, uint64(len(v)))
	s.crc = crc32.Update(s.crc, castagnoli(), v)
}

// eventsSum returns the checksum of a row of events, as tenon_sum does, without a call through SQLite.
func eventsSum(chapter int64, seq uint64, n int, last int64, packed, blob, mac []byte) int64 {
	s := rowSum{}
	s.text("events")
	s.number(chapter)
	s.number(int64(seq))
	s.number(int64(n))
	s.number(last)
	s.blob(packed)
	s.blob(blob)
	s.blob(mac)
	return int64(s.crc)
}

// sumValues implements tenon_sum. It does not retain its arguments.
func sumValues(_ *sqlite.FunctionContext, values []driver.Value) (driver.Value, error) {
	s := rowSum{}
	for _, v := range values {
		switch v := v.(type) {
		case nil:
			s.head(sumNull, 0)
		case int64:
			s.number(v)
		case float64:
			s.head(sumReal, math.Float64bits(v))
		case string:
			s.text(v)
		case []byte:
			if v == nil {
				v = []byte{}
			}
			s.blob(v)
		default:
			return nil, fmt.Errorf("%s has no rule for a %T", sumFunction, v)
		}
	}
	return int64(s.crc), nil
}

// digestFunction is the SQL function of digests: tenon_digest(data). Only a repair uses it.
const digestFunction = "tenon_digest"

func digestValue(_ *sqlite.FunctionContext, values []driver.Value) (driver.Value, error) {
	data, _ := values[0].([]byte)
	sum := sha256.Sum256(data)
	return sum[:], nil
}

// summing returns the driver whose connections have tenon_sum and tenon_digest.
var summing = sync.OnceValues(func() (*sqlite.Driver, error) {
	d := &sqlite.Driver{}
	err := d.RegisterFunction(sumFunction, &sqlite.FunctionImpl{NArgs: -1, Deterministic: true, VolatileArgs: true,
		Scalar: sumValues})
	return d, errors.Join(err, d.RegisterFunction(digestFunction, &sqlite.FunctionImpl{NArgs: 1, Deterministic: true,
		VolatileArgs: true, Scalar: digestValue}))
})

// connector opens connections to a file.
type connector struct {
	dsn    string
	driver *sqlite.Driver
}

// Connect implements [driver.Connector].
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return c.driver.Open(c.dsn)
}

// Driver implements [driver.Connector].
func (c connector) Driver() driver.Driver { return c.driver }
