package policy

import (
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// Keys are the keys of an object that conditions read. The value for a key contains the keys that conditions read in
// the value of this key; it is nil if they read none. For a list, these are the keys of its elements.
//
// A server may treat another spelling of a key as the key that a condition has read. Package catalog refuses such
// keys.
type Keys map[string]Keys

// Reads returns the keys of arguments that the conditions of all layers read. It is never nil.
func (l *Layers) Reads() Keys { return l.reads }

// readKeys collects the keys of arguments that the rules of all layers read.
func (l *Layers) readKeys() Keys {
	var root reading
	for _, layer := range l.list {
		if layer.Rules == nil {
			continue
		}
		for _, rule := range layer.Rules.rules {
			rule.condition.reads(&root)
		}
		for _, c := range layer.Rules.conditions {
			c.reads(&root)
		}
	}
	if keys := root.keys(); keys != nil {
		return keys
	}
	return Keys{}
}

// reading is a value of which conditions read parts.
type reading struct{ below map[string]*reading }

// key records that conditions read a key, and returns the reading of its value.
func (r *reading) key(name string) *reading {
	if r.below == nil {
		r.below = map[string]*reading{}
	}
	if r.below[name] == nil {
		r.below[name] = &reading{}
	}
	return r.below[name]
}

func (r *reading) keys() Keys {
	if r.below == nil {
		return nil
	}
	keys := make(Keys, len(r.below))
	for name, below := range r.below {
		keys[name] = below.keys()
	}
	return keys
}

// reads records the keys of arguments that a condition reads: args.a, args["a"], has(args.a), "a" in args, and the
// same in loops over them.
func (c *Condition) reads(root *reading) {
	scope{variables: map[string]*reading{"args": root}}.walk(c.ast.NativeRep().Expr())
}

// scope maps the variables of an expression to the parts of the arguments to which they refer.
type scope struct {
	variables map[string]*reading
	loops     map[string]bool // the variables that are keys of an object, or elements of a list
}

// value returns the reading of an expression, or nil if the expression is not a part of the arguments.
func (s scope) value(e ast.Expr) *reading {
	switch e.Kind() {
	case ast.IdentKind:
		return s.variables[e.AsIdent()]
	case ast.SelectKind:
		if of := s.value(e.AsSelect().Operand()); of != nil {
			return of.key(e.AsSelect().FieldName())
		}
	case ast.CallKind:
		call := e.AsCall()
		if call.FunctionName() != operators.Index {
			return nil
		}
		of := s.value(call.Args()[0])
		if name, ok := literal(call.Args()[1]); ok && of != nil {
			return of.key(name)
		}
		return of
	}
	return nil
}

func (s scope) walk(e ast.Expr) {
	s.value(e)
	switch e.Kind() {
	case ast.SelectKind:
		s.walk(e.AsSelect().Operand())
	case ast.CallKind:
		call := e.AsCall()
		if call.IsMemberFunction() {
			s.walk(call.Target())
		}
		for _, arg := range call.Args() {
			s.walk(arg)
		}
		s.compared(call)
	case ast.ListKind:
		for _, element := range e.AsList().Elements() {
			s.walk(element)
		}
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			s.walk(entry.AsMapEntry().Key())
			s.walk(entry.AsMapEntry().Value())
		}
	case ast.ComprehensionKind:
		s.loop(e.AsComprehension())
	}
}

// compared records a text that an expression looks for among keys: "a" in args, or key == "a" in a loop over keys.
func (s scope) compared(call ast.CallExpr) {
	args := call.Args()
	switch call.FunctionName() {
	case operators.In:
		if name, ok := literal(args[0]); ok {
			if of := s.value(args[1]); of != nil {
				of.key(name)
			}
		}
		if args[1].Kind() == ast.ListKind {
			for _, element := range args[1].AsList().Elements() {
				s.isKey(args[0], element)
			}
		}
	case operators.Equals, operators.NotEquals:
		s.isKey(args[0], args[1])
		s.isKey(args[1], args[0])
	}
}

// isKey records a text with which a variable of a loop is compared.
func (s scope) isKey(variable, text ast.Expr) {
	if name, ok := literal(text); ok && variable.Kind() == ast.IdentKind && s.loops[variable.AsIdent()] {
		s.variables[variable.AsIdent()].key(name)
	}
}

func (s scope) loop(c ast.ComprehensionExpr) {
	s.walk(c.IterRange())
	s.walk(c.AccuInit())
	inner := scope{variables: map[string]*reading{}, loops: map[string]bool{}}
	for name, of := range s.variables {
		inner.variables[name], inner.loops[name] = of, s.loops[name]
	}
	names := []string{c.IterVar()}
	if c.HasIterVar2() {
		names = append(names, c.IterVar2())
	}
	for _, name := range names {
		delete(inner.variables, name)
		if of := s.value(c.IterRange()); of != nil {
			inner.variables[name], inner.loops[name] = of, true
		}
	}
	delete(inner.variables, c.AccuVar())
	inner.walk(c.LoopCondition())
	inner.walk(c.LoopStep())
	inner.walk(c.Result())
}

// literal returns the value of an expression that is a string literal.
func literal(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	text, ok := e.AsLiteral().(types.String)
	return string(text), ok
}
