package elicit_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/mcp/elicit"
)

// everyField has all kinds of field that revisions 2025-06-18 to 2026-07-28 know.
const everyField = `{"message":"m","requestedSchema":{"type":"object","required":["s","i"],"properties":{
	"s":{"type":"string","title":"S","description":"d","minLength":2,"maxLength":4},
	"i":{"type":"integer","minimum":1,"maximum":9007199254740993},
	"n":{"type":"number","minimum":-1.5,"maximum":2.5,"default":0.25},
	"b":{"type":"boolean","default":true},
	"email":{"type":"string","format":"email"},
	"uri":{"type":"string","format":"uri"},
	"date":{"type":"string","format":"date"},
	"time":{"type":"string","format":"date-time"},
	"odd":{"type":"string","format":"colour"},
	"pattern":{"type":"string","pattern":"^[a-z]+$"},
	"bad_pattern":{"type":"string","pattern":"(?!x)"},
	"enum":{"type":"string","enum":["r","g"],"default":"g"},
	"named":{"type":"string","enum":["r","g"],"enumNames":["Red","Green"]},
	"titled":{"type":"string","oneOf":[{"const":"r","title":"Red"},{"const":"g","title":"Green"}]},
	"many":{"type":"array","minItems":1,"maxItems":2,"items":{"type":"string","enum":["a","b","c"]},"default":["a"]},
	"many_titled":{"type":"array","items":{"anyOf":[{"const":"a","title":"Ann"}]}},
	"wrong_default":{"type":"integer","default":"x"},
	"api_key":{"type":"string"}}}}`

func TestFormFill(t *testing.T) {
	f, err := elicit.Parse(json.RawMessage(everyField))
	if err != nil || f.Mode != elicit.ModeForm || len(f.Fields) != 18 || f.Fields[0].Name != "s" || f.Fields[17].Name != "api_key" || !f.Fields[17].Sensitive || f.Fields[0].Sensitive {
		t.Fatalf("%+v, %v", f, err)
	}
	const least = `"s":"ab","i":9007199254740993`
	tests := map[string]struct{ content, want string }{
		"defaults are filled in": {`{` + least + `}`, `{"s":"ab","i":9007199254740993,"n":0.25,"b":true,"enum":"g","many":["a"]}`},
		"nothing":                {``, `"i" is required; "s" is required`},
		"null":                   {`null`, "must be a JSON object"},
		"a list":                 {`[]`, "must be a JSON object"},
		"SEC-F11_a key twice":    {`{"s":"cd",` + least + `}`, "has a key twice"},
		"SEC-F11_another case":   {`{"S":"cd",` + least + `}`, `"S" is no field of the form`},
		"no such field":          {`{` + least + `,"zz":1}`, `"zz" is no field of the form`},
		"too short":              {`{"s":"ä","i":1}`, `"s" must have at least 2 characters`},
		"too long":               {`{"s":"äöüßé","i":1}`, `"s" must have at most 4 characters`},
		"no text":                {`{"s":1,"i":1}`, `"s" must be a text`},
		"null text":              {`{"s":null,"i":1}`, `"s" must be a text`},
		"not whole":              {`{"s":"ab","i":1.5}`, `"i" must be a whole number`},
		"a number as text":       {`{"s":"ab","i":"1"}`, `"i" must be a whole number`},
		"too small":              {`{"s":"ab","i":0}`, `"i" must be at least 1`},
		"too large":              {`{` + least + `,"n":2.51}`, `"n" must be at most 2.5`},
		"beyond a number":        {`{` + least + `,"n":1e999}`, `"n" is out of range`},
		"no boolean":             {`{` + least + `,"b":"yes"}`, `"b" must be true or false`},
		"no address":             {`{` + least + `,"email":"Ann <ann@x.example>"}`, `"email" must be an email address`},
		"no uri":                 {`{` + least + `,"uri":"x/y"}`, `"uri" must be a URI`},
		"no date":                {`{` + least + `,"date":"2026-02-30"}`, `"date" must be a date`},
		"no time":                {`{` + least + `,"time":"2026-02-28"}`, `"time" must be a time`},
		"no match":               {`{` + least + `,"pattern":"A1"}`, `"pattern" must match ^[a-z]+$`},
		"no option":              {`{` + least + `,"enum":"blue"}`, `"enum" must be one of r, g`},
		"a title is no value":    {`{` + least + `,"titled":"Red"}`, `"titled" must be one of r, g`},
		"too many":               {`{` + least + `,"many":["a","b","c"]}`, `"many" must hold at most 2`},
		"too few":                {`{` + least + `,"many":[]}`, `"many" must hold at least 1`},
		"twice":                  {`{` + least + `,"many":["a","a"]}`, `"many" must not hold "a" twice`},
		"not among the options":  {`{` + least + `,"many_titled":["b"]}`, `"many_titled" must be some of a`},
		"all well": {`{` + least + `,"n":-1.5,"b":false,"email":"ann@x.example","uri":"urn:x","date":"2026-02-28","time":"2026-02-28T01:02:03+01:00","odd":"x","pattern":"ab","bad_pattern":"x","enum":"r","named":"g","titled":"r","many":["b","c"],"many_titled":["a"],"wrong_default":3,"api_key":"k"}`,
			`{"s":"ab","i":9007199254740993,"n":-1.5,"b":false,"email":"ann@x.example","uri":"urn:x","date":"2026-02-28","time":"2026-02-28T01:02:03+01:00","odd":"x","pattern":"ab","bad_pattern":"x","enum":"r","named":"g","titled":"r","many":["b","c"],"many_titled":["a"],"wrong_default":3,"api_key":"k"}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := f.Fill(json.RawMessage(tt.content))
			if tt.want[0] == '{' {
				if err != nil || string(got) != tt.want {
					t.Errorf("got %s, %v\nwant %s", got, err, tt.want)
				}
			} else if tenon.ErrorCode(err) != tenon.CodeInvalid || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %s, %v\nwant an error with %s", got, err, tt.want)
			}
		})
	}
}

func TestFormRead(t *testing.T) {
	f, err := elicit.Parse(json.RawMessage(everyField))
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]elicit.Field{}
	for _, field := range f.Fields {
		byName[field.Name] = field
	}
	for _, tt := range []struct{ field, typed, want string }{
		{"s", "ab", `"ab"`}, {"s", "a", ""}, {"i", "12", "12"}, {"i", "012", ""}, {"i", "twelve", ""}, {"i", "", ""}, {"n", "0.5", "0.5"},
		{"b", "Yes", "true"}, {"b", "n", "false"}, {"b", "maybe", ""},
		{"titled", "red", `"r"`}, {"titled", "2", `"g"`}, {"titled", "3", ""}, {"named", "Green", `"g"`}, {"enum", "r", `"r"`},
		{"many", "a, 3", `["a","c"]`}, {"many", "", ""}, {"many_titled", "ann", `["a"]`},
	} {
		got, err := byName[tt.field].Parse(tt.typed)
		if (err == nil) != (tt.want != "") || err == nil && string(got) != tt.want {
			t.Errorf("%s %q: %s, %v; want %q", tt.field, tt.typed, got, err, tt.want)
		}
	}
}

func TestFormsThatAreNone(t *testing.T) {
	field := func(def string) string {
		return `{"message":"m","requestedSchema":{"type":"object","properties":{"x":` + def + `}}}`
	}
	many := ""
	for i := range 65 {
		many += fmt.Sprintf(`"a%d":{"type":"string"},`, i)
	}
	for name, tt := range map[string]struct{ params, want string }{
		"no JSON":              {`{`, "cannot be read"},
		"no schema":            {`{"message":"m"}`, "must be a schema of type object"},
		"a list":               {`{"message":"m","requestedSchema":{"type":"array"}}`, "must be a schema of type object"},
		"nested":               {field(`{"type":"object"}`), `the type "object"`},
		"no type":              {field(`{}`), `the type ""`},
		"free list":            {field(`{"type":"array","items":{"type":"string"}}`), "something else than options"},
		"properties a list":    {`{"message":"m","requestedSchema":{"type":"object","properties":[]}}`, "properties must be an object"},
		"required unknown":     {`{"message":"m","requestedSchema":{"type":"object","required":["y"]}}`, `requires "y"`},
		"too many fields":      {`{"message":"m","requestedSchema":{"type":"object","properties":{` + many + `"b":{"type":"string"}}}}`, "more than 64 fields"},
		"a field twice":        {`{"message":"m","requestedSchema":{"type":"object","properties":{"b":{"type":"string"},"b":{"type":"string"}}}}`, `the field "b" twice`},
		"too many options":     {field(`{"type":"string","enum":["a"` + strings.Repeat(`,"b"`, 500) + `]}`), "more than 500 options"},
		"unknown mode":         {`{"mode":"voice","message":"m"}`, `unknown mode "voice"`},
		"url of a file":        {`{"mode":"url","message":"m","url":"file:///etc/passwd"}`, "must be http or https"},
		"url of a script":      {`{"mode":"url","message":"m","url":"javascript:alert(1)"}`, "must be http or https"},
		"url with a login":     {`{"mode":"url","message":"m","url":"https://bank.example@evil.example/"}`, "without a login"},
		"SEC-F11_two messages": {`{"message":"harmless","Message":"your card","requestedSchema":{"type":"object"}}`, `has to be written "message"`},
		"SEC-F11_two modes":    {`{"mode":"form","MODE":"url","url":"https://x.example","message":"m"}`, `has to be written "mode"`},
		"SEC-F11_two schemas":  {`{"message":"m","requestedSchema":{"type":"object"},"requestedschema":{"type":"object","properties":{"pin":{"type":"string"}}}}`, `has to be written "requestedSchema"`},
		"SEC-F11_two titles":   {field(`{"type":"string","title":"Name","Title":"Password"}`), `has to be written "title"`},
		"SEC-F11_title twice":  {field(`{"type":"string","title":"Name","title":"Password"}`), "there twice"},
		"url without host":     {`{"mode":"url","message":"m","url":"https:///x"}`, "with a host"},
	} {
		t.Run(name, func(t *testing.T) {
			if f, err := elicit.Parse(json.RawMessage(tt.params)); tenon.ErrorCode(err) != tenon.CodeProtocol || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%+v, %v; want an error with %s", f, err, tt.want)
			}
		})
	}
	f, err := elicit.Parse(json.RawMessage(`{"mode":"url","message":"m","url":"https://login.x.example:8443/a?b=c"}`))
	if err != nil || f.Host != "login.x.example" || f.URL != "https://login.x.example:8443/a?b=c" {
		t.Errorf("%+v, %v", f, err)
	}
}

// FuzzForm checks that Fill returns content that fits the form, and that filling it again changes nothing.
func FuzzForm(f *testing.F) {
	f.Add(everyField, `{"s":"ab","i":1}`)
	f.Add(`{"mode":"url","message":"m","url":"https://x.example"}`, `{}`)
	f.Add(`{"requestedSchema":{"type":"object","properties":{"a":{"type":"array","items":{"enum":["x"]}}}}}`, `{"a":["x"]}`)
	f.Fuzz(func(t *testing.T, params, content string) {
		form, err := elicit.Parse(json.RawMessage(params))
		if err != nil {
			return
		}
		for _, field := range form.Fields {
			_, _ = field.Parse(content)
		}
		got, err := form.Fill(json.RawMessage(content))
		if err != nil {
			return
		}
		again, err := form.Fill(got)
		if err != nil || string(again) != string(got) {
			t.Errorf("%s does not fit the form it was made for: %s, %v", got, again, err)
		}
	})
}
