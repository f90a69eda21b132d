package table

import (
	"strings"

	sqlite3 "modernc.org/sqlite/lib"
)

// The bounds of the values of one row. SQLite has a limit for each value and for the cells of a
// row, but not for the number of large values that a row computes: thirty of
// hex(zeroblob(30000000)) took 9 GB. Models write such queries.
const (
	maxRowBytes = 512 << 20
	minRowValue = 1 << 20 // the size that a value may have in any query
)

// makers are the operations of SQLite programs that allocate a new value.
var makers = map[string]bool{
	"Function": true, "PureFunc": true, "AggFinal": true, "AggValue": true, "Concat": true, "Cast": true,
}

// valueLimit returns the maximum size of a value of a query: its share of [maxRowBytes] if the
// query's program allocates several values per row, and at most [maxValueBytes].
func (d *database) valueLimit(sql string) int32 {
	program, _, err := d.prepare("EXPLAIN " + strings.TrimLeft(sql, " \t\r\n;"))
	if err != nil || program == nil {
		return minRowValue
	}
	defer program.close()
	type column struct{ cursor, index int64 }
	seen := map[column]bool{}
	cursors, registers := map[int64]bool{}, map[int64]bool{}
	n := int64(1)
	for {
		ok, err := program.step()
		if err != nil {
			return minRowValue
		}
		if !ok {
			break
		}
		switch op := string(program.value(1).bytes); {
		case makers[op]:
			n++
		case op == "VColumn": // json_each allocates a value for every read of a column
			n++
		case op == "Column":
			// The columns of a cursor belong to one row, which is bounded like a value. Reading the
			// same column again makes another copy.
			at := column{program.value(2).int, program.value(3).int}
			if seen[at] || !cursors[at.cursor] {
				n++
			}
			seen[at], cursors[at.cursor] = true, true
		case op == "Copy":
			from := program.value(2).int
			if registers[from] {
				n++
			}
			registers[from] = true
		}
	}
	return int32(min(max(maxRowBytes/n, minRowValue), maxValueBytes))
}

// setValueLimit sets the maximum size of a value.
func (d *database) setValueLimit(bytes int32) {
	d.largest = bytes
	sqlite3.Xsqlite3_limit(d.tls, d.db, sqlite3.SQLITE_LIMIT_LENGTH, bytes)
}

// limitReason returns the reason why a value of this query has a lower limit, or "".
func (d *database) limitReason() string {
	if d.largest == maxValueBytes {
		return ""
	}
	return ", its share of the limit for all values of a row; compute fewer values at once, or parts of them (substr)"
}
