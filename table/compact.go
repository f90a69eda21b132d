package table

import (
	"encoding/binary"
	"errors"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// A view column refers to values anywhere in its buffers. A slice of such a column keeps all
// buffers, and the Arrow library writes all of them: a large batch that is split into many batches
// would be written many times. The library cannot write a slice of list views at all. So such
// columns are copied before they are written, to buffers that contain only their own values.

// hasView reports whether a type is or contains a view type.
func hasView(t arrow.DataType) bool {
	switch t.ID() {
	case arrow.STRING_VIEW, arrow.BINARY_VIEW, arrow.LIST_VIEW, arrow.LARGE_LIST_VIEW:
		return true
	}
	if n, ok := t.(arrow.NestedType); ok {
		for _, f := range n.Fields() {
			if hasView(f.Type) {
				return true
			}
		}
	}
	return false
}

// compactor copies the view columns of one batch and counts their values. It counts them because a few bytes of views
// can refer to the same values any number of times.
type compactor struct {
	bytes int64     // texts, binary data and list elements
	mem   allowance // for the copies of list elements
}

// errShown is returned for view columns with more values than a batch may have.
var errShown = errors.New("its views show too much")

func (c *compactor) take(n int64) error {
	if c.bytes += n; c.bytes > maxBody {
		return errShown
	}
	return nil
}

// compact copies a column so that its buffers contain only its own values. It handles texts, binary data, lists and
// structs. It returns other columns, and columns without views, unchanged.
func (c *compactor) compact(a arrow.Array) (arrow.Array, error) {
	if !hasView(a.DataType()) {
		return a, nil
	}
	switch a := a.(type) {
	case *array.StringView:
		if err := c.take(shownBytes(a)); err != nil {
			return nil, err
		}
		return copied(a, array.NewStringViewBuilder(memory.DefaultAllocator)), nil
	case *array.BinaryView:
		if err := c.take(shownBytes(a)); err != nil {
			return nil, err
		}
		return copied(a, array.NewBinaryViewBuilder(memory.DefaultAllocator)), nil
	case *array.Struct:
		kids := make([]arrow.ArrayData, a.NumField())
		for i := range kids {
			k, err := c.compact(a.Field(i)) // sliced like the struct
			if err != nil {
				return nil, err
			}
			kids[i] = k.Data()
		}
		d := array.NewData(a.DataType(), a.Len(), []*memory.Buffer{validity(a)}, kids, a.NullN(), 0)
		return array.MakeFromData(d), nil
	case *array.ListView, *array.LargeListView, *array.List, *array.LargeList, *array.FixedSizeList, *array.Map:
		return c.list(a.(array.ListLike))
	}
	return a, nil
}

// copied appends the values of a column to a builder and returns the result.
func copied[T arrow.ValueType](a arrow.TypedArray[T], b interface {
	array.Builder
	Append(T)
}) arrow.Array {
	for i := range a.Len() {
		if a.IsNull(i) {
			b.AppendNull()
		} else {
			b.Append(a.Value(i))
		}
	}
	return b.NewArray()
}

// shownBytes returns the size of the values of a view column.
func shownBytes(a array.ViewLike) (n int64) {
	for i := range a.Len() {
		if a.IsValid(i) {
			n += int64(a.ValueHeader(i).Len())
		}
	}
	return n
}

// list copies the elements of lists into one contiguous array.
func (c *compactor) list(a array.ListLike) (arrow.Array, error) {
	fixed := a.DataType().ID() == arrow.FIXED_SIZE_LIST // its missing lists have elements, too
	var parts []arrow.Array
	offsets, sizes := make([]int64, 0, a.Len()+1), make([]int64, 0, a.Len())
	at := int64(0)
	for i := range a.Len() {
		from, to := int64(0), int64(0)
		if fixed || a.IsValid(i) {
			from, to = a.ValueOffsets(i)
		}
		if to > from {
			if err := c.take(to - from); err != nil { // elements have at least one byte, except booleans
				return nil, err
			}
			parts = append(parts, array.NewSlice(a.ListValues(), from, to))
		}
		offsets, sizes = append(offsets, at), append(sizes, to-from)
		at += to - from
	}
	values := array.NewSlice(a.ListValues(), 0, 0)
	if len(parts) > 0 {
		var err error
		if values, err = array.Concatenate(parts, &c.mem); err != nil {
			return nil, err
		}
	}
	values, err := c.compact(values)
	if err != nil {
		return nil, err
	}
	buffers := []*memory.Buffer{validity(a)}
	switch a.DataType().ID() {
	case arrow.LIST_VIEW:
		buffers = append(buffers, integers(offsets, 4), integers(sizes, 4))
	case arrow.LARGE_LIST_VIEW:
		buffers = append(buffers, integers(offsets, 8), integers(sizes, 8))
	case arrow.LIST, arrow.MAP:
		buffers = append(buffers, integers(append(offsets, at), 4))
	case arrow.LARGE_LIST:
		buffers = append(buffers, integers(append(offsets, at), 8))
	}
	d := array.NewData(a.DataType(), a.Len(), buffers, []arrow.ArrayData{values.Data()}, a.NullN(), 0)
	return array.MakeFromData(d), nil
}

// validity returns the validity bitmap of a column, or nil if no value is null.
func validity(a arrow.Array) *memory.Buffer {
	if a.NullN() == 0 {
		return nil
	}
	return bitmap(a)
}

// integers returns a buffer of integers; width is 4 or 8 bytes.
func integers(list []int64, width int) *memory.Buffer {
	b := make([]byte, 0, len(list)*width)
	for _, n := range list {
		if width == 4 {
			b = binary.NativeEndian.AppendUint32(b, uint32(int32(n)))
		} else {
			b = binary.NativeEndian.AppendUint64(b, uint64(n))
		}
	}
	return memory.NewBufferBytes(b)
}
