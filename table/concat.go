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

// Concat writes the rows of several tables as one table, in order, and returns their number. Columns with the same name
// become one column. If a table has exactly one tool column, its tools are written to the only tool column of the
// result, even if the names differ. All tool columns are written in the layout of o. If a table does not have a column,
// the cells of its rows in this column are missing. Equal row ids get the suffix _dup. The result gets the files of the
// file stores.
//
// Memory does not grow with the number of rows, except for detecting equal row ids of several
// tables: one bit for an id such as Row0, a hash for any other. Errors: invalid (types differ, a
// tool cannot be expressed), store, cancelled.
func Concat(ctx context.Context, path string, in []*Reader, o WriteOptions) (int64, error) {
	o, err := o.withDefaults()
	if err != nil {
		return 0, err
	}
	if err := notInput(path, in...); err != nil {
		return 0, err
	}
	j, err := join(in, o)
	if err != nil {
		return 0, err
	}
	w, err := create(ctx, path, j.schema, j.meta, o)
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

// notInput refuses to write a table over one of its inputs, even if the path is a link to the input. The rename would
// replace the user's only copy, and the file store of the input would be replaced while it is read.
func notInput(path string, in ...*Reader) error {
	if path == "-" {
		return nil
	}
	out, err := os.Stat(path)
	if err != nil || !out.Mode().IsRegular() {
		return nil // nothing is replaced
	}
	for _, r := range in {
		if r.store == nil { // stdin, whose name is no path
			if r.stdin != nil && os.SameFile(r.stdin, out) {
				return invalid("%s is the table on stdin, which is never changed in place; write to another file", path)
			}
			continue
		}
		if a, err := os.Stat(r.name); err == nil && os.SameFile(a, out) {
			return invalid("%s is never changed in place; write to another file", r.name)
		}
	}
	return nil
}

// joined is a plan for a concatenation.
type joined struct {
	o      WriteOptions
	schema *arrow.Schema
	meta   map[string]string
	from   [][]int // table → column of the result → column of the table, or -1
	seen   *rowIDs // nil if there is only one table

	pick func(Cells) (keep bool, err error) // selects rows; if nil, all rows
	most int64                              // maximum number of rows; if 0, unlimited
	have int64                              // rows selected
	full bool                               // no more rows are needed
}

// join plans the columns of the result and their sources.
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
				sameName := t.field.Name == c.Name
				if from[k] == -1 && t.tool == c.IsTool() && (sameName || c.IsTool() && own == 1 && tools == 1) {
					at = k
					break
				}
				if sameName && t.tool != c.IsTool() {
					return nil, invalid("column '%s' holds tools in one of %s and %s and none in the other",
						c.Name, t.whose, r.name)
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
			if !c.IsTool() {
				have := &list[at].field
				t, ok := widen(have.Type, f.Type)
				if !ok || extension(*have) != extension(f) {
					x, y := namesApart(*have, f)
					return nil, invalid("column '%s' is %s in %s and %s in %s; tenon tables query can convert one of "+
						"them with CAST, or rename it", c.Name, x, list[at].whose, y, r.name)
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

// layout returns the layout in which a tool column is written.
func (o WriteOptions) layout(c Column) Layout {
	if o.encode || o.own {
		return c.own()
	}
	return o.Layout
}

// losses counts the packed workflows that could not be copied with their tools.
type losses struct {
	count int
	first error // the reason for the first one; may be nil
}

// warn reports the workflows that are not copied.
func (l losses) warn(name string, warn func(string)) {
	if l.count == 0 {
		return
	}
	why := "a stream has no file store: name a file or a .tooltable"
	if l.first != nil {
		why = l.first.Error()
	}
	warn(fmt.Sprintf("%s: packed workflows not copied: %d; calls of their tools will fail: %s", name, l.count, why))
}

// copy writes the rows of one table.
func (j *joined) copy(ctx context.Context, w *writer, r *Reader, n int) error {
	lost, bad, unknown := losses{}, badCells{}, map[Kind]int{}
	for {
		first := r.rows
		rec, err := r.next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		picked := func(i int) int64 { return first + int64(i) }
		if j.pick != nil {
			if rec, picked, err = j.picked(r, rec, first); err != nil {
				return err
			}
		}
		cols := make([]arrow.Array, j.schema.NumFields())
		if cols[0], err = j.ids(r, rec, picked); err != nil {
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
					if cols[k], err = j.tools(ctx, w, r, c, rec, picked, &lost, &bad, unknown); err != nil {
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
		if j.full {
			break
		}
	}
	lost.warn(r.name, j.o.Warn)
	bad.warn(r.name, j.o.Warn)
	for k, count := range unknown {
		j.o.Warn(fmt.Sprintf("%s: tools of kind %d, which is unknown: %d; they are copied unchanged", r.name, k, count))
	}
	return nil
}

// ids returns the row ids of a batch. With several tables, the ids are made unique.
func (j *joined) ids(r *Reader, rec arrow.RecordBatch, index func(i int) int64) (arrow.Array, error) {
	b := array.NewStringBuilder(memory.DefaultAllocator)
	for i := range int(rec.NumRows()) {
		id := r.id(rec, i, index(i)-int64(i))
		if j.seen != nil {
			unique, ok := j.seen.unique(id)
			if !ok {
				return nil, invalid("%s: row %d: %d rows have the id '%.100s' already; give the rows unique ids",
					r.name, index(i), maxDups, tenon.Visible(id))
			}
			id = unique
		}
		b.Append(id)
	}
	return b.NewArray(), nil
}

// badCells counts the cells of tool columns that cannot be decoded.
type badCells struct {
	kept, missing int
	first         error
}

func (b *badCells) add(err error, kept bool) {
	if kept {
		b.kept++
	} else {
		b.missing++
	}
	b.first = cmp.Or(b.first, err)
}

// warn reports the cells. The error of the first cell names its row.
func (b badCells) warn(name string, warn func(string)) {
	if b.kept > 0 {
		warn(fmt.Sprintf("%s: cells that cannot be read: %d; they are copied unchanged: %s", name, b.kept, b.first))
	}
	if b.missing > 0 {
		warn(fmt.Sprintf("%s: cells that cannot be read: %d; they are missing in the result: %s", name, b.missing,
			b.first))
	}
}

// tools converts the cells of a tool column. Cells that already have the layout of the result are copied byte for
// byte, even if they cannot be decoded. A cell of another layout that cannot be decoded is missing in the result.
func (j *joined) tools(ctx context.Context, w *writer, r *Reader, c Column, rec arrow.RecordBatch,
	index func(i int) int64, lost *losses, bad *badCells, unknown map[Kind]int) (arrow.Array, error) {
	layout := j.o.layout(c)
	same := !j.o.encode && c.Layout == layout && arrow.TypeEqual(rec.Column(c.at).DataType(), layout.storage())
	b := array.NewStructBuilder(memory.DefaultAllocator, layout.storage())
	for i := range int(rec.NumRows()) {
		row := ToolRow{Index: index(i), ID: r.id(rec, i, index(i)-int64(i))}
		t, err := r.tool(c, rec, i, row)
		if err != nil {
			bad.add(err, same) // t is nil: if the cell must be converted, it is missing in the result
		}
		if t != nil && t.Keys != "" {
			switch {
			case !w.keeps():
				lost.count++
			default:
				err := w.keep.add(ctx, r.store, t.Keys)
				if code := tenon.ErrorCode(err); code == tenon.CodeNotFound || code == tenon.CodeInvalid {
					lost.count++ // calling the tool will report the error
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
