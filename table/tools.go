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

// Row is a tool and the id of its row.
type Row struct {
	ID   string
	Tool *Tool // nil: a missing cell
	// Pack is the packed workflow of a workflow tool that has no keys yet: it goes into
	// the file store of the table, and the tool gets its key.
	Pack []byte
}

// ToolColumn is the name of the tool column of tables that tenon makes.
const ToolColumn = "Tools"

// WriteTools makes a table of tools. Errors: invalid (a tool that the layout cannot
// express, or of a kind that is not known, with its row), store.
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
	schema := arrow.NewSchema([]arrow.Field{{Name: RowID, Type: arrow.BinaryTypes.String}, logical(ToolColumn, o.Layout.class(), o.Layout.storage())}, nil)
	w, err := create(path, schema, nil, o)
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
				return err // a full disk, say, is not the row's fault
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

// reserve makes room for the texts of a batch, which are most of it: a builder that grows
// leaves several times as much behind.
func reserve(ids *array.StringBuilder, tools *array.StructBuilder, l Layout, rows []Row) {
	sum := 0
	var sizes [fieldCount]int
	for _, r := range rows {
		sum += len(r.ID)
		if t := r.Tool; t != nil {
			for field, s := range [fieldCount]string{fieldName: t.Name, fieldDescription: t.Description, fieldParameters: t.Parameters, fieldKeys: t.Keys, fieldServer: t.Server} {
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

// packed puts the packed workflow of a row into the file store and returns the tool with
// its key. The same pack has the same key in every table.
func (w *writer) packed(r Row) (*Tool, error) {
	if r.Pack == nil || r.Tool == nil {
		return r.Tool, nil
	}
	sum := sha256.Sum256(r.Pack)
	id := func(b []byte) string { // in the form of a UUID of version 8 (RFC 9562)
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
