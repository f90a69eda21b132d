package table

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/tenonhq/tenon"
)

// Options configure how a table is opened.
type Options struct {
	// Stdin is the input for the path "-": a stream or a complete file. A complete file in an
	// [io.SectionReader] is read in place. Other files are buffered, because their footer is at their end. If it has
	// a method Stat as [os.File] has, no table is written over the file.
	Stdin io.Reader
	// Legacy configures how tables of the deprecated type are handled: [LegacyWarn] (the default),
	// [LegacyAllow] or [LegacyDeny].
	Legacy string
	// Name is the name of Stdin's table in errors. The default is "stdin".
	Name string
	// Warn receives warnings for the user, at most one per table. It may be nil.
	Warn func(text string)
	// Seen, if set, receives the path, the SHA-256 digest in hex and the size of every file
	// that belongs to a table, before the file's bytes are used. An error refuses the file.
	Seen func(path, digest string, size int64) error
}

// Reader reads a table batch by batch. It must not be used concurrently.
type Reader struct {
	name    string
	schema  *arrow.Schema // without dictionaries
	columns []Column
	keys    []string // the keys of the columns in JSON, computed on demand
	rawKeys bool     // keys is for rows with row ids
	rowID   int      // index of the row id column, or -1
	meta    map[string]string
	store   *Store
	mem     *allowance
	ipc     *ipc.Reader
	close   func() error
	stdin   os.FileInfo // information about a file that is standard input

	rows    int64 // rows read so far
	batches int
}

// Open opens a table: an Arrow file or stream, or a bundle. The path "-" is standard input. The end
// of ctx ends waiting for a named pipe, also while rows are read. Errors: not_found, invalid (the
// file is not a table, is corrupt, or is of a refused type), store (the file cannot be read),
// cancelled.
func Open(ctx context.Context, path string, o Options) (*Reader, error) {
	r, err := openPath(ctx, path, o)
	if tenon.ErrorCode(err) == tenon.CodeInvalid && IsCSV(path) {
		return nil, invalid("%w; %s", err, CSVRemedy)
	}
	return r, err
}

// IsCSV reports whether a path has the extension .csv. CSV files are not tables.
func IsCSV(path string) bool { return strings.EqualFold(filepath.Ext(path), ".csv") }

// CSVRemedy tells the user how to convert a CSV file to a table.
const CSVRemedy = "tenon tables convert FILE.csv --out FILE.arrow makes a table of a CSV file"

func openPath(ctx context.Context, path string, o Options) (r *Reader, err error) {
	if path == "-" {
		if o.Stdin == nil {
			return nil, invalid("standard input is not available for a table")
		}
		in := o.Stdin
		if section, ok := in.(*io.SectionReader); ok {
			head := make([]byte, len(magic))
			if n, _ := section.ReadAt(head, 0); !bytes.Equal(head[:n], magic) {
				in = struct{ io.Reader }{section} // a stream is read in order; open reports read errors
			}
		}
		r, err := open(cmp.Or(o.Name, "stdin"), in, nil, nil, o)
		if f, ok := o.Stdin.(interface{ Stat() (os.FileInfo, error) }); ok && err == nil {
			r.stdin, _ = f.Stat() // without it, stdin is no known file
		}
		return r, err
	}
	f, err := openPipe(ctx, path, os.O_RDONLY)
	switch {
	case ctx.Err() != nil && errors.Is(err, context.Cause(ctx)):
		return nil, tenon.Errorf(tenon.CodeCancelled, "opening %s: %w", path, err)
	case errors.Is(err, fs.ErrNotExist):
		return nil, tenon.Errorf(tenon.CodeNotFound, "there is no table %s", path)
	case err != nil:
		return nil, tenon.Errorf(tenon.CodeStore, "%s: %w", path, err)
	}
	defer func() {
		if err != nil {
			_ = f.Close() // the first error matters more
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
		stop := untilDone(ctx, f)
		return open(path, f, nil, func() error { stop(); return f.Close() }, o) // a pipe
	}
	if err := o.digest(path, f); err != nil {
		return nil, err
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
		r, err := open(path, io.NewSectionReader(b.table, 0, b.table.Size()), b.store(path), func() error {
			return errors.Join(b.spool.Close(), f.Close())
		}, o)
		if err != nil {
			_ = b.spool.Close() // the first error matters more
		}
		return r, err
	case bytes.HasPrefix(head, magic):
		return open(path, io.NewSectionReader(f, 0, st.Size()), dirStore(path, o), f.Close, o)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, tenon.Errorf(tenon.CodeStore, "%s: %w", path, err)
	}
	return open(path, f, dirStore(path, o), f.Close, o)
}

// digest reports the digest of an open file to Seen. The table is read from the same handle afterwards, so a file that
// replaces it meanwhile is not read.
func (o Options) digest(path string, f *os.File) error {
	if o.Seen == nil {
		return nil
	}
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return tenon.Errorf(tenon.CodeStore, "%s: %w", path, err)
	}
	return o.Seen(path, hex.EncodeToString(sum.Sum(nil)), n)
}

// maxPiped bounds a complete file that is read from a pipe. Its footer is at its end, so the file
// is buffered.
const maxPiped = 256 << 20

// open detects whether the input is a file or a stream, and reads its schema.
func open(name string, in io.Reader, store *Store, done func() error, o Options) (_ *Reader, err error) {
	defer func() {
		if err != nil {
			_ = store.close() // the first error matters more
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
				return nil, tenon.Errorf(tenon.CodeTooLarge, "%s: an Arrow file of more than %d bytes cannot be read "+
					"from a pipe; name the file, or send a stream", name, maxPiped)
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

// look reads the schema and the metadata.
func (r *Reader) look(foot *footer) (err error) {
	from := r.ipc.Schema()
	if r.schema, err = plainSchema(from); err != nil {
		return r.broken(err)
	}
	md := r.schema.Metadata()
	if shown := from.Metadata(); shown.FindKey(shownMark) < 0 {
		fields := slices.Clone(r.schema.Fields())
		r.schema = arrow.NewSchema(renamed(fields, func(i int) bool { return !isRowID(i, fields[i]) }), &md)
	}
	r.meta = map[string]string{}
	if foot != nil {
		for k, v := range foot.metadata {
			r.meta[k] = v
		}
	}
	md = from.Metadata()
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

// legacy warns about a table of the deprecated type, or refuses it.
func (r *Reader) legacy(o Options) error {
	for _, c := range r.columns {
		if !isDeprecated(c.Class) || o.Legacy == LegacyAllow {
			continue
		}
		if o.Legacy == LegacyDeny {
			return invalid("%s: legacy tool format, run tenon tables migrate", r.name)
		}
		if o.Warn != nil {
			class := c.Class[strings.LastIndexByte(c.Class, '.')+1:]
			o.Warn(r.name + ": deprecated: " + class + ", use ToolValueFactory (tenon tables migrate)")
		}
		return nil
	}
	return nil
}

// broken adds the table's name to an error. An I/O error of the input has code store, because the
// table may be valid.
func (r *Reader) broken(err error) error {
	var te *tenon.Error
	var pe *fs.PathError
	var no notTable
	switch {
	case errors.As(err, &no):
		return invalid("%s is not a table: %s", r.name, no)
	case errors.As(err, &te):
		return tenon.Errorf(te.Code, "%s: %w", r.name, err)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return tenon.Errorf(tenon.CodeCancelled, "reading %s: the caller stopped waiting", r.name)
	case errors.As(err, &pe):
		return tenon.Errorf(tenon.CodeStore, "%s: %w", r.name, err)
	}
	return invalid("%s is not a readable table: %w", r.name, err)
}

// contain converts a panic of the Arrow library to an error. Corrupt input can cause panics.
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

// next returns the next batch, validated and without dictionaries, or io.EOF at the end. The batch
// stays valid after the next call.
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
		rec.Retain() // the reader releases the batch; the garbage collector frees it
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

// Close closes the file and its store.
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

// Name returns the table's name for messages.
func (r *Reader) Name() string { return r.name }

// Columns returns the columns without the row ids.
func (r *Reader) Columns() []Column { return r.columns }

// HasRowID reports whether the table has a row id column.
func (r *Reader) HasRowID() bool { return r.rowID >= 0 }

// Metadata returns the metadata of the schema and of the file's footer.
func (r *Reader) Metadata() map[string]string { return r.meta }

// Column finds a tool column by its name; "" is the last tool column. If the table has no tool column, the error has
// the same text as in KNIME, whose format this is.
func (r *Reader) Column(name string) (Column, error) {
	for i := len(r.columns) - 1; i >= 0; i-- {
		if c := r.columns[i]; c.Name == name && name != "" && !c.IsTool() {
			return Column{}, invalid("%s: column '%s' holds %s, not tools", r.name, name, c.Type)
		} else if c.IsTool() && (name == "" || c.Name == name) {
			return c, nil
		}
	}
	if name != "" {
		return Column{}, tenon.Errorf(tenon.CodeNotFound, "%s has no column '%s'", r.name, name)
	}
	return Column{}, invalid("No tool column found in the tools table. Please provide a valid tool column.")
}

// id returns the id of row i of a batch. first is the number of rows before the batch.
func (r *Reader) id(rec arrow.RecordBatch, i int, first int64) string {
	if r.rowID >= 0 {
		if s, null := text(rec.Column(r.rowID), i); !null {
			return s
		}
	}
	return "Row" + strconv.FormatInt(first+int64(i), 10)
}

// Count reads the rest of the table. It returns the number of rows, and the number of rows of each
// of the first 1000 batches.
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

// maxCounted bounds the batches whose sizes Count returns.
const maxCounted = 1000
