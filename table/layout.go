package table

import (
	"slices"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
)

// Layout is the form in which a tool column is stored.
//
// seed9 is one struct of nine fields that contains the file store keys. The other layouts are
// KNIME's: an outer struct with the keys and an inner struct. java9 can only be read. legacy6 holds
// only workflow tools; released versions of KNIME write it.
type Layout string

// The layouts.
const (
	Seed9   Layout = "seed9"
	Java9   Layout = "java9"
	Java10  Layout = "java10"
	Legacy6 Layout = "legacy6"
)

// layouts are the layouts that can be written.
var layouts = []Layout{Seed9, Java10, Legacy6}

// CheckLayout returns an error for a layout that cannot be written.
func CheckLayout(l Layout) error {
	if slices.Contains(layouts, l) {
		return nil
	}
	if l == Java9 {
		return invalid("layout java9 can be read and not written: it cannot store a credential, " +
			"and no release reads it; write java10")
	}
	return invalid("unknown layout '%s'; layouts that can be written: seed9, java10, legacy6", l)
}

// fields returns a struct type with fields named "0", "1" and so on.
func fields(types ...arrow.DataType) *arrow.StructType {
	list := make([]arrow.Field, len(types))
	for i, t := range types {
		list[i] = arrow.Field{Name: strconv.Itoa(i), Type: t, Nullable: true}
	}
	return arrow.StructOf(list...)
}

// list returns a list type whose element field has KNIME's name.
func list(t arrow.DataType) arrow.DataType {
	return arrow.ListOfField(arrow.Field{Name: "$data$", Type: t, Nullable: true})
}

// storage returns the struct type of a layout.
func (l Layout) storage() *arrow.StructType {
	text, i8, i32 := arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int32
	ports := list(fields(text, text, text, text))
	switch l {
	case Java9:
		return fields(text, fields(i8, text, text, text, ports, ports, i32, text, text))
	case Java10:
		return fields(text, fields(i32, text, text, text, ports, ports, i32, text, text, text))
	case Legacy6:
		return fields(text, fields(text, text, text, ports, ports, i32))
	}
	return fields(i8, text, text, text, text, text, i32, text, text)
}

// class returns the logical type of a column in the layout.
func (l Layout) class() string {
	if l == Legacy6 {
		return ClassWorkflowTool
	}
	return ClassTool
}

// The fields of a tool, in the order of layout seed9.
const (
	fieldKind = iota
	fieldName
	fieldDescription
	fieldParameters
	fieldInputs
	fieldOutputs
	fieldMessage
	fieldKeys
	fieldServer
	fieldCredential
	fieldCount
)

// place is the position of a field in a layout. known is false if the layout does not have the
// field; inner selects the inner struct.
type place struct {
	known bool
	inner bool
	at    int
}

// places returns the positions of a tool's fields.
func (l Layout) places() (m [fieldCount]place) {
	switch l {
	case Seed9:
		for i := fieldKind; i <= fieldServer; i++ {
			m[i] = place{true, false, i}
		}
	case Legacy6:
		m[fieldKeys] = place{true, false, 0}
		for i := fieldName; i <= fieldMessage; i++ {
			m[i] = place{true, true, i - 1}
		}
	default:
		m[fieldKeys] = place{true, false, 0}
		for i := fieldKind; i <= fieldMessage; i++ {
			m[i] = place{true, true, i}
		}
		m[fieldServer] = place{true, true, 8}
		if l == Java10 {
			m[fieldCredential] = place{true, true, 9}
		}
	}
	return m
}

// layoutOf recognises a layout by the class and the number of fields.
func layoutOf(t arrow.DataType, deprecated bool) (Layout, error) {
	outer, ok := t.(*arrow.StructType)
	if !ok {
		return "", invalid("a tool column is stored as %s; it must be a struct", typeName(t))
	}
	inner := 0
	if outer.NumFields() == 2 {
		if s, ok := outer.Field(1).Type.(*arrow.StructType); ok {
			inner = s.NumFields()
		}
	}
	l := Layout("")
	switch {
	case outer.NumFields() == 9:
		l = Seed9
	case inner == 6 && deprecated:
		l = Legacy6
	case inner == 9 && !deprecated:
		l = Java9
	case inner == 10 && !deprecated:
		l = Java10
	}
	if l == "" {
		return "", invalid("a tool column has an unknown layout: %s; known are seed9, java9, java10 and legacy6",
			typeName(t))
	}
	for field, p := range l.places() {
		if !p.known {
			continue
		}
		s := outer
		if p.inner {
			s = outer.Field(1).Type.(*arrow.StructType)
		}
		if !fits(field, s.Field(p.at).Type) {
			return "", invalid("field %d of a tool column of layout %s is stored as %s",
				field, l, typeName(s.Field(p.at).Type))
		}
	}
	return l, nil
}

// fits reports whether a type can store a field of a tool. The kind and the message index are
// integers of any width; ports are JSON or a list of structs. The null type fits every field.
func fits(field int, t arrow.DataType) bool {
	if t.ID() == arrow.NULL {
		return true
	}
	switch field {
	case fieldKind, fieldMessage:
		return arrow.IsInteger(t.ID())
	case fieldInputs, fieldOutputs:
		if l, ok := t.(arrow.ListLikeType); ok {
			s, ok := l.Elem().(*arrow.StructType)
			return ok && s.NumFields() == 4 && isText(s.Field(0).Type) && isText(s.Field(1).Type) &&
				isText(s.Field(2).Type) && isText(s.Field(3).Type)
		}
	}
	return isText(t) || field == fieldKeys && isBytes(t)
}

// isBytes reports whether a type stores bytes. Python's factory declares the file store keys as bytes.
func isBytes(t arrow.DataType) bool { return t.ID() == arrow.BINARY || t.ID() == arrow.LARGE_BINARY }
