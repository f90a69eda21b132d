package config

import (
	"strings"
	"testing"
)

// TestSlips checks the warnings about mistakes that leave a file valid: misspelled groups and states, and arguments that
// contradict themselves.
func TestSlips(t *testing.T) {
	const file = `
servers: {s: {command: x}}
agents:
  default: {groups: [fim, other, "*", default]}
tools:
  a: {server: s, groups: [fin], next_state: seen}
  b: {server: s, states: [sen, elsewhere, undefined, seen], arguments: [{name: n, type: integer, enum: [a, b], default: c}]}
  c: {server: s, arguments: [{name: n, type: string, enum: [a, b], default: c}, {name: m, type: number, default: 1.5, enum: [1, 1.50]}]}
  d: {server: s, arguments: [{name: n, enum: [1, 2]}, {name: m, type: integer, default: 2.0}, {name: o, type: boolean, default: "no"}]}
`
	c, err := Parse("tenon.yaml", []byte(file), Options{Dir: t.TempDir(), LookupEnv: env()})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, w := range c.Warnings {
		all = append(all, w.Path+": "+w.Message+" "+w.Hint)
	}
	text := strings.Join(all, "\n")
	for name, want := range map[string]string{
		"RP-18_group":   "agents.default.groups[0]: no tool is in the group 'fim' did you mean 'fin'?",
		"RP-18_state":   "tools.b.states[0]: no tool leads to the state 'sen' did you mean 'seen'?",
		"RP-18_enum":    `tools.b.arguments[0]: the argument 'n' contradicts itself: its type is integer, and the allowed value "a" is not`,
		"RP-18_default": `tools.c.arguments[0]: the argument 'n' contradicts itself: the default "c" is not one of its allowed values`,
		"RP-18_type":    `tools.d.arguments[2]: the argument 'o' contradicts itself: its type is boolean, and the default "no" is not`,
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in\n%s", want, text)
			}
		})
	}
	if strings.Count(text, "contradicts") != 3 || strings.Count(text, "no tool") != 2 {
		t.Error(text)
	}
}
