package table

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tenonhq/tenon"
)

// Row is a tool and its row id.
type Row struct {
	ID   string
	Tool *Tool // nil for a missing cell
	// Pack is the packed workflow of a workflow tool without file store keys. Writing puts it into
	// the file store and gives the tool its key.
	Pack []byte
}

// ToolColumn is the name of the tool column of tables that tenon makes.
const ToolColumn = "Tools"

// WriteTools writes a table of tools. Errors: invalid (the tool has an unknown kind, or the layout
// cannot express it; with the row), store.
func WriteTools(ctx context.Context, path string, rows []Row, o WriteOptions) error {
	for i, r := range rows {
		if r.Tool != nil && !r.Tool.Kind.IsKnown() {
			return invalid("%s: row %d ('%s'): Unknown tool type: %d", path, i, tenon.Visible(r.ID), r.Tool.Kind)
		}
	}
	return writeTools(ctx, path, rows, o)
}

func writeTools(ctx context.Context, path string, rows []Row, o WriteOptions) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	column := logical(ToolColumn, o.Layout.class(), o.Layout.storage())
	schema := arrow.NewSchema([]arrow.Field{{Name: RowID, Type: arrow.BinaryTypes.String}, column}, nil)
	w, err := create(ctx, path, schema, nil, o)
	if err != nil {
		return err
	}
	defer w.abort()
	for len(rows) > 0 {
		n := min(len(rows), o.BatchRows)
		b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
		ids, tools := b.Field(0).(*array.StringBuilder), b.Field(1).(*array.StructBuilder)
		reserve(ids, tools, o.Layout, rows[:n])
		for i, r := range rows[:n] {
			ids.Append(r.ID)
			tool, err := w.packed(r)
			if err == nil {
				err = appendTool(tools, o.Layout, tool)
			}
			if tenon.ErrorCode(err) == tenon.CodeStore {
				return err // not the fault of the row: the disk may be full
			}
			if err != nil {
				return invalid("%s: row %d ('%s'): %w", path, w.rows+int64(i), tenon.Visible(r.ID), err)
			}
		}
		if err := w.write(ctx, b.NewRecordBatch()); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return w.commit()
}

// reserve allocates the builders' buffers for the texts of a batch in one step. Growing them step
// by step would leave several times as much garbage.
func reserve(ids *array.StringBuilder, tools *array.StructBuilder, l Layout, rows []Row) {
	sum := 0
	var sizes [fieldCount]int
	for _, r := range rows {
		sum += len(r.ID)
		if t := r.Tool; t != nil {
			texts := [fieldCount]string{fieldName: t.Name, fieldDescription: t.Description,
				fieldParameters: t.Parameters, fieldKeys: t.Keys, fieldServer: t.Server}
			for field, s := range texts {
				sizes[field] += len(s)
			}
		}
	}
	ids.ReserveData(sum)
	for field, p := range l.places() {
		from := tools
		if p.inner {
			from = tools.FieldBuilder(1).(*array.StructBuilder)
		}
		if p.known && sizes[field] > 0 {
			if f, ok := from.FieldBuilder(p.at).(*array.StringBuilder); ok {
				f.ReserveData(sizes[field])
			}
		}
	}
}

// packed stores the packed workflow of a row in the file store and returns the tool with its key.
// The same workflow has the same key in every table.
func (w *writer) packed(r Row) (*Tool, error) {
	if r.Pack == nil || r.Tool == nil {
		return r.Tool, nil
	}
	sum := sha256.Sum256(r.Pack)
	id := func(b []byte) string { // a UUID of version 8 (RFC 9562)
		b = slices.Clone(b[:16])
		b[6], b[8] = b[6]&0x0f|0x80, b[8]&0x3f|0x80
		return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
	}
	name := "workflow_" + id(sum[:16])
	if err := w.keep.put(name, r.Pack); err != nil {
		return nil, err
	}
	t := *r.Tool
	t.Keys = fmt.Sprintf("v1:%s:0:%s:-1", id(sum[16:]), name)
	return &t, nil
}
