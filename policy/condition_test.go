package policy

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
)

func TestCondition(t *testing.T) {
	yes := true
	l, err := NewLanguage()
	if err != nil {
		t.Fatal(err)
	}
	tool := &tenon.Tool{Server: "cloud", Remote: "pay", Name: "cloud_pay", Description: "Pays", Rules: tenon.ToolRules{Groups: []string{"bank"}}}
	reads := &tenon.Tool{Server: "cloud", Remote: "list_x", Name: "list_x", Annotations: tenon.Annotations{ReadOnly: &yes}}
	tests := []struct {
		name, text string
		tool       *tenon.Tool
		args       string
		want       bool
		bad        string
	}{
		{"the example of the reference", `tool.server == "cloud" && has(args.amount) && args.amount > 1000.0`, tool, `{"amount":1001}`, true, ""},
		{"below", `tool.server == "cloud" && has(args.amount) && args.amount > 1000.0`, tool, `{"amount":1000}`, false, ""},
		{"absent", `tool.server == "cloud" && has(args.amount) && args.amount > 1000.0`, tool, `{}`, false, ""},
		{"annotations have defaults", `tool.annotations.destructive && !tool.annotations.read_only && tool.annotations.open_world`, tool, ``, true, ""},
		{"read-only is not destructive", `tool.annotations.read_only && !tool.annotations.destructive`, reads, ``, true, ""},
		{"functions on texts", `tool.annotations.read_only || tool.name.startsWith('list_')`, reads, ``, true, ""},
		{"groups", `"bank" in tool.groups`, tool, ``, true, ""},
		{"the default group", `tool.groups == ["default"]`, reads, ``, true, ""},
		{"large numbers keep their value", `args.id == 9007199254740993`, tool, `{"id":9007199254740993}`, true, ""},
		{"large numbers differ", `args.id == 9007199254740992`, tool, `{"id":9007199254740993}`, false, ""},
		{"nested", `args.to.exists(x, x.city == "Rome")`, tool, `{"to":[{"city":"Oslo"},{"city":"Rome"}]}`, true, ""},
		{"agent and state", `agent == "a" && state == "undefined" && principal == "local"`, tool, ``, true, ""},
		{"a whole number and a fraction", `args.price * 1.5 > 4.0 && args.price + args.rate == 3.25 && args.price / 2 == 1`, tool, `{"price":3,"rate":0.25}`, true, ""},
		{"a fraction and a whole number", `args.rate * args.price == 0.75 && args.rate - 1 < 0 && args.rate / 2 < 1`, tool, `{"price":3,"rate":0.25}`, true, ""},
		{"whole numbers stay whole", `args.id + 1 == 9007199254740994 && args.big / 2 > 0`, tool, `{"id":9007199254740993,"big":18446744073709551615}`, true, ""},
		{"a number and a text", `args.price + "x" == ""`, tool, `{"price":3}`, false, "no such overload"},
		{"lists and texts are joined", `args.a + ["c"] == ["a", "b", "c"] && "x" + args.a[0] == "xa"`, tool, `{"a":["a","b"]}`, true, ""},
		{"a missing key", `args.amount > 1`, tool, `{}`, false, "no such key: amount"},
		{"types that cannot be compared", `args.amount > 1`, tool, `{"amount":"x"}`, false, "cannot be decided"},
		{"neither true nor false", `args.amount`, tool, `{"amount":"x"}`, false, "not true or false"},
		{"takes too long", `args.l.all(a, args.l.all(b, args.l.all(c, a + b + c > 0)))`, tool, `{"l":[` + strings.Repeat("1,", 299) + `1]}`, false, "cost limit"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := l.Condition(tt.text)
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.Holds(&Facts{Tool: tt.tool, Arguments: json.RawMessage(tt.args), Agent: "a", Principal: "local", State: "undefined"})
			switch {
			case tt.bad == "" && (err != nil || got != tt.want):
				t.Errorf("%v, error %v", got, err)
			case tt.bad != "" && (err == nil || !strings.Contains(err.Error(), tt.bad) || tenon.ErrorCode(err) != tenon.CodeInvalid):
				t.Errorf("error %v, want %q", err, tt.bad)
			}
		})
	}
}

func TestConditionThatCannotBe(t *testing.T) {
	all, err := NewLanguage()
	if err != nil {
		t.Fatal(err)
	}
	tools, err := NewToolLanguage()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, text, want string
		l                *Language
	}{
		{"syntax", `tool.name ==`, "Syntax error", all},
		{"a field that is not", `tool.nmae == "x"`, "undefined field 'nmae'", all},
		{"a nested field that is not", `tool.annotations.readonly`, "undefined field 'readonly'", all},
		{"a variable that is not", `user == "x"`, "undeclared reference to 'user'", all},
		{"no call yet", `has(args.x)`, "undeclared reference to 'args'", tools},
		{"not a condition", `tool.name`, "not true or false", all},
		{"empty", ``, "Syntax error", all},
		{"deep", strings.Repeat("(", 300) + "true" + strings.Repeat(")", 300), "recursion", all},
		{"long", `tool.name == "` + strings.Repeat("x", 5000) + `"`, "size", all},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := tt.l.Condition(tt.text)
			if err == nil || !strings.Contains(err.Error(), tt.want) || tenon.ErrorCode(err) != tenon.CodeConfig {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

func FuzzCondition(f *testing.F) {
	l, err := NewLanguage()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(`tool.name == "x" && args.a > 1.0`, `{"a":2}`)
	f.Add(`args.exists(k, k == "a")`, `{"a":[1,{"b":null}]}`)
	f.Fuzz(func(_ *testing.T, text, args string) {
		if c, err := l.Condition(text); err == nil {
			_, _ = c.Holds(&Facts{Tool: &tenon.Tool{}, Arguments: json.RawMessage(args)})
		}
	})
}
