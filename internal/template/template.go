// Package template executes templates in the language of text/template over plain values: nil, booleans, integers,
// float64, strings, slices, and maps with string keys. Structs, methods and functions as values are not supported.
//
// It exists because the execution of text/template looks up methods by name, so that the linker keeps all exported
// methods of all types of a program: with it, the stripped binary had 56.4 MB instead of 50.5 MB (figure P12.bin). It
// uses the parser of the standard library, text/template/parse, which does not do this. A test compares its results
// with text/template.
//
// The prompts of the text loop (package react), which users write, and the units of systemd (internal/service) are
// such templates. An execution has bounds, because a template comes from a project.
package template

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/template/parse"
)

// Func is a function in templates. In a pipeline, its last argument is the result of the previous command.
type Func func(args ...any) (any, error)

// Bounds of one execution.
const (
	maxNodes = 10_000_000 // executed nodes
	maxDepth = 1000       // templates that execute each other
)

// Template is a parsed template. It is safe for concurrent use.
type Template struct {
	name  string
	trees map[string]*parse.Tree
	funcs map[string]Func
}

// Parse parses a text. Besides the given functions, templates can use and, or, not, eq, ne, lt, le, gt, ge, len, index,
// slice, print, printf, println, html and urlquery of text/template. name is used in messages.
func Parse(name, text string, funcs map[string]Func) (*Template, error) {
	t := &Template{name: name, funcs: maps.Clone(builtins)}
	maps.Copy(t.funcs, funcs)
	known := map[string]any{"and": true, "or": true}
	for f := range t.funcs {
		known[f] = true
	}
	var err error
	t.trees, err = parse.Parse(name, text, "", "", known)
	return t, err
}

// Execute writes the result for the data. A missing key of a map is an error. After an error, w may contain a part of
// the result.
func (t *Template) Execute(w io.Writer, data any) error {
	s := &state{template: t, tree: t.trees[t.name], w: w, nodes: new(int), vars: []variable{{"$", data}}}
	return s.walkList(data, s.tree.Root)
}

// state is an execution of one tree.
type state struct {
	template *Template
	tree     *parse.Tree
	w        io.Writer
	vars     []variable // innermost last
	depth    int
	nodes    *int
}

type variable struct {
	name  string
	value any
}

// The errors that end the body of a range early.
var (
	errBreak    = errors.New("break")
	errContinue = errors.New("continue")
)

// fail returns an error at a node.
func (s *state) fail(n parse.Node, format string, args ...any) error {
	where, context := s.tree.ErrorContext(n)
	err := fmt.Errorf(format, args...)
	return fmt.Errorf("template: %s: executing %q at <%s>: %w", where, s.tree.Name, context, err)
}

func (s *state) walkList(dot any, list *parse.ListNode) error {
	if list == nil {
		return nil
	}
	defer func(n int) { s.vars = s.vars[:n] }(len(s.vars))
	for _, n := range list.Nodes {
		if err := s.walk(dot, n); err != nil {
			return err
		}
	}
	return nil
}

func (s *state) walk(dot any, n parse.Node) error {
	if *s.nodes++; *s.nodes > maxNodes {
		return s.fail(n, "the template executes more than %d nodes", maxNodes)
	}
	switch n := n.(type) {
	case *parse.TextNode:
		_, err := s.w.Write(n.Text)
		return err
	case *parse.CommentNode:
		return nil
	case *parse.ActionNode:
		v, err := s.pipe(dot, n.Pipe)
		if err != nil || len(n.Pipe.Decl) > 0 {
			return err
		}
		return s.print(n, v)
	case *parse.IfNode:
		return s.walkIf(dot, &n.BranchNode, false)
	case *parse.WithNode:
		return s.walkIf(dot, &n.BranchNode, true)
	case *parse.RangeNode:
		return s.walkRange(dot, n)
	case *parse.BreakNode:
		return errBreak
	case *parse.ContinueNode:
		return errContinue
	case *parse.TemplateNode:
		return s.walkTemplate(dot, n)
	}
	return s.fail(n, "unknown node")
}

func (s *state) print(n parse.Node, v any) error {
	var err error
	switch v := v.(type) {
	case nil:
		_, err = io.WriteString(s.w, "<no value>")
	case string:
		_, err = io.WriteString(s.w, v)
	default:
		_, err = fmt.Fprint(s.w, v)
	}
	if err != nil {
		return s.fail(n, "%w", err)
	}
	return nil
}

// walkIf executes an if. If with is set, it executes a with, which changes the dot.
func (s *state) walkIf(dot any, n *parse.BranchNode, with bool) error {
	defer func(n int) { s.vars = s.vars[:n] }(len(s.vars))
	v, err := s.pipe(dot, n.Pipe)
	if err != nil {
		return err
	}
	switch {
	case !isTrue(v):
		return s.walkList(dot, n.ElseList)
	case with:
		return s.walkList(v, n.List)
	}
	return s.walkList(dot, n.List)
}

func (s *state) walkRange(dot any, n *parse.RangeNode) error {
	defer func(n int) { s.vars = s.vars[:n] }(len(s.vars))
	v, err := s.commands(dot, n.Pipe)
	if err != nil {
		return err
	}
	each, ok := elementsOf(v)
	if _, isInt := v.(int); isInt && len(n.Pipe.Decl) > 1 {
		return s.fail(n, "can't use %v to iterate over more than one variable", v)
	}
	if !ok {
		return s.fail(n, "range can't iterate over %v", v)
	}
	some := false
	mark := len(s.vars)
	for key, value := range each {
		some = true
		if *s.nodes++; *s.nodes > maxNodes {
			return s.fail(n, "the template executes more than %d nodes", maxNodes)
		}
		s.vars = s.vars[:mark]
		s.setRangeVars(n.Pipe, key, value)
		switch err := s.walkList(value, n.List); {
		case err == errBreak:
			return nil
		case err != nil && err != errContinue:
			return err
		}
	}
	s.vars = s.vars[:mark]
	if !some {
		return s.walkList(dot, n.ElseList)
	}
	return nil
}

// setRangeVars sets the variables of a range for an element.
func (s *state) setRangeVars(p *parse.PipeNode, key, value any) {
	values := []any{value}
	if len(p.Decl) == 2 {
		values = []any{key, value}
	}
	for i, d := range p.Decl {
		s.set(d.Ident[0], values[i], p.IsAssign)
	}
}

func (s *state) set(name string, v any, assign bool) {
	if assign {
		for i := range slices.Backward(s.vars) {
			if s.vars[i].name == name {
				s.vars[i].value = v
				return
			}
		}
	}
	s.vars = append(s.vars, variable{name, v})
}

func (s *state) walkTemplate(dot any, n *parse.TemplateNode) error {
	tree := s.template.trees[n.Name]
	if tree == nil {
		return s.fail(n, "template %q not defined", n.Name)
	}
	if s.depth == maxDepth {
		return s.fail(n, "exceeded maximum template depth (%d)", maxDepth)
	}
	var data any
	if n.Pipe != nil {
		v, err := s.pipe(dot, n.Pipe)
		if err != nil {
			return err
		}
		data = v
	}
	inner := *s
	inner.tree, inner.depth, inner.vars = tree, s.depth+1, []variable{{"$", data}}
	return inner.walkList(data, tree.Root)
}
