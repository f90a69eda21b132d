package policy

import (
	"encoding/json"
	"math/big"
	"reflect"
	"strconv"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/tenonhq/tenon"
)

// The bounds of a condition: characters, nesting, and steps of one evaluation
// (a condition over arguments could otherwise be made to run for long by what a
// model sends).
const (
	maxConditionSize  = 4096
	maxConditionDepth = 50
	maxConditionCost  = 1_000_000
)

// Facts are what a condition may look at. They are made for one call, whose conditions
// are evaluated one after another.
type Facts struct {
	Tool      *tenon.Tool
	Arguments json.RawMessage // a JSON object; empty means {}
	Agent     string
	Principal string
	State     string

	decoded map[string]any // the arguments, once a condition has asked for them
	broken  error
	vars    map[string]any // of all conditions
}

// variables are what conditions name. They are the same for all conditions about a call.
func (f *Facts) variables() map[string]any {
	if f.vars == nil {
		f.vars = map[string]any{"agent": f.Agent, "principal": f.Principal, "state": f.State, "args": f.args}
		if f.Tool != nil {
			f.vars["tool"] = toolValue{f.Tool}
		}
	}
	return f.vars
}

// args are the arguments as a condition sees them. They are decoded once, and only
// for conditions that look at them.
func (f *Facts) args() any {
	if f.decoded == nil && f.broken == nil {
		f.decoded, f.broken = decode(f.Arguments)
	}
	if f.broken != nil {
		return types.NewErr("the arguments are not a JSON object: %v", f.broken)
	}
	return f.decoded
}

// Language compiles conditions. They are expressions in CEL, the Common
// Expression Language (github.com/google/cel-spec), over the variables
//
//	tool       name, server, remote_name, kind, title, description, groups,
//	           annotations{read_only, destructive, idempotent, open_world}
//	args       the arguments of the call; a key that is missing is an error, so has(args.x)
//	agent, principal, state   texts
//
// Annotations are always there, with the protocol's defaults where the server
// says nothing. A Language is safe for concurrent use.
type Language struct{ env *cel.Env }

// NewLanguage returns the language of policy rules: all variables.
func NewLanguage() (*Language, error) {
	return newLanguage("tool", "args", "agent", "principal", "state")
}

// NewToolLanguage returns the language of conditions about a tool before any
// call of it: the variable tool alone.
func NewToolLanguage() (*Language, error) { return newLanguage("tool") }

func newLanguage(variables ...string) (*Language, error) {
	registry, err := types.NewRegistry()
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeInternal, "the expression language cannot be set up: %w", err)
	}
	known := map[string]*cel.Type{"tool": cel.ObjectType(toolType), "args": cel.MapType(cel.StringType, cel.DynType),
		"agent": cel.StringType, "principal": cel.StringType, "state": cel.StringType}
	options := []cel.EnvOption{cel.CustomTypeProvider(&provider{registry}), cel.CustomTypeAdapter(registry),
		cel.ParserExpressionSizeLimit(maxConditionSize), cel.ParserRecursionLimit(maxConditionDepth)}
	for _, v := range variables {
		options = append(options, cel.Variable(v, known[v]))
	}
	env, err := cel.NewEnv(options...)
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeInternal, "the expression language cannot be set up: %w", err)
	}
	return &Language{env: env}, nil
}

// Condition is a compiled expression that is true or false. It is safe for
// concurrent use.
type Condition struct {
	text    string
	ast     *cel.Ast
	program cel.Program
}

// Condition compiles an expression. The error has code config and says where in
// the text it is wrong.
func (l *Language) Condition(text string) (*Condition, error) {
	ast, issues := l.env.Compile(text)
	if issues != nil && issues.Err() != nil {
		e := issues.Errors()[0]
		return nil, tenon.Errorf(tenon.CodeConfig, "not a CEL expression: %s (line %d, column %d)", firstLine(e.Message), e.Location.Line(), e.Location.Column()+1)
	}
	if t := ast.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		return nil, tenon.Errorf(tenon.CodeConfig, "the expression gives %s, not true or false", t)
	}
	options := []cel.ProgramOption{cel.EvalOptions(cel.OptOptimize), mixedNumbers()}
	if loops(ast) { // without a loop the size of the expression bounds its steps, and to count them takes longer than to do them
		options = append(options, cel.CostLimit(maxConditionCost))
	}
	program, err := l.env.Program(ast, options...)
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeConfig, "the expression cannot be used: %w", err)
	}
	return &Condition{text: text, ast: ast, program: program}, nil
}

// String returns the expression as it was written.
func (c *Condition) String() string { return c.text }

// Holds evaluates the condition. The error has code invalid: a key that the
// arguments do not have, values of types that cannot be compared, an expression
// that takes too long, or one that gives neither true nor false.
func (c *Condition) Holds(f *Facts) (bool, error) {
	v, _, err := c.program.Eval(f.variables())
	if err != nil {
		return false, tenon.Errorf(tenon.CodeInvalid, "the condition '%s' cannot be decided: %w", c.text, explained(err))
	}
	yes, ok := v.Value().(bool)
	if !ok {
		return false, tenon.Errorf(tenon.CodeInvalid, "the condition '%s' gives %v, not true or false", c.text, v.Type())
	}
	return yes, nil
}

// decode reads arguments for CEL. A number that is whole and fits is an int, so
// that it keeps its value; any other is a double.
func decode(raw json.RawMessage) (map[string]any, error) {
	args := map[string]any{}
	if len(raw) == 0 {
		return args, nil
	}
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	if err := d.Decode(&args); err != nil {
		return nil, err
	}
	for k, v := range args {
		args[k] = numbers(v)
	}
	return args, nil
}

func numbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i
		}
		if u, err := strconv.ParseUint(v.String(), 10, 64); err == nil {
			return u
		}
		f, _ := new(big.Float).SetString(v.String())
		if f == nil {
			return v.String()
		}
		x, _ := f.Float64()
		return x
	case map[string]any:
		for k, e := range v {
			v[k] = numbers(e)
		}
	case []any:
		for i, e := range v {
			v[i] = numbers(e)
		}
	}
	return v
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}

// The names of the two types of the language that are not CEL's own.
const (
	toolType        = "tenon.Tool"
	annotationsType = "tenon.Annotations"
)

// toolValue and annotationsValue stand for a tool and its annotations while an
// expression is evaluated.
type (
	toolValue        struct{ tool *tenon.Tool }
	annotationsValue struct{ a tenon.Annotations }
)

var (
	celTool        = cel.ObjectType(toolType)
	celAnnotations = cel.ObjectType(annotationsType)
)

// provider gives the fields of those types, so that a typing error in an
// expression is found when it is compiled.
type provider struct{ *types.Registry }

// FindStructType implements types.Provider.
func (p *provider) FindStructType(name string) (*types.Type, bool) {
	switch name {
	case toolType:
		return types.NewTypeTypeWithParam(celTool), true
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
			return fieldOf(f.typ, func(v any) any { return f.get(v.(toolValue).tool) }), true
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
	get func(*tenon.Tool) any
}{
	"name":        {cel.StringType, func(t *tenon.Tool) any { return t.Name }},
	"server":      {cel.StringType, func(t *tenon.Tool) any { return t.Server }},
	"remote_name": {cel.StringType, func(t *tenon.Tool) any { return t.Remote }},
	"kind":        {cel.StringType, func(t *tenon.Tool) any { return t.KindName() }},
	"title":       {cel.StringType, func(t *tenon.Tool) any { return t.Title }},
	"description": {cel.StringType, func(t *tenon.Tool) any { return t.Description }},
	"groups":      {cel.ListType(cel.StringType), func(t *tenon.Tool) any { return groupsOf(t) }},
	"annotations": {celAnnotations, func(t *tenon.Tool) any { return annotationsValue{t.Annotations} }},
}

var annotationFields = map[string]func(tenon.Annotations) bool{
	"read_only":   tenon.Annotations.IsReadOnly,
	"destructive": tenon.Annotations.IsDestructive,
	"idempotent":  func(a tenon.Annotations) bool { return a.Idempotent != nil && *a.Idempotent },
	"open_world":  func(a tenon.Annotations) bool { return a.OpenWorld == nil || *a.OpenWorld },
}

// The methods below make the two values values of CEL.

// ConvertToNative implements ref.Val.
func (t toolValue) ConvertToNative(reflect.Type) (any, error) { return t, nil }

// ConvertToType implements ref.Val.
func (t toolValue) ConvertToType(ref.Type) ref.Val { return types.NewErr("a tool is of no other type") }

// Equal implements ref.Val.
func (t toolValue) Equal(o ref.Val) ref.Val { return types.Bool(o == ref.Val(t)) }

// Type implements ref.Val.
func (t toolValue) Type() ref.Type { return celTool }

// Value implements ref.Val.
func (t toolValue) Value() any { return t }

// ConvertToNative implements ref.Val.
func (a annotationsValue) ConvertToNative(reflect.Type) (any, error) { return a, nil }

// ConvertToType implements ref.Val.
func (a annotationsValue) ConvertToType(ref.Type) ref.Val {
	return types.NewErr("annotations are of no other type")
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
	_ ref.Val        = annotationsValue{}
)

func groupsOf(t *tenon.Tool) []string {
	if t.Rules.Groups == nil {
		return []string{tenon.DefaultGroup}
	}
	return t.Rules.Groups
}
