package table

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tenonhq/tenon"
)

// Concat writes the rows of several tables as one, in order, and returns their
// number. Columns of one name become one; a table that has exactly one tool column
// gives it to the one tool column of the result, whatever the two are called. Tool
// columns of any layout are written in the layout of o. What a table does not have
// is missing in its rows. Equal row ids get _dup. Files of the file stores go with
// the rows. Memory does not grow with the number of rows, but for what tells
// row ids apart where there are several tables: a bit for ids like Row0, Row1, a hash for
// others. Errors: invalid (types clash, a tool cannot be expressed), store, cancelled.
func Concat(ctx context.Context, path string, in []*Reader, o WriteOptions) (int64, error) {
	o, err := o.withDefaults()
	if err != nil {
		return 0, err
	}
	for _, r := range in {
		if a, err := os.Stat(r.name); err == nil && len(in) == 1 {
			if b, err := os.Stat(path); err == nil && os.SameFile(a, b) {
				return 0, invalid("%s is never changed in place; write to another file", r.name)
			}
		}
	}
	j, err := join(in, o)
	if err != nil {
		return 0, err
	}
	w, err := create(path, j.schema, j.meta, o)
	if err != nil {
		return 0, err
	}
	defer w.abort()
	for i, r := range in {
		if err := j.copy(ctx, w, r, i); err != nil {
			return 0, err
		}
	}
	if err := w.commit(); err != nil {
		return 0, err
	}
	return w.rows, nil
}

// joined is the plan of a concatenation.
type joined struct {
	o      WriteOptions
	schema *arrow.Schema
	meta   map[string]string
	from   [][]int // table → column of the result → column of the table; -1: none
	seen   *rowIDs // nil: one table alone keeps its ids
}

// join plans: which columns there are and where they come from.
func join(in []*Reader, o WriteOptions) (*joined, error) {
	j := &joined{o: o, meta: map[string]string{}}
	if len(in) > 1 {
		j.seen = newRowIDs()
	}
	type target struct {
		field arrow.Field
		tool  bool
		whose string
	}
	var list []target
	tools := 0 // tool columns of the result
	for _, r := range in {
		own := 0
		for _, c := range r.columns {
			if c.IsTool() {
				own++
			}
		}
		from := make([]int, len(list))
		for k := range from {
			from[k] = -1
		}
		for _, c := range r.columns {
			at := -1
			for k, t := range list {
				if from[k] == -1 && t.tool == c.IsTool() && (t.field.Name == c.Name || c.IsTool() && own == 1 && tools == 1) {
					at = k
					break
				}
				if t.field.Name == c.Name && t.tool != c.IsTool() {
					return nil, invalid("column '%s' holds tools in one of %s and %s and none in the other", c.Name, t.whose, r.name)
				}
			}
			f := r.schema.Field(c.at)
			f.Nullable = true
			if c.IsTool() {
				l := o.layout(c)
				f = logical(c.Name, l.class(), l.storage())
			}
			if at < 0 {
				if c.IsTool() {
					tools++
				}
				list, from = append(list, target{f, c.IsTool(), r.name}), append(from, c.at)
				continue
			}
			if have := &list[at].field; !c.IsTool() {
				t, ok := widen(have.Type, f.Type)
				if !ok || extension(*have) != extension(f) {
					x, y := namesApart(*have, f)
					return nil, invalid("column '%s' is %s in %s and %s in %s; tenon tables query can make them alike, with CAST or another name", c.Name, x, list[at].whose, y, r.name)
				}
				have.Type = t
			}
			from[at] = c.at
		}
		j.from = append(j.from, from)
		for k, v := range r.meta {
			if _, ok := j.meta[k]; !ok {
				j.meta[k] = v
			}
		}
	}
	all := []arrow.Field{{Name: RowID, Type: arrow.BinaryTypes.String}}
	for _, t := range list {
		all = append(all, t.field)
	}
	j.schema = arrow.NewSchema(all, nil)
	return j, nil
}

// layout is the one in which a column is written.
func (o WriteOptions) layout(c Column) Layout {
	if o.encode {
		return c.own()
	}
	return o.Layout
}

// losses are packed workflows that do not go with their tools.
type losses struct {
	count int
	first error // why the first one does not; nil: none does
}

// copy writes the rows of one table.
func (j *joined) copy(ctx context.Context, w *writer, r *Reader, n int) error {
	lost, unknown := losses{}, map[Kind]int{}
	for {
		first := r.rows
		rec, err := r.next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		cols := make([]arrow.Array, j.schema.NumFields())
		if cols[0], err = j.ids(r, rec, first); err != nil {
			return err
		}
		for k := 1; k < len(cols); k++ {
			f := j.schema.Field(k)
			at := -1
			if k-1 < len(j.from[n]) {
				at = j.from[n][k-1]
			}
			if at < 0 {
				cols[k] = array.MakeArrayOfNull(memory.DefaultAllocator, f.Type, int(rec.NumRows()))
				continue
			}
			cols[k] = rec.Column(at)
			for _, c := range r.columns {
				switch {
				case c.at != at:
				case c.IsTool():
					if cols[k], err = j.tools(ctx, w, r, c, rec, first, &lost, unknown); err != nil {
						return err
					}
				default:
					cols[k] = relabel(cols[k], f.Type)
				}
			}
		}
		if err := w.write(ctx, array.NewRecordBatch(j.schema, cols, rec.NumRows())); err != nil {
			return err
		}
	}
	if lost.count > 0 {
		why := "a stream has no file store: name a file or a .tooltable"
		if lost.first != nil {
			why = lost.first.Error()
		}
		j.o.Warn(fmt.Sprintf("%s: packed workflows that are not copied, so that calls of their tools will fail: %d; %s", r.name, lost.count, why))
	}
	for k, count := range unknown {
		j.o.Warn(fmt.Sprintf("%s: tools of kind %d, which this tenon does not know: %d; they are kept as they are", r.name, k, count))
	}
	return nil
}

// ids makes the row ids of a batch.
func (j *joined) ids(r *Reader, rec arrow.RecordBatch, first int64) (arrow.Array, error) {
	b := array.NewStringBuilder(memory.DefaultAllocator)
	for i := range int(rec.NumRows()) {
		id := r.id(rec, i, first)
		if j.seen != nil {
			tellable, ok := j.seen.unique(id)
			if !ok {
				return nil, invalid("%s: row %d: %d rows are called '%.100s' already; give rows ids of their own", r.name, first+int64(i), maxDups, tenon.Visible(id))
			}
			id = tellable
		}
		b.Append(id)
	}
	return b.NewArray(), nil
}

// tools copies the cells of a tool column. Those of the layout that is written stay
// byte for byte.
func (j *joined) tools(ctx context.Context, w *writer, r *Reader, c Column, rec arrow.RecordBatch, first int64, lost *losses, unknown map[Kind]int) (arrow.Array, error) {
	layout := j.o.layout(c)
	same := !j.o.encode && c.Layout == layout && arrow.TypeEqual(rec.Column(c.at).DataType(), layout.storage())
	b := array.NewStructBuilder(memory.DefaultAllocator, layout.storage())
	for i := range int(rec.NumRows()) {
		row := ToolRow{Index: first + int64(i), ID: r.id(rec, i, first)}
		t, err := r.tool(c, rec, i, row)
		if err != nil {
			return nil, err
		}
		if t != nil && t.Keys != "" {
			switch {
			case !w.keeps():
				lost.count++
			default:
				err := w.keep.add(ctx, r.store, t.Keys)
				if code := tenon.ErrorCode(err); code == tenon.CodeNotFound || code == tenon.CodeInvalid {
					lost.count++ // an error at the call, not here
					lost.first = cmp.Or(lost.first, err)
				} else if err != nil {
					return nil, err
				}
			}
		}
		if t != nil && !t.Kind.IsKnown() {
			unknown[t.Kind]++
		}
		if same {
			continue
		}
		if err := contain(func() error { return appendTool(b, layout, t) }); err != nil {
			return nil, invalid("%s: %s, column '%s': %w", r.name, row.Place(), c.Name, err)
		}
	}
	if same {
		return rec.Column(c.at), nil
	}
	return b.NewArray(), nil
}
