package policy

import (
	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
)

// Mention is a text in a condition that names something, so that it can be checked whether that exists.
type Mention struct {
	Of    string // tool.server, tool.name, tool.exposed, tool.remote_name, tool.groups, agent
	Value string
}

// Mentions returns the texts with which the condition compares names of tools, servers, groups and agents: OF ==
// "text", OF in ["text"], "text" in OF.
func (c *Condition) Mentions() []Mention {
	var list []Mention
	add := func(of, value ast.Expr) {
		if name, text := nameOf(of), textOf(value); name != "" && text != "" {
			list = append(list, Mention{name, text})
		}
	}
	calls := ast.MatchDescendants(ast.NavigateAST(c.ast.NativeRep()), ast.KindMatcher(ast.CallKind))
	for _, e := range calls {
		args := e.AsCall().Args()
		switch e.AsCall().FunctionName() {
		case operators.Equals:
			add(args[0], args[1])
			add(args[1], args[0])
		case operators.In:
			add(args[1], args[0])
			if args[1].Kind() == ast.ListKind {
				for _, one := range args[1].AsList().Elements() {
					add(args[0], one)
				}
			}
		}
	}
	return list
}

// Always reports whether the condition has the same value for every call, and returns that value.
func (c *Condition) Always() (holds, always bool) {
	e := c.ast.NativeRep().Expr()
	if e.Kind() != ast.LiteralKind {
		return false, false
	}
	holds, always = e.AsLiteral().Value().(bool)
	return holds, always
}

// loops reports whether an expression iterates over lists or maps, as all(), exists() and map() do.
func loops(a *cel.Ast) bool {
	return len(ast.MatchDescendants(ast.NavigateAST(a.NativeRep()), ast.KindMatcher(ast.ComprehensionKind))) > 0
}

// nameOf returns the path of an expression that is the name of a tool, server, group or agent, or "" for any other
// expression.
func nameOf(e ast.Expr) string {
	if e.Kind() == ast.IdentKind && e.AsIdent() == "agent" {
		return "agent"
	}
	if e.Kind() != ast.SelectKind || e.AsSelect().Operand().Kind() != ast.IdentKind ||
		e.AsSelect().Operand().AsIdent() != "tool" {
		return ""
	}
	switch f := e.AsSelect().FieldName(); f {
	case "server", "name", "exposed", "remote_name", "groups":
		return "tool." + f
	}
	return ""
}

func textOf(e ast.Expr) string {
	if e.Kind() != ast.LiteralKind {
		return ""
	}
	text, _ := e.AsLiteral().Value().(string)
	return text
}
