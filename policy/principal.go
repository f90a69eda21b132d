package policy

import "cel.dev/cel-go/common/ast"

// ReadsPrincipal reports whether a condition of any layer reads the principal, so that decisions can differ between
// principals.
func (l *Layers) ReadsPrincipal() bool {
	for _, layer := range l.list {
		if layer.Rules == nil {
			continue
		}
		for _, rule := range layer.Rules.rules {
			if rule.condition.names("principal") {
				return true
			}
		}
		for _, c := range layer.Rules.conditions {
			if c.names("principal") {
				return true
			}
		}
	}
	return false
}

// names reports whether a condition contains a variable.
func (c *Condition) names(variable string) (found bool) {
	ast.PreOrderVisit(c.ast.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		found = found || e.Kind() == ast.IdentKind && e.AsIdent() == variable
	}))
	return found
}
