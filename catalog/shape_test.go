package catalog

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/policy"
)

func tool(name, description, input string) tenon.Tool {
	return tenon.Tool{Remote: name, Description: description, Input: json.RawMessage(input)}
}

func raw(s string) json.RawMessage { return json.RawMessage(s) }

const readFile = `{"type":"object","properties":{"path":{"type":"string","description":"where"},"root":{"type":"string"},"internal_id":{"type":"integer"}},"required":["path","root"]}`

func TestTransform(t *testing.T) {
	upper := func(t tenon.Tool) *tenon.Tool { t.Name = strings.ToUpper(t.Name); return &t }
	drop := func(tenon.Tool) *tenon.Tool { return nil }
	hidden := `{"type":"object","properties":{"path":{"type":"string","description":"where"},"root":{"type":"string"}},"required":["path","root"]}`
	tests := []struct {
		name        string
		naming      Naming
		steps       []Transform
		want        string // name
		description string
		input       string
		out         string // reason
	}{
		{"nothing", Naming{}, nil, "read_file", "Reads a file", readFile, ""},
		{"a template", Naming{Template: "mcp_{server}_{tool}"}, nil, "mcp_t_read_file", "Reads a file", readFile, ""},
		{"prefix", Naming{}, []Transform{{Prefix: "mcp_"}}, "mcp_read_file", "Reads a file", readFile, ""},
		{"rename, then prefix", Naming{}, []Transform{{Rename: map[string]string{"read_file": "cat"}}, {Prefix: "mcp_"}}, "mcp_cat", "Reads a file", readFile, ""},
		{"prefix, then rename", Naming{}, []Transform{{Prefix: "mcp_"}, {Rename: map[string]string{"mcp_read_file": "cat"}}}, "cat", "Reads a file", readFile, ""},
		{"describe", Naming{}, []Transform{{Describe: "[{server} {tool}] {description}"}}, "read_file", "[t read_file] Reads a file", readFile, ""},
		{"hide", Naming{}, []Transform{{HideParams: []string{"internal_id"}}}, "read_file", "Reads a file", hidden, ""},
		{"hide what is required", Naming{}, []Transform{{HideParams: []string{"path"}}}, "", "", "", "hide_params would hide the required parameter 'path'"},
		{"set", Naming{}, []Transform{{SetParams: map[string]json.RawMessage{"root": raw(`"/w"`)}}}, "read_file", "Reads a file",
			`{"type":"object","properties":{"path":{"type":"string","description":"where"},"internal_id":{"type":"integer"}},"required":["path"]}`, ""},
		{"set what does not fit", Naming{}, []Transform{{SetParams: map[string]json.RawMessage{"root": raw(`7`)}}}, "", "", "", "set_params.root: the value does not fit"},
		{"a function", Naming{}, []Transform{{Func: upper}, {Prefix: "x_"}}, "x_READ_FILE", "Reads a file", readFile, ""},
		{"a function that drops", Naming{}, []Transform{{Func: drop}}, "", "", "", "transform[0]: the function left it out"},
		{"a name that providers refuse", Naming{}, []Transform{{Prefix: "a.b/"}}, "a-b-read_file", "Reads a file", readFile, ""},
		{"other characters", Naming{Allow: "a-z", Replace: new(string)}, nil, "readfile", "Reads a file", readFile, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, _ := Build([]Source{{Server: "t", Trusted: true, Naming: tt.naming, Transform: tt.steps, Tools: []tenon.Tool{tool("read_file", "Reads a file", readFile)}}})
			if tt.out != "" {
				if w := s.Withheld(); len(w) != 1 || !strings.Contains(w[0].Reason, tt.out) {
					t.Errorf("withheld %v, want %q", w, tt.out)
				}
				return
			}
			if len(s.Tools()) != 1 {
				t.Fatalf("withheld: %v", s.Withheld())
			}
			got := s.Tools()[0]
			if got.Name != tt.want || got.Description != tt.description || string(got.Input) != tt.input || got.Remote != "read_file" {
				t.Errorf("got %s %q %s", got.Name, got.Description, got.Input)
			}
		})
	}
}

func Test_AI20_ChainOfTransformers(t *testing.T) {
	chain := func(steps ...Transform) *Snapshot {
		s, _ := Build([]Source{{Server: "t", Transform: steps, Tools: []tenon.Tool{tool("a", "", readFile), tool("b", "", readFile)}}})
		return s
	}
	rename := Transform{Rename: map[string]string{"a": "new"}}
	prefix := Transform{Prefix: "p_"}
	if got := chain(rename, prefix).Names(); !cmp.Equal(got, []string{"p_b", "p_new"}) {
		t.Errorf("rename then prefix: %v", got)
	}
	if got := chain(prefix, rename).Names(); !cmp.Equal(got, []string{"p_a", "p_b"}) {
		t.Errorf("prefix then rename: %v", got)
	}
	s := chain(Transform{Func: func(t tenon.Tool) *tenon.Tool {
		if t.Remote == "b" {
			return nil
		}
		return &t
	}})
	if got := s.Names(); !cmp.Equal(got, []string{"a"}) {
		t.Errorf("names %v", got)
	}
	want := []Withheld{{"t", "b", "transform[0]: the function left it out"}}
	if diff := cmp.Diff(want, s.Withheld()); diff != "" {
		t.Error(diff)
	}
}

func TestFixedArguments(t *testing.T) {
	s, problems := Build([]Source{{Server: "t", Tools: []tenon.Tool{tool("read_file", "", readFile), {Remote: "text", Input: raw(`{"type":"string","minLength":2}`)}},
		Transform: []Transform{{SetParams: map[string]json.RawMessage{"root": raw(`"/w"`)}}, {HideParams: []string{"internal_id"}}}}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for _, tt := range []struct{ name, tool, args, want, bad string }{
		{"the fixed one is added", "read_file", `{"path":"a"}`, `{"path":"a","root":"/w"}`, ""},
		{"numbers stay", "read_file", `{"path":"a","n":9007199254740993}`, `{"path":"a","n":9007199254740993,"root":"/w"}`, ""},
		{"the model cannot set it", "read_file", `{"path":"a","root":"/etc"}`, "", "unknown argument 'root'"},
		{"nor what is hidden", "read_file", `{"path":"a","internal_id":1}`, "", "unknown argument 'internal_id'"},
		{"a schema that is not an object's", "text", `{"input":"abc"}`, `"abc"`, ""},
		{"is still checked", "text", `{"input":"a"}`, "", "/input"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := s.Prepare(&tenon.ToolCall{Name: tt.tool, Arguments: raw(tt.args)}, nil)
			if tt.bad != "" {
				if err == nil || !strings.Contains(err.Error(), tt.bad) {
					t.Errorf("error %v", err)
				}
				return
			}
			if err != nil || string(p.Arguments) != tt.want {
				t.Errorf("%s, error %v", p.Arguments, err)
			}
			if err := s.CheckEdited(&tenon.ToolCall{Name: tt.tool, Arguments: p.Arguments}, nil); err != nil {
				t.Errorf("what was made is refused as an edit: %v", err)
			}
		})
	}
	if err := s.CheckEdited(&tenon.ToolCall{Name: "read_file", Arguments: raw(`{"path":"a","root":"/etc"}`)}, nil); err == nil || !strings.Contains(err.Error(), `set to "/w" by the configuration`) {
		t.Errorf("a person changed what is fixed: %v", err)
	}
	big, _ := Build([]Source{{Server: "t", Tools: []tenon.Tool{{Remote: "big", Input: raw(`{"type":"object","properties":{"n":{}}}`)}},
		Transform: []Transform{{SetParams: map[string]json.RawMessage{"n": raw(`9007199254740993`)}}}}})
	if err := big.CheckEdited(&tenon.ToolCall{Name: "big", Arguments: raw(`{"n":9007199254740992}`)}, nil); err == nil {
		t.Error("a number that is fixed lost its last digit, as in a browser, and nobody said so")
	}
}

func TestWithheld(t *testing.T) {
	deep := strings.Repeat(`{"properties":{"a":`, 40) + `{}` + strings.Repeat(`}}`, 40)
	wide := `{"enum":[` + strings.Repeat("1,", 30000) + `1]}`
	for _, tt := range []struct{ name, schema, want string }{
		{"false", `false`, "its schema is false"},
		{"a number", `7`, "not a JSON Schema"},
		{"a list", `[]`, "not a JSON Schema"},
		{"type is a number", `{"type":7}`, "the type of its schema is a number"},
		{"type is null", `{"type":null}`, "the type of its schema is null"},
		{"type is unknown", `{"type":"text"}`, `"text"`},
		{"deep", deep, "levels"},
		{"very deep", strings.Repeat(`{"not":`, 100000) + `{}` + strings.Repeat(`}`, 100000), "too deep"},
		{"wide", wide, "20000 values"},
		{"a circle", `{"$ref":"#"}`, "only refers to itself"},
		{"a circle of two", `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`, "only refers to itself"},
		{"a hidden name", `{"properties":{"a\u200b":{}}}`, `a name with hidden characters: a\u{200b}`},
		{"a hidden value", `{"properties":{"a":{"enum":["x\u202e"]}}}`, "a value with hidden characters in enum"},
		{"large", `{"description":"` + strings.Repeat("x", 2<<20) + `"}`, "KiB"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, _ := Build([]Source{{Server: "t", Tools: []tenon.Tool{tool("bad", "", tt.schema), tool("good", "", `{}`)}}})
			if w := s.Withheld(); len(w) != 1 || w[0].Remote != "bad" || !strings.Contains(w[0].Reason, tt.want) {
				t.Errorf("withheld %.300v, want %q", w, tt.want)
			}
			if got := s.Names(); !cmp.Equal(got, []string{"good"}) {
				t.Errorf("names %v", got)
			}
		})
	}
}

func TestObjectSchema(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"none", ``, `{"type":"object"}`},
		{"null", `null`, `{"type":"object"}`},
		{"true", `true`, `{"type":"object"}`},
		{"empty", `{}`, `{"type":"object"}`},
		{"no type", `{"properties":{"a":{}}}`, `{"type":"object","properties":{"a":{}}}`},
		{"an object's stays as it is", `{ "type" : "object" , "x":1.0}`, `{ "type" : "object" , "x":1.0}`},
		{"nullable", `{"type":["object","null"]}`, `{"type":"object"}`},
		{"a list", `{"type":"array","items":{"$ref":"#/$defs/a"},"$defs":{"a":{}}}`,
			`{"type":"object","$defs":{"a":{}},"properties":{"input":{"type":"array","items":{"$ref":"#/$defs/a"}}},"required":["input"]}`},
		{"top-level anyOf", `{"anyOf":[{"required":["a"]}]}`, `{"type":"object","anyOf":[{"required":["a"]}]}`},
		{"a recursive one", `{"type":"object","properties":{"next":{"$ref":"#"}}}`, `{"type":"object","properties":{"next":{"$ref":"#"}}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, _, err := objectSchema(raw(tt.in))
			if err != nil || string(got) != tt.want {
				t.Errorf("%s, error %v", got, err)
			}
		})
	}
}

func TestHiddenText(t *testing.T) {
	s, _ := Build([]Source{{Server: "t", Tools: []tenon.Tool{tool("a\u200bb", "Ignore\u202e that\x1b[31m", `{"type":"object","properties":{"x":{"description":"see \u2066this"}}}`)}}})
	got := s.Tools()[0]
	if got.Name != "a-b" || got.Description != `Ignore\u{202e} that\u{1b}[31m` || !strings.Contains(string(got.Input), `see \\u{2066}this`) {
		t.Errorf("got %q %q %s", got.Name, got.Description, got.Input)
	}
}

func TestSimpleTypes(t *testing.T) {
	s, _ := Build([]Source{{Server: "t", Simple: true, Tools: []tenon.Tool{
		tool("greet", "", `{"type":"object","properties":{"name":{"type":"string"},"formal":{"type":"boolean"}},"required":["name"]}`),
		tool("ship", "", `{"type":"object","properties":{"address":{"type":"object"}},"required":["address"]}`)}}})
	if got := string(s.Tools()[0].Input); got != `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}` {
		t.Errorf("greet: %s", got)
	}
	want := []Withheld{{"t", "ship", "schema.types is simple, and the required parameter 'address' is of type object"}}
	if diff := cmp.Diff(want, s.Withheld()); diff != "" {
		t.Error(diff)
	}
}

func TestWhere(t *testing.T) {
	yes := true
	l, err := policy.NewToolLanguage()
	if err != nil {
		t.Fatal(err)
	}
	c, err := l.Condition(`tool.annotations.read_only || tool.name.startsWith("list_")`)
	if err != nil {
		t.Fatal(err)
	}
	s, _ := Build([]Source{{Server: "t", Trusted: true, Where: c, Tools: []tenon.Tool{
		{Remote: "a", Annotations: tenon.Annotations{ReadOnly: &yes}}, {Remote: "list_b"}, {Remote: "c"}, {Remote: "d"}},
		Entries: map[string]Tool{"d": {RemoteName: "d", Annotations: Annotations{ReadOnly: &yes}}}}})
	if got := s.Names(); !cmp.Equal(got, []string{"a", "d", "list_b"}) {
		t.Errorf("names %v", got)
	}
	if w := s.Withheld(); len(w) != 1 || !strings.HasPrefix(w[0].Reason, "where: tool.annotations") {
		t.Errorf("withheld %v", w)
	}
}

func TestInertRules(t *testing.T) {
	_, problems := Build([]Source{{Server: "t", Include: []string{"*", "nope_*"}, Tools: tools("x"), Transform: []Transform{
		{Rename: map[string]string{"y": "z"}}, {HideParams: []string{"p"}}, {SetParams: map[string]json.RawMessage{"q": raw("1")}}}}})
	var got []string
	for _, p := range problems {
		got = append(got, p.Error())
	}
	want := []string{
		"servers.t.include 'nope_*': no tool of the server matches 'nope_*'",
		"servers.t.transform[0].rename.y: no tool has the name 'y' at this step",
		"servers.t.transform[1].hide_params.p: no tool has the parameter 'p'",
		"servers.t.transform[2].set_params.q: no tool has the parameter 'q'",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestCollisions(t *testing.T) {
	for _, tt := range []struct {
		mode     string
		want     []string
		withheld int
	}{
		{"", []string{"a_add", "b_add", "x"}, 0},
		{CollisionSuffix, []string{"add_1", "add_2", "x"}, 0},
		{CollisionError, []string{"x"}, 2},
	} {
		t.Run(tt.mode, func(t *testing.T) {
			n := Naming{OnCollision: tt.mode}
			for _, sources := range [][]Source{{{Server: "a", Naming: n, Tools: tools("add", "x")}, {Server: "b", Naming: n, Tools: tools("add")}},
				{{Server: "b", Naming: n, Tools: tools("add")}, {Server: "a", Naming: n, Tools: tools("add", "x")}}} {
				s, problems := Build(sources)
				if !cmp.Equal(s.Names(), tt.want) || len(s.Withheld()) != tt.withheld || len(problems) != tt.withheld {
					t.Errorf("names %v, withheld %v, problems %v", s.Names(), s.Withheld(), problems)
				}
			}
		})
	}
}

// TestMadeUpNames lists tools whose names look like the names that resolve a clash.
func TestMadeUpNames(t *testing.T) {
	s, _ := Build([]Source{{Server: "a", Tools: tools("add", "a_add", "a.add", "a_add_"+hash("a", "add"), "b_add")}, {Server: "b", Tools: tools("add", "a_a_add")}})
	if names := slices.Compact(s.Names()); len(names) != 7 {
		t.Errorf("names %v", names)
	}
}

func TestVisible(t *testing.T) {
	entries := map[string]Tool{"a": {RemoteName: "a"}, "b": {RemoteName: "b", Groups: []string{"x", "y"}}, "c": {RemoteName: "c", Groups: []string{}},
		"d": {RemoteName: "d", States: []string{"checked"}}, "e": {RemoteName: "e", States: []string{"*"}, Groups: []string{"default", "x"}}}
	s, _ := Build([]Source{{Server: "t", Tools: tools("a", "b", "c", "d", "e"), Entries: entries}})
	for _, tt := range []struct {
		groups, state, want string
	}{
		{"default", "undefined", "a e"},
		{"default", "checked", "a d e"},
		{"*", "undefined", "a b c e"},
		{"", "undefined", ""},
		{"x", "undefined", "b e"},
		{"y", "undefined", "b"},
		{"y default", "checked", "a b d e"},
		{"none", "checked", ""},
	} {
		for _, snapshot := range []*Snapshot{s, must(Decode(s.Encode()))} { // a resumed run decodes its snapshot
			var names []string
			for _, t := range snapshot.Tools() {
				if InGroups(t, strings.Fields(tt.groups)) && InState(t, tt.state) {
					names = append(names, t.Name)
				}
			}
			if got := strings.Join(names, " "); got != tt.want {
				t.Errorf("groups [%s], state %s: %s, want %s", tt.groups, tt.state, got, tt.want)
			}
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestExplain(t *testing.T) {
	s, _ := Build([]Source{{Server: "a", Transform: []Transform{{Prefix: "p_"}, {Describe: "[A] {description}"}}, Tools: []tenon.Tool{tool("x.y", "Text", "{}")}}, {Server: "b", Tools: tools("p_x-y")}})
	var got []string
	for _, st := range s.Explain("a", "x.y") {
		got = append(got, fmt.Sprintf("%s %s: %s -> %s", st.Step, st.Field, st.Before, st.After))
	}
	want := []string{
		`schema input_schema: {} -> {"type":"object"}`,
		`transform[0].prefix name: x.y -> p_x.y`,
		`transform[1].describe description: Text -> [A] Text`,
		`naming name: p_x.y -> p_x-y`,
		`unique name: p_x-y -> a_p_x-y`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if s.Explain("c", "z") != nil {
		t.Error("a server that is not there")
	}
}

func TestMergeKeepsWhatItWasGiven(t *testing.T) {
	a, b := Shape(Source{Server: "a", Tools: tools("x", "y")}), Shape(Source{Server: "b", Tools: tools("y")})
	before, _ := Merge([]*Listing{a, b})
	alone, _ := Merge([]*Listing{a})
	if !cmp.Equal(before.Names(), []string{"a_y", "b_y", "x"}) || !cmp.Equal(alone.Names(), []string{"x", "y"}) {
		t.Errorf("names %v, alone %v", before.Names(), alone.Names())
	}
	// AI-10 in part: an earlier snapshot keeps its definitions and still finds the tools of calls.
	if _, ok := before.Lookup("b_y"); !ok || len(before.Tools()) != 3 {
		t.Error("the first snapshot has changed")
	}
	if again, _ := Decode(before.Encode()); again.Digest() != before.Digest() {
		t.Error("encoded parts differ from the whole")
	}
}

// Test_AI10_TwoViews checks that a snapshot has both the definition of a tool and the target of its calls, or neither.
func Test_AI10_TwoViews(t *testing.T) {
	src := Source{Server: "a", Tools: tools("x", "y")}
	before, _ := Build([]Source{src})
	src.Tools = src.Tools[:1]
	after, _ := Build([]Source{src})
	has := func(s *Snapshot) (definition, call bool) {
		_, err := s.Prepare(&tenon.ToolCall{Name: "y"}, nil)
		return slices.ContainsFunc(s.Tools(), func(t *tenon.Tool) bool { return t.Name == "y" }), err == nil
	}
	if d, c := has(before); !d || !c {
		t.Errorf("the snapshot before: definition %v, call %v", d, c)
	}
	if d, c := has(after); d || c {
		t.Errorf("after the removal: definition %v, call %v", d, c)
	}
}

// Test_TG2_ConfiguredArguments checks that configured arguments keep their order, and that a tool without arguments has
// an empty list.
func Test_TG2_ConfiguredArguments(t *testing.T) {
	s, _ := Build([]Source{{Server: "bank", Tools: tools("get_bank_balance", "ping"), Entries: map[string]Tool{"bal": {RemoteName: "get_bank_balance",
		Arguments: []Argument{{Name: "date", Type: "string", Description: "Date"}, {Name: "account_id", Type: "integer", Description: "Account"}}}}}})
	bal, _ := s.Lookup("bal")
	want := []Parameter{{"date", "string", "Date", false}, {"account_id", "integer", "Account", false}}
	if diff := cmp.Diff(want, Parameters(bal)); diff != "" {
		t.Error(diff)
	}
	ping, _ := s.Lookup("ping")
	if got := Parameters(ping); got == nil || len(got) != 0 {
		t.Errorf("a tool without arguments has %v", got)
	}
}
