package config

import (
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

const layersHead = `# Layers and directions

<!-- Generated from config/directions.go by: go test ./config -update. Do not edit. -->

tenon reads up to three files: the administrator's (` + "`/etc/tenon/config.yaml`" + `, writable by root only), the user's
(` + "`~/.config/tenon/config.yaml`" + `) and the project's. [Decision 10](../decisions/0010-layers.md) says why.

Each key declares its direction: what more of it does. "More" is a larger number, the value true, one more entry, a
later word, or another text (text: a removal is less; any: every change counts as more). The combination says how
the values of several layers make the one that holds:

| combination | the value that holds |
| --- | --- |
| min, max | the smallest or the largest value |
| union, intersection | the entries of all layers, or the entries that every layer has |
| strictest | the first of the words in the order shown; for true and false, the value that permits less |
| each | each layer is judged alone, and the strictest verdict wins |
| entry | the value belongs to its entry, and an entry belongs to one layer |
| nearest | the project's value, else the user's, else the administrator's |
| floor | the administrator's value, else the user's, else the project's |

"user" or "admin" in the column "only in" keeps a key out of the files of lower layers.

| key | direction | more is | combination | only in |
| --- | --- | --- | --- | --- |
`

// TestDirections/SEC-F1: a key without a direction fails.
func TestDirections(t *testing.T) {
	var page strings.Builder
	page.WriteString(layersHead)
	eachKey(reflect.TypeFor[Config](), place{}, func(p place, f *field) {
		k, ok := declared().key(p.pattern)
		switch {
		case isObject(*f) && !ok:
			return
		case !ok:
			t.Errorf("%s has no direction; add it to sections in config/directions.go", p.pattern)
			return
		case (k.Measure == MeasureWord) != (len(k.Words) > 0):
			t.Errorf("%s: words go with the measure word", p.pattern)
		}
		for _, w := range f.enum {
			if k.Measure == MeasureWord && !strings.Contains(" "+strings.Join(k.Words, " ")+" ", " "+w+" ") {
				t.Errorf("%s: the word %q has no place in the order", p.pattern, w)
			}
		}
		more := string(k.Measure)
		if k.Measure == MeasureWord {
			more = strings.Join(k.Words, " < ")
		}
		if k.Unlimited && k.Measure == MeasureEntries {
			more += "; none is no limit"
		} else if k.Unlimited {
			more += "; 0 is no limit"
		}
		only := map[Layer]string{LayerUser: "user", LayerAdmin: "admin"}[k.Least]
		direction := string(k.Direction)
		if k.Fact != "" {
			direction += "; loosens if a rule reads `tool." + k.Fact + "`"
		}
		fmt.Fprintf(&page, "| `%s` | %s | %s | %s | %s |\n", k.Path, direction, more, k.Combine, only)
	})
	for _, path := range declared().unused {
		t.Errorf("config/directions.go: there is no key %s", path)
	}
	golden(t, filepath.Join("..", "docs", "reference", "layers.md"), []byte(page.String()))
}

func TestEffect(t *testing.T) {
	for name, tc := range map[string]struct {
		path, before, after string
		want                Direction
	}{
		"limit raised":               {"limits.max_turns", "5", "50", Loosens},
		"limit lowered":              {"limits.max_turns", "5", "2", Tightens},
		"limit the default":          {"limits.max_turns", "", "10", Neutral},
		"limit above the default":    {"limits.max_turns", "", "11", Loosens},
		"limit written again":        {"limits.max_turns", "5", "5", Neutral},
		"no limit":                   {"limits.cost", "1.5", "0", Loosens},
		"a limit at all":             {"limits.cost", "", "3", Tightens},
		"limit removed":              {"budgets.day.tokens", "1000", "", Loosens},
		"time without limit":         {"budgets.day.time", "1h", "", Loosens},
		"expires for ever":           {"policy.defaults.expires", "1h", "", Loosens},
		"duration in other units":    {"limits.run_timeout", "60s", "1m", Neutral},
		"size":                       {"policy.defaults.result_bytes", "64KiB", "1MB", Loosens},
		"rate":                       {"policy.defaults.rate", "10/m", "10/s", Loosens},
		"rate in other units":        {"policy.defaults.rate", "60/m", "1/s", Neutral},
		"rate none":                  {"policy.defaults.rate", "10/m", "none", Loosens},
		"approval never":             {"policy.defaults.approval.mode", "", "never", Loosens},
		"approval always":            {"policy.defaults.approval.mode", "never", "always", Tightens},
		"approval.if changed":        {"policy.defaults.approval.if", "true", "false", Loosens},
		"pins off":                   {"policy.pins.changed", "ask", "off", Loosens},
		"exclude emptied":            {"servers.a.b.exclude", "[x, y]", "[x]", Loosens},
		"exclude grows":              {"servers.a.exclude", "[x]", "[y, x]", Tightens},
		"include grows":              {"servers.a.include", "[x]", "[x, y]", Loosens},
		"include at first":           {"servers.a.include", "", "[x]", Tightens},
		"commands at first":          {"policy.commands.allow", "", "[npx]", Tightens},
		"commands emptied":           {"policy.commands.allow", "[npx]", "[]", Loosens},
		"commands exchanged":         {"policy.commands.allow", "[npx]", "[sh]", Loosens},
		"redact emptied":             {"store.redact", "[iban]", "[]", Loosens},
		"command changed":            {"servers.a.command", "npx", "sh", Loosens},
		"command removed":            {"servers.a.command", "npx", "", Tightens},
		"arguments in another order": {"servers.a.args", "[a, b]", "[b, a]", Loosens},
		"where removed":              {"servers.a.where", "true", "", Loosens},
		"where at first":             {"servers.a.where", "", "true", Tightens},
		"where changed":              {"servers.a.where", "a", "b", Loosens},
		"rule removed":               {"policy.rules", "[{when: a, verdict: deny}]", "", Loosens},
		"a server more":              {"servers", "", "{a: {command: x}}", Loosens},
		"title":                      {"servers.a.title", "A", "B", Neutral},
		"trusted false":              {"servers.a.trusted", "", "false", Tightens},
		"a value that is not valid":  {"limits.max_turns", "5", "many", Loosens},
		"redact of a group":          {"policy.groups.x.y.redact", "[a]", "[]", Loosens},
		"variable of a server":       {"servers.a.env.PATH", "x", "y", Loosens},
	} {
		t.Run(name, func(t *testing.T) {
			k, ok := DirectionOf(tc.path)
			if !ok {
				t.Fatalf("%s has no direction", tc.path)
			}
			if got := k.Effect(tc.before, tc.after); got != tc.want {
				t.Errorf("%s: %q to %q: %s, want %s", tc.path, tc.before, tc.after, got, tc.want)
			}
		})
	}
}
