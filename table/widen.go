package table

import (
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
)

// Two writers rarely say the same of what may be missing inside of lists and structs, and
// nothing of how values are stored depends on it. So columns that differ in that alone are
// joined, as those are that differ in it themselves.

// widen returns the type of a column that has values of two: what may be missing in one of
// them may be missing in it. It fails where they are stored in other ways.
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

// relabel gives a column a type that [widen] made of its own.
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

// extension says which extension type a column has: the class of a logical type of KNIME's,
// of others the name with what the file says of it; "" for none.
func extension(f arrow.Field) string {
	if class := classOf(f); class != "" {
		return class
	}
	name, _ := f.Metadata.GetValue(ipc.ExtensionTypeKeyName)
	meta, _ := f.Metadata.GetValue(ipc.ExtensionMetadataKeyName)
	return strings.TrimSpace(name + " " + meta)
}

// namesApart names the types of two columns so that they are seen to differ.
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
