package tenon

import (
	"math"
	"strconv"
	"strings"
)

// USD is an amount in millionths of a US dollar, so that sums are exact and the same in every replay. In JSON
// it is a number of dollars, such as 0.0125.
type USD int64

// Dollars returns the amount nearest to a number of dollars. Values outside the range of USD become its
// nearest bound, and NaN becomes 0.
func Dollars(d float64) USD {
	switch micros := math.Round(d * 1e6); {
	case math.IsNaN(micros):
		return 0
	case micros >= math.MaxInt64:
		return math.MaxInt64
	case micros <= math.MinInt64:
		return math.MinInt64
	default:
		return USD(micros)
	}
}

// Dollars returns the amount in dollars.
func (u USD) Dollars() float64 { return float64(u) / 1e6 }

// String returns the amount in the form "$0.0125", with two to six decimals.
func (u USD) String() string {
	s := u.decimal(2)
	if rest, ok := strings.CutPrefix(s, "-"); ok {
		return "-$" + rest
	}
	return "$" + s
}

// MarshalJSON writes the amount as a number of dollars.
func (u USD) MarshalJSON() ([]byte, error) { return []byte(u.decimal(0)), nil }

// UnmarshalJSON reads a number of dollars. Errors: invalid.
func (u *USD) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	d, err := strconv.ParseFloat(string(b), 64)
	if err != nil {
		return Errorf(CodeInvalid, "%.40q is not an amount of US dollars", b)
	}
	*u = Dollars(d)
	return nil
}

// decimal returns the dollars with at least the given number of decimals.
func (u USD) decimal(least int) string {
	sign, n := "", uint64(u)
	if u < 0 {
		sign, n = "-", -n
	}
	frac := strconv.FormatUint(1e6+n%1e6, 10)[1:]
	for len(frac) > least && frac[len(frac)-1] == '0' {
		frac = frac[:len(frac)-1]
	}
	if frac != "" {
		frac = "." + frac
	}
	return sign + strconv.FormatUint(n/1e6, 10) + frac
}
