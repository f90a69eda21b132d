package policy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"cel.dev/cel-go/common/ast"

	"github.com/tenonhq/tenon"
)

// names are the values of tool.name and tool.exposed in an expression.
type names struct{ name, exposed string }

// named returns the names of the tool for conditions. tool.name is the remote name, because another server can change
// the exposed name.
func (f *Facts) named() names {
	if f.names != nil {
		return *f.names
	}
	return names{f.Tool.Remote, f.Tool.Name}
}

// views returns the facts under all current and former names of the tool that the condition uses. The facts
// themselves come first. The others have the name that the tool wanted before a clash, the exposed name, or the name
// that it gets in a clash.
func (c *Condition) views(f *Facts) []*Facts {
	list := []*Facts{f}
	if f.Tool == nil || !c.name && !c.exposed {
		return list
	}
	seen := []names{f.named()}
	wanted := cmp.Or(f.Tool.Rules.Wanted, f.Tool.Name)
	clash := f.Tool.Server + "_" + wanted // the exposed name if another server has a tool of the same name
	for _, n := range []names{{f.Tool.Remote, wanted}, {wanted, wanted}, {f.Tool.Name, f.Tool.Name},
		{f.Tool.Remote, clash}} {
		if !c.name {
			n.name = seen[0].name
		}
		if !c.exposed {
			n.exposed = seen[0].exposed
		}
		if slices.Contains(seen, n) {
			continue
		}
		seen = append(seen, n)
		view := *f
		view.names, view.same = &n, f
		list = append(list, &view)
	}
	return list
}

// Any evaluates a condition that restricts. It is true if the condition is true under any current or former name of
// the tool, so that a server cannot evade it by taking a name.
func (c *Condition) Any(f *Facts) (bool, error) {
	if !c.name && !c.exposed {
		return c.Holds(f)
	}
	var first error
	for _, view := range c.views(f) {
		holds, err := c.Holds(view)
		if holds && err == nil {
			return true, nil
		}
		first = cmp.Or(first, err)
	}
	return false, first
}

// All evaluates a condition that permits. If it uses tool.name, it must be true of the remote name and of the exposed
// name. tool.exposed is the name that the model sees, which is unique.
func (c *Condition) All(f *Facts) (bool, error) {
	for _, view := range c.views(f) {
		if view.named().exposed != f.Tool.Name {
			if !c.name {
				continue
			}
			view.names.exposed = f.Tool.Name
		}
		if holds, err := c.Holds(view); !holds || err != nil {
			return false, err
		}
	}
	return true, nil
}

// For evaluates the condition of a rule with a verdict: with [Condition.All] for allow, otherwise with
// [Condition.Any].
func (c *Condition) For(v tenon.Verdict, f *Facts) (bool, error) {
	if v == tenon.Allow {
		return c.All(f)
	}
	return c.Any(f)
}

// UsesName reports whether the expression uses tool.name. This is ambiguous if a tool's exposed name differs from its
// remote name.
func (c *Condition) UsesName() bool { return c.name }

// CheckNames returns an error if a rule or a block uses tool.name and why is not empty. why is the reason why the
// exposed name of a tool can differ from its remote name. The error has code config and contains the rewritten
// expression.
func (r *Rules) CheckNames(why string) error {
	if why == "" {
		return nil
	}
	ambiguous := func(path string, c *Condition) error {
		return tenon.Errorf(tenon.CodeConfig,
			"%s: tool.name is ambiguous: %s; write %s, or tool.exposed for the name that the model sees", path, why,
			c.WithName("remote_name"))
	}
	for _, rule := range r.rules {
		if rule.condition.UsesName() {
			return ambiguous(fmt.Sprintf("policy rule %d", rule.number), rule.condition)
		}
	}
	for _, text := range slices.Sorted(maps.Keys(r.conditions)) {
		if c := r.conditions[text]; c.UsesName() {
			return ambiguous("approval.if", c)
		}
	}
	return nil
}

// WithName returns the expression with each tool.name replaced by another field.
func (c *Condition) WithName(field string) string {
	text := []rune(c.text)
	for _, dot := range slices.Backward(c.selections("name")) {
		from := dot + 1
		for from < len(text) && text[from] != 'n' {
			from++ // white space, or a back quote
		}
		if to := from + len("name"); to <= len(text) {
			text = slices.Concat(text[:from], []rune(field), text[to:])
		}
	}
	return string(text)
}

// selections returns the positions in the text at which the expression selects a field of a tool: the positions of
// the dots, in order.
func (c *Condition) selections(field string) []int {
	var list []int
	tree := c.ast.NativeRep()
	for _, e := range ast.MatchDescendants(ast.NavigateAST(tree), ast.KindMatcher(ast.SelectKind)) {
		s := e.AsSelect()
		if s.FieldName() != field || tree.GetType(s.Operand().ID()).TypeName() != toolType {
			continue
		}
		at, _ := tree.SourceInfo().GetOffsetRange(e.ID())
		if start := int(at.Start); !slices.Contains(list, start) {
			list = append(list, start)
		}
	}
	slices.Sort(list)
	return list
}

// CheckNames calls [Rules.CheckNames] for the rules of every layer.
func (l *Layers) CheckNames(why string) error {
	for _, layer := range l.list {
		if err := layer.Rules.CheckNames(why); err != nil {
			return err
		}
	}
	return nil
}
