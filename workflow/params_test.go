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
