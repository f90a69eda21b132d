package eval

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strings"

	"github.com/tenonhq/tenon/config"
)

// The keys of a matcher: an object that stands in an expected value in the place of
// a plain one.
const (
	matchRegex    = "$regex"    // a text that the expression fits a part of
	matchContains = "$contains" // a text that has this one in it, in any case of letters
	matchAny      = "$any"      // anything at all, but it is there
)

// decode reads JSON; numbers keep their digits.
func decode(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	return v, err
}

// checkMatcher tells what is wrong with an expected value.
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
				return fmt.Errorf("'%s' stands alone in its map", k)
			case k == matchRegex && isText:
				if _, err := regexp.Compile(s); err != nil {
					return err
				}
			case k == matchContains && isText, k == matchAny && v[k] == true:
			default:
				return fmt.Errorf("'%s' is no matcher: write {%s: TEXT}, {%s: TEXT} or {%s: true}", k, matchRegex, matchContains, matchAny)
			}
		}
	}
	return nil
}

// fit says where a value is not what is expected, "" where it is. An object may have
// members that are not expected, unless exact.
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

// matched says whether an expected value is a matcher, and if the value does not fit
// it, what it wants.
func matched(w map[string]any, got any) (wants string, isMatcher bool) {
	if len(w) != 1 {
		return "", false
	}
	text, isText := got.(string)
	if s, ok := w[matchRegex].(string); ok {
		if re, err := regexp.Compile(s); err == nil && isText && re.MatchString(text) {
			return "", true
		}
		return "a text that fits /" + s + "/", true
	}
	if s, ok := w[matchContains].(string); ok {
		if isText && strings.Contains(strings.ToLower(text), strings.ToLower(s)) {
			return "", true
		}
		return fmt.Sprintf("a text with %q in it", s), true
	}
	return "", w[matchAny] == true
}

// sameNumber compares numbers by value: 2 is 2.0, and 9007199254740993 is no other.
func sameNumber(a, b json.Number) bool {
	if a == b {
		return true
	}
	const longest = 400 // a short text can name a number with a billion digits
	if len(a) > longest || len(b) > longest || strings.ContainsAny(string(a+b), "eE") {
		x, err := a.Float64()
		y, err2 := b.Float64()
		return err == nil && err2 == nil && x == y
	}
	x, ok := new(big.Rat).SetString(a.String())
	y, ok2 := new(big.Rat).SetString(b.String())
	return ok && ok2 && x.Cmp(y) == 0
}

// brief shows a value in a line.
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
