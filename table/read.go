package table

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/tenonhq/tenon"
)

// Options say how tables are opened.
type Options struct {
	// Stdin is what the name "-" reads: a stream, or a whole file.
	Stdin io.Reader
	// Legacy says what reading the deprecated type does: [LegacyWarn] (also ""),
	// [LegacyAllow] or [LegacyDeny].
	Legacy string
	// Name is what errors call the table of Stdin; empty: stdin.
	Name string
	// Warn is told what a person should know, once a table; nil: nobody.
	Warn func(text string)
}

// Reader reads a table batch by batch. It is for one goroutine.
type Reader struct {
	name    string
	schema  *arrow.Schema // without dictionaries
	columns []Column
	keys    []string // of the columns in JSON, once they are asked for
	rawKeys bool     // beside the row ids
	rowID   int      // -1: there are no row ids
	meta    map[string]string
	store   *Store
	mem     *allowance
	ipc     *ipc.Reader
	close   func() error

	rows    int64 // before the next batch
	batches int
}

// Open opens a table: an Arrow file or stream, or a bundle; "-" is standard input.
// Errors: not_found, invalid (it is no table, or one that is broken, or one that may
// not be read), store (it cannot be read).
func Open(path string, o Options) (*Reader, error) {
	r, err := openPath(path, o)
	if tenon.ErrorCode(err) == tenon.CodeInvalid && IsCSV(path) {
		return nil, invalid("%w; %s", err, CSVRemedy)
	}
	return r, err
}

// IsCSV reports whether a file is called like a CSV file, which is no table.
func IsCSV(path string) bool { return strings.EqualFold(filepath.Ext(path), ".csv") }

// CSVRemedy says how a CSV file becomes a table.
const CSVRemedy = "a workflow with a step such as {id: rows, table: {csv: FILE}} makes a table of a CSV file (docs/reference/workflow.md)"

func openPath(path string, o Options) (r *Reader, err error) {
	if path == "-" {
		if o.Stdin == nil {
			return nil, invalid("there is no standard input to read a table from")
		}
		return open(cmp.Or(o.Name, "stdin"), o.Stdin, nil, nil, o)
	}
	f, err := os.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, tenon.Errorf(tenon.CodeNotFound, "there is no table %s", path)
	case err != nil:
		return nil, tenon.Errorf(tenon.CodeStore, "%s: %w", path, err)
	}
	defer func() {
		if err != nil {
			_ = f.Close() // the first error says more
		}
	}()
	st, err := f.Stat()
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeStore, "%s: %w", path, err)
	}
	if st.IsDir() {
		return nil, invalid("%s is a folder; a table is a file", path)
	}
	if !st.Mode().IsRegular() {
		return open(path, f, nil, f.Close, o) // a pipe
	}
	head := make([]byte, 8)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return nil, tenon.Errorf(tenon.CodeStore, "%s: %w", path, err)
	}
	head = head[:n]
	switch {
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		b, err := openBundle(path, f, st.Size())
		if err != nil {
			return nil, err
		}
		return open(path, io.NewSectionReader(b.table, 0, b.table.Size()), b.store(path), f.Close, o)
	case bytes.HasPrefix(head, magic):
		return open(path, io.NewSectionReader(f, 0, st.Size()), dirStore(path), f.Close, o)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, tenon.Errorf(tenon.CodeStore, "%s: %w", path, err)
	}
	return open(path, f, dirStore(path), f.Close, o)
}

// maxPiped bounds a whole file that comes through a pipe: its footer stands at its
// end, so it is kept.
const maxPiped = 256 << 20

// open looks what comes: a file or a stream.
func open(name string, in io.Reader, store *Store, done func() error, o Options) (_ *Reader, err error) {
	defer func() {
		if err != nil {
			_ = store.close() // the error says more
		}
	}()
	r := &Reader{name: name, store: store, close: done, mem: &allowance{}}
	fail := func(err error) (*Reader, error) { return nil, r.broken(err) }
	section, isFile := in.(*io.SectionReader)
	if !isFile {
		head := make([]byte, len(magic))
		n, err := io.ReadFull(in, head)
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
			return fail(err)
		}
		in = io.MultiReader(bytes.NewReader(head[:n]), in)
		if bytes.Equal(head, magic) {
			b, err := io.ReadAll(io.LimitReader(in, maxPiped+1))
			if err != nil {
				return fail(err)
			}
			if len(b) > maxPiped {
				return nil, tenon.Errorf(tenon.CodeTooLarge, "%s: an Arrow file of more than %d bytes cannot come through a pipe; name the file, or send a stream", name, maxPiped)
			}
			section = io.NewSectionReader(bytes.NewReader(b), 0, int64(len(b)))
		}
	}
	source, foot := streamMessages(in, r.mem), (*footer)(nil)
	if section != nil {
		if source, foot, err = fileMessages(section, r.mem); err != nil {
			return fail(err)
		}
	}
	err = contain(func() (err error) {
		r.ipc, err = ipc.NewReaderFromMessageReader(source, ipc.WithAllocator(r.mem))
		return err
	})
	if err != nil {
		return fail(err)
	}
	if err := r.look(foot); err != nil {
		return nil, err
	}
	return r, r.legacy(o)
}

// look takes the schema apart.
func (r *Reader) look(foot *footer) (err error) {
	from := r.ipc.Schema()
	if r.schema, err = plainSchema(from); err != nil {
		return r.broken(err)
	}
	r.meta = map[string]string{}
	if foot != nil {
		for k, v := range foot.metadata {
			r.meta[k] = v
		}
	}
	md := from.Metadata()
	for i, k := range md.Keys() {
		r.meta[k] = md.Values()[i]
	}
	if r.columns, r.rowID, err = columns(r.schema); err != nil {
		return r.broken(err)
	}
	return nil
}

// The values of [Options.Legacy].
const (
	LegacyWarn  = "warn"
	LegacyAllow = "allow"
	LegacyDeny  = "deny"
)

// legacy treats a table of the deprecated type as it is configured.
func (r *Reader) legacy(o Options) error {
	for _, c := range r.columns {
		if !isClass(c.Class, ClassWorkflowTool) || o.Legacy == LegacyAllow {
			continue
		}
		if o.Legacy == LegacyDeny {
			return invalid("%s: legacy tool format, run tenon tables migrate", r.name)
		}
		if o.Warn != nil {
			o.Warn(r.name + ": deprecated: WorkflowToolValueFactory, use ToolValueFactory (tenon tables migrate)")
		}
		return nil
	}
	return nil
}

// broken says which table an error is about. An error of the input itself is no
// fault of the table's.
func (r *Reader) broken(err error) error {
	var te *tenon.Error
	var pe *fs.PathError
	var no notTable
	switch {
	case errors.As(err, &no):
		return invalid("%s is not a table: %s", r.name, no)
	case errors.As(err, &te):
		return tenon.Errorf(te.Code, "%s: %w", r.name, err)
	case errors.As(err, &pe):
		return tenon.Errorf(tenon.CodeStore, "%s: %w", r.name, err)
	}
	return invalid("%s is not a table that can be read: %w", r.name, err)
}

// contain turns a panic of the Arrow library, which corrupt input can cause, into
// an error.
func contain(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			if e, ok := p.(error); ok {
				err = fmt.Errorf("its data is corrupt: %w", e)
				return
			}
			err = fmt.Errorf("its data is corrupt: %v", p)
		}
	}()
	return do()
}

// next returns the next batch, checked and without dictionaries; io.EOF at the end.
// It stays valid.
func (r *Reader) next(ctx context.Context) (arrow.RecordBatch, error) {
	if ctx.Err() != nil {
		return nil, tenon.Errorf(tenon.CodeCancelled, "reading %s: %w", r.name, context.Cause(ctx))
	}
	var out arrow.RecordBatch
	err := contain(func() error {
		rec, err := r.ipc.Read()
		if err != nil {
			return err
		}
		rec.Retain() // the reader lets go of it, the garbage collector takes it
		rec = withNulls(rec)
		if err := array.ValidateRecordFull(rec); err != nil {
			return err
		}
		out, err = plainBatch(r.schema, rec)
		return err
	})
	switch {
	case errors.Is(err, io.EOF):
		return nil, io.EOF
	case err != nil:
		return nil, r.broken(fmt.Errorf("batch %d: %w", r.batches+1, err))
	}
	r.batches++
	r.rows += out.NumRows()
	return out, nil
}

// Close lets go of the file and its store.
func (r *Reader) Close() error {
	err := r.store.close()
	if r.close != nil {
		err = errors.Join(err, r.close())
	}
	if err != nil {
		return tenon.Errorf(tenon.CodeStore, "%s: %w", r.name, err)
	}
	return nil
}

// Name is the table's name as messages have it.
func (r *Reader) Name() string { return r.name }

// Columns returns the columns beside the row ids.
func (r *Reader) Columns() []Column { return r.columns }

// HasRowID reports whether the table has row ids of its own.
func (r *Reader) HasRowID() bool { return r.rowID >= 0 }

// Metadata returns the metadata of the schema and of the file's footer.
func (r *Reader) Metadata() map[string]string { return r.meta }

// Column finds a column; "" is the last tool column. The error has the text of the
// original where there is none.
func (r *Reader) Column(name string) (Column, error) {
	for i := len(r.columns) - 1; i >= 0; i-- {
		if c := r.columns[i]; c.Name == name && name != "" && !c.IsTool() {
			return Column{}, invalid("%s: column '%s' holds no tools but %s", r.name, name, c.Type)
		} else if c.IsTool() && (name == "" || c.Name == name) {
			return c, nil
		}
	}
	if name != "" {
		return Column{}, tenon.Errorf(tenon.CodeNotFound, "%s has no column '%s'", r.name, name)
	}
	return Column{}, invalid("No tool column found in the tools table. Please provide a valid tool column.")
}

// id returns the id of a row of a batch; first is how many rows came before.
func (r *Reader) id(rec arrow.RecordBatch, i int, first int64) string {
	if r.rowID >= 0 {
		if s, null := text(rec.Column(r.rowID), i); !null {
			return s
		}
	}
	return "Row" + strconv.FormatInt(first+int64(i), 10)
}

// Count reads the whole table and returns the number of its rows, and those of its
// first batches.
func (r *Reader) Count(ctx context.Context) (rows int64, batches []int64, err error) {
	for {
		rec, err := r.next(ctx)
		if errors.Is(err, io.EOF) {
			return r.rows, batches, nil
		}
		if err != nil {
			return 0, nil, err
		}
		if len(batches) < maxCounted {
			batches = append(batches, rec.NumRows())
		}
	}
}

// maxCounted is of how many batches Count tells.
const maxCounted = 1000
