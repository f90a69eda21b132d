package table

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tenonhq/tenon"
)

// cellOf converts a JSON value to a cell.
func cellOf(raw json.RawMessage) any {
	switch raw[0] {
	case 'n':
		return nil
	case 't', 'f':
		return raw[0] == 't'
	case '"':
		var s string
		_ = json.Unmarshal(raw, &s) // the value is known to be valid
		return s
	case '[', '{':
		return raw
	}
	return json.Number(raw)
}

// arrowTypes maps the names of types to Arrow types.
var arrowTypes = map[string]arrow.DataType{
	"string":    arrow.BinaryTypes.String,
	"integer":   arrow.PrimitiveTypes.Int64,
	"number":    arrow.PrimitiveTypes.Float64,
	"boolean":   arrow.FixedWidthTypes.Boolean,
	"timestamp": &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"},
}

// typeOf returns the narrowest type that all values of a column have.
func (m *maker) typeOf(cells []any) string {
	could := []string{"integer", "number", "boolean"}
	if m.guess {
		could = append(could, "timestamp")
	}
	some := false
	for _, v := range cells {
		if v == nil {
			continue
		}
		some = true
		could = slices.DeleteFunc(could, func(t string) bool { return !isOf(v, t, m.guess) })
		if len(could) == 0 {
			return "string"
		}
	}
	if !some {
		return "string"
	}
	return could[0]
}

// isOf reports whether a value has a type. guess allows texts to have other types than string.
func isOf(v any, typ string, guess bool) bool {
	if _, ok := v.(string); ok && !guess {
		return false
	}
	if s, ok := v.(string); ok && typ != "timestamp" {
		digits := strings.TrimPrefix(s, "-")
		leadingZero := len(digits) > 1 && digits[0] == '0' && digits[1] != '.'
		if strings.TrimSpace(s) != s || leadingZero || s[0] == '+' {
			return false // converting a code such as 007 to a number would change it
		}
	}
	if typ == "number" && (longInteger(v) || longDecimal(v)) {
		return false // a float would lose digits, so the column is text
	}
	made, err := convert(v, typ)
	if at, ok := made.(time.Time); ok && at.Nanosecond()%1000 != 0 {
		return false // timestamps have microseconds
	}
	if made == int64(0) && strings.HasPrefix(textOf(v), "-") {
		return false // only a float has a negative zero
	}
	return err == nil
}

// textOf returns the text of a number or a text, or "" for other values.
func textOf(v any) string {
	if n, ok := v.(json.Number); ok {
		return string(n)
	}
	s, _ := v.(string)
	return s
}

// floatDigits is the number of significant digits that identify a float64. Programs write floats with up to so many,
// such as 0.10000000000000001 for 0.1.
const floatDigits = 17

// longDecimal reports whether a value is a number whose digits a float64 cannot hold, or which is so small that the
// float would be zero.
func longDecimal(v any) bool {
	text := textOf(v)
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return false // it is no number
	}
	digits := significant(text)
	return len(digits) > floatDigits && digits != significant(strconv.FormatFloat(f, 'e', -1, 64)) ||
		f == 0 && digits != ""
}

// significant returns the digits of a decimal number without its sign, point and exponent, and without zeros at both
// ends.
func significant(text string) string {
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		text = text[:i]
	}
	return strings.Trim(strings.ReplaceAll(strings.TrimLeft(text, "+-"), ".", ""), "0")
}

// longInteger reports whether a value is an integer that a float64 cannot hold.
func longInteger(v any) bool {
	text := textOf(v)
	if text == "" || strings.Trim(text, "-0123456789") != "" {
		return false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return err != nil || n > exactInt || n < -exactInt
}

// convert converts a value to a type.
func convert(v any, typ string) (any, error) {
	text, isText := v.(string)
	if n, ok := v.(json.Number); ok {
		text, isText = string(n), true
		if typ == "boolean" || typ == "timestamp" {
			return nil, fmt.Errorf("'%s' is not of type %s", text, typ)
		}
	}
	switch typ {
	case "string":
		switch v := v.(type) {
		case bool:
			return strconv.FormatBool(v), nil
		case json.RawMessage:
			return string(v), nil
		}
		return text, nil
	case "integer":
		if isText {
			if i, err := strconv.ParseInt(text, 10, 64); err == nil {
				return i, nil
			}
		}
	case "number":
		if isText {
			f, err := strconv.ParseFloat(text, 64)
			finite := !math.IsNaN(f) && !math.IsInf(f, 0)
			if err == nil && finite && !strings.ContainsAny(text, "_xX") {
				return f, nil
			}
		}
	case "boolean":
		if b, ok := v.(bool); ok {
			return b, nil
		}
		if text == "true" || text == "false" {
			return text == "true", nil
		}
	case "timestamp":
		for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999", time.DateOnly} {
			if t, err := time.Parse(layout, text); err == nil {
				return t, nil
			}
		}
	}
	return nil, fmt.Errorf("'%s' is not of type %s", tenon.Visible(fmt.Sprint(v)), typ)
}

func appendCell(b array.Builder, v any) error {
	if v == nil {
		b.AppendNull()
		return nil
	}
	for typ, t := range arrowTypes {
		if !arrow.TypeEqual(t, b.Type()) {
			continue
		}
		c, err := convert(v, typ)
		if err != nil {
			return err
		}
		switch b := b.(type) {
		case *array.StringBuilder:
			b.Append(c.(string))
		case *array.Int64Builder:
			b.Append(c.(int64))
		case *array.Float64Builder:
			b.Append(c.(float64))
		case *array.BooleanBuilder:
			b.Append(c.(bool))
		case *array.TimestampBuilder:
			b.Append(arrow.Timestamp(c.(time.Time).UnixMicro()))
		}
	}
	return nil
}
