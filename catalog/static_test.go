package catalog

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tenonhq/tenon"
)

const balance = `{"type":"object","properties":{"account_id":{"type":"string"},"date":{"type":"string","format":"date","description":"theirs"}},"required":["account_id"]}`

func build(t *testing.T, e Tool, input string) (*Snapshot, []error) {
	t.Helper()
	e.RemoteName = "get_bank_balance"
	return Build([]Source{{Server: "bank", Entries: map[string]Tool{"bal": e}, Tools: []tenon.Tool{tool("get_bank_balance", "theirs", input)}}})
}

func TestArguments(t *testing.T) {
	yes, no := true, false
	account := Argument{Name: "account_id", Description: "Bank account identifier"}
	both := []Argument{{Name: "account_id", Type: "string", Description: "Bank account identifier"}, {Name: "date", Type: "string", Description: "Date"}}
	for _, tt := range []struct {
		name  string
		entry Tool
		found string
		want  string // schema
		out   string // why it is withheld
	}{
		{"none", Tool{}, balance, balance, ""},
		{"ignore", Tool{Arguments: both, ArgumentsMode: ArgumentsIgnore}, balance, balance, ""},
		{"overlay of one of two", Tool{Arguments: []Argument{account}}, balance,
			`{"type":"object","properties":{"account_id":{"type":"string","description":"Bank account identifier"},"date":{"type":"string","format":"date","description":"theirs"}},"required":["account_id"],"additionalProperties":false}`, ""},
		{"overlay makes required", Tool{Arguments: []Argument{{Name: "date", Required: &yes}}}, balance,
			`{"type":"object","properties":{"account_id":{"type":"string"},"date":{"type":"string","format":"date","description":"theirs"}},"required":["account_id","date"],"additionalProperties":false}`, ""},
		{"RP-19_overlay_lifts_required", Tool{Arguments: []Argument{{Name: "account_id", Required: &no}}}, balance,
			`{"type":"object","properties":{"account_id":{"type":"string"},"date":{"type":"string","format":"date","description":"theirs"}},"additionalProperties":false}`, ""},
		{"RP-19_overlay_lifts_one_of_two", Tool{Arguments: []Argument{{Name: "a", Required: &no}, {Name: "b"}}},
			`{"type":"object","properties":{"a":{},"b":{}},"required":["a","b"],"additionalProperties":false}`,
			`{"type":"object","properties":{"a":{},"b":{}},"required":["b"],"additionalProperties":false}`, ""},
		{"RP-19_check_finds_required", Tool{Arguments: []Argument{{Name: "account_id", Required: &no}, {Name: "date"}},
			ArgumentsMode: ArgumentsCheck}, balance, "", "argument 'account_id' is required"},
		{"overlay of nothing known", Tool{Arguments: both}, `{"type":"object"}`,
			`{"type":"object","properties":{"account_id":{"type":"string","description":"Bank account identifier"},"date":{"type":"string","description":"Date"}},"additionalProperties":false}`, ""},
		{"RP-18_overlay_of_what_is_not_there", Tool{Arguments: []Argument{{Name: "acct", Required: &yes}, {Name: "date", Description: "D"}}}, balance, strings.NewReplacer(`"theirs"`, `"D"`, `"]}`, `"],"additionalProperties":false}`).Replace(balance), ""},
		{"replace", Tool{Arguments: both, ArgumentsMode: ArgumentsReplace}, strings.Replace(balance, `,"required":["account_id"]`, "", 1),
			`{"type":"object","properties":{"account_id":{"type":"string","description":"Bank account identifier"},"date":{"type":"string","description":"Date"}},"additionalProperties":false}`, ""},
		{"RP-19_replace_by_no_arguments", Tool{Arguments: []Argument{}, ArgumentsMode: ArgumentsReplace}, balance,
			`{"type":"object","properties":{},"additionalProperties":false}`, ""},
		{"RP-19_overlay_of_no_arguments", Tool{Arguments: []Argument{}}, balance, balance, ""},
		{"RP-19_replace_is_required_as_on_the_server", Tool{Arguments: both, ArgumentsMode: ArgumentsReplace}, balance,
			`{"type":"object","properties":{"account_id":{"type":"string","description":"Bank account identifier"},"date":{"type":"string","description":"Date"}},"required":["account_id"],"additionalProperties":false}`, ""},
		{"RP-19_replace_lifts_required", Tool{Arguments: []Argument{{Name: "account_id", Required: &no}}, ArgumentsMode: ArgumentsReplace}, balance,
			`{"type":"object","properties":{"account_id":{"type":"string"}},"additionalProperties":false}`, ""},
		{"RP-19_overlay_of_oneOf", Tool{Arguments: []Argument{{Name: "a", Description: "A!"}}},
			`{"type":"object","oneOf":[{"properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"b":{"type":"string"}},"required":["b"]}]}`,
			`{"type":"object","oneOf":[{"properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"b":{"type":"string"}},"required":["b"]}],"properties":{"a":{"description":"A!"}}}`, ""},
		{"RP-19_overlay_of_a_reference", Tool{Arguments: []Argument{{Name: "a", Description: "A!", Required: &yes}}},
			`{"type":"object","allOf":[{"$ref":"#/$defs/X"}],"$defs":{"X":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}}}}`,
			`{"type":"object","allOf":[{"$ref":"#/$defs/X"}],"$defs":{"X":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}}},"properties":{"a":{"description":"A!"}},"required":["a"]}`, ""},
		{"RP-19_overlay_of_an_argument_elsewhere", Tool{Arguments: []Argument{{Name: "b", Description: "B!"}}},
			`{"type":"object","properties":{"a":{"type":"string"}},"anyOf":[{"properties":{"b":{"type":"string"}}}]}`,
			`{"type":"object","properties":{"a":{"type":"string"},"b":{"description":"B!"}},"anyOf":[{"properties":{"b":{"type":"string"}}}]}`, ""},
		{"RP-19_overlay_of_pattern", Tool{Arguments: []Argument{{Name: "a", Description: "A!"}}},
			`{"type":"object","properties":{"a":{"type":"string"}},"patternProperties":{"^x_":{"type":"string"}}}`,
			`{"type":"object","properties":{"a":{"type":"string","description":"A!"}},"patternProperties":{"^x_":{"type":"string"}}}`, ""},
		{"RP-19_check_of_a_reference", Tool{Arguments: []Argument{{Name: "a"}}, ArgumentsMode: ArgumentsCheck},
			`{"$ref":"#/$defs/X","type":"object","$defs":{"X":{"type":"object","properties":{"a":{"type":"string"}}}}}`,
			`{"$ref":"#/$defs/X","type":"object","$defs":{"X":{"type":"object","properties":{"a":{"type":"string"}}}}}`, ""},
		{"check", Tool{Arguments: both, ArgumentsMode: ArgumentsCheck}, balance, balance, ""},
		{"check finds another name", Tool{Arguments: []Argument{{Name: "acount_id"}, {Name: "date"}}, ArgumentsMode: ArgumentsCheck}, balance, "",
			"the server has no argument 'acount_id' (did you mean 'account_id'?); the server's argument 'account_id' is not described"},
		{"check finds another type", Tool{Arguments: []Argument{{Name: "account_id", Type: "integer"}, {Name: "date"}}, ArgumentsMode: ArgumentsCheck}, balance, "", `argument 'account_id' is "string", not "integer"`},
		{"a schema", Tool{Schema: raw(`{"type":"object","properties":{"address":{"type":"object","properties":{"zip":{"type":"string"}}}},"required":["address"]}`), ArgumentsMode: ArgumentsReplace}, balance,
			`{"type":"object","properties":{"address":{"type":"object","properties":{"zip":{"type":"string"}}}},"required":["address"]}`, ""},
		{"not enabled", Tool{Enabled: new(bool)}, balance, "", "enabled is false"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, problems := build(t, tt.entry, tt.found)
			if tt.out != "" {
				w := s.Withheld()
				if len(w) != 1 || !strings.Contains(w[0].Reason, tt.out) {
					t.Fatalf("withheld %v", w)
				}
				if (len(problems) == 0) != (tt.entry.Enabled != nil) {
					t.Errorf("problems %v", problems)
				}
				return
			}
			if len(s.Tools()) != 1 || len(problems) > 0 {
				t.Fatalf("withheld %v, problems %v", s.Withheld(), problems)
			}
			if diff := cmp.Diff(tt.want, string(s.Tools()[0].Input)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestStaticServer(t *testing.T) {
	s, problems := Build([]Source{{Server: "bank", Static: true, Entries: map[string]Tool{
		"bal":  {RemoteName: "get_bank_balance", Description: "Balance", Arguments: []Argument{{Name: "account_id"}}},
		"ping": {RemoteName: "ping"}}}})
	if len(problems) > 0 || len(s.Tools()) != 2 {
		t.Fatalf("%v, problems %v", s.Names(), problems)
	}
	bal, _ := s.Lookup("bal")
	if bal.Remote != "get_bank_balance" || string(bal.Input) != `{"type":"object","properties":{"account_id":{"type":"string"}},"additionalProperties":false}` {
		t.Errorf("%+v", bal)
	}
	if ping, _ := s.Lookup("ping"); string(ping.Input) != `{"type":"object"}` {
		t.Errorf("%s", ping.Input)
	}
}

func TestValidateModes(t *testing.T) {
	args := []Argument{{Name: "account_id"}, {Name: "date"}}
	for _, tt := range []struct {
		mode, args string
		bad        string
		warns      bool
	}{
		{"", `{"acct":"1"}`, "unknown argument 'acct'; expected account_id, date", false},
		{ValidateError, `{"account_id":7}`, "at /account_id", false},
		{ValidateError, `{"account":"1"}`, "unknown argument 'account'", false},
		{ValidateWarn, `{"account_id":7}`, "", true},
		{ValidateOff, `{"n":1,"s":"1","b":true,"x":null,"a":[1],"big":9007199254740993}`, "", false},
		{ValidateOff, `{"a":1,"a":2}`, "stands twice", false},
		{ValidateWarn, `[1]`, "expected a JSON object", false},
	} {
		t.Run(tt.mode+tt.args, func(t *testing.T) {
			s, _ := build(t, Tool{Arguments: args, Validate: tt.mode}, balance)
			p, err := s.Prepare(&tenon.ToolCall{Name: "bal", Arguments: json.RawMessage(tt.args)}, nil)
			switch {
			case tt.bad != "":
				if err == nil || !strings.Contains(err.Error(), tt.bad) {
					t.Errorf("error %v, want %s", err, tt.bad)
				}
			case err != nil || string(p.Arguments) != tt.args || (p.Warning != nil) != tt.warns:
				t.Errorf("%s, warning %v, error %v", p.Arguments, p.Warning, err)
			}
		})
	}
}
