package table

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// takeFrom is an array whose elements have a Go type.
type takeFrom[T any] interface {
	IsNull(i int) bool
	Value(i int) T
}

// takeTo builds an array of the same type.
type takeTo[T any] interface {
	array.Builder
	Append(v T)
}

// take copies the elements of an array at some indexes, one by one. That is faster than copying slices if they are
// short. It reports false for types that it does not know, such as lists.
func take(a arrow.Array, at []int) (arrow.Array, bool) {
	switch a.(type) {
	case *array.Boolean, *array.Int8, *array.Int16, *array.Int32, *array.Int64, *array.Uint8, *array.Uint16,
		*array.Uint32, *array.Uint64, *array.Float32, *array.Float64, *array.String, *array.LargeString, *array.Binary,
		*array.LargeBinary, *array.Timestamp, *array.Date32:
	default:
		return nil, false
	}
	switch b := array.NewBuilder(memory.DefaultAllocator, a.DataType()).(type) {
	case *array.BooleanBuilder:
		return gathered(b, a.(*array.Boolean), at), true
	case *array.Int8Builder:
		return gathered(b, a.(*array.Int8), at), true
	case *array.Int16Builder:
		return gathered(b, a.(*array.Int16), at), true
	case *array.Int32Builder:
		return gathered(b, a.(*array.Int32), at), true
	case *array.Int64Builder:
		return gathered(b, a.(*array.Int64), at), true
	case *array.Uint8Builder:
		return gathered(b, a.(*array.Uint8), at), true
	case *array.Uint16Builder:
		return gathered(b, a.(*array.Uint16), at), true
	case *array.Uint32Builder:
		return gathered(b, a.(*array.Uint32), at), true
	case *array.Uint64Builder:
		return gathered(b, a.(*array.Uint64), at), true
	case *array.Float32Builder:
		return gathered(b, a.(*array.Float32), at), true
	case *array.Float64Builder:
		return gathered(b, a.(*array.Float64), at), true
	case *array.StringBuilder:
		return gathered(b, a.(*array.String), at), true
	case *array.LargeStringBuilder:
		return gathered(b, a.(*array.LargeString), at), true
	case *array.BinaryBuilder:
		return takenBytes(b, a, at)
	case *array.TimestampBuilder:
		return gathered(b, a.(*array.Timestamp), at), true
	case *array.Date32Builder:
		return gathered(b, a.(*array.Date32), at), true
	}
	return nil, false
}

// takenBytes is gathered for binary data, whose two types have one builder.
func takenBytes(b *array.BinaryBuilder, a arrow.Array, at []int) (arrow.Array, bool) {
	switch a := a.(type) {
	case *array.Binary:
		return gathered(b, a, at), true
	case *array.LargeBinary:
		return gathered(b, a, at), true
	}
	return nil, false
}

func gathered[T any](b takeTo[T], a takeFrom[T], at []int) arrow.Array {
	b.Reserve(len(at))
	for _, i := range at {
		if a.IsNull(i) {
			b.AppendNull()
		} else {
			b.Append(a.Value(i))
		}
	}
	return b.NewArray()
}
