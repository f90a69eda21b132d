package jsonschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Limits of numbers in schemas and in values. The validator computes with exact fractions, so a short text such as
// 1e1000000 would take a megabyte.
const (
	maxNumberText = 1000
	maxExponent   = 1000
)

// maxValues bounds the values of one checked JSON text. Each of them can cause an error of some hundred bytes.
const maxValues = 250_000

// Decode reads one JSON text with numbers as [json.Number], so that 9007199254740993 keeps its last digit.
func Decode(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, errors.New("it ends too early")
	}
	if err != nil {
		return nil, err
	}
	if _, more := d.Token(); !errors.Is(more, io.EOF) {
		return nil, errors.New("there is more than one value")
	}
	return v, nil
}

// extent is the size of a decoded JSON value.
type extent struct {
	values int
	depth  int
	number string // the first number that exceeds the limits
}

// measure counts the values and the levels of a value. It stops soon after it has counted limit values.
func measure(v any, limit int) extent {
	var e extent
	e.add(v, 1, limit)
	return e
}

func (e *extent) add(v any, depth, limit int) {
	e.values++
	e.depth = max(e.depth, depth)
	if e.values > limit {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for _, m := range v {
			e.add(m, depth+1, limit)
		}
	case []any:
		for _, m := range v {
			e.add(m, depth+1, limit)
		}
	case json.Number:
		if e.number == "" && !isBounded(v.String()) {
			e.number = v.String()
		}
	}
}

// isBounded reports whether a number is within the limits.
func isBounded(n string) bool {
	if len(n) > maxNumberText {
		return false
	}
	at := strings.IndexAny(n, "eE")
	if at < 0 {
		return true
	}
	exponent, err := strconv.Atoi(n[at+1:])
	return err == nil && exponent <= maxExponent && exponent >= -maxExponent
}

// checkExtent returns an error if a value is too large to be checked.
func checkExtent(e extent) error {
	switch {
	case e.values > maxValues:
		return fmt.Errorf("%w: it has more than %d values", ErrLimit, maxValues)
	case e.number != "":
		return fmt.Errorf("%w: the number %.40s has more than %d digits or a larger exponent", ErrLimit, e.number,
			maxNumberText)
	}
	return nil
}
