package table

import (
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
)

// Writers often disagree on which fields inside of lists and structs are nullable. The storage of
// values does not depend on it. So columns whose types differ only in nullability are joined.

// widen returns a type for the values of two columns: a field is nullable if it is nullable in one
// of them. It returns false if the types differ in more than nullability.
func widen(a, b arrow.DataType) (arrow.DataType, bool) {
	if arrow.TypeEqual(a, b) {
		return a, true
	}
	of, ok := a.(arrow.NestedType)
	with, also := b.(arrow.NestedType)
	if !ok || !also || a.ID() != b.ID() || of.NumFields() != with.NumFields() {
		return nil, false
	}
	fields := of.Fields()
	for i, f := range with.Fields() {
		t, ok := widen(fields[i].Type, f.Type)
		if !ok || a.ID() == arrow.STRUCT && fields[i].Name != f.Name {
			return nil, false
		}
		fields[i].Type, fields[i].Nullable = t, fields[i].Nullable || f.Nullable
	}
	if l, ok := a.(*arrow.FixedSizeListType); ok && l.Len() != b.(*arrow.FixedSizeListType).Len() {
		return nil, false
	}
	made := withFields(of, fields)
	if m, ok := made.(*arrow.MapType); ok {
		m.KeysSorted = m.KeysSorted && b.(*arrow.MapType).KeysSorted
	}
	return made, made != nil
}

// relabel changes the type of a column to the type that [widen] returned for it.
func relabel(a arrow.Array, t arrow.DataType) arrow.Array {
	if arrow.TypeEqual(a.DataType(), t) {
		return a
	}
	return array.MakeFromData(relabelData(a.Data(), t))
}

func relabelData(d arrow.ArrayData, t arrow.DataType) arrow.ArrayData {
	n, ok := t.(arrow.NestedType)
	if !ok {
		return d
	}
	kids := make([]arrow.ArrayData, len(d.Children()))
	for i, k := range d.Children() {
		kids[i] = relabelData(k, n.Fields()[i].Type)
	}
	return array.NewData(t, d.Len(), d.Buffers(), kids, d.NullN(), d.Offset())
}

// extension identifies the extension type of a column: the class of a KNIME logical type, otherwise
// the name and metadata of the extension. It returns "" for a column without one.
func extension(f arrow.Field) string {
	if class := classOf(f); class != "" {
		return class
	}
	name, _ := f.Metadata.GetValue(ipc.ExtensionTypeKeyName)
	meta, _ := f.Metadata.GetValue(ipc.ExtensionMetadataKeyName)
	return strings.TrimSpace(name + " " + meta)
}

// namesApart formats the types of two columns so that the texts differ.
func namesApart(a, b arrow.Field) (string, string) {
	name := func(f arrow.Field, typ string) string {
		if e := extension(f); e != "" {
			return typ + " (" + e + ")"
		}
		return typ
	}
	x, y := name(a, typeName(a.Type)), name(b, typeName(b.Type))
	if x == y {
		x, y = name(a, a.Type.String()), name(b, b.Type.String())
	}
	return x, y
}
