package config

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tenonhq/tenon/config/tree"
	"github.com/tenonhq/tenon/policy"
)

// Direction is the effect of a larger value of a key. [Measure] says which of two values is larger: for example the
// larger number, the value true, the longer list, or the later word.
type Direction string

// The directions.
const (
	Tightens Direction = "tightens" // a larger value forbids something
	Loosens  Direction = "loosens"  // a larger value permits something
	Neutral  Direction = "neutral"  // the value permits and forbids nothing
)

// Combination says how the values of several layers are combined to the effective value.
type Combination string

// The combinations.
const (
	CombineMin          Combination = "min"          // the smallest value
	CombineMax          Combination = "max"          // the largest value
	CombineUnion        Combination = "union"        // the entries of all layers
	CombineIntersection Combination = "intersection" // the entries that all layers contain
	CombineStrictest    Combination = "strictest"    // the first one in the order of the key's words
	CombineEach         Combination = "each"         // each layer decides separately, and the strictest verdict wins
	CombineEntry        Combination = "entry"        // the value belongs to its entry, and so to one layer
	CombineNearest      Combination = "nearest"      // the project's value, else the user's, else the administrator's
	CombineFloor        Combination = "floor"        // the administrator's value, else the user's, else the project's
)

// Measure says when a value of a key is larger than another.
type Measure string

// The kinds of comparison.
const (
	MeasureNumber  Measure = "number"  // a larger number, size or duration
	MeasureRate    Measure = "rate"    // more calls in the same time
	MeasureSwitch  Measure = "true"    // the value true
	MeasureEntries Measure = "entries" // a further entry of a list or a map
	MeasureWord    Measure = "word"    // a later word of [Key.Words]
	MeasureText    Measure = "text"    // a first value, or a different one
	MeasureAny     Measure = "any"     // any change counts, including adding and removing
)

// Key is the declaration of one key of tenon.yaml.
type Key struct {
	Path      string // with NAME for names that a file chooses and [] for elements
	Direction Direction
	Combine   Combination
	Measure   Measure
	Words     []string // of MeasureWord, the strictest first
	// Unlimited says that 0 or an empty list means no limit, so it is the largest value.
	Unlimited bool
	// Least is the least trusted layer that may write the key. LayerUser excludes it from the project's file,
	// LayerAdmin from the user's file as well. "" allows every layer.
	Least Layer
	// Fact is the field of tool in conditions that depends on the key. If any condition reads it, every change of the
	// key counts as loosening.
	Fact string
}

// DirectionOf returns the declaration of a key. The path is either of a value, such as servers.github.exclude[0], or
// a pattern, such as servers.NAME.exclude. A value inside a list or a map of texts has the declaration of that list
// or map.
func DirectionOf(path string) (Key, bool) {
	for p := patternOf(path); p != ""; p = p[:max(0, strings.LastIndexAny(p, ".["))] {
		if k, ok := declared().key(p); ok {
			return k, true
		}
	}
	return Key{}, false
}

// Effect returns the effect of changing the key from one value to another. The values are YAML on one line, as in
// [Value.Value]; "" means no value. A change that cannot be judged counts as loosening.
func (k Key) Effect(before, after string) Direction {
	return k.effect(flowNode(before), flowNode(after))
}

// effect is Effect for nodes. nil means no value.
func (k Key) effect(before, after *tree.Node) Direction {
	if k.Direction == Neutral || before == nil && after == nil ||
		before != nil && after != nil && tree.Same(before, after) {
		return Neutral
	}
	more, less := k.compare(before, after)
	if k.Direction == Tightens {
		more, less = less, more
	}
	switch {
	case more:
		return Loosens
	case less:
		return Tightens
	}
	return Neutral
}

// compare reports whether a change makes the value larger, smaller, or both.
func (k Key) compare(before, after *tree.Node) (more, less bool) {
	switch k.Measure {
	case MeasureAny:
		return k.Direction != Tightens, k.Direction == Tightens
	case MeasureText:
		return after != nil && (k.Direction != Tightens || before == nil), before != nil &&
			(after == nil || k.Direction == Tightens)
	case MeasureEntries:
		return k.compareEntries(before, after)
	}
	b, knownBefore := k.amount(before)
	a, knownAfter := k.amount(after)
	if !knownBefore || !knownAfter { // the default is not a literal, or the value is not valid
		return k.Direction != Tightens, k.Direction == Tightens
	}
	return a > b, a < b
}

// compareEntries compares lists and maps as sets.
func (k Key) compareEntries(before, after *tree.Node) (more, less bool) {
	if k.Unlimited {
		switch wasAll, isAll := isEmpty(before), isEmpty(after); {
		case wasAll && isAll:
			return false, false
		case wasAll || isAll:
			return isAll, wasAll
		}
	}
	if before == nil || after == nil {
		if whole := flowNode(declared().field(k.Path).def); whole != nil && whole.Kind == tree.List {
			before, after = cmp.Or(before, whole), cmp.Or(after, whole)
		}
	}
	return !within(after, before), !within(before, after)
}

func isEmpty(n *tree.Node) bool { return n == nil || len(n.Vals) == 0 }

// within reports whether the list or map all contains every entry of one, unchanged. The item "*" in a list all
// matches every entry.
func within(one, all *tree.Node) bool {
	if one == nil || all != nil && slices.ContainsFunc(all.Vals, func(o *tree.Node) bool {
		return all.Kind == tree.List &&
			o.Val == "*"
	}) {
		return true
	}
	for i, v := range one.Vals {
		found := false
		switch {
		case all == nil:
		case one.Kind == tree.Map:
			other, _ := all.Get(one.Keys[i].Val)
			found = other != nil && tree.Same(v, other)
		default:
			found = slices.ContainsFunc(all.Vals, func(o *tree.Node) bool { return tree.Same(v, o) })
		}
		if !found {
			return false
		}
	}
	return true
}

// unlimited is the amount of a key that has no limit.
const unlimited = 1e300

// amount converts a value of the key to a number, by which values are compared. It returns false if the value is
// invalid.
func (k Key) amount(n *tree.Node) (float64, bool) {
	if n == nil || n.IsNull() {
		f := declared().field(k.Path)
		if n = flowNode(f.def); n == nil || k.Unlimited && f.def != "" && (f.def[0] < '0' || f.def[0] > '9') {
			return unlimited, k.Unlimited
		}
	}
	if n.Kind != tree.Scalar {
		return 0, false
	}
	x, ok := 0.0, true
	switch k.Measure {
	case MeasureWord:
		i := slices.Index(k.Words, n.Val)
		return float64(i), i >= 0
	case MeasureSwitch:
		if tree.Truth(n.Val) {
			x = 1
		}
		return x, n.Tag == "!!bool"
	case MeasureRate:
		calls, per, err := policy.ParseRate(n.Val)
		x, ok = 0, err == nil
		if calls > 0 {
			x = float64(calls) / per.Seconds()
		}
	default:
		x, ok = quantity(n.Val)
	}
	if k.Unlimited && x == 0 {
		return unlimited, ok
	}
	return x, ok
}

// quantity parses a number, a duration or a size. The result for a duration is in seconds.
func quantity(s string) (float64, bool) {
	if x, err := strconv.ParseFloat(s, 64); err == nil {
		return x, x == x
	}
	if d, err := ParseDuration(s); err == nil {
		return float64(d) / float64(time.Second), true
	}
	for _, u := range units {
		if number, ok := strings.CutSuffix(s, u.suffix); ok {
			x, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
			return x * u.bytes, err == nil && x == x
		}
	}
	return 0, false
}

// flowNode parses YAML on one line. It returns nil for "".
func flowNode(s string) *tree.Node {
	if s == "" {
		return nil
	}
	return tree.Parse(&tree.Source{}, []byte(s), &tree.Sink{})
}

// declarations is the table of the keys, with the fields of [Config] to which they belong.
type declarations struct {
	keys   []Key
	byPath map[string]int // indexes of keys
	fields map[string]*field
	// aliases maps other names of keys to their names. shorts maps an object to the key that a scalar in its place
	// sets.
	aliases map[string]string
	shorts  map[string]string
	unused  []string // rows of the table for keys that do not exist
}

// key returns the declaration of a key by its pattern.
func (d *declarations) key(pattern string) (Key, bool) {
	i, ok := d.byPath[pattern]
	if !ok {
		return Key{}, false
	}
	return d.keys[i], true
}

// field returns the field of a key by its pattern, and the zero value if there is no such key.
func (d *declarations) field(pattern string) field {
	if f := d.fields[pattern]; f != nil {
		return *f
	}
	return field{}
}

// object reports whether a key only contains other keys.
func (d *declarations) object(pattern string) bool {
	f := d.fields[pattern]
	return f != nil && isObject(*f)
}

var declared = sync.OnceValue(declare)
