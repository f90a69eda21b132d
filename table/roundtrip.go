package table

import (
	"context"
	"os"
	"path/filepath"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tenonhq/tenon"
)

// Roundtrip reads the table file at path, writes it to a temporary file and compares the two tables. Each tool column
// is written in its own layout. Only java9 becomes java10, because java9 cannot be written. In such a column only the
// decoded tools are compared. Roundtrip returns the differences. It returns none if nothing was lost.
func Roundtrip(ctx context.Context, path string, o Options, w WriteOptions) (differences []string, err error) {
	if st, err := os.Stat(path); path == "-" || err == nil && !st.IsDir() && !st.Mode().IsRegular() {
		return nil, invalid("a roundtrip reads its table twice, so it needs a file")
	}
	dir, err := os.MkdirTemp("", "tenon-")
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeStore, "no temporary folder for a copy: %w", err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	first, err := Open(ctx, path, o)
	if err != nil {
		return nil, err
	}
	defer first.Close() //nolint:errcheck // only read
	o.Warn, w.Warn = nil, nil
	meant := map[int]bool{} // columns that are not written as they were read
	for i, c := range first.columns {
		if c.IsTool() {
			l := c.own()
			meant[i] = !arrow.TypeEqual(first.schema.Field(c.at).Type, l.storage()) || c.Class != l.class()
		}
	}
	w.encode = true
	copied := filepath.Join(dir, "copy.arrow")
	if _, err := Concat(ctx, copied, []*Reader{first}, w); err != nil {
		return nil, err
	}
	a, err := Open(ctx, path, o)
	if err != nil {
		return nil, err
	}
	defer a.Close() //nolint:errcheck // only read
	b, err := Open(ctx, copied, o)
	if err != nil {
		return nil, err
	}
	defer b.Close() //nolint:errcheck // only read
	return diffCells(ctx, a, b, meant)
}

// own returns the layout in which the column is written again: its own layout, or the closest one
// that can be written.
func (c Column) own() Layout {
	if c.Layout == Java9 {
		return Java10
	}
	return c.Layout
}
