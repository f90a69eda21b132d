package table

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tenonhq/tenon"
)

// ToolRow is a row of a tool column.
type ToolRow struct {
	Index int64
	ID    string
	Tool  *Tool // nil for a missing cell, and for a cell that cannot be read
	Err   error // why the cell cannot be read
}

// Flaw returns the reason why the row's tool cannot be used, or nil if it can. Reasons are: the cell cannot be read,
// the kind is unknown, there is no name, or the schema or the server_uri is invalid. The error has code invalid.
func (r ToolRow) Flaw() error {
	t := r.Tool
	if r.Err != nil || t == nil {
		return r.Err
	}
	if err := t.Use(r.Place()); err != nil {
		return err
	}
	if _, err := t.Schema(); err != nil {
		return err
	}
	if t.Kind == Workflow {
		return nil
	}
	_, err := t.Address()
	return err
}

// Place returns the row's index and id for error messages.
func (r ToolRow) Place() string { return fmt.Sprintf("row %d, '%s'", r.Index, tenon.Visible(r.ID)) }

// Tools reads the tools of a column in the remaining rows. If a cell cannot be read, its error is in [ToolRow.Err]. If
// the rest of the table cannot be read, the sequence yields an error and ends.
func (r *Reader) Tools(ctx context.Context, c Column) iter.Seq2[ToolRow, error] {
	return func(yield func(ToolRow, error) bool) {
		for cells, err := range r.Rows(ctx) {
			row := ToolRow{Index: cells.Index, ID: cells.ID}
			if err == nil {
				row.Tool, row.Err = r.tool(c, cells.rec, cells.at, row)
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}

// tool decodes a cell.
func (r *Reader) tool(c Column, rec arrow.RecordBatch, i int, row ToolRow) (t *Tool, err error) {
	if t, err = r.shownTool(c, rec, i, row); err != nil {
		return nil, err
	}
	if t != nil && t.Kind == noKind {
		return nil, r.toolError(c, row, &fieldError{fieldKind, errNoKind})
	}
	return t, nil
}

// shownTool reads a tool like tool. It also returns a tool without a type, which can only be shown.
func (r *Reader) shownTool(c Column, rec arrow.RecordBatch, i int, row ToolRow) (t *Tool, err error) {
	err = contain(func() (err error) {
		t, err = decodeTool(c.Layout, rec.Column(c.at), i)
		return err
	})
	if err != nil && !errors.Is(err, errNoKind) {
		return nil, r.toolError(c, row, err)
	}
	return t, nil
}

func (r *Reader) toolError(c Column, row ToolRow, err error) error {
	return invalid("%s: %s, column '%s', %w", r.name, row.Place(), c.Name, &cellError{err})
}

// cellError is the reason why the tool of one row cannot be read.
type cellError struct{ error }

func (e *cellError) Unwrap() error { return e.error }

// IsCellError reports whether an error concerns the tool of one row only, so that the other rows can be read.
func IsCellError(err error) bool {
	var e *cellError
	return errors.As(err, &e)
}

// Files returns the table's file store.
func (r *Reader) Files() *Store { return r.store }

// Tool reads the tool of one row. Other rows may contain invalid tools. The error texts are
// KNIME's.
func (r *Reader) Tool(ctx context.Context, c Column, index int64) (*Tool, error) {
	for cells, err := range r.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		if cells.Index != index {
			continue
		}
		t, err := cells.Tool(c)
		switch {
		case err != nil:
			return nil, err
		case t == nil:
			return nil, invalid("Selected row contains a missing tool value.")
		}
		return t, t.Use(ToolRow{Index: cells.Index, ID: cells.ID}.Place())
	}
	return nil, invalid("Row index %d not found in table with %d rows.", index, r.rows)
}
