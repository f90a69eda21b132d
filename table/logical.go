package table

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
)

// The extension type of KNIME's columns, and the known classes. The metadata of the extension type
// contains the class, as JSON or as bare text.
const (
	Extension = "knime.logical_type"

	ClassTool         = "org.knime.core.node.agentic.tool.ToolValueFactory"
	ClassWorkflowTool = "org.knime.core.node.agentic.tool.WorkflowToolValueFactory" // deprecated
	ClassMessage      = "org.knime.ai.core.data.message.MessageValueFactory"

	classMCPTool = "MCPToolValueFactory" // deprecated, of any Java package
	classRowKey  = "DefaultRowKeyValueFactory"
)

// classOf returns the class of a column's logical type, or "".
func classOf(f arrow.Field) string {
	name, ok := f.Metadata.GetValue(ipc.ExtensionTypeKeyName)
	if !ok || name != Extension {
		return ""
	}
	meta, _ := f.Metadata.GetValue(ipc.ExtensionMetadataKeyName)
	var v struct {
		Class string `json:"value_factory_class"`
	}
	if json.Unmarshal([]byte(meta), &v) == nil && v.Class != "" {
		return v.Class
	}
	return strings.TrimSpace(meta)
}

// isClass reports whether a class is the given known class, with or without its Java package.
func isClass(class, known string) bool {
	return class != "" && class[strings.LastIndexByte(class, '.')+1:] == known[strings.LastIndexByte(known, '.')+1:]
}

// isDeprecated reports whether a class is a deprecated alias of [ClassTool].
func isDeprecated(class string) bool {
	return isClass(class, ClassWorkflowTool) || isClass(class, classMCPTool)
}

// logical returns a field with a logical type.
func logical(name, class string, storage arrow.DataType) arrow.Field {
	meta, _ := json.Marshal(map[string]string{"value_factory_class": class}) // strings always encode
	return arrow.Field{Name: name, Type: storage, Nullable: true,
		Metadata: arrow.NewMetadata([]string{ipc.ExtensionTypeKeyName, ipc.ExtensionMetadataKeyName},
			[]string{Extension, string(meta)})}
}

// versions returns the value of KNIME:basic:factoryVersions.
func versions(s *arrow.Schema) string {
	parts := make([]string, s.NumFields())
	for i, f := range s.Fields() {
		parts[i] = version(f)
	}
	return strings.Join(parts, ",")
}

func version(f arrow.Field) string {
	v := ""
	switch t := f.Type.(type) {
	case *arrow.Int64Type, *arrow.LargeBinaryType:
		v = "1"
	case *arrow.StructType:
		var b strings.Builder
		for _, child := range t.Fields() {
			b.WriteString(version(child) + ";")
		}
		v = "1[" + b.String() + "]"
	case arrow.ListLikeType:
		v = "0[" + version(t.ElemField()) + ";]"
	default:
		v = "0"
	}
	if classOf(f) != "" {
		return "0[" + v + ";]"
	}
	return v
}

// typeName formats a type in the form that tenon tables schema prints: struct<0: int8, 1: utf8>.
func typeName(t arrow.DataType) string {
	switch t := t.(type) {
	case *arrow.StructType:
		parts := make([]string, t.NumFields())
		for i, f := range t.Fields() {
			parts[i] = f.Name + ": " + typeName(f.Type)
		}
		return "struct<" + strings.Join(parts, ", ") + ">"
	case *arrow.MapType:
		return "map<" + typeName(t.KeyType()) + ", " + typeName(t.ItemType()) + ">"
	case *arrow.FixedSizeListType:
		return "list<" + typeName(t.Elem()) + ">[" + strconv.Itoa(int(t.Len())) + "]"
	case arrow.ListLikeType:
		return strings.TrimSuffix(t.Name(), "_view") + "<" + typeName(t.Elem()) + ">"
	}
	return t.String()
}

// columnKind is the kind of a column.
type columnKind int

const (
	plainColumn columnKind = iota
	toolColumn
	messageColumn
)

// Column is a column of a table.
type Column struct {
	Name    string `json:"name"`
	Type    string `json:"type"`              // the storage type, such as utf8 or struct<0: int8>
	Logical string `json:"logical,omitempty"` // the name of the extension type
	Class   string `json:"class,omitempty"`   // the class of a logical type
	Layout  Layout `json:"layout,omitempty"`  // the layout of a tool column
	// Metadata is the metadata of the extension type, unchanged.
	Metadata string `json:"metadata,omitempty"`

	kind columnKind
	at   int // index in the schema
}

// IsTool reports whether the column's cells are tools.
func (c Column) IsTool() bool { return c.kind == toolColumn }

// IsMessage reports whether the column's cells are messages of a conversation.
func (c Column) IsMessage() bool { return c.kind == messageColumn }

// columns classifies the columns of a schema. rowID is the index of the row id column, or -1.
func columns(s *arrow.Schema) (list []Column, rowID int, err error) {
	rowID = -1
	for i, f := range s.Fields() {
		class := classOf(f)
		if isRowID(i, f) {
			rowID = 0
			continue
		}
		c := Column{Name: f.Name, Type: typeName(f.Type), Class: class, at: i}
		c.Logical, _ = f.Metadata.GetValue(ipc.ExtensionTypeKeyName)
		c.Metadata, _ = f.Metadata.GetValue(ipc.ExtensionMetadataKeyName)
		switch {
		case isClass(class, ClassTool), isDeprecated(class):
			c.kind = toolColumn
			c.Layout, err = layoutOf(f.Type, isClass(class, ClassWorkflowTool))
		case isClass(class, ClassMessage):
			c.kind = messageColumn
		}
		if err != nil {
			return nil, 0, err
		}
		list = append(list, c)
	}
	return list, rowID, nil
}

// RowID is the name of the column of row ids.
const RowID = "<RowID>"

// isRowID reports whether column i of a table is its column of row ids.
func isRowID(i int, f arrow.Field) bool {
	class := classOf(f)
	named := f.Name == RowID || f.Name == "0"
	return i == 0 && named && (class == "" || isClass(class, classRowKey)) && isText(f.Type)
}

// shownMark is the key of the metadata of a result for display (see [Query.Shown]), whose columns keep their names.
const shownMark = "tenon.shown"

// renamed returns fields with the data columns <RowID> under other names: RowID_1 and so on. Otherwise a copy of the
// table, which always has row ids, would have two columns of one name.
func renamed(fields []arrow.Field, isData func(i int) bool) []arrow.Field {
	for i, f := range fields {
		if f.Name != RowID || !isData(i) {
			continue
		}
		name := "RowID_1" // RowID means the number of a row in SQL
		for n := 2; slices.ContainsFunc(fields, func(o arrow.Field) bool { return o.Name == name }); n++ {
			name = "RowID_" + strconv.Itoa(n)
		}
		fields[i].Name = name
	}
	return fields
}

func isText(t arrow.DataType) bool {
	if d, ok := t.(*arrow.DictionaryType); ok {
		t = d.ValueType
	}
	switch t.ID() {
	case arrow.STRING, arrow.LARGE_STRING, arrow.STRING_VIEW:
		return true
	}
	return false
}
