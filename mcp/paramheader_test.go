package mcp

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon/jsonrpc"
)

// TestReadMirrored checks at which places of a schema x-mcp-header is allowed (2026-07-28, tools).
func TestReadMirrored(t *testing.T) {
	tests := map[string]struct {
		schema string
		want   []string // headers; nil: refused
	}{
		"none":                     {`{"type":"object","properties":{"a":{"type":"string"}}}`, []string{}},
		"no object":                {`true`, []string{}},
		"all kinds":                {`{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"integer","x-mcp-header":"B"},"c":{"type":"boolean","x-mcp-header":"C"}}}`, []string{"Mcp-Param-A", "Mcp-Param-B", "Mcp-Param-C"}},
		"nested":                   {`{"properties":{"o":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"}}}}}`, []string{"Mcp-Param-A"}},
		"a property of that name":  {`{"properties":{"x-mcp-header":{"type":"string"}},"$defs":{"x-mcp-header":{"type":"string"}}}`, []string{}},
		"data":                     {`{"properties":{"a":{"type":"object","default":{"x-mcp-header":"A"}}}}`, []string{}},
		"empty":                    {`{"properties":{"a":{"type":"string","x-mcp-header":""}}}`, nil},
		"no text":                  {`{"properties":{"a":{"type":"string","x-mcp-header":1}}}`, nil},
		"a blank":                  {`{"properties":{"a":{"type":"string","x-mcp-header":"A B"}}}`, nil},
		"a colon":                  {`{"properties":{"a":{"type":"string","x-mcp-header":"A:"}}}`, nil},
		"a control character":      {`{"properties":{"a":{"type":"string","x-mcp-header":"A\r\nB"}}}`, nil},
		"beyond ASCII":             {`{"properties":{"a":{"type":"string","x-mcp-header":"Ä"}}}`, nil},
		"twice":                    {`{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}`, nil},
		"a number":                 {`{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}`, nil},
		"an object":                {`{"properties":{"a":{"type":"object","x-mcp-header":"A"}}}`, nil},
		"the root":                 {`{"type":"string","x-mcp-header":"A"}`, nil},
		"in items":                 {`{"properties":{"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}}}`, nil},
		"in an alternative":        {`{"anyOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]}`, nil},
		"in a definition":          {`{"$defs":{"d":{"type":"string","x-mcp-header":"A"}}}`, nil},
		"below a nested condition": {`{"properties":{"o":{"type":"object","if":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}}}}`, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			found, err := readMirrored([]byte(tt.schema))
			if (err != nil) != (tt.want == nil) {
				t.Fatal(err)
			}
			if err != nil {
				return
			}
			got := []string{}
			for _, f := range found {
				got = append(got, f.header)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestHeadersOf(t *testing.T) {
	params, err := readMirrored([]byte(`{"properties":{"s":{"type":"string","x-mcp-header":"S"},"i":{"type":"integer","x-mcp-header":"I"},
		"b":{"type":"boolean","x-mcp-header":"B"},"o":{"properties":{"s":{"type":"string","x-mcp-header":"Deep"}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]map[string]string{
		`{}`:                                    nil,
		`{"s":null,"i":null,"b":null,"o":null}`: nil,
		`{"s":"","i":-7,"b":false}`:             {"Mcp-Param-S": "", "Mcp-Param-I": "-7", "Mcp-Param-B": "false"},
		`{"s":" x","i":42.0,"o":{"s":"grüezi"}}`: {"Mcp-Param-S": "=?base64?IHg=?=", "Mcp-Param-I": "42", "Mcp-Param-Deep": "=?base64?Z3LDvGV6aQ==?="},
		`{"s":5,"i":"7","b":"true","o":7}`:       nil,
		`{"i":1.5}`:                              nil,
		`{"i":1e3}`:                              {"Mcp-Param-I": "1000"},
		`{"i":-1.50E+1}`:                         {"Mcp-Param-I": "-15"},
		`{"i":1e-3}`:                             nil,
		`{"i":1e400}`:                            nil,
		`{"i":1e300}`:                            nil,
		`{"i":9007199254740993}`:                 {"Mcp-Param-I": "9007199254740993"},
	} {
		if diff := cmp.Diff(want, headersOf(params, json.RawMessage(args))); diff != "" {
			t.Errorf("%s\n%s", args, diff)
		}
	}
}

// TestCheckHeaders checks how headers of a request are compared with its arguments (2026-07-28, "Server Behavior for
// Custom Headers").
func TestCheckHeaders(t *testing.T) {
	const schema = `{"properties":{"s":{"type":"string","x-mcp-header":"S"},"i":{"type":"integer","x-mcp-header":"I"},
		"b":{"type":"boolean","x-mcp-header":"B"},"o":{"properties":{"s":{"type":"string","x-mcp-header":"Deep"}}},"free":{}}}`
	for name, tt := range map[string]struct {
		args   string
		header []string // names and values
		want   string   // part of the error; empty: none
	}{
		"nothing":                     {`{}`, nil, ""},
		"null":                        {`{"s":null,"i":null}`, nil, ""},
		"equal":                       {`{"s":"x","i":-7,"b":true}`, []string{"S", "x", "I", "-7", "B", "true"}, ""},
		"another case of the name":    {`{"s":"x"}`, []string{"s", "x"}, ""},
		"encoded":                     {`{"s":"grüezi"}`, []string{"S", "=?base64?Z3LDvGV6aQ==?="}, ""},
		"encoded without need":        {`{"s":"hi"}`, []string{"S", "=?base64?aGk=?="}, ""},
		"empty":                       {`{"s":""}`, []string{"S", ""}, ""},
		"nested":                      {`{"o":{"s":"x"}}`, []string{"Deep", "x"}, ""},
		"a header of no argument":     {`{}`, []string{"Free", "x"}, ""},
		"numbers of different form":   {`{"i":42.0}`, []string{"I", "42"}, ""},
		"numbers of different form 2": {`{"i":42}`, []string{"I", "42.0"}, ""},
		"numbers of different form 3": {`{"i":1e3}`, []string{"I", "1000"}, ""},
		"an exponent, missing":        {`{"i":1e3}`, nil, "Mcp-Param-I is missing"},
		"an exponent in the header":   {`{"i":1000}`, []string{"I", "1e3"}, "differs"},
		"hexadecimal":                 {`{"i":16}`, []string{"I", "0x10p0"}, "differs"},
		"a plus":                      {`{"i":16}`, []string{"I", "+16"}, "differs"},
		"an underscore":               {`{"i":16}`, []string{"I", "1_6"}, "differs"},
		"a blank":                     {`{"i":16}`, []string{"I", "16 "}, "differs"},
		"no number":                   {`{"i":16}`, []string{"I", "NaN"}, "differs"},
		"missing":                     {`{"s":"x"}`, nil, "Mcp-Param-S is missing"},
		"missing, nested":             {`{"o":{"s":"x"}}`, nil, "Mcp-Param-Deep is missing"},
		"differs":                     {`{"s":"x"}`, []string{"S", "y"}, "differs"},
		"differs in case":             {`{"s":"x"}`, []string{"S", "X"}, "differs"},
		"differs, encoded":            {`{"s":"x"}`, []string{"S", "=?base64?aGk=?="}, "differs"},
		"literal of the marker":       {`{"s":"=?BASE64?aGk=?="}`, []string{"S", "=?BASE64?aGk=?="}, ""},
		"differs, number":             {`{"i":42}`, []string{"I", "43"}, "differs"},
		"beyond the safe range":       {`{"i":9007199254740993}`, []string{"I", "9007199254740992"}, "differs"},
		"bad padding":                 {`{"s":"hi"}`, []string{"S", "=?base64?aGk?="}, "invalid characters"},
		"bad base64":                  {`{"s":"hi"}`, []string{"S", "=?base64?a!k=?="}, "invalid characters"},
		"no UTF-8":                    {`{"s":"hi"}`, []string{"S", "=?base64?/w==?="}, "invalid characters"},
		"not visible":                 {`{"s":"grüezi"}`, []string{"S", "grüezi"}, "invalid characters"},
		"twice":                       {`{"s":"x"}`, []string{"S", "x", "S", "x"}, "more than once"},
		"no argument":                 {`{}`, []string{"S", "x"}, "no such argument"},
		"a null argument":             {`{"s":null}`, []string{"S", "null"}, "no such argument"},
	} {
		t.Run(name, func(t *testing.T) {
			h := http.Header{}
			for i := 0; i < len(tt.header); i += 2 {
				h.Add("Mcp-Param-"+tt.header[i], tt.header[i+1])
			}
			r := &ToolRequest{Arguments: json.RawMessage(tt.args), headers: paramHeaders{h, true}}
			err := r.CheckHeaders(json.RawMessage(schema))
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
			r.headers = paramHeaders{}
			if err := r.CheckHeaders(json.RawMessage(schema)); err != nil {
				t.Errorf("without headers: %v", err)
			}
		})
	}
}

// TestCheckHeadersOfEscapedSchema checks that an annotation counts however the schema's JSON spells it.
func TestCheckHeadersOfEscapedSchema(t *testing.T) {
	r := &ToolRequest{Arguments: json.RawMessage(`{"s":"x"}`), headers: paramHeaders{http.Header{}, true}}
	err := r.CheckHeaders(json.RawMessage(`{"properties":{"s":{"type":"string","x\u002dmcp-header":"S"}}}`))
	if err == nil || !strings.Contains(err.Error(), "Mcp-Param-S is missing") {
		t.Errorf("%v", err)
	}
}

// TestRoutingHeadersAreSingle checks that a second Mcp-Method or Mcp-Name is refused, since a proxy may have read the
// other one.
func TestRoutingHeadersAreSingle(t *testing.T) {
	m := &jsonrpc.Message{Method: "tools/call", Params: json.RawMessage(`{"name":"echo"}`)}
	for want, second := range map[string]string{"": "", "Mcp-Method": "tools/list", "Mcp-Name": "write"} {
		r := &http.Request{Header: http.Header{"Mcp-Method": {"tools/call"}, "Mcp-Name": {"echo"}}}
		if want != "" {
			r.Header.Add(want, second)
		}
		got := checkHeaders(r, m, Modern, true)
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("two of %q: %q", want, got)
		}
	}
}
