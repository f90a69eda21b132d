package eval

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon/config"
)

// The keys of a matcher. In an expected value, an object with one of these keys is a matcher and not a plain value.
const (
	matchRegex    = "$regex"    // a text that the regular expression matches
	matchContains = "$contains" // a text that contains this text, ignoring case
	matchAny      = "$any"      // any value
)

// decode decodes JSON. Numbers keep their digits.
func decode(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	return v, err
}

// checkMatcher reports mistakes in an expected value.
func checkMatcher(doc *config.Document, at string, raw json.RawMessage) {
	if raw == nil {
		return
	}
	v, err := decode(raw)
	if err == nil {
		err = matcherError(v)
	}
	if err != nil {
		doc.Add(at, err.Error(), "")
	}
}

func matcherError(v any) error {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			if err := matcherError(e); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if !strings.HasPrefix(k, "$") {
				if err := matcherError(v[k]); err != nil {
					return err
				}
				continue
			}
			s, isText := v[k].(string)
			switch {
			case len(v) != 1:
				return fmt.Errorf("'%s' must be the only key of its map", k)
			case k == matchRegex && isText:
				if _, err := regexp.Compile(s); err != nil {
					return err
				}
			case k == matchContains && isText, k == matchAny && v[k] == true:
			default:
				return fmt.Errorf("'%s' is not a matcher: write {%s: TEXT}, {%s: TEXT} or {%s: true}",
					k, matchRegex, matchContains, matchAny)
			}
		}
	}
	return nil
}

// fit describes how a value differs from the expected value. It returns "" if it does not differ. Unless exact is true,
// objects may have additional members.
func fit(path string, want, got any, exact bool) string {
	miss := func(what string, got any) string {
		if path == "" {
			return fmt.Sprintf("want %s, got %s", what, brief(got))
		}
		return fmt.Sprintf("at %s: want %s, got %s", strings.TrimPrefix(path, "."), what, brief(got))
	}
	switch w := want.(type) {
	case map[string]any:
		if how, ok := matched(w, got); ok {
			if how == "" {
				return ""
			}
			return miss(how, got)
		}
		g, ok := got.(map[string]any)
		if !ok {
			return miss(brief(want), got)
		}
		for _, k := range slices.Sorted(maps.Keys(w)) {
			v, ok := g[k]
			if !ok {
				return miss("a member '"+k+"'", got)
			}
			if text := fit(path+"."+k, w[k], v, exact); text != "" {
				return text
			}
		}
		if exact {
			for _, k := range slices.Sorted(maps.Keys(g)) {
				if _, ok := w[k]; !ok {
					return miss("no member '"+k+"'", got)
				}
			}
		}
		return ""
	case []any:
		g, ok := got.([]any)
		if !ok || len(w) != len(g) {
			return miss(brief(want), got)
		}
		for i := range w {
			if text := fit(fmt.Sprintf("%s[%d]", path, i), w[i], g[i], exact); text != "" {
				return text
			}
		}
		return ""
	case json.Number:
		if g, ok := got.(json.Number); ok && sameNumber(w, g) {
			return ""
		}
		return miss(w.String(), got)
	}
	if want != got {
		return miss(brief(want), got)
	}
	return ""
}

// matched reports whether an expected value is a matcher. wants describes what the matcher expects
// if the value does not match.
func matched(w map[string]any, got any) (wants string, isMatcher bool) {
	if len(w) != 1 {
		return "", false
	}
	text, isText := got.(string)
	if s, ok := w[matchRegex].(string); ok {
		if re, err := regexp.Compile(s); err == nil && isText && re.MatchString(text) {
			return "", true
		}
		return "a text that matches /" + s + "/", true
	}
	if s, ok := w[matchContains].(string); ok {
		if isText && strings.Contains(strings.ToLower(text), strings.ToLower(s)) {
			return "", true
		}
		return fmt.Sprintf("a text that contains %q", s), true
	}
	return "", w[matchAny] == true
}

// sameNumber compares numbers by value, without rounding: 2 equals 2.0 and 2e0.
func sameNumber(a, b json.Number) bool {
	if a == b {
		return true
	}
	x, ok := decimalOf(string(a))
	y, ok2 := decimalOf(string(b))
	return ok && ok2 && x == y
}

// decimal is the normal form of a number: 0.digits times 10 to the power of exponent. digits neither begins nor ends
// with a zero. The number zero has no digits.
type decimal struct {
	negative bool
	digits   string
	exponent int64
}

// decimalOf parses a JSON number. The memory that it needs depends only on the length of the text, not on the exponent.
// It refuses exponents of more than 64 bits.
func decimalOf(s string) (d decimal, ok bool) {
	s, d.negative = strings.CutPrefix(s, "-")
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		e, err := strconv.ParseInt(s[i+1:], 10, 62)
		if err != nil {
			return d, false
		}
		s, d.exponent = s[:i], e
	}
	whole, fraction, _ := strings.Cut(s, ".")
	d.digits = whole + fraction
	if d.digits == "" || strings.Trim(d.digits, "0123456789") != "" {
		return d, false
	}
	d.exponent += int64(len(whole))
	trimmed := strings.TrimLeft(d.digits, "0")
	d.exponent -= int64(len(d.digits) - len(trimmed))
	if d.digits = strings.TrimRight(trimmed, "0"); d.digits == "" {
		return decimal{}, true
	}
	return d, true
}

// brief formats a value in one line.
func brief(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return shorten(string(b), 200)
}

func shorten(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}
