package policy

import (
	"cmp"
	"fmt"

	"github.com/tenonhq/tenon"
)

// Rule is one entry of policy.rules: what is decided about the calls that a
// condition holds for.
type Rule struct {
	// CEL over tool, args, agent, principal and state: the rule is about the calls for which it is true.
	When string `yaml:"when"`
	// What happens to such a call.
	Verdict string `yaml:"verdict" enum:"allow,ask,deny"`
	// Why, for the model and the person.
	Reason string `yaml:"reason"`
}

// compiled is a rule that can be evaluated.
type compiled struct {
	Rule
	condition *Condition
	number    int // from 1
}

// Add appends rules to those that stand above all blocks; the first one whose
// condition holds decides. Errors: config (a condition is not one, a verdict is
// none).
func (r *Rules) Add(rules ...Rule) error {
	if len(rules) == 0 {
		return nil
	}
	l, err := NewLanguage()
	if err != nil {
		return err
	}
	for _, rule := range rules {
		c, err := l.Condition(rule.When)
		switch tenon.Verdict(rule.Verdict) {
		case tenon.Allow, tenon.Ask, tenon.Deny:
		default:
			err = tenon.Errorf(tenon.CodeConfig, "the verdict '%s' is none of allow, ask, deny", rule.Verdict)
		}
		if err != nil {
			return tenon.Errorf(tenon.CodeConfig, "policy rule %d: %w", len(r.rules)+1, err)
		}
		r.rules = append(r.rules, compiled{rule, c, len(r.rules) + 1})
	}
	return nil
}

// Compile makes the conditions of all blocks ready. Errors: config (an expression is
// not one; see also [Block.Check]).
func (r *Rules) Compile() error {
	var l *Language
	one := func(b Block) (err error) {
		if err := b.Check(); err != nil {
			return err
		}
		text := b.Approval.If
		if text == "" || r.conditions[text] != nil {
			return nil
		}
		if l == nil {
			if l, err = NewLanguage(); err != nil {
				return err
			}
		}
		if r.conditions == nil {
			r.conditions = map[string]*Condition{}
		}
		if r.conditions[text], err = l.Condition(text); err != nil {
			return tenon.Errorf(tenon.CodeConfig, "approval.if: %w", err)
		}
		return nil
	}
	err := one(r.Defaults)
	for _, blocks := range []map[string]Block{r.Servers, r.Groups, r.Agents} {
		for _, b := range blocks {
			err = cmp.Or(err, one(b))
		}
	}
	for _, b := range r.Tools {
		err = cmp.Or(err, one(b))
	}
	return err
}

// Named is a name of a tool that a condition compares with; see [Condition.Mentions].
type Named struct {
	Mention
	Path string // of the condition in the configuration
}

// Mentions returns the names of tools that conditions of policy.rules are about.
func (r *Rules) Mentions() []Named {
	var list []Named
	for _, rule := range r.rules {
		for _, m := range rule.condition.Mentions() {
			if m.Of == "tool.name" || m.Of == "tool.remote_name" {
				list = append(list, Named{m, fmt.Sprintf("policy.rules[%d].when", rule.number-1)})
			}
		}
	}
	return list
}

// askIf evaluates the condition of a block. One that cannot be decided asks.
func (r *Rules) askIf(text string, f *Facts) (tenon.Verdict, string) {
	c := r.conditions[text]
	if c == nil {
		return tenon.Ask, "approval.if was not compiled"
	}
	switch holds, err := c.Holds(f); {
	case err != nil:
		return tenon.Ask, "approval.if: " + err.Error()
	case holds:
		return tenon.Ask, "approval.if: " + text
	}
	return tenon.Allow, ""
}

// apply has the rules change an opinion. A rule that cannot be decided for a call
// neither lets it through nor forbids it: a person is asked.
func (r *Rules) apply(o Opinion, f *Facts) Opinion {
	for _, rule := range r.rules {
		holds, err := rule.condition.Holds(f)
		switch {
		case err != nil:
			o.Verdict, o.Reason = tenon.Ask, fmt.Sprintf("policy rule %d: %s", rule.number, err)
			return o
		case !holds:
			continue
		}
		o.Verdict, o.Reason = tenon.Verdict(rule.Verdict), rule.Reason
		if o.Reason == "" && o.Verdict != tenon.Allow {
			o.Reason = fmt.Sprintf("policy rule %d: %s", rule.number, rule.When)
		}
		return o
	}
	return o
}
