package table

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
)

// decimal writes a decimal as an SQL number. If the number cannot hold all digits, c keeps them.
func (c *sourceColumn) decimal(r *record, digits string, t arrow.DecimalType) error {
	if t.GetScale() <= 0 {
		if n, err := strconv.ParseInt(digits, 10, 64); err == nil {
			r.integer(n)
			return nil
		}
		return c.wide(r, digits)
	}
	f, err := strconv.ParseFloat(digits, 64)
	if err != nil || decimalDigits(f, t.GetScale()) != digits {
		return c.wide(r, digits)
	}
	const safe = 15 // digits that a float64 always holds
	if t.GetPrecision() > safe {
		bits := math.Float64bits(f)
		if have, ok := c.exact[bits]; ok {
			return alike(have, digits)
		}
		if len(c.plain) < maxExact {
			if c.plain == nil {
				c.plain = map[uint64]struct{}{}
			}
			c.plain[bits] = struct{}{}
		}
	}
	r.real(f)
	return nil
}

// digits returns the digits of an inexact number, or "" for an exact one. ok is false if the number is ambiguous,
// because several columns have different numbers with the same nearest float.
func (c *sourceColumn) digits(f float64) (digits string, ok bool) {
	bits := math.Float64bits(f)
	digits = c.exact[bits]
	_, plain := c.plain[bits]
	for _, o := range c.beside {
		have := o.exact[bits]
		if digits == "" {
			digits = have
		} else if have != "" && !sameNumber(have, digits) {
			return "", false
		}
		if _, has := o.plain[bits]; has {
			plain = true
		}
	}
	return digits, digits == "" || !plain
}

// sameNumber reports whether two numbers differ only in trailing zeros.
func sameNumber(a, b string) bool {
	bare := func(s string) string {
		if strings.Contains(s, ".") {
			s = strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
		}
		return s
	}
	return bare(a) == bare(b)
}

// decimalDigits formats a float as a decimal of a scale: the shortest digits that identify the
// float, padded with zeros.
func decimalDigits(f float64, scale int32) string {
	s := strconv.FormatFloat(f, 'f', -1, 64)
	_, frac, dot := strings.Cut(s, ".")
	if !dot {
		s += "."
	}
	if n := int(scale) - len(frac); n > 0 {
		s += strings.Repeat("0", n)
	}
	return s
}

func alike(a, b string) error {
	return fmt.Errorf("the numbers %s and %s differ only after about 16 digits, and SQL's numbers have no more; "+
		"store the column as text", a, b)
}

// maxExact bounds the numbers that a column keeps.
const maxExact = 2_000_000

// wide writes a number with more digits than an SQL number. It refuses two numbers that SQL could
// not distinguish.
func (c *sourceColumn) wide(r *record, digits string) error {
	f, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return fmt.Errorf("the number %s is outside of the range of SQL", digits)
	}
	bits := math.Float64bits(f)
	if c.exact == nil {
		c.exact = map[uint64]string{}
	}
	have, ok := c.exact[bits]
	_, plain := c.plain[bits]
	switch {
	case ok && have != digits:
		return alike(have, digits)
	case plain:
		return alike(strconv.FormatFloat(f, 'f', -1, 64), digits)
	case len(c.exact) >= maxExact, len(c.plain) >= maxExact:
		return fmt.Errorf("%s has more digits than SQL's numbers (about 16), and there are more than %d others; "+
			"store the column as text", digits, maxExact)
	}
	c.exact[bits] = digits
	r.real(f)
	return nil
}
