package table

import (
	"encoding/json"
	"math"
	"slices"
	"strings"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/tenonhq/tenon"
)

// SQLite's operators turn an integer that does not fit into 64 bits into a float, which is rounded; only its function
// sum reports an overflow. A query without floats must not return rounded integers, so its overflows are errors.

// exactFunctions are functions of SQLite that make no float, unless an argument is one.
var exactFunctions = []string{
	"abs", "changes", "char", "coalesce", "concat", "concat_ws", "count", "cume_dist", "date", "datetime", "dense_rank",
	"first_value", "format", "glob", "group_concat", "hex", "ifnull", "iif", "if", "instr", "json_array",
	"json_array_length", "json_object", "json_quote", "json_type", "json_valid", "lag", "last_value", "lead", "length",
	"like", "likely", "lower", "ltrim", "max", "min", "nth_value", "ntile", "nullif", "octet_length", "printf", "quote",
	"rank", "replace", "row_number", "rtrim", "sign", "strftime", "string_agg", "substr", "substring", "sum", "time",
	"trim", "typeof", "unhex", "unicode", "unixepoch", "unlikely", "upper", "zeroblob",
}

// realAffinity is the letter of the affinity REAL in operands (SQLITE_AFF_REAL).
const realAffinity = 'E'

// onlyIntegers reports whether a query calculates, and has no source of floats: no column, literal, parameter, function
// or conversion that may be one. Texts do not count, although SQL can calculate with them.
func (s *selection) onlyIntegers() bool {
	for _, t := range s.sources {
		for _, c := range t.columns {
			kind := declared(c)
			if c.used && (kind == "REAL" || strings.HasPrefix(kind, "DECIMAL") || len(c.exact) > 0) {
				return false
			}
		}
	}
	for _, v := range s.Params {
		switch v := v.(type) {
		case nil, bool, int, int64, string, []byte:
		case json.Number:
			if strings.ContainsAny(v.String(), ".eE") {
				return false
			}
		default:
			return false
		}
	}
	program, _, err := s.db.prepare("EXPLAIN " + strings.TrimLeft(s.SQL, " \t\r\n;"))
	if err != nil || program == nil {
		return false
	}
	defer program.close()
	calculates := false
	for {
		ok, err := program.step()
		if err != nil {
			return false
		}
		if !ok {
			return calculates
		}
		switch op := string(program.value(1).bytes); op {
		case "Add", "Subtract", "Multiply", "Divide":
			calculates = true
		case "Real", "RealAffinity", "VColumn": // VColumn reads json_each
			return false
		case "Cast":
			if program.value(3).int == realAffinity {
				return false
			}
		case "Function", "PureFunc", "AggStep", "AggStep1", "AggFinal", "AggValue":
			name, _, _ := strings.Cut(string(program.value(5).bytes), "(")
			if !slices.Contains(exactFunctions, strings.ToLower(name)) {
				return false
			}
		}
	}
}

// overflowed returns an error for a float that only an overflow of integers can have made.
func (s *selection) overflowed(c *resultColumn, v value) error {
	if !s.integers || v.kind != sqlite3.SQLITE_FLOAT || math.Abs(v.float) < 1<<63 {
		return nil
	}
	return invalid("integer overflow in column '%s': a result is outside of the range of 64-bit integers, and SQL "+
		"would round it; calculate with floats instead: CAST(x AS REAL)", tenon.Visible(c.name))
}
