package table

import (
	"context"
	"os"
	"path/filepath"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tenonhq/tenon"
)

// Roundtrip decodes a table, encodes it again in its own layout and compares the two.
// It returns the differences, none where nothing was lost. What is not written as it
// was read, such as layout java9, is compared by what its tools mean.
func Roundtrip(ctx context.Context, path string, o Options, w WriteOptions) (differences []string, err error) {
	if path == "-" {
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
	meaning := false // the layout is not written as it was read
	for _, c := range first.columns {
		if !c.IsTool() {
			continue
		}
		if w.Layout = c.Layout; w.Layout == Java9 {
			w.Layout = Java10
		}
		meaning = !arrow.TypeEqual(first.schema.Field(c.at).Type, w.Layout.storage()) || !isClass(c.Class, w.Layout.class())
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
	if meaning {
		return DiffTools(ctx, a, b)
	}
	return Diff(ctx, a, b)
}
