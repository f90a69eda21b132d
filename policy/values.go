package policy

import (
	"reflect"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/tenonhq/tenon"
)

// The names of the types that the language has in addition to CEL's.
const (
	toolType        = "tenon.Tool"
	serverType      = "tenon.Server"
	annotationsType = "tenon.Annotations"
)

// The values of these types during an evaluation.
type (
	toolValue        struct{ f *Facts }
	serverValue      struct{ s *Server }
	annotationsValue struct{ a tenon.Annotations }
)

var (
	celTool        = cel.ObjectType(toolType)
	celServer      = cel.ObjectType(serverType)
	celAnnotations = cel.ObjectType(annotationsType)
)

// Server contains the facts about a tool's server for conditions. They do not depend on the server's name in the
// configuration.
type Server struct {
	Host    string   // host of its URL, in lower case and without the port; "" for a command
	Command string   // the program as written; "" for a URL
	Args    []string // its arguments
}

// provider provides the fields of these types, so that a misspelled field is found when an expression is compiled.
type provider struct{ *types.Registry }

// FindStructType implements types.Provider.
func (p *provider) FindStructType(name string) (*types.Type, bool) {
	switch name {
	case toolType:
		return types.NewTypeTypeWithParam(celTool), true
	case serverType:
		return types.NewTypeTypeWithParam(celServer), true
	case annotationsType:
		return types.NewTypeTypeWithParam(celAnnotations), true
	}
	return p.Registry.FindStructType(name)
}

// FindStructFieldType implements types.Provider.
func (p *provider) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	switch name {
	case toolType:
		if f, ok := toolFields[field]; ok {
			return fieldOf(f.typ, func(v any) any { return f.get(v.(toolValue).f) }), true
		}
		return nil, false
	case serverType:
		if f, ok := serverFields[field]; ok {
			return fieldOf(f.typ, func(v any) any { return f.get(v.(serverValue).s) }), true
		}
		return nil, false
	case annotationsType:
		if get, ok := annotationFields[field]; ok {
			return fieldOf(cel.BoolType, func(v any) any { return get(v.(annotationsValue).a) }), true
		}
		return nil, false
	}
	return p.Registry.FindStructFieldType(name, field)
}

func fieldOf(t *cel.Type, get func(any) any) *types.FieldType {
	return &types.FieldType{Type: t, IsSet: func(any) bool { return true }, GetFrom: func(v any) (any, error) {
		if r, ok := v.(ref.Val); ok {
			v = r.Value()
		}
		return get(v), nil
	}}
}

var toolFields = map[string]struct {
	typ *cel.Type
	get func(*Facts) any
}{
	"server":      {cel.StringType, func(f *Facts) any { return f.Tool.Server }},
	"identity":    {cel.StringType, func(f *Facts) any { return f.ID().Server }},
	"remote_name": {cel.StringType, func(f *Facts) any { return f.Tool.Remote }},
	"exposed":     {cel.StringType, func(f *Facts) any { return f.named().exposed }},
	"name":        {cel.StringType, func(f *Facts) any { return f.named().name }},
	"kind":        {cel.StringType, func(f *Facts) any { return f.Tool.KindName() }},
	"title":       {cel.StringType, func(f *Facts) any { return f.Tool.Title }},
	"description": {cel.StringType, func(f *Facts) any { return f.Tool.Description }},
	"groups":      {cel.ListType(cel.StringType), func(f *Facts) any { return groupsOf(f.Tool) }},
	"annotations": {celAnnotations, func(f *Facts) any { return annotationsValue{f.Tool.Annotations} }},
}

var serverFields = map[string]struct {
	typ *cel.Type
	get func(*Server) any
}{
	"host":    {cel.StringType, func(s *Server) any { return s.Host }},
	"command": {cel.StringType, func(s *Server) any { return s.Command }},
	"args":    {cel.ListType(cel.StringType), func(s *Server) any { return append([]string{}, s.Args...) }},
}

var annotationFields = map[string]func(tenon.Annotations) bool{
	"read_only":   tenon.Annotations.IsReadOnly,
	"destructive": tenon.Annotations.IsDestructive,
	"idempotent":  func(a tenon.Annotations) bool { return a.Idempotent != nil && *a.Idempotent },
	"open_world":  func(a tenon.Annotations) bool { return a.OpenWorld == nil || *a.OpenWorld },
}

// The methods below implement ref.Val, the interface of values in CEL expressions.

// ConvertToNative implements ref.Val.
func (t toolValue) ConvertToNative(reflect.Type) (any, error) { return t, nil }

// ConvertToType implements ref.Val.
func (t toolValue) ConvertToType(ref.Type) ref.Val { return types.NewErr("a tool has no conversions") }

// Equal implements ref.Val.
func (t toolValue) Equal(o ref.Val) ref.Val { return types.Bool(o == ref.Val(t)) }

// Type implements ref.Val.
func (t toolValue) Type() ref.Type { return celTool }

// Value implements ref.Val.
func (t toolValue) Value() any { return t }

// ConvertToNative implements ref.Val.
func (s serverValue) ConvertToNative(reflect.Type) (any, error) { return s, nil }

// ConvertToType implements ref.Val.
func (s serverValue) ConvertToType(ref.Type) ref.Val {
	return types.NewErr("a server has no conversions")
}

// Equal implements ref.Val.
func (s serverValue) Equal(o ref.Val) ref.Val { return types.Bool(o == ref.Val(s)) }

// Type implements ref.Val.
func (s serverValue) Type() ref.Type { return celServer }

// Value implements ref.Val.
func (s serverValue) Value() any { return s }

// ConvertToNative implements ref.Val.
func (a annotationsValue) ConvertToNative(reflect.Type) (any, error) { return a, nil }

// ConvertToType implements ref.Val.
func (a annotationsValue) ConvertToType(ref.Type) ref.Val {
	return types.NewErr("annotations have no conversions")
}

// Equal implements ref.Val.
func (a annotationsValue) Equal(o ref.Val) ref.Val { return types.Bool(o == ref.Val(a)) }

// Type implements ref.Val.
func (a annotationsValue) Type() ref.Type { return celAnnotations }

// Value implements ref.Val.
func (a annotationsValue) Value() any { return a }

var (
	_ types.Provider = (*provider)(nil)
	_ ref.Val        = toolValue{}
	_ ref.Val        = serverValue{}
	_ ref.Val        = annotationsValue{}
)

func groupsOf(t *tenon.Tool) []string {
	if t.Rules.Groups == nil {
		return []string{tenon.DefaultGroup}
	}
	return t.Rules.Groups
}
