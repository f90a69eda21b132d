package config

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config/tree"
)

func (d *decoder) scalar(n *tree.Node, p place, v reflect.Value, f field) {
	kinds := map[reflect.Kind]string{reflect.String: "a text", reflect.Bool: "true or false",
		reflect.Int: "a whole number", reflect.Float64: "a number"}
	want := kinds[v.Kind()]
	switch {
	case n.Kind == tree.Scalar && n.Tag == tree.BadTag: // reported by the parser
	case want == "":
		d.Add(n, p.path, "a key of type "+v.Type().String()+" cannot be read", "this is a defect of tenon")
	case n.Kind != tree.Scalar:
		d.Add(n, p.path, fmt.Sprintf("must be %s, is %s", want, n.Form()), secretHint(n, p))
	case n.IsNull():
		d.Add(n, p.path, "has no value", "remove the key, or write a value")
	case v.Kind() == reflect.String:
		d.text(n, p, v, f)
	case v.Kind() == reflect.Bool:
		if n.Tag != "!!bool" {
			d.Add(n, p.path, fmt.Sprintf("must be %s, is %s", want, n.Form()), "write true or false")
			return
		}
		v.SetBool(tree.Truth(n.Val))
	default:
		d.number(n, p, v, f, want)
	}
}

// secretHint returns a hint how to write the secret or variable that a map names where a text is required, or "" if it
// names none.
func secretHint(n *tree.Node, p place) string {
	if n.Kind != tree.Map || len(n.Keys) != 1 || n.Vals[0].Kind != tree.Scalar || !expands[p.pattern] {
		return ""
	}
	name := n.Vals[0].Val
	switch key := n.Keys[0].Val; {
	case key == "secret" && takeSecrets[p.pattern] && tree.IsName(name):
		return "write ${secret:" + name + "}"
	case key == "env" && tree.IsVariable(name):
		return "write ${" + name + "}"
	}
	return ""
}

func (d *decoder) text(n *tree.Node, p place, v reflect.Value, f field) {
	// YAML parses protocol revisions as dates
	if revision := n.Tag == "!!timestamp" && len(f.enum) > 0; n.Tag != "!!str" && !revision {
		d.Add(n, p.path, "must be a text, is "+n.Form(), fmt.Sprintf("put it in quotes: %q", n.Val))
		return
	}
	s := n.Val
	if !d.typed {
		if len(secretsIn(s)) > 0 && d.withSecret(n, p) {
			return
		}
		if p.pattern == secretFilePattern && d.isUnset(n, p) {
			v.SetString(s) // the error comes when the secret is needed
			return
		}
		if expands[p.pattern] && !d.off {
			s = d.varsOf(n).Expand(s, n, p.path, d.expansions())
		}
		if isPath[p.pattern] && !slices.Contains(words[p.pattern], s) {
			s = d.varsOf(n).Resolve(s, n.Src)
		}
	}
	if len(f.enum) > 0 && !slices.Contains(f.enum, s) {
		what := strings.Join(f.enum, ", ")
		hint := "values: " + what
		if near := tenon.Nearest(s, f.enum); near != "" {
			hint = fmt.Sprintf("did you mean '%s'? %s", near, hint)
		}
		d.Add(n, p.path, fmt.Sprintf("no such value '%s'", s), hint)
		return
	}
	v.SetString(s)
}

// secretFilePattern is the pattern of the files of secrets. Their variables may be set for one process only, as
// CREDENTIALS_DIRECTORY of systemd is for its service, while other commands do not need the secret.
const secretFilePattern = "secrets.NAME.file"

// isUnset reports whether the file of a secret contains a variable that is not set, and that does not count as empty.
// It warns of it, once a day.
func (d *decoder) isUnset(n *tree.Node, p place) bool {
	vars, found := *d.varsOf(n), &tree.Sink{}
	if vars.Lax || vars.Keep {
		return false
	}
	vars.Lax = true
	vars.Expand(n.Val, n, p.path, found)
	if len(found.Errs) > 0 || len(found.Warns) == 0 {
		return false
	}
	if !d.floor {
		text := strings.Replace(found.Warns[0].Message, "it is empty", "the secret cannot be read here", 1)
		d.Warn(n, p.path, text, "")
		d.Warns[len(d.Warns)-1].Daily = true
	}
	return true
}

// varsOf returns the variables of the layer that contains a value.
func (d *decoder) varsOf(n *tree.Node) *tree.Variables {
	return cmp.Or(n.Src.Vars, d.vars)
}

// expansions returns the sink for errors about unset variables. They are ignored while a trusted layer is read by
// itself, because some of its entries may not be in use.
func (d *decoder) expansions() *tree.Sink {
	if d.floor {
		return &tree.Sink{}
	}
	return d.Sink
}

func (d *decoder) number(n *tree.Node, p place, v reflect.Value, f field, want string) {
	x, err := strconv.ParseFloat(n.Val, 64)
	whole := v.Kind() == reflect.Int
	switch {
	case n.Tag != "!!int" && n.Tag != "!!float", whole && n.Tag == "!!float":
		d.Add(n, p.path, fmt.Sprintf("must be %s, is %s", want, describe(n)), "")
		return
	case err != nil || math.IsNaN(x) || math.IsInf(x, 0) || len(n.Val) > 1 && n.Val[0] == '0' && n.Val[1] != '.':
		d.Add(n, p.path, fmt.Sprintf("must be %s, is %s", want, n.Val), "write it in decimal digits")
		return
	case whole && math.Abs(x) > math.MaxInt32:
		d.Add(n, p.path, fmt.Sprintf("is %s, which is too large", n.Val),
			fmt.Sprintf("the largest number here is %d", math.MaxInt32))
		return
	case f.min != nil && x < *f.min:
		d.Add(n, p.path, fmt.Sprintf("must be at least %v", *f.min), "")
		return
	case f.max != nil && x > *f.max:
		d.Add(n, p.path, fmt.Sprintf("must be at most %v", *f.max), "")
		return
	}
	if whole {
		v.SetInt(int64(x))
	} else {
		v.SetFloat(x)
	}
}

func describe(n *tree.Node) string {
	if n.Tag == "!!float" {
		return n.Val
	}
	return n.Form()
}

// ParseSince parses a time (RFC 3339, or a date in UTC) or an age such as 7d, which is subtracted from now. It
// returns the zero time for "".
func ParseSince(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, nil
		}
	}
	d, err := ParseDuration(s)
	if err != nil || d < 0 {
		return time.Time{}, tenon.Errorf(tenon.CodeInvalid, "'%s' is neither a time, such as 2026-11-21, nor an "+
			"age, such as 7d or 12h", s)
	}
	return now.Add(-d), nil
}

// ParseDuration parses the durations of Go (90s, 5m, 1h30m), optionally with days before them: 30d, 1d12h.
func ParseDuration(s string) (time.Duration, error) {
	days, rest, ok := strings.Cut(s, "d")
	if !ok {
		return time.ParseDuration(s)
	}
	n, err := strconv.ParseUint(days, 10, 16)
	var d time.Duration
	if err == nil && rest != "" {
		d, err = time.ParseDuration(rest)
	}
	if err != nil || d < 0 {
		return 0, tenon.Errorf(tenon.CodeInvalid, "'%s' is no duration; write 90s, 5m, 1h30m or 30d", s)
	}
	return time.Duration(n)*24*time.Hour + d, nil
}

// duration decodes 90s, 5m, 1h30m, 30d; a bare number means seconds. The value must be positive, unless the field's
// minimum is 0.
func (d *decoder) duration(n *tree.Node, p place, v reflect.Value, f field) {
	const hint = "write 90s, 5m, 1h30m or 30d; a bare number is seconds"
	if n.Kind != tree.Scalar || n.IsNull() || n.Tag == "!!bool" {
		d.Add(n, p.path, "must be a duration, is "+n.Form(), hint)
		return
	}
	dur, err := ParseDuration(n.Val)
	if x, ferr := strconv.ParseFloat(n.Val, 64); ferr == nil && n.Tag != "!!str" {
		dur, err = time.Duration(x*float64(time.Second)), nil
		if math.IsNaN(x) || math.Abs(x) > 1e9 {
			err = strconv.ErrRange
		}
	}
	switch {
	case err != nil:
		d.Add(n, p.path, fmt.Sprintf("must be a duration, is '%s'", n.Val), hint)
	case dur < 0 || dur == 0 && f.min == nil:
		d.Add(n, p.path, f.name+" must be positive", "")
	default:
		v.SetInt(int64(dur))
	}
}

// units are the units of a size.
var units = []struct {
	suffix string
	bytes  float64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1},
	{"", 1}}

// size decodes 64KiB, 1MB; a bare number means bytes.
func (d *decoder) size(n *tree.Node, p place, v reflect.Value) {
	const hint = "write 64KiB or 1MB; a bare number is bytes"
	if n.Kind != tree.Scalar || n.IsNull() || n.Tag == "!!bool" {
		d.Add(n, p.path, "must be a size, is "+n.Form(), hint)
		return
	}
	for _, u := range units {
		number, ok := strings.CutSuffix(n.Val, u.suffix)
		if !ok {
			continue
		}
		x, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		switch bytes := x * u.bytes; {
		case err != nil || math.IsNaN(x):
			d.Add(n, p.path, fmt.Sprintf("must be a size, is '%s'", n.Val), hint)
		case bytes < 1 || bytes > 1<<40 || bytes != math.Trunc(bytes):
			d.Add(n, p.path, fmt.Sprintf("must be a whole number of bytes from 1 on, is '%s'", n.Val), hint)
		default:
			v.SetInt(int64(bytes))
		}
		return
	}
}

func quoted(s string) string {
	if s == "" || strings.ContainsAny(s, " ,:[]{}#&*!|>'\"%@`\t") {
		return strconv.Quote(s)
	}
	return s
}
