package table

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/wholefile"
)

// ExportOptions configure [Export].
type ExportOptions struct {
	Format    Format // FormatCSV, FormatTSV or FormatJSONL
	RowIDs    bool   // write the row ids as a first column "<RowID>"
	Delimiter rune   // delimiter of CSV; 0 means a comma
	Stdout    io.Writer
	// Warn receives a warning for each row whose tool cannot be read. Such a row is left out, or an error if Warn is
	// nil.
	Warn func(text string)
}

// leavesOut reports whether the row of an error is left out.
func (e *ExportOptions) leavesOut(err error) bool {
	if e.Warn == nil || !IsCellError(err) {
		return false
	}
	e.Warn(err.Error() + "; the row is left out")
	return true
}

// Export writes the remaining rows of a table as CSV or JSON lines, and returns their number. In CSV a missing cell is
// empty, or "" if it is the only one of its row, because many readers skip empty lines. Lists, structs and tools are
// JSON. A file is replaced once it is complete; the path "-" is Stdout. Memory
// does not grow with the number of rows. Errors: invalid, store, cancelled.
func Export(ctx context.Context, path string, r *Reader, e ExportOptions) (rows int64, err error) {
	out, err := createText(ctx, path, e.Stdout)
	if err != nil {
		return 0, err
	}
	defer out.abort()
	if e.Format == FormatJSONL {
		rows, err = e.lines(ctx, out.buf, r)
	} else {
		rows, err = e.delimited(ctx, out.buf, r)
	}
	if err != nil {
		return 0, out.failed(err)
	}
	return rows, out.failed(out.commit())
}

func (e *ExportOptions) lines(ctx context.Context, w *bufio.Writer, r *Reader) (rows int64, err error) {
	for row, err := range r.Rows(ctx) {
		if err != nil {
			return 0, err
		}
		line, err := row.object()
		if e.leavesOut(err) {
			continue
		} else if err != nil {
			return 0, err
		}
		if e.RowIDs {
			id := slices.Concat([]byte{'{'}, quote(RowID), []byte{':'}, quote(row.ID))
			if string(line) != "{}" {
				id = append(id, ',')
			}
			line = append(id, line[1:]...)
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return 0, err
		}
		rows++
	}
	return rows, nil
}

func (e *ExportOptions) delimited(ctx context.Context, w *bufio.Writer, r *Reader) (rows int64, err error) {
	out := csv.NewWriter(w)
	switch {
	case e.Delimiter != 0:
		out.Comma = e.Delimiter
	case e.Format == FormatTSV:
		out.Comma = '\t'
	}
	var line []string
	if e.RowIDs {
		line = append(line, RowID)
	}
	line = append(line, r.jsonKeys(false)...) // distinct, so that the file can be read again
	if err := out.Write(line); err != nil {
		return 0, err
	}
	for row, err := range r.Rows(ctx) {
		if err != nil {
			return 0, err
		}
		line, err = e.texts(line[:0], r, row)
		if e.leavesOut(err) {
			continue
		} else if err != nil {
			return 0, err
		}
		if len(line) == 1 && line[0] == "" {
			out.Flush()
			if _, err := w.WriteString("\"\"\n"); err != nil {
				return 0, err
			}
		} else if err := out.Write(line); err != nil {
			return 0, err
		}
		rows++
	}
	out.Flush()
	return rows, out.Error()
}

// texts appends the fields of a row to a line.
func (e *ExportOptions) texts(line []string, r *Reader, row Cells) ([]string, error) {
	if e.RowIDs {
		line = append(line, row.ID)
	}
	for _, c := range r.columns {
		text, err := row.Text(c)
		if err != nil {
			return line, err
		}
		line = append(line, text)
	}
	return line, nil
}

// textFile is a text that is being written. The file gets its name when it is complete.
type textFile struct {
	path, temp string
	file       *os.File // nil for stdout
	stop       func()
	buf        *bufio.Writer
}

func createText(ctx context.Context, path string, stdout io.Writer) (*textFile, error) {
	t := &textFile{path: path}
	if path == "-" {
		if stdout == nil {
			return nil, invalid("standard output is not available")
		}
		t.path, t.buf = "stdout", bufio.NewWriterSize(stdout, 1<<16)
		return t, nil
	}
	real, inPlace, err := wholefile.Target(path)
	t.path = real
	switch {
	case err != nil:
	case inPlace:
		if t.file, err = openPipe(ctx, real, os.O_WRONLY); err == nil {
			t.stop = untilDone(ctx, t.file)
		}
	default:
		t.temp = filepath.Join(filepath.Dir(real), "."+filepath.Base(real)+"."+strconv.FormatUint(rand.Uint64(), 36)+
			".part")
		if t.file, err = os.OpenFile(t.temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666); err != nil {
			t.temp = ""
		}
	}
	if err != nil {
		return nil, t.failed(err)
	}
	t.buf = bufio.NewWriterSize(t.file, 1<<16)
	return t, nil
}

func (t *textFile) failed(err error) error {
	var te *tenon.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &te):
		return err
	case errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.Canceled):
		return tenon.Errorf(tenon.CodeCancelled, "writing %s: %w", t.path, err)
	}
	return tenon.Errorf(tenon.CodeStore, "%s cannot be written: %w", t.path, wholefile.Reason(err))
}

func (t *textFile) commit() error {
	err := t.buf.Flush()
	if t.file == nil {
		return err
	}
	if err == nil && t.temp != "" {
		err = t.file.Sync()
	}
	if t.stop != nil {
		t.stop()
	}
	closed := t.file.Close()
	t.file = nil
	if err == nil {
		err = closed
	}
	if err == nil && t.temp != "" {
		if err = os.Rename(t.temp, t.path); err == nil {
			t.temp = ""
		}
	}
	return err
}

// abort removes what was written. It does nothing after commit.
func (t *textFile) abort() {
	if t.file != nil {
		_ = t.file.Close() // the file is removed
		t.file = nil
	}
	if t.temp != "" {
		_ = os.Remove(t.temp)
	}
}
