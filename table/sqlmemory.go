package table

import (
	"strings"

	sqlite3 "modernc.org/sqlite/lib"
)

// What the values of one row of a query may come to, in bytes. SQLite bounds each value and
// the cells of a row by one limit, and nothing bounds how many large ones a row makes of a
// few bytes: thirty of hex(zeroblob(30000000)) took 9 GB, and a model writes such queries.
const (
	maxRowBytes = 512 << 20
	minRowValue = 1 << 20 // a value may have as much in any query
)

// makers are the operations of SQLite's programs that make a value of their own.
var makers = map[string]bool{"Function": true, "PureFunc": true, "AggFinal": true, "AggValue": true, "Concat": true, "Cast": true}

// room returns how many bytes a value of a query may have: its part of [maxRowBytes], where
// its program makes many at once, and at most [maxValueBytes].
func (d *database) room(sql string) int32 {
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
		case op == "VColumn": // of json_each: a value of its own, also of the same column once more
			n++
		case op == "Column":
			// The columns of one cursor are those of one row, which is bounded as a value is;
			// the same column once more is another copy of it.
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

// hold bounds the values of a query.
func (d *database) hold(bytes int32) {
	d.largest = bytes
	sqlite3.Xsqlite3_limit(d.tls, d.db, sqlite3.SQLITE_LIMIT_LENGTH, bytes)
}

// shared says why a value may have less than in other queries.
func (d *database) shared() string {
	if d.largest == maxValueBytes {
		return ""
	}
	return ", its part of what all values of the query may have; compute fewer values at once, or parts of them (substr)"
}
