package workflow_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/workflow"
)

// TestParamsBeyond64Bits checks that an integer is refused if expressions would round it, unless its parameter is
// declared as number.
func TestParamsBeyond64Bits(t *testing.T) {
	w := parse(t,
		"parameters:\n  i: {type: integer, description: d}\n  n: {type: number, description: d}\n"+
			"  s: {type: string, description: d}\nsteps:\n- {id: m, template: '{{ params.i }}'}\nmessage: m")
	for params, refused := range map[string]bool{
		`{"i":9223372036854775807,"n":1,"s":""}`:                                   false,
		`{"i":-9223372036854775808,"n":1,"s":""}`:                                  false,
		`{"i":9223372036854775808,"n":1,"s":""}`:                                   true,
		`{"i":-9223372036854775809,"n":1,"s":""}`:                                  true,
		`{"i":1,"n":9223372036854775808,"s":"9223372036854775808"}`:                false,
		`{"i": 123456789012345678901234567890 ,"n":1,"s":"a whole of other text"}`: true,
	} {
		_, err := w.Params(json.RawMessage(params))
		if (err != nil) != refused || refused && (tenon.ErrorCode(err) != tenon.CodeInvalid ||
			!strings.Contains(err.Error(), "i: ")) {
			t.Errorf("%s: %v", params, err)
		}
	}
}

// TestIntegerParams checks that an integer is an integer in expressions, whichever way it is written.
func TestIntegerParams(t *testing.T) {
	w := parse(t,
		"parameters:\n  i: {type: integer, default: 5.0, description: d}\n  o: {type: [integer, 'null'], description: d}\n"+
			"  n: {type: number, description: d}\n  x: {type: [integer, number], description: d}\n"+
			"  l: {type: array, items: {type: integer}, description: d}\n"+
			"  m: {type: object, properties: {k: {type: integer}, f: {type: number}}, description: d}\n"+
			"steps:\n- {id: m, template: x}")
	for given, want := range map[string]string{
		`{"o":7.0,"n":5.0,"x":5.0,"l":[1.0,2e1],"m":{"k":3.0,"f":3.0,"other":4.0}}`: `{"i":5,"l":[1,20],"m":{"f":3.0,"k":3,"other":4.0},"n":5.0,"o":7,"x":5.0}`,
		`{"i":-5.0e0,"o":null,"n":1,"x":1,"l":[],"m":{}}`:                           `{"i":-5,"l":[],"m":{},"n":1,"o":null,"x":1}`,
	} {
		got, err := w.Params(json.RawMessage(given))
		if err != nil || string(got) != want {
			t.Errorf("RP-20_integer: %s: %s, %v, want %s", given, got, err, want)
		}
	}
	if got, err := w.Params(json.RawMessage(`{"i":1e19,"o":1,"n":1,"x":1,"l":[],"m":{}}`)); err == nil {
		t.Errorf("1e19 fits into 64 bits: %s", got)
	}
}

func TestParamsOfNoName(t *testing.T) {
	two := parse(t,
		"parameters:\n  city: {type: string, description: d}\n  n: {type: integer, default: 1, description: d}\n"+
			"steps:\n- {id: m, template: x}")
	none := parse(t, "steps:\n- {id: m, template: x}")
	for _, c := range []struct {
		w            *workflow.Workflow
		params, want string
	}{
		{two, `{"city":"x","nn":1}`, "workflow 'w' has no parameter 'nn'; did you mean 'n'?"},
		{two, `{"city":"x","colour":1}`, "workflow 'w' has no parameter 'colour'; its parameters: city, n"},
		{two, `{"citty":"x"}`,
			"Missing configuration parameters: city; and workflow 'w' has no parameter 'citty'; did you mean 'city'?"},
		{two, `{}`, "Missing configuration parameters: city"},
		{none, `{"x":1}`, "workflow 'w' has no parameter 'x': it has no parameters"},
	} {
		if _, err := c.w.Params(json.RawMessage(c.params)); err == nil || tenon.ErrorCode(err) != tenon.CodeInvalid ||
			err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.params, err, c.want)
		}
	}
}
