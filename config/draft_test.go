package config_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"

	"github.com/tenonhq/tenon/config"
)

const drafted = `# What the city sold.
kind: workflow
version: 1
name: report   # the tool
description: >-
  Totals of
  a city.

parameters:
  city: {type: string, description: "Which \"city\""} # a flow map
  days:
    type: integer
    default: 7
    description: 'How long'
inputs:
- {name: sales, description: Rows, columns: {amount: number, city: string}}

steps:
  # the sum
  - id: total
    sql: |
      SELECT sum(amount) AS n
      FROM sales -- all of them
      WHERE city = :city
    params: {city: params.city}

  - {id: words, template: "Sold {{ steps.total.rows[0].n }}"}   # at the end
  - id: note
    tool: put
    args:
      text: '"it''s " + steps.words.text'
      count: 3
    retry: {attempts: 2, delay: 1s}
outputs:
  - {name: totals, description: Sums, from: total}
message: words
# the end
`

func draft(t *testing.T, text string, changes ...config.DraftChange) *config.Draft {
	t.Helper()
	d, err := config.NewDraft("report.yaml", t.TempDir(), text, changes)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func set(value string, path ...any) config.DraftChange {
	c := config.DraftChange{Path: path}
	if value != "null" {
		c.Value = []byte(value)
	}
	return c
}

// TestDraft/UX-10_only_the_value_changes changes every scalar of a workflow in turn. Only the lines of the value may
// differ, and the change back restores every byte outside of them.
func TestDraft(t *testing.T) {
	t.Run("UX-10_only_the_value_changes", func(t *testing.T) {
		var root yaml.Node
		if err := yaml.Unmarshal([]byte(drafted), &root); err != nil {
			t.Fatal(err)
		}
		n := 0
		scalars(root.Content[0], nil, func(path []any, node *yaml.Node) {
			n++
			value := `"other words"`
			if node.Tag == "!!int" {
				value = "5"
			}
			after := draft(t, drafted, set(value, path...)).Text
			head, tail := 0, 0
			for head < min(len(drafted), len(after)) && drafted[head] == after[head] {
				head++
			}
			for tail < min(len(drafted), len(after))-head && drafted[len(drafted)-1-tail] == after[len(after)-1-tail] {
				tail++
			}
			from := offset(drafted, node)
			to := from + len(node.Value) + 2*strings.Count(node.Value, "\n") + 120
			if node.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 {
				to = from + len(strings.ReplaceAll(strings.ReplaceAll(node.Value, `"`, `\"`), "'", "''")) + 2
			}
			if head < from || len(drafted)-tail > to {
				t.Errorf("%v: bytes %d to %d differ, the value has %d to %d:\n%s", path, head, len(drafted)-tail, from, to,
					after)
			}
			if c := strings.Count(after, "#"); c != strings.Count(drafted, "#") {
				t.Errorf("%v: a comment is lost:\n%s", path, after)
			}
		})
		if n < 25 {
			t.Errorf("only %d values were changed", n)
		}
	})
	for name, c := range map[string]struct {
		changes []config.DraftChange
		old, to string
	}{
		"UX-10_a_step_more": {[]config.DraftChange{set(`{"id":"more","template":"x"}`, "steps", 3)},
			"    retry: {attempts: 2, delay: 1s}\n", "    retry: {attempts: 2, delay: 1s}\n  - id: more\n    template: x\n"},
		"UX-10_a_step_less": {[]config.DraftChange{set("null", "steps", 1)},
			"  - {id: words, template: \"Sold {{ steps.total.rows[0].n }}\"}   # at the end\n", ""},
		"UX-10_the_last_output": {[]config.DraftChange{set("null", "outputs", 0)},
			"outputs:\n  - {name: totals, description: Sums, from: total}\n", ""},
		"UX-10_a_new_map": {[]config.DraftChange{set(`"params.days > 1"`, "steps", 2, "when"), set("3", "parallel")},
			"    retry: {attempts: 2, delay: 1s}\n", "    retry: {attempts: 2, delay: 1s}\n    when: \"params.days > 1\"\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got := draft(t, drafted, c.changes...).Text
			want := strings.Replace(drafted, c.old, c.to, 1)
			if strings.Contains(name, "new_map") {
				want = strings.Replace(want, "message: words\n", "message: words\nparallel: 3\n", 1)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// scalars calls f for every scalar value below a node, except in the rows of tables.
func scalars(n *yaml.Node, path []any, f func([]any, *yaml.Node)) {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i < len(n.Content); i += 2 {
			scalars(n.Content[i+1], append(slices.Clip(path), n.Content[i].Value), f)
		}
	case yaml.SequenceNode:
		for i, c := range n.Content {
			scalars(c, append(slices.Clip(path), i), f)
		}
	default:
		f(path, n)
	}
}

func offset(text string, n *yaml.Node) int {
	lines := strings.SplitAfter(text, "\n")
	return len(strings.Join(lines[:n.Line-1], "")) + n.Column - 1
}

func TestDraftMistakes(t *testing.T) {
	for name, c := range map[string]struct {
		old, to string
		want    string
	}{
		"UX-13_none":         {"", "", ""},
		"UX-13_no_yaml":      {"kind: workflow", "kind: [workflow", "report.yaml:"},
		"UX-13_a_typo":       {"    retry:", "    retri:", "report.yaml:33:5: steps[2].retri: "},
		"UX-13_no_such_step": {"message: words", "message: wodrs", "report.yaml:36:10: message.from: there is no step 'wodrs'"},
		"UX-13_a_column":     {"sum(amount)", "sum(amuont)", "report.yaml:22:18: steps[0].sql: no such column"},
		"UX-13_CEL":          {"params: {city: params.city}", "params: {city: params.ctiy}", "report.yaml:25:20: "},
		"UX-13_no_file":      {"template: \"Sold {{ steps.total.rows[0].n }}\"", "table: {csv: none.csv}", "there is no file 'none.csv'"},
	} {
		t.Run(name, func(t *testing.T) {
			d := draft(t, strings.Replace(drafted, c.old, c.to, 1))
			var got []string
			for _, m := range d.Mistakes() {
				got = append(got, m.Error())
			}
			text := strings.Join(got, "\n")
			if c.want == "" && text != "" || !strings.Contains(text, c.want) {
				t.Errorf("mistakes:\n%s\nwant %s", text, c.want)
			}
			if name != "UX-13_no_yaml" && (d.Graph == nil || len(d.Graph.Nodes) < 5) {
				t.Errorf("the graph has to follow the text in spite of mistakes: %+v", d.Graph)
			}
			if name == "UX-13_no_yaml" && d.Value != nil {
				t.Errorf("a value of a text that cannot be read: %s", d.Value)
			}
		})
	}
}

func TestDraftRefuses(t *testing.T) {
	for name, c := range map[string]config.DraftChange{
		"no path":        set("1"),
		"past the end":   set("{}", "steps", 9),
		"into a text":    set("1", "name", "x"),
		"a wrong anchor": set("1", "steps", 0, "id", 3),
	} {
		if _, err := config.NewDraft("w.yaml", t.TempDir(), drafted, []config.DraftChange{c}); err == nil {
			t.Errorf("%s: the change was made", name)
		}
	}
}

func FuzzDraft(f *testing.F) {
	f.Add(drafted, `["steps",0,"id"]`, `"x"`)
	f.Add("steps: []", `["steps",0]`, `{"id":"a"}`)
	f.Add("{a: [1, &x 2, *x]}", `["a",1]`, `null`)
	f.Fuzz(func(t *testing.T, text, path, value string) {
		var p []any
		if len(text) > 10_000 || json.Unmarshal([]byte(path), &p) != nil || !json.Valid([]byte(value)) {
			return
		}
		for i, step := range p {
			switch step := step.(type) {
			case float64:
				p[i] = max(0, int(min(step, 1000)))
			case string:
			default:
				return
			}
		}
		d, err := config.NewDraft("w.yaml", t.TempDir(), text, []config.DraftChange{set(value, p...)})
		if err == nil && d.Value != nil && !json.Valid(d.Value) {
			t.Errorf("the value is no JSON: %s", d.Value)
		}
	})
}
