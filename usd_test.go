package tenon_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/tenonhq/tenon"
)

func TestUSD(t *testing.T) {
	for _, tt := range []struct {
		dollars    float64
		text, json string
	}{
		{0, "$0.00", "0"},
		{0.0125, "$0.0125", "0.0125"},
		{-0.5, "-$0.50", "-0.5"},
		{12, "$12.00", "12"},
		{0.000001, "$0.000001", "0.000001"},
		{1234567.891, "$1234567.891", "1234567.891"},
	} {
		u := tenon.Dollars(tt.dollars)
		b, err := json.Marshal(u)
		if err != nil || string(b) != tt.json || u.String() != tt.text || u.Dollars() != tt.dollars {
			t.Errorf("%v: %s %s %v %v", tt.dollars, b, u, u.Dollars(), err)
		}
		var back tenon.USD
		if err := json.Unmarshal(b, &back); err != nil || back != u {
			t.Errorf("%s came back as %d: %v", b, back, err)
		}
	}
	if tenon.Dollars(math.NaN()) != 0 || tenon.Dollars(math.Inf(1)) != math.MaxInt64 ||
		tenon.Dollars(math.Inf(-1)) != math.MinInt64 {
		t.Error("an invalid amount is not bounded")
	}
	if got := tenon.USD(math.MinInt64).String(); got != "-$9223372036854.775808" {
		t.Error(got)
	}
	var u tenon.USD
	if json.Unmarshal([]byte(`"1"`), &u) == nil {
		t.Error("a string was accepted as an amount")
	}
}
