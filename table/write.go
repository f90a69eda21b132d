package table

import (
	"archive/zip"
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/wholefile"
)

// The metadata keys of written tables. Newer versions of KNIME also write metaBoundaries.
const (
	metaVersions   = "KNIME:basic:factoryVersions"
	metaChunk      = "KNIME:basic:chunkSize"
	metaLayout     = "tenon:tool-layout"
	metaBoundaries = "KNIME:basic:batchBoundaries"
)

// DefaultBatchRows is the default of [WriteOptions.BatchRows].
const DefaultBatchRows = 1024

// maxBatchRows is the maximum of [WriteOptions.BatchRows].
const maxBatchRows = 1 << 20

// WriteOptions configure how a table is written.
type WriteOptions struct {
	// Layout is the layout of tool columns. The default is seed9.
	Layout Layout
	// BatchRows is the number of rows per batch; the last batch may have fewer. The default is
	// [DefaultBatchRows].
	BatchRows int
	// LZ4 compresses the buffers (LZ4 frame), as KNIME does.
	LZ4 bool
	// Stdout receives the table as a stream if its path is "-".
	Stdout io.Writer
	// Warn receives warnings for the user. It may be nil.
	Warn func(text string)

	// encode makes [Concat] decode and encode every tool, each column in its own layout, instead of
	// copying cells.
	encode bool
	// own makes [Pick] write each tool column in its own layout.
	own bool
}

func (o WriteOptions) withDefaults() (WriteOptions, error) {
	o.Layout = cmp.Or(o.Layout, Seed9)
	o.BatchRows = cmp.Or(o.BatchRows, DefaultBatchRows)
	if o.Warn == nil {
		o.Warn = func(string) {}
	}
	if o.BatchRows < 1 || o.BatchRows > maxBatchRows {
		return o, invalid("a batch has 1 to %d rows, not %d", maxBatchRows, o.BatchRows)
	}
	return o, CheckLayout(o.Layout)
}

// arrowWriter is a writer of files or of streams.
type arrowWriter interface {
	Write(arrow.RecordBatch) error
	Close() error
}

// writer writes a table. It writes to a temporary file that commit renames and abort removes. It
// must not be used concurrently.
type writer struct {
	path   string
	o      WriteOptions
	schema *arrow.Schema
	meta   map[string]string

	temp  string // "" if the target is written directly
	file  *os.File
	stop  func() // ends the watch of a pipe; nil for a file
	buf   *bufio.Writer
	arrow arrowWriter
	keep  keeper

	pending []arrow.RecordBatch
	waiting int64 // rows of pending
	held    int64 // estimated bytes of pending
	out     *counter
	rows    int64
	err     error
}

// create starts a table: a file, a bundle if the name ends in .tooltable, or a stream for "-".
func create(ctx context.Context, path string, schema *arrow.Schema, meta map[string]string,
	o WriteOptions) (*writer, error) {
	w := &writer{path: path, o: o, schema: schema, meta: map[string]string{}}
	for k, v := range meta {
		if k != metaBoundaries && k != metaLayout {
			w.meta[k] = v
		}
	}
	if path == "-" {
		if o.Stdout == nil {
			return nil, invalid("standard output is not available for a table")
		}
		w.buf = bufio.NewWriterSize(o.Stdout, 1<<16)
		return w, nil
	}
	real, inPlace, err := wholefile.Target(path)
	w.path = real
	switch {
	case err != nil:
	case inPlace:
		if w.file, err = openPipe(ctx, w.path, os.O_WRONLY); err == nil {
			w.stop = untilDone(ctx, w.file)
		} else if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
			err = tenon.Errorf(tenon.CodeCancelled, "opening %s: %w", path, err)
		}
	default:
		name := "." + filepath.Base(w.path) + "." + strconv.FormatUint(rand.Uint64(), 36) + ".part"
		w.temp = filepath.Join(filepath.Dir(w.path), name)
		w.keep.dir = w.temp + ".filestore"
		w.file, err = os.OpenFile(w.temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	}
	if err != nil {
		w.temp = ""
		return nil, w.failed(err)
	}
	w.buf = bufio.NewWriterSize(w.file, 1<<16)
	return w, nil
}

func (w *writer) failed(err error) error {
	var te *tenon.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &te):
		return err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return tenon.Errorf(tenon.CodeCancelled, "writing %s: the caller stopped waiting", w.path)
	}
	name := w.path
	if name == "-" {
		name = "stdout"
	}
	return tenon.Errorf(tenon.CodeStore, "%s cannot be written: %w", name, wholefile.Reason(err))
}

// keeps reports whether the table can have a file store.
func (w *writer) keeps() bool { return w.temp != "" }

// write adds rows and writes the batches that are full.
func (w *writer) write(ctx context.Context, rec arrow.RecordBatch) error {
	if w.err != nil {
		return w.err
	}
	if ctx.Err() != nil {
		return tenon.Errorf(tenon.CodeCancelled, "writing %s: %w", w.path, context.Cause(ctx))
	}
	if rec.NumRows() == 0 {
		return nil
	}
	w.pending = append(w.pending, rec)
	w.waiting += rec.NumRows()
	w.held += recordBytes(rec)
	for w.waiting >= int64(w.o.BatchRows) && w.err == nil {
		w.err = w.failed(contain(func() error { return w.flush(int64(w.o.BatchRows)) }))
	}
	if w.err == nil && w.held > maxBody { // all pending rows go into one batch
		w.err = w.tooWide(w.waiting, w.held)
	}
	return w.err
}

// tooWide returns the error for a batch that would be too large to be read again; see [maxBody].
func (w *writer) tooWide(rows, size int64) error {
	if rows <= 1 {
		return tenon.Errorf(tenon.CodeTooLarge,
			"%s cannot be written: a row has more than %d bytes, too many to read it again", w.path, int64(maxBody))
	}
	return tenon.Errorf(tenon.CodeTooLarge,
		"%s cannot be written: %d rows take %d bytes, and a batch has at most %d; "+
			"use smaller batches: tables.batch_rows: %d in tenon.yaml",
		w.path, rows, size, int64(maxBody), max(rows*(maxBody/2)/size, 1))
}

// recordBytes returns the size of a batch's buffers. A slice of a buffer counts as the whole
// buffer.
func recordBytes(rec arrow.RecordBatch) (n int64) {
	var add func(arrow.ArrayData)
	add = func(d arrow.ArrayData) {
		for _, b := range d.Buffers() {
			if b != nil {
				n += int64(b.Len())
			}
		}
		for _, c := range d.Children() {
			add(c)
		}
	}
	for _, c := range rec.Columns() {
		add(c.Data())
	}
	return n
}

// counter counts the bytes that are written.
type counter struct {
	to io.Writer
	n  int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.to.Write(b)
	c.n += int64(n)
	return n, err
}

// flush writes the first n pending rows as a batch.
func (w *writer) flush(n int64) error {
	var parts []arrow.RecordBatch
	for left := n; left > 0; {
		first := w.pending[0]
		if first.NumRows() <= left {
			parts = append(parts, first)
			left -= first.NumRows()
			w.pending = w.pending[1:]
			continue
		}
		parts = append(parts, first.NewSlice(0, left))
		w.pending[0] = first.NewSlice(left, first.NumRows())
		left = 0
	}
	w.held -= int64(float64(w.held) * float64(n) / float64(w.waiting))
	w.waiting -= n
	if w.arrow == nil {
		if err := w.begin(n); err != nil {
			return err
		}
	}
	cols := make([]arrow.Array, w.schema.NumFields())
	var c compactor
	for i := range cols {
		list := make([]arrow.Array, len(parts))
		for k, p := range parts {
			list[k] = p.Column(i)
		}
		cols[i] = list[0]
		if len(list) > 1 {
			var err error
			if cols[i], err = array.Concatenate(list, memory.DefaultAllocator); err != nil {
				return err
			}
		}
		var err error
		switch cols[i], err = c.compact(cols[i]); {
		case errors.Is(err, errShown):
			return w.tooWide(n, c.bytes)
		case errors.Is(err, errClaims):
			return w.tooWide(n, maxMemory)
		case err != nil:
			return err
		}
	}
	w.rows += n
	before := w.out.n
	if err := w.arrow.Write(array.NewRecordBatch(w.schema, cols, n)); err != nil {
		return err
	}
	if size := w.out.n - before; size > maxBody {
		return w.tooWide(n, size)
	}
	return nil
}

// begin writes the schema. Its metadata contains the number of rows of the first batch.
func (w *writer) begin(first int64) (err error) {
	w.meta[metaVersions] = versions(w.schema)
	w.meta[metaChunk] = strconv.FormatInt(first, 10)
	cols, _, err := columns(w.schema)
	if err != nil {
		return err
	}
	for _, c := range cols {
		if c.IsTool() {
			w.meta[metaLayout] = string(c.Layout)
		}
	}
	keys := slices.Sorted(maps.Keys(w.meta)) // equal tables have equal bytes
	values := make([]string, len(keys))
	for i, k := range keys {
		values[i] = w.meta[k]
	}
	md := arrow.NewMetadata(keys, values)
	w.schema = arrow.NewSchema(w.schema.Fields(), &md)
	options := []ipc.Option{ipc.WithSchema(w.schema)}
	if w.o.LZ4 {
		options = append(options, ipc.WithLZ4())
	}
	w.out = &counter{to: w.buf}
	if w.path == "-" {
		w.arrow = ipc.NewWriter(w.out, options...)
		return nil
	}
	w.arrow, err = ipc.NewFileWriter(w.out, options...)
	return err
}

// commit writes the remaining rows and renames the table to its final name.
func (w *writer) commit() (err error) {
	defer func() {
		if err != nil {
			w.abort()
		}
	}()
	if w.err != nil {
		return w.err
	}
	err = contain(func() error {
		if w.waiting > 0 {
			return w.flush(w.waiting)
		}
		if w.arrow == nil {
			return w.begin(0)
		}
		return nil
	})
	if err == nil {
		err = w.arrow.Close()
	}
	if err == nil {
		err = w.buf.Flush()
	}
	if w.file != nil {
		if err == nil && w.temp != "" {
			err = w.file.Sync()
		}
		e := w.closeFile()
		if err == nil {
			err = e
		}
	}
	if err != nil || w.temp == "" {
		return w.failed(err)
	}
	back, done := func() {}, func() {}
	if IsBundle(w.path) {
		err = w.pack()
	} else {
		back, done, err = w.moveStore()
	}
	if err == nil {
		if err = os.Rename(w.temp, w.path); err != nil {
			back()
		}
	}
	if err == nil {
		w.temp = ""
		done()
	}
	return w.failed(err)
}

// IsBundle reports whether a table of this name is a bundle.
func IsBundle(path string) bool { return strings.EqualFold(filepath.Ext(path), ".tooltable") }

// moveStore moves the file store next to the table. It keeps the store of a table that is being
// replaced until the new table is in place. back undoes the move, done removes the old store.
func (w *writer) moveStore() (back, done func(), err error) {
	nothing := func() {}
	if len(w.keep.sums) == 0 {
		return nothing, nothing, nil
	}
	if err := os.WriteFile(filepath.Join(w.keep.dir, sumsName), w.keep.sumLines(), 0o600); err != nil {
		return nothing, nothing, err
	}
	target, old := w.path+".filestore", w.temp+".old"
	if err := os.Rename(target, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nothing, nothing, err
	}
	back = func() {
		_ = os.RemoveAll(target)
		_ = os.Rename(old, target) // if there was an old store; the caller's error matters more
	}
	if err := os.Rename(w.keep.dir, target); err != nil {
		back()
		return nothing, nothing, err
	}
	return back, func() {
		if err := os.RemoveAll(old); err != nil {
			w.o.Warn(w.path + " is written, but the file store of the replaced table is not removed: " + err.Error())
		}
	}, nil
}

// pack writes the bundle of the table and its files.
func (w *writer) pack() (err error) {
	name := w.temp + ".zip"
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	defer func() {
		e := f.Close()
		if err == nil {
			err = e
		}
		if err == nil {
			err = os.Rename(name, w.temp)
		}
		if err != nil {
			_ = os.Remove(name) // the first error matters more
		}
		_ = os.RemoveAll(w.keep.dir)
	}()
	z := zip.NewWriter(f)
	put := func(name, file string, method uint16, b []byte) error {
		to, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: method})
		if err != nil {
			return err
		}
		if file == "" {
			_, err = to.Write(b)
			return err
		}
		from, err := os.Open(file)
		if err != nil {
			return err
		}
		_, err = io.Copy(to, from)
		return errors.Join(err, from.Close())
	}
	// A table that is stored without compression can be read in place.
	if err := put(bundleTable, w.temp, zip.Store, nil); err != nil {
		return err
	}
	for _, n := range w.keep.names() {
		file := filepath.Join(w.keep.dir, filepath.FromSlash(n))
		if err := put(bundleStore+"/"+n, file, zip.Deflate, nil); err != nil {
			return err
		}
	}
	if len(w.keep.sums) > 0 {
		if err := put(bundleStore+"/"+sumsName, "", zip.Deflate, w.keep.sumLines()); err != nil {
			return err
		}
	}
	if err := z.Close(); err != nil {
		return err
	}
	return f.Sync()
}

// abort removes what was written. It does nothing after commit.
func (w *writer) abort() {
	if w.file != nil {
		_ = w.closeFile() // the file is removed
	}
	if w.temp != "" {
		_ = os.Remove(w.temp)
		_ = os.RemoveAll(w.keep.dir)
	}
}

func (w *writer) closeFile() error {
	f := w.file
	w.file = nil
	if w.stop != nil {
		w.stop()
	}
	return f.Close()
}

// WriteTexts writes a table of one text column with the given row ids.
func WriteTexts(ctx context.Context, path, column string, ids, texts []string, o WriteOptions) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	if len(ids) != len(texts) {
		return tenon.Errorf(tenon.CodeInternal, "%d row ids for %d texts", len(ids), len(texts))
	}
	schema := arrow.NewSchema([]arrow.Field{
		{Name: RowID, Type: arrow.BinaryTypes.String},
		{Name: column, Type: arrow.BinaryTypes.String, Nullable: true},
	}, nil)
	w, err := create(ctx, path, schema, nil, o)
	if err != nil {
		return err
	}
	defer w.abort()
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	for i := range ids {
		b.Field(0).(*array.StringBuilder).Append(ids[i])
		b.Field(1).(*array.StringBuilder).Append(texts[i])
	}
	if err := w.write(ctx, b.NewRecordBatch()); err != nil {
		return err
	}
	return w.commit()
}

var (
	_ arrowWriter = (*ipc.Writer)(nil)
	_ arrowWriter = (*ipc.FileWriter)(nil)
)
