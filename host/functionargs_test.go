package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tenonhq/tenon/host"
)

// numbers are arguments of a function with the kinds of numbers of Go.
type numbers struct {
	X    int               `json:"x"`
	Deep []struct{ N int } `json:"deep,omitempty"`
	B    int8              `json:"b,omitempty"`
	U    uint64            `json:"u,omitempty"`
	F    float64           `json:"f,omitempty"`
	T    string            `json:"t,omitempty"`
}

// TestFunctionIntegers calls a function with integers of JSON Schema. Its schema accepts 1.0 and 2e2, so the function
// gets them, without loss. An integer outside the range of the field is an error that names the argument.
func TestFunctionIntegers(t *testing.T) {
	h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), Functions: []host.Function{
		host.NewFunction("show", "", func(_ context.Context, n numbers) (string, error) { return fmt.Sprintf("%+v", n), nil }).ReadOnly()}})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for args, want := range map[string]string{
		`{"x":1}`:                               `{X:1 Deep:[] B:0 U:0 F:0 T:}`,
		`{"x":1.0}`:                             `{X:1 `,
		`{"x":-2.50e1}`:                         `{X:-25 `,
		`{"x":2e2}`:                             `{X:200 `,
		`{"x":-0.0}`:                            `{X:0 `,
		`{"x":0e99}`:                            `{X:0 `,
		`{"x":1000e-3}`:                         `{X:1 `,
		`{"x":9007199254740993.0}`:              `{X:9007199254740993 `,
		`{"x":922337203685477580.7e1}`:          `{X:9223372036854775807 `,
		`{"x":1.0,"u":18446744073709551.615e3}`: `U:18446744073709551615 `,
		`{"x":1,"deep":[{"N":1},{"N":3.0}]}`:    `Deep:[{N:1} {N:3}]`,
		`{"x":1.0,"f":1.5,"t":"2.0 \"3e0"}`:     `F:1.5 T:2.0 "3e0}`,
		`{"x":99999999999999999999}`:            `x must be an integer from -9223372036854775808 to 9223372036854775807, not 99999999999999999999`,
		`{"x":1e30}`:                            `x must be an integer from -9223372036854775808 to 9223372036854775807, not 1e30`,
		`{"x":1.0,"deep":[{"N":1e300}]}`:        `deep.N must be an integer from`,
	} {
		r, _, err := host.CallTool(t.Context(), h, "show", json.RawMessage(args), nil)
		if err != nil {
			t.Errorf("%s: %v", args, err)
			continue
		}
		if text := r.Text(); !strings.Contains(text, want) || strings.Contains(text, "Go ") || r.IsError != strings.Contains(want, "must be") {
			t.Errorf("%s: %s, want %s", args, text, want)
		}
	}
	if r, _, err := host.CallTool(t.Context(), h, "show", json.RawMessage(`{"x":1.5}`), nil); err == nil && !r.IsError {
		t.Errorf("1.5 is an integer: %s", r.Text())
	}
}
