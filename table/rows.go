package table

import (
	"context"
	"fmt"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tenonhq/tenon"
)

// ToolRow is a row of a tool table.
type ToolRow struct {
	Index int64
	ID    string
	Tool  *Tool // nil: the cell is missing
}

// Place names the row as messages do.
func (r ToolRow) Place() string { return fmt.Sprintf("row %d, '%s'", r.Index, tenon.Visible(r.ID)) }

// Tools reads the tools of a column, in order, from where the reader is. A cell that
// cannot be read ends it with an error that names row and field.
func (r *Reader) Tools(ctx context.Context, c Column) iter.Seq2[ToolRow, error] {
	return func(yield func(ToolRow, error) bool) {
		for cells, err := range r.Rows(ctx) {
			row := ToolRow{Index: cells.Index, ID: cells.ID}
			if err == nil {
				row.Tool, err = r.tool(c, cells.rec, cells.at, row)
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}

// tool decodes one cell.
func (r *Reader) tool(c Column, rec arrow.RecordBatch, i int, row ToolRow) (t *Tool, err error) {
	if err := contain(func() (err error) { t, err = decodeTool(c.Layout, rec.Column(c.at), i); return err }); err != nil {
		return nil, invalid("%s: %s, column '%s', %w", r.name, row.Place(), c.Name, err)
	}
	return t, nil
}

// Files is the table's file store.
func (r *Reader) Files() *Store { return r.store }

// Tool reads the tool of one row; other rows may hold what is none. The texts of its
// errors are the original's.
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
