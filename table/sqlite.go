package table

import (
	"fmt"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// database is a connection to SQLite through its C interface. The driver for database/sql has no
// authorizer and no progress handler; these keep untrusted queries read-only and bounded. A
// database must not be used concurrently.
type database struct {
	tls     *libc.TLS
	db      uintptr
	scratch uintptr // 16 bytes for results by pointer
	spill   *spill
	largest int32 // the maximum size of a value in bytes

	// authorize decides on the operations of a statement while it is prepared; see
	// [database.guard].
	authorize func(action int32, first, second string) int32
	// progress is called every progressSteps steps of a query. Returning true ends the query.
	progress func() bool

	// The callbacks of C. C holds their addresses as integers, so these fields keep them alive.
	authorizer func(tls *libc.TLS, arg uintptr, action int32, first, second, schema, trigger uintptr) int32
	onProgress func(tls *libc.TLS, arg uintptr) int32
}

// openDatabase opens a file. flags are the flags of sqlite3_open_v2. temp bounds the bytes of
// temporary files.
func openDatabase(uri string, flags int32, temp int64) (*database, error) {
	d := &database{tls: libc.NewTLS()}
	var err error
	if d.spill, err = newSpill(d.tls, temp); err != nil {
		d.tls.Close()
		return nil, err
	}
	if d.scratch, err = libc.CString("0123456789abcdef"); err != nil {
		d.close()
		return nil, err
	}
	name, err := libc.CString(uri)
	if err != nil {
		d.close()
		return nil, err
	}
	defer libc.Xfree(d.tls, name)
	rc := sqlite3.Xsqlite3_open_v2(d.tls, name, d.scratch, flags, d.spill.name)
	d.db = d.pointer(d.scratch)
	if rc != sqlite3.SQLITE_OK {
		err := fmt.Errorf("SQLite cannot open a temporary file: %s", d.message())
		d.close()
		return nil, err
	}
	return d, nil
}

// pointer reads a pointer from C memory.
func (d *database) pointer(at uintptr) uintptr {
	return readPointer(libc.GoBytes(at, int(unsafe.Sizeof(at))))
}

// close closes the connection. The caller has finalized the statements.
func (d *database) close() {
	if d.db != 0 {
		sqlite3.Xsqlite3_close_v2(d.tls, d.db)
	}
	d.spill.drop()
	libc.Xfree(d.tls, d.scratch)
	d.tls.Close()
	d.db = 0
}

func (d *database) message() string {
	return libc.GoString(sqlite3.Xsqlite3_errmsg(d.tls, d.db))
}

// exec runs trusted statements.
func (d *database) exec(sql string) error {
	text, err := libc.CString(sql)
	if err != nil {
		return err
	}
	defer libc.Xfree(d.tls, text)
	if rc := sqlite3.Xsqlite3_exec(d.tls, d.db, text, 0, 0, 0); rc != sqlite3.SQLITE_OK {
		return fmt.Errorf("SQLite: %s", d.message())
	}
	return nil
}

// The limits of a query in SQLite. Everything else is bounded by the time of the query and by the
// sizes of its result and temporary files.
const (
	maxSQLBytes   = 1 << 20  // bytes of a statement
	maxValueBytes = 64 << 20 // bytes of a value and of a row of a temporary table
	maxSQLColumns = 2000     // columns of a table, SQLite's default limit
	maxSQLParams  = 1000
	progressSteps = 10_000 // steps between two calls of progress, less than a millisecond
)

// guard prepares the connection for untrusted queries. It sets limits, forbids access to other
// files and writing, and disables double-quoted string literals.
func (d *database) guard() {
	d.largest = maxValueBytes
	for id, n := range map[int32]int32{
		sqlite3.SQLITE_LIMIT_LENGTH: maxValueBytes, sqlite3.SQLITE_LIMIT_SQL_LENGTH: maxSQLBytes,
		sqlite3.SQLITE_LIMIT_ATTACHED: 0, sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER: maxSQLParams,
		sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 1000, sqlite3.SQLITE_LIMIT_VDBE_OP: 1_000_000,
		sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0, sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
	} {
		sqlite3.Xsqlite3_limit(d.tls, d.db, id, n)
	}
	for op, on := range map[int32]int32{sqlite3.SQLITE_DBCONFIG_DQS_DML: 0, sqlite3.SQLITE_DBCONFIG_DQS_DDL: 0,
		sqlite3.SQLITE_DBCONFIG_DEFENSIVE: 1, sqlite3.SQLITE_DBCONFIG_TRUSTED_SCHEMA: 0} {
		args := libc.NewVaList(on, uintptr(0))
		sqlite3.Xsqlite3_db_config(d.tls, d.db, op, args)
		libc.Xfree(d.tls, args)
	}
	d.authorizer = func(_ *libc.TLS, _ uintptr, action int32, first, second, _, _ uintptr) int32 {
		return d.authorize(action, libc.GoString(first), libc.GoString(second))
	}
	d.onProgress = func(*libc.TLS, uintptr) int32 {
		if d.progress != nil && d.progress() {
			return 1
		}
		return 0
	}
	sqlite3.Xsqlite3_set_authorizer(d.tls, d.db, *(*uintptr)(unsafe.Pointer(&d.authorizer)), 0)
	sqlite3.Xsqlite3_progress_handler(d.tls, d.db, progressSteps, *(*uintptr)(unsafe.Pointer(&d.onProgress)), 0)
}

// statement is a prepared statement.
type statement struct {
	d    *database
	stmt uintptr
}

// failure is an error of SQLite about a statement. at is the byte offset in the statement, or -1 if
// it is unknown.
type failure struct {
	code    int32 // the primary result code
	message string
	at      int
}

func (f *failure) Error() string { return f.message }

func (d *database) failure(rc int32) *failure {
	return &failure{code: rc & 0xff, message: d.message(), at: int(sqlite3.Xsqlite3_error_offset(d.tls, d.db))}
}

// prepare compiles the first statement of a text and returns the rest. The statement is nil if the
// text contains only comments.
func (d *database) prepare(sql string) (s *statement, rest string, err error) {
	text, err := libc.CString(sql)
	if err != nil {
		return nil, "", err
	}
	defer libc.Xfree(d.tls, text)
	pStmt, pTail := d.scratch, d.scratch+8
	rc := sqlite3.Xsqlite3_prepare_v2(d.tls, d.db, text, int32(len(sql)+1), pStmt, pTail)
	if rc != sqlite3.SQLITE_OK {
		return nil, "", d.failure(rc)
	}
	rest = sql[min(len(sql), int(d.pointer(pTail)-text)):]
	if stmt := d.pointer(pStmt); stmt != 0 {
		return &statement{d, stmt}, rest, nil
	}
	return nil, rest, nil
}

func (s *statement) close() { sqlite3.Xsqlite3_finalize(s.d.tls, s.stmt) }

// reads reports whether the statement returns rows and changes nothing.
func (s *statement) reads() bool {
	readonly := sqlite3.Xsqlite3_stmt_readonly(s.d.tls, s.stmt) != 0
	explain := sqlite3.Xsqlite3_stmt_isexplain(s.d.tls, s.stmt) != 0
	return readonly && !explain && s.columns() > 0
}

func (s *statement) columns() int { return int(sqlite3.Xsqlite3_column_count(s.d.tls, s.stmt)) }

func (s *statement) name(i int) string {
	return libc.GoString(sqlite3.Xsqlite3_column_name(s.d.tls, s.stmt, int32(i)))
}

// origin returns the table column that a result column shows unchanged, or empty names for a
// computed column.
func (s *statement) origin(i int) (table, column string) {
	return libc.GoString(sqlite3.Xsqlite3_column_table_name(s.d.tls, s.stmt, int32(i))),
		libc.GoString(sqlite3.Xsqlite3_column_origin_name(s.d.tls, s.stmt, int32(i)))
}

// params returns the names of the parameters with their sign. The name of a nameless parameter is
// "".
func (s *statement) params() []string {
	list := make([]string, sqlite3.Xsqlite3_bind_parameter_count(s.d.tls, s.stmt))
	for i := range list {
		list[i] = libc.GoString(sqlite3.Xsqlite3_bind_parameter_name(s.d.tls, s.stmt, int32(i+1)))
	}
	return list
}

// bind sets parameter i, starting at 1.
func (s *statement) bind(i int, v value) error {
	rc, at := int32(sqlite3.SQLITE_OK), int32(i)
	switch v.kind {
	case sqlite3.SQLITE_INTEGER:
		rc = sqlite3.Xsqlite3_bind_int64(s.d.tls, s.stmt, at, v.int)
	case sqlite3.SQLITE_FLOAT:
		rc = sqlite3.Xsqlite3_bind_double(s.d.tls, s.stmt, at, v.float)
	case sqlite3.SQLITE_TEXT, sqlite3.SQLITE_BLOB:
		p, err := libc.CString(string(v.bytes))
		if err != nil {
			return err
		}
		defer libc.Xfree(s.d.tls, p)
		const copied = ^uintptr(0) // SQLITE_TRANSIENT
		if v.kind == sqlite3.SQLITE_TEXT {
			rc = sqlite3.Xsqlite3_bind_text(s.d.tls, s.stmt, at, p, int32(len(v.bytes)), copied)
		} else {
			rc = sqlite3.Xsqlite3_bind_blob(s.d.tls, s.stmt, at, p, int32(len(v.bytes)), copied)
		}
	default:
		rc = sqlite3.Xsqlite3_bind_null(s.d.tls, s.stmt, at)
	}
	if rc != sqlite3.SQLITE_OK {
		return s.d.failure(rc)
	}
	return nil
}

// step advances to the next row. It returns false after the last one.
func (s *statement) step() (bool, error) {
	switch rc := sqlite3.Xsqlite3_step(s.d.tls, s.stmt); rc {
	case sqlite3.SQLITE_ROW:
		return true, nil
	case sqlite3.SQLITE_DONE:
		return false, nil
	default:
		return false, s.d.failure(rc)
	}
}

// reset returns to the position before the first row.
func (s *statement) reset() { sqlite3.Xsqlite3_reset(s.d.tls, s.stmt) }

// value is an SQLite value.
type value struct {
	kind  int32 // SQLITE_INTEGER, SQLITE_FLOAT, SQLITE_TEXT, SQLITE_BLOB, SQLITE_NULL
	int   int64
	float float64
	bytes []byte
}

// value reads a column of the current row. The bytes belong to SQLite and are valid until the next
// step.
func (s *statement) value(i int) value {
	at := int32(i)
	v := value{kind: sqlite3.Xsqlite3_column_type(s.d.tls, s.stmt, at)}
	switch v.kind {
	case sqlite3.SQLITE_INTEGER:
		v.int = sqlite3.Xsqlite3_column_int64(s.d.tls, s.stmt, at)
	case sqlite3.SQLITE_FLOAT:
		v.float = sqlite3.Xsqlite3_column_double(s.d.tls, s.stmt, at)
	case sqlite3.SQLITE_TEXT:
		p := sqlite3.Xsqlite3_column_text(s.d.tls, s.stmt, at) // before column_bytes: it may convert the value
		v.bytes = libc.GoBytes(p, int(sqlite3.Xsqlite3_column_bytes(s.d.tls, s.stmt, at)))
	case sqlite3.SQLITE_BLOB:
		p := sqlite3.Xsqlite3_column_blob(s.d.tls, s.stmt, at)
		v.bytes = libc.GoBytes(p, int(sqlite3.Xsqlite3_column_bytes(s.d.tls, s.stmt, at)))
	}
	return v
}
