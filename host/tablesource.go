package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/internal/safezip"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/pieces"
	"github.com/tenonhq/tenon/workflow/runner"
)

// maxTable is the size of the largest table that is one blob, and that is held in memory as a whole. A larger table is
// stored in pieces.
const maxTable = 64 << 20

// The bounds of a table if tables.max_bytes is not set: what stays free on the disk, and the bound if the free space
// is unknown. A table needs its size twice, because it is made in a temporary file.
const (
	tableReserve = 256 << 20
	tableUnknown = 4 << 30
)

// tableLimit returns the largest size of a table, and the words that explain it.
func (h *Host) tableLimit() (most int64, why string) {
	if set := int64(h.config.Tables.MaxBytes); set > 0 {
		return set, "as tables.max_bytes says"
	}
	free := h.store.Usage().Free
	if free < 0 {
		return tableUnknown, "which is the default; set tables.max_bytes"
	}
	return max((free-tableReserve)/2, maxTable), "because the disk of the store has no more room; free some, or set " +
		"tables.max_bytes"
}

// tooLarge returns the error for a table that exceeds its bound.
func (h *Host) tooLarge(what string) error {
	most, why := h.tableLimit()
	return tenon.Errorf(tenon.CodeTooLarge, "%s has more than %s, %s", what, inMiB(most), why)
}

func inMiB(n int64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%d MiB", n>>20)
}

// tableSource is a table that comes from outside.
type tableSource struct {
	data []byte // nil: it is in a file
	in   *io.SectionReader
}

// inMemory returns a table in memory.
func inMemory(data []byte) tableSource { return tableSource{data, pieces.Bytes(data)} }

// sourcesOf returns tables in memory and then tables in files.
func sourcesOf(data [][]byte, files []*io.SectionReader) (list []tableSource) {
	for _, b := range data {
		list = append(list, inMemory(b))
	}
	for _, f := range files {
		list = append(list, tableSource{in: f})
	}
	return list
}

// taken is a table from outside that was checked.
type taken struct {
	tenon.Table
	runner.Given
	parts pieces.Manifest // if the table is stored in pieces
}

// take checks a table that comes from outside. The argument what names it in errors.
func (h *Host) take(ctx context.Context, what string, from tableSource) (t taken, err error) {
	if from.in == nil {
		return t, tenon.Errorf(tenon.CodeInvalid, "%s: there is no data", what)
	}
	if most, _ := h.tableLimit(); from.in.Size() > most {
		return t, h.tooLarge(what)
	}
	t.In = from.in
	if t.Table, _, err = summary(ctx, from.in, 0); err != nil {
		return t, tenon.Errorf(tenon.ErrorCode(err), "%s: %w", what, err)
	}
	if from.in.Size() > maxTable {
		if t.parts, err = pieces.Describe(ctx, from.in, from.in.Size()); err != nil {
			return t, tenon.Errorf(tenon.ErrorCode(err), "%s: %w", what, err)
		}
		t.Digest, t.Pieces = t.parts.Digest, t.parts.ID()
		return t, nil
	}
	t.Data = from.data
	if t.Data == nil {
		t.Data = make([]byte, from.in.Size())
		if n, err := from.in.ReadAt(t.Data, 0); n < len(t.Data) {
			return t, tenon.Errorf(tenon.CodeStore, "%s cannot be read: %w", what, err)
		}
	}
	t.Digest = store.Digest(t.Data)
	return t, nil
}

// late returns the function that stores the tables in pieces of a run which has begun, or nil if there are none.
func (h *Host) late(tables []taken) func(ctx context.Context, run string) error {
	tables = slices.DeleteFunc(slices.Clone(tables), func(t taken) bool { return t.Pieces == "" })
	if len(tables) == 0 {
		return nil
	}
	return func(ctx context.Context, run string) error {
		for _, t := range tables {
			if err := t.parts.Put(ctx, h.store, run, t.In); err != nil {
				return tenon.Errorf(tenon.ErrorCode(err), "table '%s' was not stored: %w", tenon.Visible(t.Name), err)
			}
		}
		return nil
	}
}

// arrivals are the runs of this process that have begun and whose large tables are being stored.
type arrivals struct {
	mu sync.Mutex
	of map[string]*arrival // by run
}

type arrival struct {
	done chan struct{}
	err  error // why the tables were not stored; set before done is closed
}

// maxArrivals bounds the runs whose tables are being stored, or were not.
const maxArrivals = 1000

// wait waits until the tables of a run are stored.
func (a *arrivals) wait(ctx context.Context, run string) error {
	a.mu.Lock()
	x := a.of[run]
	a.mu.Unlock()
	if x == nil {
		return nil
	}
	select {
	case <-x.done:
		return x.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// launch begins a run. Then it stores the tables that are too large for the first commit. The steps of the run wait
// for them. If they cannot be stored, no step is carried out and the run is cancelled.
func (h *Host) launch(ctx context.Context, spec engine.Spec) error {
	if spec.Late == nil {
		return h.engine.Start(ctx, spec)
	}
	id, x := spec.Run.ID, &arrival{done: make(chan struct{})}
	h.arrivals.mu.Lock()
	if h.arrivals.of == nil || len(h.arrivals.of) > maxArrivals { // a run whose failure is forgotten lacks its table
		h.arrivals.of = map[string]*arrival{}
	}
	h.arrivals.of[id] = x
	h.arrivals.mu.Unlock()
	err := h.engine.Start(ctx, spec)
	began := err == nil
	if began {
		err = spec.Late(ctx, id)
	}
	h.arrivals.mu.Lock()
	x.err = err
	if err == nil {
		delete(h.arrivals.of, id)
	}
	h.arrivals.mu.Unlock()
	close(x.done)
	if err != nil && began {
		return errors.Join(err, h.Runs().Cancel(context.WithoutCancel(ctx), id, err.Error()))
	}
	return err
}

// madeTable is a table that is made within a run.
type madeTable struct {
	*safezip.Spool
}

// spoolTable collects the bytes of a table that a function writes. Up to 1 MiB is kept in memory, and more in a
// temporary file without a name. Errors: errTableFull, or the errors of run.
func (h *Host) spoolTable(run func(io.Writer) error) (madeTable, error) {
	most, _ := h.tableLimit()
	full := false
	s, err := safezip.NewSpool("the table", most, func(w io.Writer) error {
		return run(writerFunc(func(b []byte) (int, error) {
			n, err := w.Write(b)
			if tenon.ErrorCode(err) == tenon.CodeTooLarge {
				full, err = true, errTableFull
			}
			return n, err
		}))
	})
	if full {
		err = errTableFull
	}
	return madeTable{s}, err
}

type writerFunc func([]byte) (int, error)

// Write implements [io.Writer].
func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// keep stores a table for a run and sets its digests.
func (h *Host) keep(ctx context.Context, run string, m madeTable, t *tenon.Table) (err error) {
	in := m.Section()
	if in.Size() > maxTable {
		parts, err := pieces.Describe(ctx, in, in.Size())
		if err != nil {
			return err
		}
		t.Digest, t.Pieces = parts.Digest, parts.ID()
		return parts.Put(ctx, h.store, run, in)
	}
	b := make([]byte, in.Size())
	if n, err := in.ReadAt(b, 0); n < len(b) {
		return tenon.Errorf(tenon.CodeStore, "a temporary file cannot be read: %w", err)
	}
	t.Digest, err = h.store.PutBlob(ctx, run, b)
	return err
}

// TableReader reads the bytes of a table at any place: an Arrow file or stream. Close releases them.
type TableReader struct {
	*io.SectionReader
	close func() error
}

// NewTableReader returns a reader of a table. The function close may be nil.
func NewTableReader(in *io.SectionReader, close func() error) *TableReader {
	return &TableReader{in, close}
}

// Close implements [io.Closer].
func (r *TableReader) Close() error {
	if r.close == nil {
		return nil
	}
	return r.close()
}

// whole returns the bytes of a table that fits in memory.
func (r *TableReader) whole(name string) ([]byte, error) {
	if r.Size() > maxTable {
		return nil, tenon.Errorf(tenon.CodeTooLarge, "table '%s' has more than %d MiB; it can only be read in pieces",
			tenon.Visible(name), maxTable>>20)
	}
	b := make([]byte, r.Size())
	if n, err := r.ReadAt(b, 0); n < len(b) {
		return nil, tenon.Errorf(tenon.ErrorCode(err), "table '%s': %w", tenon.Visible(name), err)
	}
	return b, nil
}

var _ io.ReadCloser = (*TableReader)(nil)
