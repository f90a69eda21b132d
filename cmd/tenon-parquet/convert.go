package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/table"
)

const (
	batchRows = table.DefaultBatchRows
	groupRows = 64 * batchRows // rows of a row group
	maxMemory = 1 << 30        // bytes of the values that the Parquet library holds at a time
)

// converter converts one file.
type converter struct {
	stdin  io.Reader
	stdout io.Writer
	warn   func(string)
}

// pipe runs two halves of a conversion, which an Arrow stream connects, and returns the first error that is not only a
// consequence of the other.
func pipe(ctx context.Context, write func(context.Context, io.Writer) error,
	read func(context.Context, io.Reader) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	from, to := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := contain(func() error { return write(ctx, to) })
		_ = to.CloseWithError(err) // always nil (io.PipeWriter)
		done <- err
	}()
	err := contain(func() error { return read(ctx, from) })
	cancel()
	_ = from.CloseWithError(io.ErrClosedPipe)
	wrote := <-done
	if wrote != nil && (err == nil || errors.Is(err, wrote)) && !errors.Is(wrote, io.ErrClosedPipe) {
		return wrote
	}
	return err
}

// contain converts a panic of the Parquet library to an error. Corrupt input can cause panics.
func contain(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			if e, ok := p.(error); ok {
				err = tenon.Errorf(tenon.CodeInvalid, "the data is corrupt: %w", e)
				return
			}
			err = tenon.Errorf(tenon.CodeInvalid, "the data is corrupt: %v", p)
		}
	}()
	return do()
}

// toArrow converts a Parquet file to an Arrow table.
func (c *converter) toArrow(ctx context.Context, in, out string) (rows int64, err error) {
	f, err := os.Open(in)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, tenon.Errorf(tenon.CodeNotFound, "there is no file %s", in)
	case err != nil:
		return 0, tenon.Errorf(tenon.CodeStore, "%w", err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	if st, err := f.Stat(); err == nil && !st.Mode().IsRegular() {
		return 0, tenon.Errorf(tenon.CodeInvalid, "%s: a Parquet file must be a regular file, because its end is read "+
			"first", in)
	}
	err = pipe(ctx, func(ctx context.Context, to io.Writer) error {
		return inFile(in, c.readParquet(ctx, f, to))
	}, func(ctx context.Context, from io.Reader) error {
		r, err := table.Open(ctx, "-", table.Options{Stdin: from, Name: in, Legacy: table.LegacyAllow})
		if err != nil {
			return err
		}
		rows, err = table.Concat(ctx, out, []*table.Reader{r}, table.WriteOptions{Stdout: c.stdout, Warn: c.warn})
		return errors.Join(err, r.Close())
	})
	return rows, err
}

// readParquet writes the rows of a Parquet file as an Arrow stream.
func (c *converter) readParquet(ctx context.Context, f *os.File, to io.Writer) error {
	mem := &allowance{}
	pf, err := file.NewParquetReader(f, file.WithReadProps(parquet.NewReaderProperties(mem)))
	if err != nil {
		return tenon.Errorf(tenon.CodeInvalid, "not a readable Parquet file: %w", err)
	}
	defer pf.Close() //nolint:errcheck // it was only read
	r, err := pqarrow.NewFileReader(pf, pqarrow.ArrowReadProperties{BatchSize: batchRows}, mem)
	if err != nil {
		return tenon.Errorf(tenon.CodeInvalid, "not a readable Parquet file: %w", err)
	}
	records, err := r.GetRecordReader(ctx, nil, nil)
	if err != nil {
		return tenon.Errorf(tenon.CodeInvalid, "%w", err)
	}
	defer records.Release()
	schema := storage(records.Schema())
	w := ipc.NewWriter(to, ipc.WithSchema(schema))
	for records.Next() {
		rec := records.RecordBatch()
		if err := w.Write(array.NewRecordBatch(schema, rec.Columns(), rec.NumRows())); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return tenon.Errorf(tenon.CodeCancelled, "%w", context.Cause(ctx))
		}
	}
	if err := records.Err(); err != nil && !errors.Is(err, io.EOF) {
		return tenon.Errorf(tenon.CodeInvalid, "%w", err)
	}
	return w.Close()
}

// storage returns a schema without the identifiers of Parquet columns.
func storage(s *arrow.Schema) *arrow.Schema {
	fields := s.Fields()
	for i, f := range fields {
		fields[i].Metadata = without(f.Metadata, "PARQUET:field_id")
	}
	md := s.Metadata()
	return arrow.NewSchema(fields, &md)
}

func without(md arrow.Metadata, key string) arrow.Metadata {
	var keys, values []string
	for i, k := range md.Keys() {
		if k != key {
			keys, values = append(keys, k), append(values, md.Values()[i])
		}
	}
	return arrow.NewMetadata(keys, values)
}

// toParquet converts an Arrow table to a Parquet file.
func (c *converter) toParquet(ctx context.Context, in, out string) (rows int64, err error) {
	r, err := table.Open(ctx, in, table.Options{Stdin: c.stdin, Legacy: table.LegacyAllow, Warn: c.warn})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	temp, err := os.CreateTemp(filepath.Dir(out), "."+filepath.Base(out)+".*.part")
	if err != nil {
		return 0, tenon.Errorf(tenon.CodeStore, "%s cannot be written: %w", out, err)
	}
	defer os.Remove(temp.Name()) //nolint:errcheck // it is not there after the rename
	err = pipe(ctx, func(ctx context.Context, to io.Writer) error {
		_, err := table.Concat(ctx, "-", []*table.Reader{r}, table.WriteOptions{Stdout: to, Warn: c.warn})
		return err
	}, func(ctx context.Context, from io.Reader) (err error) {
		rows, err = c.writeParquet(from, temp)
		return err
	})
	closed := temp.Close()
	if err == nil || errors.Is(closed, os.ErrClosed) {
		closed = nil // the Parquet library closes its file
	}
	if err = errors.Join(err, closed); err != nil {
		return 0, inFile(in, err)
	}
	if err = os.Chmod(temp.Name(), 0o644); err == nil {
		err = os.Rename(temp.Name(), out)
	}
	if err != nil {
		return 0, tenon.Errorf(tenon.CodeStore, "%s cannot be written: %w", out, err)
	}
	return rows, nil
}

// writeParquet writes an Arrow stream as a Parquet file.
func (c *converter) writeParquet(from io.Reader, to io.Writer) (rows int64, err error) {
	r, err := ipc.NewReader(from)
	if err != nil {
		return 0, err
	}
	defer r.Release()
	props := parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Snappy),
		parquet.WithMaxRowGroupLength(groupRows))
	w, err := pqarrow.NewFileWriter(r.Schema(), to, props, pqarrow.NewArrowWriterProperties(pqarrow.WithStoreSchema()))
	if err != nil {
		return 0, tenon.Errorf(tenon.CodeInvalid, "a column cannot be expressed in Parquet: %w", err)
	}
	for r.Next() {
		rec := r.RecordBatch()
		if err := w.WriteBuffered(rec); err != nil {
			return 0, tenon.Errorf(tenon.CodeInvalid, "row %d cannot be expressed in Parquet: %w", rows, err)
		}
		rows += rec.NumRows()
	}
	if err := r.Err(); err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	return rows, w.Close()
}

func inFile(name string, err error) error {
	var te *tenon.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &te):
		return tenon.Errorf(te.Code, "%s: %w", name, err)
	}
	return tenon.Errorf(tenon.CodeInvalid, "%s: %w", name, err)
}

// allowance is an allocator that bounds the bytes in use. It panics beyond the bound; see contain.
type allowance struct {
	memory.GoAllocator
	used atomic.Int64
}

func (a *allowance) take(n int) {
	if used := a.used.Add(int64(n)); used > maxMemory {
		panic(fmt.Errorf("its values take more than %d bytes", int64(maxMemory)))
	}
}

// Allocate implements memory.Allocator.
func (a *allowance) Allocate(n int) []byte {
	a.take(n)
	return a.GoAllocator.Allocate(n)
}

// Reallocate implements memory.Allocator.
func (a *allowance) Reallocate(n int, b []byte) []byte {
	a.take(n - len(b))
	return a.GoAllocator.Reallocate(n, b)
}

// Free implements memory.Allocator.
func (a *allowance) Free(b []byte) {
	a.used.Add(-int64(len(b)))
	a.GoAllocator.Free(b)
}

var _ memory.Allocator = (*allowance)(nil)
