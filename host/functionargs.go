package host

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
)

// readArguments decodes the arguments of a function, which fit its schema. For JSON Schema, 1.0 and 2e2 are integers
// (draft 2020-12, validation, section 6.1.1), which encoding/json refuses for an int. The error is a text for the
// model.
func readArguments(raw json.RawMessage, into any) error {
	err := json.Unmarshal(raw, into)
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return unread(err)
	}
	if plain := plainIntegers(raw); !bytes.Equal(plain, raw) {
		reflect.ValueOf(into).Elem().SetZero()
		err = json.Unmarshal(plain, into)
	}
	return unread(err)
}

// unread describes an error of decoding without the names of Go types.
func unread(err error) error {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		if err == nil {
			return nil
		}
		return fmt.Errorf("the arguments cannot be read: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	name := tenon.Visible(cmp.Or(wrong.Field, "the value"))
	number, isNumber := strings.CutPrefix(wrong.Value, "number ")
	if limits := rangeOf(wrong.Type.Kind()); isNumber && limits != "" {
		return fmt.Errorf("the arguments cannot be read: %s must be %s, not %s", name, limits, number)
	}
	return fmt.Errorf("the arguments cannot be read: %s cannot be a %s", name, wrong.Value)
}

// rangeOf describes the numbers that a kind of Go type can have, or returns "" for a type that is not a number.
func rangeOf(k reflect.Kind) string {
	switch k {
	case reflect.Int, reflect.Int64:
		return fmt.Sprintf("an integer from %d to %d", math.MinInt64, math.MaxInt64)
	case reflect.Int8, reflect.Int16, reflect.Int32:
		bits := map[reflect.Kind]int{reflect.Int8: 8, reflect.Int16: 16, reflect.Int32: 32}[k]
		return fmt.Sprintf("an integer from %d to %d", -(int64(1) << (bits - 1)), int64(1)<<(bits-1)-1)
	case reflect.Uint, reflect.Uint64, reflect.Uintptr:
		return fmt.Sprintf("an integer from 0 to %d", uint64(math.MaxUint64))
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		bits := map[reflect.Kind]int{reflect.Uint8: 8, reflect.Uint16: 16, reflect.Uint32: 32}[k]
		return fmt.Sprintf("an integer from 0 to %d", uint64(1)<<bits-1)
	case reflect.Float32:
		return fmt.Sprintf("a number from -%g to %g", math.MaxFloat32, math.MaxFloat32)
	case reflect.Float64:
		return fmt.Sprintf("a number from -%g to %g", math.MaxFloat64, math.MaxFloat64)
	}
	return ""
}

// plainIntegers returns valid JSON with each integer that has a fraction or an exponent written as its digits. Other
// numbers, and texts, do not change.
func plainIntegers(raw []byte) []byte {
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); {
		end := i + 1
		switch b := raw[i]; {
		case b == '"':
			end = rawjson.End(raw, i)
		case b == '-' || b >= '0' && b <= '9':
			end = rawjson.End(raw, i)
			if digits, ok := rawjson.IntegerDigits(string(raw[i:end])); ok {
				out, i = append(out, digits...), end
				continue
			}
		}
		out, i = append(out, raw[i:end]...), end
	}
	return out
}
