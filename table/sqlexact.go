package table

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
)

// decimal writes a decimal as the number that SQL calculates with. Where that does not
// have all of its digits they are kept beside it.
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
	const safe = 15 // digits that every number of SQL's has
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

// digits are those of a number that SQL's own do not hold; empty for one that they do.
// ok says that it is known which: two columns may have numbers that SQL takes for one.
func (c *sourceColumn) digits(f float64) (digits string, ok bool) {
	bits := math.Float64bits(f)
	digits = c.exact[bits]
	_, plain := c.plain[bits]
	for _, o := range c.beside {
		if have := o.exact[bits]; digits == "" {
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

// sameNumber says whether two numbers differ in zeros behind the point alone.
func sameNumber(a, b string) bool {
	bare := func(s string) string {
		if strings.Contains(s, ".") {
			s = strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
		}
		return s
	}
	return bare(a) == bare(b)
}

// decimalDigits writes a number as a decimal of a scale: with the fewest digits that
// are this number, and zeros after them.
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
	return fmt.Errorf("the numbers %s and %s differ in digits that SQL's numbers do not have (about 16); make the column one of texts", a, b)
}

// maxExact bounds the numbers of a column of which is known how many digits they have.
const maxExact = 2_000_000

// wide writes a number with more digits than SQL's have. Two that SQL could not tell
// apart are refused rather than taken for one.
func (c *sourceColumn) wide(r *record, digits string) error {
	f, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return fmt.Errorf("the number %s is none that SQL has", digits)
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
		return fmt.Errorf("%s has more digits than SQL's numbers (about 16), and there are more than %d others; make the column one of texts", digits, maxExact)
	}
	c.exact[bits] = digits
	r.real(f)
	return nil
}
