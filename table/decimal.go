package table

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
)

// digits formats a decimal with all digits of its scale. The Arrow library converts through a float
// and loses digits.
func digits(a arrow.Array, i int) string {
	var s string
	switch a := a.(type) {
	case *array.Decimal32:
		s = strconv.FormatInt(int64(a.Value(i)), 10)
	case *array.Decimal64:
		s = strconv.FormatInt(int64(a.Value(i)), 10)
	case *array.Decimal128:
		if v := a.Value(i); v.HighBits() == int64(v.LowBits())>>63 {
			s = strconv.FormatInt(int64(v.LowBits()), 10)
		} else {
			s = v.BigInt().String()
		}
	case *array.Decimal256:
		s = a.Value(i).BigInt().String()
	}
	scale := int(a.DataType().(arrow.DecimalType).GetScale())
	if scale <= 0 {
		if s == "0" {
			return s
		}
		return s + strings.Repeat("0", -scale)
	}
	s, minus := strings.CutPrefix(s, "-")
	if n := scale + 1 - len(s); n > 0 {
		s = strings.Repeat("0", n) + s
	}
	s = s[:len(s)-scale] + "." + s[len(s)-scale:]
	if minus {
		return "-" + s
	}
	return s
}

// appendDigits appends a decimal. It fails if the number has more digits than the column's type
// allows, before or after the point.
func appendDigits(b array.Builder, s string) error {
	t := b.Type().(arrow.DecimalType)
	whole, frac, _ := strings.Cut(s, ".")
	scale := int(t.GetScale())
	if scale < 0 {
		cut, ok := strings.CutSuffix(whole, strings.Repeat("0", -scale))
		if !ok && strings.Trim(whole, "-0") != "" {
			return errOther
		}
		whole, scale = cut, 0
	}
	if frac = strings.TrimRight(frac, "0"); len(frac) > scale {
		return errOther
	}
	n, ok := new(big.Int).SetString(whole+frac+strings.Repeat("0", scale-len(frac)), 10)
	if !ok || len(strings.TrimLeft(n.String(), "-")) > int(t.GetPrecision()) {
		return errOther
	}
	switch b := b.(type) {
	case *array.Decimal32Builder:
		b.Append(decimal.Decimal32(n.Int64()))
	case *array.Decimal64Builder:
		b.Append(decimal.Decimal64(n.Int64()))
	case *array.Decimal128Builder:
		b.Append(decimal128.FromBigInt(n))
	case *array.Decimal256Builder:
		b.Append(decimal256.FromBigInt(n))
	default:
		return fmt.Errorf("%s is not a decimal type", t)
	}
	return nil
}
