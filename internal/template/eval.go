package template

import (
	"fmt"
	"slices"
	"strings"
	"text/template/parse"
)

// pipe evaluates a pipeline and sets the variables that the pipeline declares.
func (s *state) pipe(dot any, p *parse.PipeNode) (any, error) {
	if p == nil {
		return nil, nil
	}
	v, err := s.commands(dot, p)
	if err != nil {
		return nil, err
	}
	for _, d := range p.Decl {
		s.set(d.Ident[0], v, p.IsAssign)
	}
	return v, nil
}

func (s *state) commands(dot any, p *parse.PipeNode) (any, error) {
	var final []any // result of the previous command, if there is one
	for _, c := range p.Cmds {
		v, err := s.command(dot, c, final)
		if err != nil {
			return nil, err
		}
		final = []any{v}
	}
	return final[0], nil
}

func (s *state) command(dot any, c *parse.CommandNode, final []any) (any, error) {
	first := c.Args[0]
	if f, ok := first.(*parse.IdentifierNode); ok {
		return s.call(dot, f.Ident, c, final)
	}
	if len(c.Args) > 1 || len(final) > 0 {
		return nil, s.fail(first, "can't give argument to non-function %s", first)
	}
	if _, ok := first.(*parse.NilNode); ok {
		return nil, s.fail(first, "nil is not a command")
	}
	return s.value(dot, first)
}

func (s *state) call(dot any, name string, c *parse.CommandNode, final []any) (any, error) {
	if name == "and" || name == "or" {
		return s.lazy(dot, name, c, final)
	}
	args := make([]any, 0, len(c.Args)-1+len(final))
	for _, a := range c.Args[1:] {
		v, err := s.value(dot, a)
		if err != nil {
			return nil, err
		}
		args = append(args, v)
	}
	v, err := s.template.funcs[name](append(args, final...)...)
	if err != nil {
		return nil, s.fail(c.Args[0], "error calling %s: %w", name, err)
	}
	return v, nil
}

// lazy evaluates and and or. It evaluates arguments only until one of them decides the result.
func (s *state) lazy(dot any, name string, c *parse.CommandNode, final []any) (any, error) {
	if len(c.Args)+len(final) < 2 {
		return nil, s.fail(c.Args[0], "wrong number of args for %s: want at least 1 got 0", name)
	}
	var v any
	for _, a := range c.Args[1:] {
		var err error
		v, err = s.value(dot, a)
		if err != nil || isTrue(v) == (name == "or") {
			return v, err
		}
	}
	if len(final) > 0 {
		return final[0], nil
	}
	return v, nil
}

// value evaluates an operand.
func (s *state) value(dot any, n parse.Node) (any, error) {
	switch n := n.(type) {
	case *parse.DotNode:
		return dot, nil
	case *parse.NilNode:
		return nil, nil
	case *parse.BoolNode:
		return n.True, nil
	case *parse.StringNode:
		return n.Text, nil
	case *parse.NumberNode:
		return s.number(n)
	case *parse.FieldNode:
		return s.fields(dot, n, n.Ident)
	case *parse.VariableNode:
		v, err := s.variable(n)
		if err != nil {
			return nil, err
		}
		return s.fields(v, n, n.Ident[1:])
	case *parse.ChainNode:
		v, err := s.value(dot, n.Node)
		if err != nil {
			return nil, err
		}
		return s.fields(v, n, n.Field)
	case *parse.PipeNode:
		return s.pipe(dot, n)
	case *parse.IdentifierNode:
		return s.call(dot, n.Ident, &parse.CommandNode{Args: []parse.Node{n}}, nil)
	}
	return nil, s.fail(n, "can't evaluate %s", n)
}

func (s *state) number(n *parse.NumberNode) (any, error) {
	digits := strings.ToLower(strings.TrimLeft(n.Text, "+-"))
	hex := strings.HasPrefix(digits, "0x") && !strings.Contains(digits, "p")
	fraction := strings.ContainsAny(n.Text, ".eEpP") && !hex && !strings.HasPrefix(n.Text, "'")
	switch {
	case n.IsComplex:
	case n.IsFloat && fraction:
		return n.Float64, nil
	case n.IsInt && int64(int(n.Int64)) == n.Int64:
		return int(n.Int64), nil
	}
	return nil, s.fail(n, "the number %s is not supported", n.Text)
}

func (s *state) variable(n *parse.VariableNode) (any, error) {
	for _, v := range slices.Backward(s.vars) {
		if v.name == n.Ident[0] {
			return v.value, nil
		}
	}
	return nil, s.fail(n, "undefined variable: %s", n.Ident[0])
}

// fields follows a chain of keys through maps.
func (s *state) fields(v any, n parse.Node, keys []string) (any, error) {
	for _, key := range keys {
		m, ok := v.(map[string]any)
		if !ok {
			return nil, s.fail(n, "can't evaluate field %s in %s", key, typeName(v))
		}
		v, ok = m[key]
		if !ok {
			return nil, s.fail(n, "map has no entry for key %q", key)
		}
	}
	return v, nil
}

func typeName(v any) string {
	if v == nil {
		return "nil"
	}
	return fmt.Sprintf("type %T", v)
}
