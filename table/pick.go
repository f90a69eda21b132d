package table

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tenonhq/tenon"
)

// Selection says which rows [Pick] writes.
type Selection struct {
	Keep func(Cells) (bool, error)
	Most int64 // ends the selection after that many rows; 0 means all
	// Read, if set, is called with the number of rows after the whole table was read. If it returns an error, nothing
	// is written to a file.
	Read func(rows int64) error
}

// Pick writes the selected rows of a table, in their order and with their row ids, and returns their number. Columns
// keep their types; a tool column stays in its layout, unless o names one. The result gets the files of the selected
// tools. Memory does not grow with the number of rows. Errors: the errors of the functions of s, and the errors of
// [Concat].
func Pick(ctx context.Context, path string, r *Reader, s Selection, o WriteOptions) (int64, error) {
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
	j.pick, j.most = s.Keep, s.Most
	w, err := create(ctx, path, j.schema, j.meta, o)
	if err != nil {
		return 0, err
	}
	defer w.abort()
	if err := j.copy(ctx, w, r, 0); err != nil {
		return 0, err
	}
	if s.Read != nil && !j.full {
		if err := s.Read(r.rows); err != nil {
			return 0, err
		}
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
	runs := runsOf(at)
	err := contain(func() (err error) {
		for c := range cols {
			if len(at) < shortRun*len(runs) {
				var ok bool
				if cols[c], ok = take(rec.Column(c), at); ok {
					continue
				}
			}
			if cols[c], err = sliced(rec.Column(c), runs); err != nil {
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

// shortRun is the mean length of runs of rows from which slices are copied faster than single values.
const shortRun = 16

// runsOf returns the beginnings and ends of runs of consecutive numbers.
func runsOf(at []int) (runs [][2]int) {
	for from := 0; from < len(at); {
		to := from + 1
		for to < len(at) && at[to] == at[to-1]+1 {
			to++
		}
		runs = append(runs, [2]int{at[from], at[to-1] + 1})
		from = to
	}
	return runs
}

// sliced copies runs of the elements of an array. A slice would keep the whole array in memory. The Arrow library
// cannot copy unions, so that one run of them is a slice.
func sliced(a arrow.Array, runs [][2]int) (arrow.Array, error) {
	parts := make([]arrow.Array, len(runs))
	for i, r := range runs {
		parts[i] = array.NewSlice(a, int64(r[0]), int64(r[1]))
	}
	copied, err := array.Concatenate(parts, memory.DefaultAllocator)
	switch {
	case err == nil:
		return copied, nil
	case len(parts) == 1:
		return parts[0], nil
	}
	return nil, err
}
