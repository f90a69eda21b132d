package policy

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestTemplate(t *testing.T) {
	language, err := NewTemplates()
	if err != nil {
		t.Fatal(err)
	}
	const args = `{"q":"a b/c?\"d\"\n","n":9007199254740993,"f":1.5,"b":true,"x":null,"l":[1,"z"],"o":{"k":[null,{"m":"é"}]},"inj":"\",\"admin\":true,\"z\":\"","brace":"}}"}`
	tests := []struct {
		name, template string
		how            Escape
		want, bad      string
	}{
		{"no expression", "plain } text", EscapeNone, "plain } text", ""},
		{"a text as it is", "q: {{ args.q }}.", EscapeNone, "q: a b/c?\"d\"\n.", ""},
		{"large numbers stay", "{{args.n}} {{args.f}} {{args.b}} {{args.x}}", EscapeNone, "9007199254740993 1.5 true null", ""},
		{"values as JSON", "{{args.l}} {{args.o}}", EscapeNone, `[1,"z"] {"k":[null,{"m":"é"}]}`, ""},
		{"braces in a text of the expression", `{{ "}}" + "{{" }}`, EscapeNone, "}}{{", ""},
		{"a map in the expression", `{{ {"a": args.n} }}`, EscapeNone, `{"a":9007199254740993}`, ""},
		{"keys of a map are texts", `{{ {1: 2, 3: args.f} }} {{ {true: args.n} }}`, EscapeNone, `{"1":2,"3":1.5} {"true":9007199254740993}`, ""},
		{"times", `{{ timestamp("2026-02-03T04:05:06Z") }} {{ duration("90s") }}`, EscapeNone, "2026-02-03T04:05:06Z 90s", ""},
		{"times in JSON", `{"at":"{{ timestamp("2026-02-03T04:05:06Z") }}","l":{{ [duration("90s")] }},"d":{{ duration("1.5s") }}}`, EscapeJSON, `{"at":"2026-02-03T04:05:06Z","l":["90s"],"d":"1.5s"}`, ""},
		{"a fraction of a whole number", "{{ args.f * 2 }} {{ 3 / args.f }} {{ args.f + args.l[0] }}", EscapeNone, "3 2 2.5", ""},
		{"has", `{{ has(args.no) ? args.no : "none" }}`, EscapeNone, "none", ""},
		{"base64", "{{ base64(args.q) }}", EscapeNone, "YSBiL2M/ImQiCg==", ""},
		{"url", "/a?q={{ args.q }}&n={{ args.n }}", EscapeURL, "/a?q=a%20b%2Fc%3F%22d%22%0A&n=9007199254740993", ""},
		{"url, encoded already", "/a?q={{ urlencode(args.q) }}", EscapeURL, "/a?q=a%20b%2Fc%3F%22d%22%0A", ""},
		{"url, half encoded", "/a?q={{ urlencode(args.q) + '&x=1' }}", EscapeURL, "/a?q=a%2520b%252Fc%253F%2522d%2522%250A%26x%3D1", ""},
		{"JSON within quotes", `{"q":"<{{ args.q }}>","n":{{ args.n }}}`, EscapeJSON, `{"q":"<a b/c?\"d\"\n>","n":9007199254740993}`, ""},
		{"JSON that would break out", `{"q":"{{ args.inj }}"}`, EscapeJSON, `{"q":"\",\"admin\":true,\"z\":\""}`, ""},
		{"JSON as a value", `{"q":{{ args.inj }},"l":{{ json(args.l) }}}`, EscapeJSON, `{"q":"\",\"admin\":true,\"z\":\"","l":[1,"z"]}`, ""},
		{"JSON behind an escaped quote", `{"a\"{{ args.b }}":{{ args.b }}}`, EscapeJSON, `{"a\"true":true}`, ""},
		{"no such argument", "{{ args.nope }}", EscapeNone, "", "'args.nope' has no value"},
		{"not closed", "{{ args.q", EscapeNone, "", "'{{' without '}}'"},
		{"empty", "{{ }}", EscapeNone, "", "nothing between"},
		{"no such variable", "{{ env.HOME }}", EscapeNone, "", "is not a CEL expression"},
		{"no secrets here", "{{ secrets.a }}", EscapeNone, "", "secrets are allowed in headers only"},
		{"too costly", `{{ size([1,2,3,4,5,6,7,8].map(a, [1,2,3,4,5,6,7,8].map(b, [1,2,3,4,5,6,7,8].map(c, [1,2,3,4,5,6,7,8].map(d, [1,2,3,4,5,6,7,8].map(e, [1,2,3,4,5,6,7,8].map(f, [1,2,3,4,5,6,7,8].map(g, [1,2,3,4,5,6,7,8].map(h, [1,2,3,4,5,6,7,8]))))))))) + args.n }}`, EscapeNone, "", "has no value"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := language.Compile(tt.template, false)
			got := ""
			if err == nil {
				got, err = c.Render(json.RawMessage(args), tt.how, nil)
			}
			if tt.bad != "" {
				if err == nil || !strings.Contains(err.Error(), tt.bad) {
					t.Errorf("got %q, error %v, want one with %q", got, err, tt.bad)
				}
				return
			}
			if err != nil || got != tt.want {
				t.Errorf("got %q, want %q, error %v", got, tt.want, err)
			}
			if tt.how == EscapeJSON && !json.Valid([]byte(got)) {
				t.Errorf("not JSON: %s", got)
			}
		})
	}
	c, err := language.Compile("Bearer {{ secrets.key }}", true)
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Render(nil, EscapeNone, func(name string) (string, error) { return "<" + name + ">", nil })
	if fixed, whole := c.Fixed(); err != nil || got != "Bearer <key>" || c.Secrets()[0] != "key" || fixed != "Bearer " || whole {
		t.Errorf("%q %v %q %t", got, err, fixed, whole)
	}
}

// FuzzTemplate checks that no template and no arguments cause a panic, and that filling a JSON text leaves it valid
// JSON.
func FuzzTemplate(f *testing.F) {
	language, err := NewTemplates()
	if err != nil {
		f.Fatal(err)
	}
	body, err := language.Compile(`{"a":"x{{ args.v }}y","b":{{ args.v }},"c":[{{ json(args.v) }}]}`, false)
	if err != nil {
		f.Fatal(err)
	}
	f.Add("a {{ args.v }} b", `"x\"\\"`)
	f.Add("{{ {'a': [args.v]} }}", `{"k":[1e400,null]}`)
	f.Add(`{{ "}}`, `[]`)
	f.Fuzz(func(t *testing.T, template, value string) {
		args := json.RawMessage(`{"v":` + value + `}`)
		if c, err := language.Compile(template, true); err == nil {
			_, _ = c.Render(args, EscapeURL, func(string) (string, error) { return "s", nil })
		}
		if !json.Valid(args) {
			return
		}
		if out, err := body.Render(args, EscapeJSON, nil); err == nil && !json.Valid([]byte(out)) {
			t.Errorf("not JSON: %s", out)
		}
	})
}
