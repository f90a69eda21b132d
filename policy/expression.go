package policy

import (
	"encoding/json"
	"errors"
	"slices"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"

	"github.com/tenonhq/tenon"
)

// maxValue is the maximum size of an expression's value, in bytes of JSON.
const maxValue = 4 << 20

// Expressions compiles CEL expressions and templates whose variables the caller defines. Their values may have any
// type. Workflows use it. It is safe for concurrent use.
type Expressions struct{ templates *Templates }

// NewExpressions returns a compiler of expressions with the named variables.
func NewExpressions(variables ...string) (*Expressions, error) {
	t, err := newTemplates(variables...)
	return &Expressions{t}, err
}

// Expression is a compiled expression. It is safe for concurrent use.
type Expression struct {
	text    string
	program cel.Program
	typ     *cel.Type
	uses    uses
}

// Use is a use of a variable in an expression: the variable, then the literal keys that follow it. The path of
// steps.agg.rows[0] is steps, agg, rows.
type Use []string

// Compile compiles an expression. The error has code config and the position in the text.
func (x *Expressions) Compile(text string) (*Expression, error) {
	tree, program, err := x.templates.compile(text)
	if err != nil {
		return nil, err
	}
	return &Expression{text: text, program: program, typ: tree.OutputType(), uses: usesOf(tree)}, nil
}

// Condition compiles an expression whose value is a boolean.
func (x *Expressions) Condition(text string) (*Expression, error) {
	e, err := x.Compile(text)
	if err == nil && !e.typ.IsExactType(cel.BoolType) && !e.typ.IsExactType(cel.DynType) {
		return nil, tenon.Errorf(tenon.CodeConfig, "the expression gives %s, not true or false", e.typ)
	}
	return e, err
}

// Template compiles a text with expressions between {{ and }}.
func (x *Expressions) Template(text string) (*Template, error) {
	return x.templates.Compile(text, false)
}

// String returns the expression as it was written.
func (e *Expression) String() string { return e.text }

// Uses returns the variables that the expression uses.
func (e *Expression) Uses() []Use { return e.uses.all }

// Whole returns the uses of more than one element of a list: size(x.rows) uses x.rows as a whole, and x.rows[0].name
// does not.
func (e *Expression) Whole() []Use { return e.uses.whole }

// Value evaluates the expression. The values of the variables must come from [DecodeValue]. The error has code invalid.
func (e *Expression) Value(vars map[string]any) (json.RawMessage, error) {
	return e.value(vars, false)
}

// Typed is like [Expression.Value], but keeps doubles apart from ints: it writes the double 5 as 5.0, which
// [DecodeValue] decodes to a double.
func (e *Expression) Typed(vars map[string]any) (json.RawMessage, error) {
	return e.value(vars, true)
}

func (e *Expression) value(vars map[string]any, typed bool) (json.RawMessage, error) {
	v, _, err := e.program.Eval(vars)
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeInvalid, "'%s' has no value: %w", e.text, explained(err))
	}
	s, err := encodeValue(v, typed)
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeInvalid, "'%s' cannot be written as JSON: %w", e.text, err)
	}
	if len(s) > maxValue {
		return nil, tenon.Errorf(tenon.CodeInvalid, "the value of '%s' has more than %d bytes", e.text, maxValue)
	}
	return json.RawMessage(s), nil
}

// explained makes CEL's error about wrong operand types clearer. CEL finds this error only at evaluation, when it knows
// the types of the values.
func explained(err error) error {
	if err != nil && err.Error() == "no such overload" {
		return errors.New("no such overload: a value is null, or of a type that the operation does not take; " +
			"string(), int() and double() convert, and X == null tells")
	}
	return err
}

// Holds evaluates an expression whose value is a boolean. The error has code invalid.
func (e *Expression) Holds(vars map[string]any) (bool, error) {
	v, _, err := e.program.Eval(vars)
	if err != nil {
		return false, tenon.Errorf(tenon.CodeInvalid, "'%s' cannot be decided: %w", e.text, explained(err))
	}
	yes, ok := v.Value().(bool)
	if !ok {
		return false, tenon.Errorf(tenon.CodeInvalid, "'%s' gives %v, not true or false", e.text, v.Type())
	}
	return yes, nil
}

// DecodeValue decodes a JSON value for expressions. A number is an int if it is whole and fits 64 bits, otherwise a
// double.
func DecodeValue(raw json.RawMessage) (any, error) {
	m, err := decode(slices.Concat([]byte(`{"v":`), raw, []byte("}")))
	return m["v"], err
}

// uses are the uses of variables in an expression. whole has no uses of single elements of lists.
type uses struct{ all, whole []Use }

func (u *uses) add(use Use, element bool) {
	u.all = append(u.all, use)
	if !element {
		u.whole = append(u.whole, use)
	}
}

// usesOf finds the variables of an expression.
func usesOf(tree *cel.Ast) uses {
	w := useWalker{}
	w.walk(tree.NativeRep().Expr())
	return w.uses
}

type useWalker struct {
	uses
	local []string // variables of loops
}

func (w *useWalker) walk(e ast.Expr) {
	if path, element := w.path(e); path != nil {
		w.add(path, element)
		return
	}
	switch e.Kind() {
	case ast.SelectKind:
		w.walk(e.AsSelect().Operand())
	case ast.CallKind:
		c := e.AsCall()
		if c.FunctionName() == operators.Index && len(c.Args()) == 2 {
			if path, _ := w.path(c.Args()[0]); path != nil { // the index is computed
				w.add(path, true)
				w.walk(c.Args()[1])
				return
			}
		}
		if c.IsMemberFunction() {
			w.walk(c.Target())
		}
		for _, a := range c.Args() {
			w.walk(a)
		}
	case ast.ListKind:
		for _, v := range e.AsList().Elements() {
			w.walk(v)
		}
	case ast.MapKind:
		for _, v := range e.AsMap().Entries() {
			w.walk(v.AsMapEntry().Key())
			w.walk(v.AsMapEntry().Value())
		}
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		w.walk(c.IterRange())
		w.walk(c.AccuInit())
		outer := w.local
		w.local = append(slices.Clip(outer), c.IterVar(), c.IterVar2(), c.AccuVar())
		w.walk(c.LoopCondition())
		w.walk(c.LoopStep())
		w.walk(c.Result())
		w.local = outer
	}
}

// path returns the variable and the keys of a chain such as steps.a.rows[0], and whether it has an index of a list. The
// path is nil if the chain does not begin with a variable, and ends before the first computed key.
func (w *useWalker) path(e ast.Expr) (path Use, element bool) {
	switch e.Kind() {
	case ast.IdentKind:
		if name := e.AsIdent(); !slices.Contains(w.local, name) {
			return Use{name}, false
		}
	case ast.SelectKind:
		if p, element := w.path(e.AsSelect().Operand()); p != nil {
			return append(p, e.AsSelect().FieldName()), element
		}
	case ast.CallKind:
		c := e.AsCall()
		if c.FunctionName() != operators.Index || len(c.Args()) != 2 {
			return nil, false
		}
		key := c.Args()[1]
		if key.Kind() != ast.LiteralKind {
			return nil, false
		}
		p, element := w.path(c.Args()[0])
		if s, ok := key.AsLiteral().Value().(string); ok && p != nil {
			return append(p, s), element
		}
		return p, true
	}
	return nil, false
}
