package eval

import (
	"encoding/json"
	"testing"
)

func TestSameNumber(t *testing.T) {
	for _, c := range []struct {
		a, b json.Number
		same bool
	}{
		{"2", "2.0", true}, {"2", "2e0", true}, {"200", "2e2", true}, {"0.002", "2E-3", true}, {"2", "+2", false}, {"-0", "0.0e7", true},
		{"9007199254740993", "9007199254740992", false}, {"9007199254740993e0", "9007199254740992", false},
		{"9007199254740993e0", "9007199254740993.0", true}, {"1e400", "1e401", false}, {"1e400", "10e399", true},
		{"1e1000000000", "1e1000000001", false}, {"1e1000000000", "10e999999999", true}, {"-1", "1", false}, {"1", "", false},
		{"1e99999999999999999999", "2e99999999999999999999", false}, {"0.1", "0.10000000000000000001", false},
	} {
		if got := sameNumber(c.a, c.b); got != c.same || sameNumber(c.b, c.a) != c.same {
			t.Errorf("%s and %s: %v", c.a, c.b, got)
		}
	}
}
