package table

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tenonhq/tenon"
)

// Pick writes the rows of a table that a function selects, in their order and with their row ids, and returns their
// number. Columns keep their types; a tool column stays in its layout, unless o names one. The result gets the files
// of the selected tools. Memory does not grow with the number of rows. most ends the selection after that many rows;
// 0 means all. Errors: the errors of keep, and the errors of [Concat].
func Pick(ctx context.Context, path string, r *Reader, keep func(Cells) (bool, error), most int64,
	o WriteOptions) (int64, error) {
	o.own = o.Layout == ""
	o, err := o.withDefaults()
	if err != nil {
		return 0, err
	}
	if err := notInput(path, r); err != nil {
		return 0, err
	}
	j, err := join([]*Reader{r}, o)
	if err != nil {
		return 0, err
	}
	j.pick, j.most = keep, most
	w, err := create(ctx, path, j.schema, j.meta, o)
	if err != nil {
		return 0, err
	}
	defer w.abort()
	if err := j.copy(ctx, w, r, 0); err != nil {
		return 0, err
	}
	if err := w.commit(); err != nil {
		return 0, err
	}
	return w.rows, nil
}

// picked returns the selected rows of a batch, and a function from their positions to their indexes in the table.
func (j *joined) picked(r *Reader, rec arrow.RecordBatch, first int64) (arrow.RecordBatch, func(int) int64, error) {
	var at []int
	for i := range int(rec.NumRows()) {
		if j.most > 0 && j.have >= j.most {
			break
		}
		keep, err := j.pick(Cells{Index: first + int64(i), ID: r.id(rec, i, first), r: r, rec: rec, at: i})
		if err != nil {
			return nil, nil, err
		}
		if keep {
			at = append(at, i)
			j.have++
		}
	}
	j.full = j.most > 0 && j.have >= j.most
	index := func(i int) int64 { return first + int64(at[i]) }
	if len(at) == int(rec.NumRows()) {
		return rec, index, nil
	}
	if len(at) == 0 {
		return rec.NewSlice(0, 0), index, nil
	}
	cols := make([]arrow.Array, rec.NumCols())
	err := contain(func() (err error) {
		for c := range cols {
			var parts []arrow.Array
			for from := 0; from < len(at); {
				to := from + 1
				for to < len(at) && at[to] == at[to-1]+1 {
					to++
				}
				parts = append(parts, array.NewSlice(rec.Column(c), int64(at[from]), int64(at[to-1])+1))
				from = to
			}
			// A copy, because a slice would keep the whole batch in memory. The Arrow library cannot copy unions.
			cols[c] = parts[0]
			if copied, err := array.Concatenate(parts, memory.DefaultAllocator); err == nil {
				cols[c] = copied
			} else if len(parts) > 1 {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, nil, tenon.Errorf(tenon.CodeInvalid, "%s: rows %d to %d: %w", r.name, first,
			first+rec.NumRows()-1, err)
	}
	return array.NewRecordBatch(r.schema, cols, int64(len(at))), index, nil
}
