package rawjson

import (
	"strconv"
	"strings"
)

// maxDigits is more than the digits of any integer type, and bounds what an exponent can make of a number.
const maxDigits = 20

// IntegerDigits returns the digits of a JSON number with a fraction or an exponent, without loss, if it is an integer
// of at most 20 digits. For JSON Schema, 1.0 and 2e2 are integers (draft 2020-12, validation, section 6.1.1).
func IntegerDigits(number string) (string, bool) {
	if !strings.ContainsAny(number, ".eE") {
		return "", false
	}
	rest, negative := strings.CutPrefix(number, "-")
	mantissa, exponent := rest, 0
	if i := strings.IndexAny(rest, "eE"); i >= 0 {
		var err error
		if exponent, err = strconv.Atoi(rest[i+1:]); err != nil {
			return "", false
		}
		mantissa = rest[:i]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	fractionDigits := len(fraction)
	if kept := strings.TrimRight(digits, "0"); kept != digits {
		fractionDigits -= len(digits) - len(kept)
		digits = kept
	}
	if digits == "" {
		return "0", true
	}
	zeros := exponent - fractionDigits // behind the digits, of which the last one is not 0
	if zeros < 0 || zeros > maxDigits || len(digits)+zeros > maxDigits {
		return "", false
	}
	digits += strings.Repeat("0", zeros)
	if negative {
		digits = "-" + digits
	}
	return digits, true
}
