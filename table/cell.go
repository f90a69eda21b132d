package table

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// text reads a text cell. null is true if the cell is missing.
func text(a arrow.Array, i int) (s string, null bool) {
	if a.IsNull(i) {
		return "", true
	}
	switch a := a.(type) {
	case *array.String:
		return strings.Clone(a.Value(i)), false
	case *array.LargeString:
		return strings.Clone(a.Value(i)), false
	case *array.StringView:
		return strings.Clone(a.Value(i)), false
	case *array.Binary:
		return keyText(a.Value(i))
	case *array.LargeBinary:
		return keyText(a.Value(i))
	case *array.Dictionary:
		return text(a.Dictionary(), a.GetValueIndex(i))
	}
	return "", true
}

// keyText returns file store keys that are stored as bytes. If the bytes are not text, they are not valid keys, and
// null is true.
func keyText(b []byte) (s string, null bool) {
	if !utf8.Valid(b) {
		return "", true
	}
	return string(b), false
}

// integer reads an integer cell of any width. null is true if the cell is missing.
func integer(a arrow.Array, i int) (n int64, null bool, err error) {
	if a.IsNull(i) {
		return 0, true, nil
	}
	switch a := a.(type) {
	case *array.Int8:
		return int64(a.Value(i)), false, nil
	case *array.Int16:
		return int64(a.Value(i)), false, nil
	case *array.Int32:
		return int64(a.Value(i)), false, nil
	case *array.Int64:
		return a.Value(i), false, nil
	case *array.Uint8:
		return int64(a.Value(i)), false, nil
	case *array.Uint16:
		return int64(a.Value(i)), false, nil
	case *array.Uint32:
		return int64(a.Value(i)), false, nil
	case *array.Uint64:
		if v := a.Value(i); v <= math.MaxInt64 {
			return int64(v), false, nil
		}
		return 0, false, fmt.Errorf("the number %d is too large", a.Value(i))
	}
	return 0, true, nil
}

// fieldError is the error of a field of a tool, in the numbering of seed9.
type fieldError struct {
	field int
	err   error
}

func (e *fieldError) Error() string { return fmt.Sprintf("field %d: %s", e.field, e.err) }

func (e *fieldError) Unwrap() error { return e.err }

// errNoKind is the error of a tool without a type. Such a tool can be shown, but not used.
var errNoKind = errors.New("the tool type is missing")

// decodeTool reads a cell of a tool column. It returns nil if the cell is missing. The error names
// the field. With errNoKind, it returns the tool, too.
func decodeTool(l Layout, a arrow.Array, i int) (*Tool, error) {
	outer, ok := a.(*array.Struct)
	if !ok || a.IsNull(i) {
		return nil, nil
	}
	var inner *array.Struct
	if outer.NumField() == 2 {
		inner, _ = outer.Field(1).(*array.Struct)
	}
	t := &Tool{Message: -1}
	places := l.places()
	at := func(field int) arrow.Array {
		p := places[field]
		switch {
		case !p.known:
			return nil
		case !p.inner:
			return outer.Field(p.at)
		case inner == nil || inner.IsNull(i):
			return nil
		}
		return inner.Field(p.at)
	}
	texts := func(field int) string {
		f := at(field)
		if f == nil {
			t.nulls |= 1 << field
			return ""
		}
		s, null := text(f, i)
		if null {
			t.nulls |= 1 << field
		}
		return s
	}
	var flaw error
	if f := at(fieldKind); f != nil {
		n, null, err := integer(f, i)
		if err != nil {
			return nil, &fieldError{fieldKind, err}
		}
		t.Kind = Kind(n)
		if null {
			t.Kind, flaw = noKind, &fieldError{fieldKind, errNoKind}
		}
	}
	t.Name, t.Description, t.Parameters = texts(fieldName), texts(fieldDescription), texts(fieldParameters)
	t.Keys, t.Credential = texts(fieldKeys), texts(fieldCredential)
	t.readURI(texts(fieldServer))
	for field, ports := range [...]*[]Port{fieldInputs: &t.Inputs, fieldOutputs: &t.Outputs} {
		if f := at(field); f != nil && ports != nil {
			var err error
			if *ports, err = decodePorts(f, i); err != nil {
				return nil, &fieldError{field, err}
			}
		}
	}
	if f := at(fieldMessage); f != nil {
		n, null, err := integer(f, i)
		switch {
		case err != nil:
			return nil, &fieldError{fieldMessage, err}
		case n != int64(int32(n)):
			return nil, &fieldError{fieldMessage, fmt.Errorf("%d is not an index of a port", n)}
		case !null:
			t.Message = int32(n)
		}
	}
	return t, flaw
}

// decodePorts reads ports from JSON text or a list of structs. It returns nil if there are none.
func decodePorts(a arrow.Array, i int) ([]Port, error) {
	if a.IsNull(i) {
		return nil, nil
	}
	if l, ok := a.(array.ListLike); ok {
		from, to := l.ValueOffsets(i)
		s, ok := l.ListValues().(*array.Struct)
		if !ok {
			return nil, nil
		}
		var ports []Port
		for k := int(from); k < int(to); k++ {
			var p Port
			for n, into := range []*string{&p.Name, &p.Description, &p.Type, &p.Spec} {
				*into, _ = text(s.Field(n), k)
			}
			ports = append(ports, p)
		}
		return ports, nil
	}
	raw, null := text(a, i)
	if null || strings.TrimSpace(raw) == "" {
		return nil, nil
	}
	var list []map[string]json.RawMessage
	if err := json.Unmarshal([]byte(raw), &list); err != nil {
		return nil, fmt.Errorf("the ports are not a JSON list of objects: %w", err)
	}
	var ports []Port
	for _, m := range list {
		var p Port
		for n, name := range []string{"name", "description", "type", "spec"} {
			v, ok := m[strconv.Itoa(n)]
			if !ok {
				v = m[name]
			}
			var s string
			if len(v) > 0 && string(v) != "null" && json.Unmarshal(v, &s) != nil {
				s = string(v) // the spec is an object, not a text that contains one
			}
			*[]*string{&p.Name, &p.Description, &p.Type, &p.Spec}[n] = s
		}
		ports = append(ports, p)
	}
	return ports, nil
}

// encodePorts encodes ports as the JSON text of layout seed9, or "" if there are none.
func encodePorts(ports []Port) (string, error) {
	if len(ports) == 0 {
		return "", nil
	}
	type wire struct {
		Name        string  `json:"0"`
		Description string  `json:"1"`
		Type        string  `json:"2"`
		Spec        *string `json:"3"`
	}
	list := make([]wire, len(ports))
	for i, p := range ports {
		list[i] = wire{Name: p.Name, Description: p.Description, Type: p.Type}
		if p.Spec != "" {
			list[i].Spec = &p.Spec
		}
	}
	b, err := encode(list)
	return string(b), err
}

// appendTool writes a tool in a layout, or a missing cell if t is nil. The error says what the
// layout cannot express.
func appendTool(b *array.StructBuilder, l Layout, t *Tool) error {
	if t == nil {
		b.AppendNull()
		return nil
	}
	if l == Legacy6 && t.Kind != Workflow {
		return fmt.Errorf("a tool of kind %s cannot be expressed in layout legacy6, which has workflow tools only",
			t.Kind)
	}
	inputs, err := encodePorts(t.Inputs)
	if err != nil {
		return err
	}
	outputs, err := encodePorts(t.Outputs)
	if err != nil {
		return err
	}
	b.Append(true)
	inner := b
	if l != Seed9 {
		inner = b.FieldBuilder(1).(*array.StructBuilder)
		inner.Append(true)
		if l != Legacy6 {
			inner.FieldBuilder(7).AppendNull() // unused
		}
	}
	texts := [fieldCount]string{
		fieldName: t.Name, fieldDescription: t.Description, fieldParameters: t.Parameters,
		fieldInputs: inputs, fieldOutputs: outputs, fieldKeys: t.Keys,
		fieldServer: t.uri(l == Seed9), fieldCredential: t.Credential,
	}
	for field, p := range l.places() {
		if !p.known {
			continue
		}
		from := b
		if p.inner {
			from = inner
		}
		switch f := from.FieldBuilder(p.at).(type) {
		case *array.Int8Builder:
			if t.Kind != Kind(int8(t.Kind)) {
				return fmt.Errorf("tool type %d cannot be expressed in layout %s", t.Kind, l)
			}
			f.Append(int8(t.Kind))
		case *array.Int32Builder:
			if field == fieldKind {
				f.Append(int32(t.Kind))
			} else {
				f.Append(t.Message)
			}
		case *array.ListBuilder:
			ports := t.Inputs
			if field == fieldOutputs {
				ports = t.Outputs
			}
			appendPorts(f, t, ports)
		case *array.StringBuilder:
			s := texts[field]
			if s == "" && t.isNull(field, l) {
				f.AppendNull()
			} else {
				f.Append(s)
			}
		}
	}
	return nil
}

// isNull reports whether an empty field is stored as null rather than as the empty text.
func (t *Tool) isNull(field int, l Layout) bool {
	switch field {
	case fieldName, fieldDescription, fieldParameters:
		return t.nulls&(1<<field) != 0
	case fieldKeys:
		return l == Seed9 // KNIME's layouts store the empty text
	}
	return true
}

func appendPorts(b *array.ListBuilder, t *Tool, ports []Port) {
	if t.Kind != Workflow && len(ports) == 0 {
		b.AppendNull()
		return
	}
	b.Append(true)
	s := b.ValueBuilder().(*array.StructBuilder)
	for _, p := range ports {
		s.Append(true)
		for n, v := range []string{p.Name, p.Description, p.Type, p.Spec} {
			f := s.FieldBuilder(n).(*array.StringBuilder)
			if n == 3 && v == "" {
				f.AppendNull()
			} else {
				f.Append(v)
			}
		}
	}
}
