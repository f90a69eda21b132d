package table

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/tenonhq/tenon"
)

// Query is one SELECT over tables, in the SQL dialect of SQLite. It can read its tables, and
// nothing else: it cannot access files, change settings or write.
//
// Values keep their types as far as SQL has them. Integers are exact: in a query without floats,
// an overflow is an error. Floats are floats, except NaN, which is null. Decimals are floats in
// calculations; an unchanged decimal keeps all its digits. Dates, times and timestamps are texts in
// the format of SQLite's functions, in UTC ("2026-02-03 04:05:06.7"). Booleans are 0 and 1. Lists,
// structs, tools and messages are JSON texts, for json_extract and similar functions.
//
// A result column that shows a column of a table unchanged has the type of that column; a tool column
// stays a tool column, with the files of its tools. The type of
// a computed column follows from its values: int64, float64, utf8 or binary. Row ids are in the
// column "<RowID>", if the query names it.
type Query struct {
	SQL    string
	Tables []Input
	// Params maps the names of parameters, without the sign, to their values: nil, bool, int,
	// int64, float64, string, []byte or [json.Number]. Other values are bound as JSON texts.
	Params map[string]any
	// Rows bounds the rows of the result. If the query has more, the rest is omitted and
	// [Selected.More] is set. 0 means no bound.
	Rows int64
	// Bytes bounds the size of all values of the result; exceeding it is an error. 0 means
	// [MaxResult].
	Bytes int64
	// Temp bounds the bytes of the query's temporary files. 0 means [MaxTemp].
	Temp int64
	// Shown keeps a first column "<RowID>" as a normal column of the result, for display. Otherwise this column becomes
	// the row ids of the result.
	Shown bool
}

// Input is a table of a query, under its name in the query.
type Input struct {
	Name   string
	Reader *Reader
}

// The default bounds of a query in bytes.
const (
	MaxResult = 4 << 30
	MaxTemp   = 8 << 30
)

// Selected describes the result of a query.
type Selected struct {
	Rows int64
	More bool // the query had more rows than [Query.Rows]
}

// Select runs a query and writes its result as a table. For path see [Concat]. It reads only tables
// and columns that the query uses. Memory does not grow with the number of rows. Ending ctx stops
// the query. Errors: invalid (with line and column in the query), too_large, timeout, cancelled,
// store.
func Select(ctx context.Context, q Query, path string, o WriteOptions) (Selected, error) {
	o, err := o.withDefaults()
	if err != nil {
		return Selected{}, err
	}
	for _, in := range q.Tables {
		if err := notInput(path, in.Reader); err != nil {
			return Selected{}, err
		}
	}
	q.Bytes, q.Temp = cmp.Or(q.Bytes, MaxResult), cmp.Or(q.Temp, MaxTemp)
	s := &selection{ctx: ctx, Query: q}
	defer s.close()
	if err := s.open(); err != nil {
		return Selected{}, err
	}
	return s.write(path, o)
}

// selection is the state of one Select.
type selection struct {
	Query
	ctx     context.Context
	sources []*source
	file    string // of the temporary database
	db      *database
	stmt    *statement
	denied  string // the forbidden operation that the query tried
	columns []*resultColumn

	integers bool     // see onlyIntegers
	compiled func()   // called after the query is compiled against empty tables; may be nil
	wrong    *Mistake // the last mistake of the query
}

func (s *selection) close() {
	if s.stmt != nil {
		s.stmt.close()
		s.stmt = nil
	}
	if s.db != nil {
		s.db.close()
		s.db = nil
	}
	if s.file != "" {
		_ = os.Remove(s.file) // on Unix it is removed already
	}
}

// open prepares the query for stepping. It creates empty tables, compiles the query against them,
// and fills in only the columns that the query reads.
func (s *selection) open() error {
	if len(s.SQL) > maxSQLBytes {
		return tenon.Errorf(tenon.CodeTooLarge, "the query has more than %d bytes", maxSQLBytes)
	}
	if strings.ContainsRune(s.SQL, 0) {
		return invalid("the query has a NUL character")
	}
	seen := map[string]bool{}
	for _, in := range s.Tables {
		if wrong := wrongName(in.Name, seen); wrong != "" {
			return invalid("%s", wrong)
		}
		t, err := newSource(in.Name, in.Reader, strings.Contains(s.SQL, RowID))
		if err != nil {
			return err
		}
		s.sources = append(s.sources, t)
	}
	f, err := os.CreateTemp("", "tenon-sql-*")
	if err != nil {
		return temporary(err)
	}
	s.file = f.Name()
	defer func() { _ = f.Close() }() // errors of writing were reported by the flush
	roots, err := s.plan()
	if err != nil {
		return err
	}
	if err := s.fill(f, roots); err != nil {
		return err
	}
	uri := "file:" + escapeURI(s.file) + "?mode=ro&immutable=1"
	flags := int32(sqlite3.SQLITE_OPEN_READONLY | sqlite3.SQLITE_OPEN_URI | sqlite3.SQLITE_OPEN_NOMUTEX)
	if s.db, err = openDatabase(uri, flags, s.Temp); err != nil {
		return temporary(err)
	}
	_ = os.Remove(s.file) // it stays open; systems that refuse this remove it in close
	if err := s.db.exec("PRAGMA cache_size=-16384; PRAGMA query_only=1"); err != nil {
		return temporary(err)
	}
	if err := s.compile(); err != nil {
		return err
	}
	if err := s.bind(); err != nil {
		return err
	}
	s.describe()
	s.integers = s.onlyIntegers()
	s.db.progress = func() bool { return s.ctx.Err() != nil }
	return nil
}

// wrongName returns the reason why a table cannot have a name, or "". seen contains the names so
// far, in lower case.
func wrongName(name string, seen map[string]bool) string {
	low := strings.ToLower(name)
	switch {
	case name == "" || strings.ContainsRune(name, 0) || strings.HasPrefix(low, "sqlite_"):
		return fmt.Sprintf("'%s' is not a valid name for a table of a query; choose another one", tenon.Visible(name))
	case seen[low]:
		return fmt.Sprintf("two tables of the query have the name '%s'; the case of letters does not matter",
			tenon.Visible(name))
	}
	seen[low] = true
	return ""
}

// escapeURI escapes a path for an SQLite URI.
func escapeURI(path string) string {
	path = strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(filepath.ToSlash(path))
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	return path
}

// plan creates the empty tables and compiles the query against them to find out what it reads. It
// returns the root page of each table.
func (s *selection) plan() (map[string]uint32, error) {
	flags := int32(sqlite3.SQLITE_OPEN_READWRITE | sqlite3.SQLITE_OPEN_URI | sqlite3.SQLITE_OPEN_NOMUTEX)
	db, err := openDatabase("file:"+escapeURI(s.file), flags, s.Temp)
	if err != nil {
		return nil, temporary(err)
	}
	s.db = db
	defer func() {
		db.close()
		s.db = nil
	}()
	setup := fmt.Sprintf("PRAGMA page_size=%d; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; "+
		"PRAGMA user_version=1;", pageSize)
	for _, t := range s.sources {
		setup += t.create() + ";"
	}
	if err := db.exec(setup); err != nil {
		return nil, temporary(err)
	}
	roots := map[string]uint32{}
	for _, t := range s.sources {
		list, _, err := db.prepare("SELECT rootpage FROM sqlite_schema WHERE name=" + literal(t.name))
		if err != nil {
			return nil, temporary(err)
		}
		if _, err := list.step(); err != nil {
			list.close()
			return nil, temporary(err)
		}
		roots[t.name] = uint32(list.value(0).int)
		list.close()
	}
	if err := s.compile(); err != nil {
		return nil, err
	}
	if _, err := s.values(); err != nil { // report missing parameters before reading tables
		s.stmt.close()
		s.stmt = nil
		return nil, err
	}
	if s.compiled != nil {
		s.compiled()
	}
	s.stmt.close()
	s.stmt = nil
	if lower := strings.ToLower(s.SQL); strings.Contains(lower, "using") || strings.Contains(lower, "natural") {
		for _, t := range s.sources { // the authorizer does not see all columns that these joins read
			if strings.Contains(lower, strings.ToLower(t.name)) || strings.Contains(t.name, `"`) {
				t.used = true
			}
			for _, c := range t.columns {
				c.used = true
			}
		}
	}
	return roots, nil
}

// fill writes the rows of the tables that the query uses.
func (s *selection) fill(f *os.File, roots map[string]uint32) error {
	p, err := newPages(f)
	if err != nil {
		return temporary(err)
	}
	for _, t := range s.sources {
		if !t.used {
			continue
		}
		if err := t.fill(s.ctx, p, roots[t.name], s.Temp); err != nil {
			return err
		}
	}
	if err := p.finish(); err != nil {
		return temporary(err)
	}
	s.Temp -= p.bytes()
	return nil
}

// compile prepares the query and checks that it is a single statement that only reads.
func (s *selection) compile() error {
	s.db.guard()
	s.denied = ""
	s.db.authorize = s.authorize
	stmt, rest, err := s.db.prepare(s.SQL)
	switch {
	case err != nil:
		return s.explain(err)
	case stmt == nil:
		return invalid("the query is empty")
	case !stmt.reads():
		stmt.close()
		return invalid("a query is one SELECT that only reads; '%s' is not", firstWord(s.SQL))
	}
	if more, _, err := s.db.prepare(rest); err != nil || more != nil {
		if more != nil {
			more.close()
		}
		stmt.close()
		return invalid("a query is one SELECT; text follows its semicolon: %s", shortSQL(rest))
	}
	s.stmt = stmt
	s.db.setValueLimit(s.db.valueLimit(s.SQL))
	return nil
}

// describe determines the names and origins of the result columns.
func (s *selection) describe() {
	seen := map[string]bool{}
	for i := range s.stmt.columns() {
		c := &resultColumn{name: cmp.Or(s.stmt.name(i), "column")}
		base := c.name
		for n := 1; seen[c.name]; n++ {
			c.name = fmt.Sprintf("%s_%d", base, n)
		}
		seen[c.name] = true
		table, column := s.stmt.origin(i)
		for _, t := range s.sources {
			for _, k := range t.columns {
				if t.name == table && k.name == column {
					c.origin = k
				}
			}
		}
		s.columns = append(s.columns, c)
	}
	if s.compound() {
		s.mix()
	}
}

// step advances to the next row. It returns false after the last one.
func (s *selection) step() (bool, error) {
	ok, err := s.stmt.step()
	if err != nil {
		return false, s.explain(err)
	}
	return ok, nil
}

// The bounds of the values that are buffered until the types of the columns are known. If the result is larger, the
// query runs a second time.
const (
	maxKept      = 1 << 16
	maxKeptBytes = 16 << 20
)

// write steps through the result and writes it.
func (s *selection) write(path string, o WriteOptions) (Selected, error) {
	kept, whole, err := s.survey()
	if err != nil {
		return Selected{}, err
	}
	fields := make([]arrow.Field, 0, len(s.columns)+1)
	for _, c := range s.columns {
		c.setType()
		fields = append(fields, c.field)
	}
	rowIDs := !s.Shown && len(fields) > 0 && fields[0].Name == RowID && isText(fields[0].Type)
	if !s.Shown {
		fields = renamed(fields, func(i int) bool { return i > 0 || !rowIDs })
	}
	if !rowIDs {
		fields = slices.Insert(fields, 0, arrow.Field{Name: RowID, Type: arrow.BinaryTypes.String})
	} else {
		fields[0].Nullable = false
	}
	var marks map[string]string
	if s.Shown {
		marks = map[string]string{shownMark: "true"}
	}
	schema := arrow.NewSchema(fields, nil)
	w, err := create(s.ctx, path, schema, marks, o)
	if err != nil {
		return Selected{}, err
	}
	defer w.abort()
	out := &resultWriter{selection: s, w: w, schema: schema, rowIDs: rowIDs, batch: o.BatchRows}
	for row := range slices.Chunk(kept, max(len(s.columns), 1)) {
		if err := out.add(row); err != nil {
			return Selected{}, err
		}
	}
	if !whole {
		if out.Selected, err = s.rest(out); err != nil {
			return Selected{}, err
		}
	}
	if err := out.flush(); err != nil {
		return Selected{}, err
	}
	out.lost.warn("the result", o.Warn)
	return out.Selected, w.commit()
}

// survey determines the types of columns that follow from their values. It returns the values of
// the rows so far if it could buffer them. whole is true if these are all rows, or one more than
// [Query.Rows]; then the query need not run again. If all types are known, survey reads nothing.
func (s *selection) survey() (kept []value, whole bool, err error) {
	known := !s.compound()
	for _, c := range s.columns {
		known = known && c.origin != nil
	}
	if known {
		return nil, false, nil
	}
	size, bytes, keeps := 0, int64(0), true
	for rows := int64(0); s.Rows == 0 || rows <= s.Rows; rows++ {
		ok, err := s.step()
		if err != nil {
			return nil, false, err
		}
		if !ok {
			break
		}
		for i, c := range s.columns {
			v := s.stmt.value(i)
			if err := s.overflowed(c, v); err != nil {
				return nil, false, err
			}
			c.observe(v)
			bytes += 8 + int64(len(v.bytes))
			if bytes > s.Bytes {
				return nil, false, s.tooMuch()
			}
			size += len(v.bytes)
			if size > maxKeptBytes || len(kept) > maxKept {
				kept, keeps = nil, false
			}
			if keeps {
				v.bytes = slices.Clone(v.bytes)
				kept = append(kept, v)
			}
		}
	}
	if keeps {
		return kept, true, nil
	}
	s.stmt.reset()
	return nil, false, nil
}

// rest writes the remaining rows of the statement.
func (s *selection) rest(out *resultWriter) (Selected, error) {
	row := make([]value, len(s.columns))
	for {
		ok, err := s.step()
		if err != nil || !ok {
			return out.Selected, err
		}
		if s.Rows > 0 && out.Rows >= s.Rows {
			out.More = true
			return out.Selected, nil
		}
		for i := range row {
			row[i] = s.stmt.value(i)
		}
		if err := out.add(row); err != nil {
			return out.Selected, err
		}
	}
}

func (s *selection) tooMuch() error {
	return tenon.Errorf(tenon.CodeTooLarge, "the result of the query has more than %d bytes; select less, or aggregate",
		s.Bytes)
}

// resultWriter collects rows into batches and writes them.
type resultWriter struct {
	*selection
	Selected
	w       *writer
	schema  *arrow.Schema
	rowIDs  bool // the first column becomes the row ids
	batch   int
	waiting int   // rows of b
	held    int64 // bytes of b
	bytes   int64
	b       *array.RecordBuilder
	lost    losses
}

func (r *resultWriter) add(row []value) error {
	if r.selection.Rows > 0 && r.Selected.Rows >= r.selection.Rows {
		r.More = true
		return nil
	}
	if r.b == nil {
		r.b = array.NewRecordBuilder(memory.DefaultAllocator, r.schema)
	}
	at := 0
	if !r.rowIDs {
		r.b.Field(0).(*array.StringBuilder).Append(fmt.Sprintf("Row%d", r.Selected.Rows))
		at = 1
	}
	for i, c := range r.columns {
		v := row[i]
		if r.rowIDs && i == 0 && v.kind == sqlite3.SQLITE_NULL {
			v = value{kind: sqlite3.SQLITE_TEXT, bytes: fmt.Appendf(nil, "Row%d", r.Selected.Rows)}
		}
		r.held += 8 + int64(len(v.bytes))
		if r.held > maxBody { // this also keeps texts below the 2 GiB that fit into a column
			return r.w.tooWide(int64(r.waiting+1), r.held)
		}
		if err := c.append(r.b.Field(at+i), v); err != nil {
			return invalid("row %d of the result, column '%s': %w", r.Selected.Rows, tenon.Visible(c.name), err)
		}
		if c.origin != nil && c.origin.column.IsTool() {
			if err := r.keepFiles(v); err != nil {
				return err
			}
		}
	}
	if r.bytes+r.held > r.Bytes {
		return r.tooMuch()
	}
	r.Selected.Rows++
	r.waiting++
	if r.waiting >= r.batch {
		return r.flush()
	}
	return nil
}

func (r *resultWriter) flush() error {
	if r.waiting == 0 {
		return nil
	}
	rec := r.b.NewRecordBatch()
	r.bytes += r.held
	r.b, r.waiting, r.held = nil, 0, 0
	return r.w.write(r.ctx, rec)
}
