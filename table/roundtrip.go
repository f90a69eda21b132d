package table

import (
	"context"
	"os"
	"path/filepath"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tenonhq/tenon"
)

// Roundtrip decodes a table, encodes each tool column again in its own layout and
// compares the two. It returns the differences, none where nothing was lost. What is not written as it
// was read, such as layout java9, is compared by what its tools mean.
func Roundtrip(ctx context.Context, path string, o Options, w WriteOptions) (differences []string, err error) {
	if st, err := os.Stat(path); path == "-" || err == nil && !st.IsDir() && !st.Mode().IsRegular() {
		return nil, invalid("a roundtrip reads its table twice, so it needs a file")
	}
	dir, err := os.MkdirTemp("", "tenon-")
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeStore, "there is no place for a copy: %w", err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	first, err := Open(path, o)
	if err != nil {
		return nil, err
	}
	defer first.Close() //nolint:errcheck // only read
	o.Warn, w.Warn = nil, nil
	meant := map[int]bool{} // columns whose layout is not written as it was read
	for i, c := range first.columns {
		if l := c.own(); c.IsTool() {
			meant[i] = !arrow.TypeEqual(first.schema.Field(c.at).Type, l.storage()) || c.Class != l.class()
		}
	}
	w.encode = true
	copied := filepath.Join(dir, "copy.arrow")
	if _, err := Concat(ctx, copied, []*Reader{first}, w); err != nil {
		return nil, err
	}
	a, err := Open(path, o)
	if err != nil {
		return nil, err
	}
	defer a.Close() //nolint:errcheck // only read
	b, err := Open(copied, o)
	if err != nil {
		return nil, err
	}
	defer b.Close() //nolint:errcheck // only read
	return diffCells(ctx, a, b, meant)
}

// own is the layout in which the column's tools are written again: that of the column, or
// the one most like it that can be written.
func (c Column) own() Layout {
	if c.Layout == Java9 {
		return Java10
	}
	return c.Layout
}
