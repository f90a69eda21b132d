package table

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Dictionary encoding only saves space. Each batch of a stream may have its own dictionaries, and
// one file cannot hold the dictionaries of several tables. So reading replaces every dictionary by
// its values.

// plainSchema returns a schema without dictionaries.
func plainSchema(s *arrow.Schema) (*arrow.Schema, error) {
	fields := s.Fields()
	for i, f := range fields {
		t, err := plainType(f.Type)
		if err != nil {
			return nil, fmt.Errorf("column '%s': %w", f.Name, err)
		}
		fields[i].Type = t
	}
	md := s.Metadata()
	return arrow.NewSchema(fields, &md), nil
}

func plainType(t arrow.DataType) (arrow.DataType, error) {
	switch t := t.(type) {
	case *arrow.DictionaryType:
		return plainType(t.ValueType)
	case arrow.NestedType:
		fields, same := t.Fields(), true
		for i := range fields {
			p, err := plainType(fields[i].Type)
			if err != nil {
				return nil, err
			}
			same = same && p == fields[i].Type
			fields[i].Type = p
		}
		if same {
			return t, nil
		}
		if made := withFields(t, fields); made != nil {
			return made, nil
		}
		return nil, fmt.Errorf("a dictionary inside of %s is not supported", t.Name())
	}
	return t, nil
}

// withFields returns a copy of a nested type with other fields, or nil for a union.
func withFields(t arrow.NestedType, fields []arrow.Field) arrow.DataType {
	switch t := t.(type) {
	case *arrow.StructType:
		return arrow.StructOf(fields...)
	case *arrow.ListType:
		return arrow.ListOfField(fields[0])
	case *arrow.LargeListType:
		return arrow.LargeListOfField(fields[0])
	case *arrow.ListViewType:
		return arrow.ListViewOfField(fields[0])
	case *arrow.LargeListViewType:
		return arrow.LargeListViewOfField(fields[0])
	case *arrow.FixedSizeListType:
		return arrow.FixedSizeListOfField(t.Len(), fields[0])
	case *arrow.MapType:
		pair := fields[0].Type.(*arrow.StructType)
		m := arrow.MapOf(pair.Field(0).Type, pair.Field(1).Type)
		m.SetItemNullable(pair.Field(1).Nullable)
		m.KeysSorted = t.KeysSorted
		return m
	case *arrow.RunEndEncodedType:
		r := arrow.RunEndEncodedOf(fields[0].Type, fields[1].Type)
		r.ValueNullable = t.ValueNullable
		return r
	}
	return nil
}

// plainBatch converts a batch to the schema that [plainSchema] returned for it.
func plainBatch(s *arrow.Schema, rec arrow.RecordBatch) (arrow.RecordBatch, error) {
	cols := make([]arrow.Array, rec.NumCols())
	var p plainer
	for i := range cols {
		var err error
		if cols[i], err = p.plain(rec.Column(i), s.Field(i).Type); err != nil {
			return nil, err
		}
	}
	return array.NewRecordBatch(s, cols, rec.NumRows()), nil
}

// plainer decodes the dictionaries of one batch and counts the memory for it. A few bytes of
// dictionaries and indices may represent any number of values.
type plainer struct {
	bytes int       // decoded texts
	mem   allowance // for values of other types
}

// plain decodes the dictionaries of a column. t is the plain type of the column.
func (p *plainer) plain(a arrow.Array, t arrow.DataType) (arrow.Array, error) {
	if arrow.TypeEqual(a.DataType(), t) {
		return a, nil
	}
	if d, ok := a.(*array.Dictionary); ok {
		return p.undict(d, t)
	}
	n, ok := t.(arrow.NestedType)
	d := a.Data()
	if !ok || len(n.Fields()) != len(d.Children()) {
		return nil, fmt.Errorf("a column of %s cannot be read as %s", a.DataType(), t)
	}
	kids := make([]arrow.ArrayData, len(d.Children()))
	for i, k := range d.Children() {
		kid, err := p.plain(array.MakeFromData(k), n.Fields()[i].Type)
		if err != nil {
			return nil, err
		}
		kids[i] = kid.Data()
	}
	return array.MakeFromData(array.NewData(t, d.Len(), d.Buffers(), kids, d.NullN(), d.Offset())), nil
}

// bitmap copies the validity bitmap of a column. The column may be a slice.
func bitmap(a arrow.Array) *memory.Buffer {
	b := make([]byte, (a.Len()+7)/8)
	for i := range a.Len() {
		if a.IsValid(i) {
			b[i/8] |= 1 << (i % 8)
		}
	}
	return memory.NewBufferBytes(b)
}

// undict replaces the indices of a dictionary column by their values.
func (p *plainer) undict(a *array.Dictionary, t arrow.DataType) (arrow.Array, error) {
	values, err := p.plain(a.Dictionary(), t)
	if err != nil {
		return nil, err
	}
	if isText(t) {
		b := array.NewBuilder(memory.DefaultAllocator, t)
		add := func(s string) {
			switch b := b.(type) {
			case *array.StringBuilder:
				b.Append(s)
			case *array.LargeStringBuilder:
				b.Append(s)
			case *array.StringViewBuilder:
				b.Append(s)
			}
		}
		for i := range a.Len() {
			if a.IsNull(i) {
				b.AppendNull()
				continue
			}
			s, null := text(values, a.GetValueIndex(i))
			if null {
				b.AppendNull()
				continue
			}
			if p.bytes += len(s); p.bytes > maxMemory {
				return nil, fmt.Errorf("its dictionaries expand to more than %d bytes", maxMemory)
			}
			add(s)
		}
		return b.NewArray(), nil
	}
	if a.Len() == 0 {
		return array.MakeArrayOfNull(memory.DefaultAllocator, t, 0), nil
	}
	if a.Len() > maxTaken {
		return nil, fmt.Errorf("a dictionary of %s in a batch of more than %d rows is not supported", t, maxTaken)
	}
	none := array.MakeArrayOfNull(memory.DefaultAllocator, t, 1)
	parts := make([]arrow.Array, a.Len())
	for i := range parts {
		parts[i] = none
		if a.IsValid(i) {
			k := int64(a.GetValueIndex(i))
			parts[i] = array.NewSlice(values, k, k+1)
		}
	}
	return array.Concatenate(parts, &p.mem)
}

// maxTaken bounds the rows of a dictionary column of values other than texts. Each row costs an
// object.
const maxTaken = 1 << 20

// withNulls changes a batch so that the validation of the Arrow library accepts it. The reader gives columns of type
// null no slice of buffers, although the validation expects one. A missing struct may contain an index into an empty
// dictionary, because pyarrow writes 0 there. Such a dictionary gets one null value.
func withNulls(rec arrow.RecordBatch) arrow.RecordBatch {
	cols, some := make([]arrow.Array, rec.NumCols()), false
	for i := range cols {
		cols[i] = rec.Column(i)
		if needsNull(cols[i].DataType()) {
			cols[i], some = array.MakeFromData(nullData(cols[i].Data())), true
		}
	}
	if !some {
		return rec
	}
	return array.NewRecordBatch(rec.Schema(), cols, rec.NumRows())
}

func needsNull(t arrow.DataType) bool {
	if n, ok := t.(arrow.NestedType); ok {
		for _, f := range n.Fields() {
			if needsNull(f.Type) {
				return true
			}
		}
	}
	return t.ID() == arrow.NULL || t.ID() == arrow.DICTIONARY
}

func nullData(d arrow.ArrayData) arrow.ArrayData {
	switch t := d.DataType().(type) {
	case *arrow.NullType:
		return array.NewData(d.DataType(), d.Len(), []*memory.Buffer{nil}, nil, d.Len(), 0)
	case *arrow.DictionaryType:
		if dict := d.Dictionary(); dict == nil || dict.Len() > 0 || d.Len() == 0 {
			return d
		}
		none := array.MakeArrayOfNull(memory.DefaultAllocator, t.ValueType, 1).Data()
		return array.NewDataWithDictionary(t, d.Len(), d.Buffers(), d.NullN(), d.Offset(), none.(*array.Data))
	}
	if !needsNull(d.DataType()) {
		return d
	}
	kids := make([]arrow.ArrayData, len(d.Children()))
	for i, k := range d.Children() {
		kids[i] = nullData(k)
	}
	return array.NewData(d.DataType(), d.Len(), d.Buffers(), kids, d.NullN(), d.Offset())
}
