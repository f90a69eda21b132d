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

// Query is one SELECT over tables, in the SQL of SQLite. It reads the tables that it is
// given and nothing else: no files, no settings, no writing.
//
// Values keep their types as far as SQL has them. Integers are exact; floats are floats,
// and NaN is null. Decimals calculate as floats and come back with all their digits.
// Dates, times and timestamps are texts as SQLite's functions take them, in UTC
// ("2026-02-03 04:05:06.7"). Booleans are 0 and 1. Lists, structs, tools and messages
// are JSON, for json_extract and its like. A column of the result that shows a column of a table
// unchanged has its type; what is computed is int64, float64, utf8 or binary, by its
// values. Row ids are the column "<RowID>", for queries that name it.
type Query struct {
	SQL    string
	Tables []Input
	// Params are the values of parameters, by their names without the sign: nil, bool,
	// int, int64, float64, string, []byte, [json.Number]; anything else is its JSON.
	Params map[string]any
	// Rows bounds the result: what comes after as many rows is left out, and
	// [Selected.More] is set. 0: there is no bound.
	Rows int64
	// Bytes bounds the values of the result together; more is an error. 0: [MaxResult].
	Bytes int64
	// Temp bounds the temporary files of the query. 0: [MaxTemp].
	Temp int64
	// Shown says that cells of the result are looked at: a first column "<RowID>" is one
	// of its columns, where it else becomes its row ids.
	Shown bool
}

// Input is a table of a query, under the name that the query has for it.
type Input struct {
	Name   string
	Reader *Reader
}

// What a query may take where nothing else is said, in bytes.
const (
	MaxResult = 4 << 30
	MaxTemp   = 8 << 30
)

// Selected says what a query gave.
type Selected struct {
	Rows int64
	More bool // there were more than the query was to give
}

// Select runs a query and writes its result as a table; see [Concat] for path. Tables
// are read as far as the query needs them, and not at all where it does not name them.
// Memory does not grow with the number of rows. It goes on until ctx ends. Errors:
// invalid (with line and column of the query), too_large, timeout, cancelled, store.
func Select(ctx context.Context, q Query, path string, o WriteOptions) (Selected, error) {
	o, err := o.withDefaults()
	if err != nil {
		return Selected{}, err
	}
	q.Bytes, q.Temp = cmp.Or(q.Bytes, MaxResult), cmp.Or(q.Temp, MaxTemp)
	s := &selection{ctx: ctx, Query: q}
	defer s.close()
	if err := s.open(); err != nil {
		return Selected{}, err
	}
	return s.write(path, o)
}

// selection is one Select.
type selection struct {
	Query
	ctx     context.Context
	sources []*source
	file    string // of the temporary database
	db      *database
	stmt    *statement
	denied  string // what the query wanted and must not
	columns []*resultColumn

	compiled func()   // called when the query was compiled against empty tables; nil: nothing is done
	wrong    *Mistake // what is wrong with the query
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
		_ = os.Remove(s.file) // gone already where a file that is open can be removed
	}
}

// open brings the query so far that it can be stepped through: the tables are made, the
// query is compiled against them, and then only what it reads is filled in.
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
	defer func() { _ = f.Close() }() // what was written was flushed and told of
	roots, err := s.plan()
	if err != nil {
		return err
	}
	if err := s.fill(f, roots); err != nil {
		return err
	}
	if s.db, err = openDatabase("file:"+escapeURI(s.file)+"?mode=ro&immutable=1", sqlite3.SQLITE_OPEN_READONLY|sqlite3.SQLITE_OPEN_URI|sqlite3.SQLITE_OPEN_NOMUTEX, s.Temp); err != nil {
		return temporary(err)
	}
	_ = os.Remove(s.file) // it is open; systems that do not allow it remove it at the end
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
	s.db.progress = func() bool { return s.ctx.Err() != nil }
	return nil
}

// wrongName says what is wrong with the name of a table, beside those that were seen; "" for
// nothing.
func wrongName(name string, seen map[string]bool) string {
	low := strings.ToLower(name)
	switch {
	case name == "" || strings.ContainsRune(name, 0) || strings.HasPrefix(low, "sqlite_"):
		return fmt.Sprintf("'%s' is no name for a table of a query; give it another one", tenon.Visible(name))
	case seen[low]:
		return fmt.Sprintf("two tables of the query are called '%s'; upper and lower case are the same", tenon.Visible(name))
	}
	seen[low] = true
	return ""
}

// escapeURI writes a path into an SQLite URI.
func escapeURI(path string) string {
	path = strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(filepath.ToSlash(path))
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	return path
}

// plan makes the empty tables and compiles the query against them, which tells what it
// reads. It returns the root page of each table.
func (s *selection) plan() (map[string]uint32, error) {
	db, err := openDatabase("file:"+escapeURI(s.file), sqlite3.SQLITE_OPEN_READWRITE|sqlite3.SQLITE_OPEN_URI|sqlite3.SQLITE_OPEN_NOMUTEX, s.Temp)
	if err != nil {
		return nil, temporary(err)
	}
	s.db = db
	defer func() {
		db.close()
		s.db = nil
	}()
	setup := fmt.Sprintf("PRAGMA page_size=%d; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA user_version=1;", pageSize)
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
	if _, err := s.values(); err != nil { // a parameter that is missing is told before tables are read
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
		for _, t := range s.sources { // these read tables and columns that the authorizer is not told of
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

// fill writes the rows of the tables that the query names.
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

// compile prepares the query and checks that it is one and only reads.
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
		return invalid("a query reads, and is one SELECT; '%s' is not", firstWord(s.SQL))
	}
	if more, _, err := s.db.prepare(rest); err != nil || more != nil {
		if more != nil {
			more.close()
		}
		stmt.close()
		return invalid("a query is one SELECT; there is more behind the first semicolon: %s", shortSQL(rest))
	}
	s.stmt = stmt
	s.db.hold(s.db.room(s.SQL))
	return nil
}

// describe looks at the columns of the result.
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

// step goes to the next row.
func (s *selection) step() (bool, error) {
	ok, err := s.stmt.step()
	if err != nil {
		return false, s.explain(err)
	}
	return ok, nil
}

// maxKept is how many values of a result are kept until it is known of what types they
// are; a larger result is gone through twice.
const (
	maxKept      = 1 << 16
	maxKeptBytes = 16 << 20
)

// write goes through the result and writes it.
func (s *selection) write(path string, o WriteOptions) (Selected, error) {
	kept, whole, err := s.survey()
	if err != nil {
		return Selected{}, err
	}
	fields := make([]arrow.Field, 0, len(s.columns)+1)
	for _, c := range s.columns {
		c.settle()
		fields = append(fields, c.field)
	}
	ids := !s.Shown && len(fields) > 0 && fields[0].Name == RowID && isText(fields[0].Type)
	if !ids {
		fields = slices.Insert(fields, 0, arrow.Field{Name: RowID, Type: arrow.BinaryTypes.String})
	} else {
		fields[0].Nullable = false
	}
	schema := arrow.NewSchema(fields, nil)
	w, err := create(path, schema, nil, o)
	if err != nil {
		return Selected{}, err
	}
	defer w.abort()
	out := &resultWriter{selection: s, w: w, schema: schema, ids: ids, batch: o.BatchRows}
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
	return out.Selected, w.commit()
}

// survey finds the types of columns where they follow from values. Kept are the values
// of the first rows, and whole says that these are all, or one more than there may be: the
// query does not have to run again. Where all types are known nothing is looked at.
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
			c.note(v)
			if bytes += 8 + int64(len(v.bytes)); bytes > s.Bytes {
				return nil, false, s.tooMuch()
			}
			if size += len(v.bytes); size > maxKeptBytes || len(kept) > maxKept {
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

// rest writes the rows from where the statement is.
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
	return tenon.Errorf(tenon.CodeTooLarge, "the result of the query has more than %d bytes; select less, or aggregate", s.Bytes)
}

// resultWriter makes batches of rows.
type resultWriter struct {
	*selection
	Selected
	w       *writer
	schema  *arrow.Schema
	ids     bool // the first column is the row ids
	batch   int
	waiting int
	held    int64 // bytes of those that wait
	bytes   int64
	b       *array.RecordBuilder
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
	if !r.ids {
		r.b.Field(0).(*array.StringBuilder).Append(fmt.Sprintf("Row%d", r.Selected.Rows))
		at = 1
	}
	for i, c := range r.columns {
		v := row[i]
		if r.ids && i == 0 && v.kind == sqlite3.SQLITE_NULL {
			v = value{kind: sqlite3.SQLITE_TEXT, bytes: fmt.Appendf(nil, "Row%d", r.Selected.Rows)}
		}
		if r.held += 8 + int64(len(v.bytes)); r.held > maxBody { // texts of more than 2 GiB would not fit into a column either
			return r.w.tooWide(int64(r.waiting+1), r.held)
		}
		if err := c.append(r.b.Field(at+i), v); err != nil {
			return invalid("row %d of the result, column '%s': %w", r.Selected.Rows, tenon.Visible(c.name), err)
		}
	}
	if r.bytes+r.held > r.Bytes {
		return r.tooMuch()
	}
	r.Selected.Rows++
	if r.waiting++; r.waiting >= r.batch {
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
