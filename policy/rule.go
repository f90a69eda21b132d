package policy

import (
	"cmp"
	"fmt"

	"github.com/tenonhq/tenon"
)

// Rule is one entry of policy.rules: a condition, and the verdict on calls that match it.
type Rule struct {
	// Condition in CEL over tool, server, args, agent, principal and state. under(args.path, "/srv") is true for an
	// absolute path to that folder or below it, with `..` and links resolved. For other kinds of paths it cannot be
	// evaluated, and the call needs approval.
	When string `yaml:"when"`
	// The verdict on a matching call.
	Verdict string `yaml:"verdict" enum:"allow,ask,deny"`
	// Reason that the model and the person see.
	Reason string `yaml:"reason"`
}

// compiled is a rule that can be evaluated.
type compiled struct {
	Rule
	condition *Condition
	number    int // from 1
}

// Add appends rules that override all blocks. The first rule whose condition is true decides. Errors: config (an
// invalid condition or verdict).
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

// Compile compiles the conditions of all blocks. Errors: config (an invalid expression; see also [Block.Check]).
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
	Path string // path of the condition in the configuration
}

// Mentions returns the names of tools with which conditions of policy.rules compare.
func (r *Rules) Mentions() []Named {
	var list []Named
	for _, rule := range r.rules {
		for _, m := range rule.condition.Mentions() {
			if m.Of == "tool.name" || m.Of == "tool.remote_name" || m.Of == "tool.exposed" {
				list = append(list, Named{m, fmt.Sprintf("policy.rules[%d].when", rule.number-1)})
			}
		}
	}
	return list
}

// askIf evaluates the condition of a block. If it cannot be evaluated, the call asks.
func (r *Rules) askIf(text string, f *Facts) (tenon.Verdict, string) {
	c := r.conditions[text]
	if c == nil {
		return tenon.Ask, "approval.if was not compiled"
	}
	switch holds, err := c.Any(f); {
	case err != nil:
		return tenon.Ask, "approval.if: " + err.Error()
	case holds:
		return tenon.Ask, "approval.if: " + text
	}
	return tenon.Allow, ""
}

// apply returns the verdict of the first rule that matches a call. If a rule cannot be evaluated, the call asks: the
// rule neither permits nor forbids it.
func (r *Rules) apply(f *Facts) (v tenon.Verdict, reason string, matched bool) {
	for _, rule := range r.rules {
		holds, err := rule.condition.For(tenon.Verdict(rule.Verdict), f)
		switch {
		case err != nil:
			return tenon.Ask, fmt.Sprintf("policy rule %d: %s", rule.number, err), true
		case !holds:
			continue
		}
		v, reason = tenon.Verdict(rule.Verdict), rule.Reason
		if reason == "" && v != tenon.Allow {
			reason = fmt.Sprintf("policy rule %d: %s", rule.number, rule.When)
		}
		return v, reason, true
	}
	return "", "", false
}
