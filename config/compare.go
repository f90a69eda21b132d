package config

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"github.com/tenonhq/tenon/config/tree"
	"github.com/tenonhq/tenon/servers"
)

// Difference is one change between two versions of a configuration.
type Difference struct {
	// Path is the place of the change, such as servers.github.command or .env.
	Path string `json:"path"`
	// Layer is the layer whose file changed.
	Layer Layer `json:"layer"`
	// Before and After are the values as YAML on one line; for a file, its size and digest. "" means that there is no
	// value. Tokens are masked.
	Before string `json:"before"`
	After  string `json:"after"`
	// Effect says whether the change tightens, loosens or is neutral.
	Effect Direction `json:"effect"`
	// Starts says that the change can make tenon start another program, call another address, read or send another
	// secret, or listen in another way.
	Starts bool `json:"starts"`
	// File says that Path is another file that the layer's file names. Before and After contain its size and digest.
	File bool `json:"file,omitempty"`
}

// comparer compares the trees of two versions of one file. It also builds a copy of the later tree without the
// changes that loosen or start something.
type comparer struct {
	layer Layer
	out   []Difference
	// keep says that removed servers and tools stay as disabled entries, because entries whose change is held back
	// may refer to them.
	keep bool
	// others contains the earlier and later versions of the files of all layers; above, only of the more trusted
	// layers.
	others, above []*tree.Node
}

// compare returns the earlier tree with those changes of the later one that may be applied at once. A nil tree means
// that there is no file.
func (c *comparer) compare(before, after *tree.Node) *tree.Node {
	n := c.value(reflect.TypeFor[Config](), place{}, before, after)
	if n == nil {
		n = &tree.Node{Kind: tree.Map, Line: 1, Col: 1}
		if n.Src = firstSource(after, before); n.Src == nil {
			n.Src = &tree.Source{}
		}
	}
	return n
}

// firstSource returns the file of the first node that is not nil.
func firstSource(nodes ...*tree.Node) *tree.Source {
	for _, n := range nodes {
		if n != nil {
			return n.Src
		}
	}
	return nil
}

// value compares two values of a type and returns the value to apply now. nil means that there is no value.
func (c *comparer) value(t reflect.Type, p place, before, after *tree.Node) *tree.Node {
	if before != nil && before.IsNull() {
		before = nil
	}
	if after != nil && after.IsNull() {
		after = nil
	}
	switch {
	case before == nil && after == nil:
		return nil
	case before != nil && after != nil && tree.Same(before, after):
		return after
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == secretType || t == durationType || t == sizeType || t == rawType:
		return c.leaf(p, before, after)
	case strings.HasSuffix(p.pattern, ".approval"):
		return c.approval(p, before, after)
	case t.Kind() == reflect.Struct:
		return c.object(t, p, before, after)
	case t.Kind() == reflect.Map && t.Elem().Kind() == reflect.Struct && t.Elem() != secretType:
		return c.entries(t.Elem(), p, before, after)
	case p.pattern == "policy.rules":
		return c.rules(p, before, after)
	case p.pattern == "tool_tables" || p.pattern == "trust.projects":
		return c.sublist(p, before, after)
	}
	return c.leaf(p, before, after)
}

// leaf compares a value as a whole.
func (c *comparer) leaf(p place, before, after *tree.Node) *tree.Node {
	if k, ok := DirectionOf(p.pattern); ok && k.Measure == MeasureEntries && !k.Unlimited && !touches(p.pattern) &&
		isPlainList(before) && isPlainList(after) {
		return c.list(k, p, before, after)
	}
	return c.settle(p, before, after, c.effectOf(p, before, after))
}

// settle records a difference and returns the value to apply now: the earlier one if the change loosens.
func (c *comparer) settle(p place, before, after *tree.Node, effect Direction) *tree.Node {
	c.add(p, before, after, effect)
	if effect == Loosens {
		return before
	}
	return after
}

func (c *comparer) add(p place, before, after *tree.Node, effect Direction) {
	c.out = append(c.out, Difference{Path: p.path, Layer: c.layer,
		Before: oneLined(p.path, before), After: oneLined(p.path, after),
		Effect: effect,
		Starts: effect == Loosens && starts(p.pattern, after)})
}

// effectOf returns the effect of changing one value.
func (c *comparer) effectOf(p place, before, after *tree.Node) Direction {
	k, ok := DirectionOf(p.pattern)
	if !ok || touches(p.pattern) || c.isRead(k.Fact) {
		return Loosens
	}
	return k.effect(before, after)
}

// list compares two lists whose items permit or forbid something independently. A part of the change may therefore be
// applied.
func (c *comparer) list(k Key, p place, before, after *tree.Node) *tree.Node {
	var added, removed []*tree.Node
	both := tree.ListAt(after)
	for _, v := range after.Vals {
		if !slices.ContainsFunc(before.Vals, func(b *tree.Node) bool { return tree.Same(b, v) }) {
			added = append(added, v)
		} else {
			both.Vals = append(both.Vals, v)
		}
	}
	for _, v := range before.Vals {
		if !slices.ContainsFunc(after.Vals, func(a *tree.Node) bool { return tree.Same(a, v) }) {
			removed = append(removed, v)
		}
	}
	part := func(vals []*tree.Node) *tree.Node { return &tree.Node{Kind: tree.List, Vals: vals, Src: after.Src} }
	whole := k.effect(before, after)
	if whole != Loosens || len(added) == 0 || len(removed) == 0 ||
		slices.ContainsFunc(slices.Concat(before.Vals, after.Vals), func(n *tree.Node) bool { return n.Val == "*" }) {
		return c.settle(p, before, after, whole)
	}
	if k.Direction == Tightens { // apply new items, keep removed ones
		c.add(p, nil, part(added), Tightens)
		c.add(p, part(removed), nil, Loosens)
		both.Vals = append(slices.Clone(before.Vals), added...)
		return both
	}
	c.add(p, part(removed), nil, Tightens)
	c.add(p, nil, part(added), Loosens)
	return both
}

// isPlainList reports whether a value is a list of scalars.
func isPlainList(n *tree.Node) bool {
	return n != nil && n.Kind == tree.List &&
		!slices.ContainsFunc(n.Vals, func(v *tree.Node) bool { return v.Kind != tree.Scalar })
}

// approval compares the two forms of approval, a mode and a condition, as one value. Applying a part of the change
// could combine an old mode with a new condition, which neither version contains.
func (c *comparer) approval(p place, before, after *tree.Node) *tree.Node {
	mode := func(n *tree.Node) string {
		if n != nil && n.Kind == tree.Map {
			if v, _ := n.Get("mode"); v != nil && len(n.Keys) == 1 {
				n = v
			}
		}
		if n == nil || n.Kind != tree.Scalar {
			return ""
		}
		return n.Val
	}
	k, _ := DirectionOf(p.key("mode").pattern)
	b, a := mode(before), mode(after)
	effect := Loosens
	switch {
	case (before == nil || b != "") && (after == nil || a != ""):
		effect = k.effect(textOrNone(b), textOrNone(a))
	case a == k.Words[0], b == k.Words[len(k.Words)-1]: // the strictest word is new, or the loosest was old
		effect = Tightens
	}
	return c.settle(p, before, after, effect)
}

func textOrNone(s string) *tree.Node {
	if s == "" {
		return nil
	}
	return tree.Text(s)
}

// rules compares policy.rules, where the first rule whose condition is true decides. Adding a rule that denies
// tightens at any position. Every other change may loosen.
func (c *comparer) rules(p place, before, after *tree.Node) *tree.Node {
	denies := func(n *tree.Node) bool {
		v, _ := n.Get("verdict")
		return v != nil && v.Val == "deny"
	}
	if after != nil && after.Kind == tree.List && (before == nil || before.Kind == tree.List) {
		var rest []*tree.Node
		if before != nil {
			rest = before.Vals
		}
		tightens := true
		for _, rule := range after.Vals {
			if len(rest) > 0 && tree.Same(rest[0], rule) {
				rest = rest[1:]
			} else if !denies(rule) {
				tightens = false
			}
		}
		if tightens && len(rest) == 0 {
			return c.settle(p, before, after, Tightens)
		}
	}
	return c.settle(p, before, after, Loosens)
}

// sublist compares lists whose items each permit something, so that removing an item tightens.
func (c *comparer) sublist(p place, before, after *tree.Node) *tree.Node {
	effect := Loosens
	if (after == nil || before != nil && within(after, before)) &&
		(p.pattern != "tool_tables" || !c.isRead("title") && !c.isRead("description")) {
		effect = Tightens
	}
	return c.settle(p, before, after, effect)
}

// object compares two values with the keys of a struct.
func (c *comparer) object(t reflect.Type, p place, before, after *tree.Node) *tree.Node {
	known := fields(t)
	before, after = spread(known, before), spread(known, after)
	if before != nil && before.Kind != tree.Map || after != nil && after.Kind != tree.Map {
		return c.settle(p, before, after, Loosens) // Load refuses such a file
	}
	at := cmp.Or(after, before)
	out := tree.MapAt(at)
	for _, f := range known {
		b, a := child(before, f), child(after, f)
		if v := c.value(f.typ, p.key(f.name), b, a); v != nil {
			out.Keys, out.Vals = append(out.Keys, keyAt(v, f.name)), append(out.Vals, v)
		}
	}
	if len(out.Keys) == 0 && (before == nil || after == nil) {
		return nil
	}
	return out
}

// keyAt returns a key node at the position of its value.
func keyAt(at *tree.Node, key string) *tree.Node {
	return tree.TextAt(at, key)
}

// spread converts the short form of a struct, a scalar, to a map.
func spread(known []field, n *tree.Node) *tree.Node {
	i := slices.IndexFunc(known, func(f field) bool { return f.short })
	if n == nil || i < 0 || n.Kind != tree.Scalar {
		return n
	}
	return &tree.Node{Kind: tree.Map, Keys: []*tree.Node{keyAt(n, known[i].name)}, Vals: []*tree.Node{n},
		Line: n.Line, Col: n.Col, Src: n.Src}
}

// child returns the value of a key under its name or its alias.
func child(n *tree.Node, f field) *tree.Node {
	v, _ := n.Get(f.name)
	if v == nil && f.alias != "" {
		v, _ = n.Get(f.alias)
	}
	return v
}

// entries compares maps of named entries.
func (c *comparer) entries(t reflect.Type, p place, before, after *tree.Node) *tree.Node {
	if before != nil && before.Kind != tree.Map || after != nil && after.Kind != tree.Map {
		return c.settle(p, before, after, Loosens)
	}
	at := cmp.Or(after, before)
	out := tree.MapAt(at)
	put := func(key, v *tree.Node) {
		if v != nil {
			out.Keys, out.Vals = append(out.Keys, key), append(out.Vals, v)
		}
	}
	if p.pattern == "models" {
		c.firstModel(p, before, after)
	}
	names := map[string]bool{}
	// The first model is the default, so existing entries keep their order.
	for _, n := range []*tree.Node{before, after} {
		if n == nil {
			continue
		}
		for _, key := range n.Keys {
			if names[key.Val] {
				continue
			}
			names[key.Val] = true
			b, _ := before.Get(key.Val)
			a, _ := after.Get(key.Val)
			put(key, c.entry(t, p.named(key.Val), b, a))
		}
	}
	if len(out.Keys) == 0 && (before == nil || after == nil) {
		return nil
	}
	return out
}

// entry compares one named entry. An added or removed entry is one change.
func (c *comparer) entry(t reflect.Type, p place, before, after *tree.Node) *tree.Node {
	if before != nil && after != nil {
		return c.value(t, p, before, after)
	}
	effect, starting := c.parts(t, p, before, after)
	switch p.pattern {
	case "servers.NAME", "secrets.NAME":
		effect = Loosens
		if after == nil {
			effect = Tightens // the rules of an entry apply only to this entry
		}
	case "models.NAME", "agents.NAME": // another entry may become the default
		effect, starting = Loosens, starting || after == nil
	case "tools.NAME":
		if server, _ := before.Get("server"); server != nil { // the tool stays, under the name that the server gives it
			effect = Loosens
		}
	}
	if after == nil && c.isAbove(p.path) { // then the other layer's entry applies
		effect, starting = Loosens, true
	}
	c.out = append(c.out, Difference{Path: p.path, Layer: c.layer,
		Before: oneLined(p.path, before), After: oneLined(p.path, after),
		Effect: effect, Starts: effect == Loosens && starting})
	switch {
	case effect == Loosens:
		return before
	case after == nil && c.keep && (p.pattern == "servers.NAME" || p.pattern == "tools.NAME") &&
		before.Kind == tree.Map:
		off := *before
		off.Keys, off.Vals = slices.Clone(before.Keys), slices.Clone(before.Vals)
		off.Put("enabled", tree.BoolAt(before, false))
		for _, key := range off.Keys {
			if key.Src == nil {
				key.Src, key.Line, key.Col = before.Src, before.Line, before.Col
			}
		}
		return &off
	}
	return after
}

// parts returns the combined effect of all values of an added or removed entry.
func (c *comparer) parts(t reflect.Type, p place, before, after *tree.Node) (effect Direction, starting bool) {
	one := &comparer{layer: c.layer, others: c.others, above: c.above}
	one.value(t, p, before, after)
	effect = Neutral
	for _, d := range one.out {
		switch {
		case d.Effect == Loosens && before != nil && touches(patternOf(d.Path)): // a removed address or command
		case d.Effect == Loosens:
			effect = Loosens
		case d.Effect == Tightens && effect == Neutral:
			effect = Tightens
		}
		starting = starting || d.Starts && before == nil
	}
	return effect, starting
}

// reach lists the keys that decide what tenon starts, calls, reads as a secret, listens on and stores. A changed
// value is a different target, so the change never counts as tightening: a server without its argument --read-only is
// another server.
var reach = []string{
	"secrets.NAME", "servers.NAME.transport", "servers.NAME.command", "servers.NAME.args", "servers.NAME.cwd",
	"servers.NAME.env",
	"servers.NAME.env_file", "servers.NAME.url", "servers.NAME.headers", "servers.NAME.config", "servers.NAME.auth",
	"servers.NAME.principals",
	"servers.NAME.roots", "models.NAME.provider", "models.NAME.api", "models.NAME.base_url", "models.NAME.api_key",
	"models.NAME.headers", "models.NAME.tools", "agents.NAME.provider_tools",
	"models.NAME.path", "tools.NAME.kind", "tools.NAME.request", "tools.NAME.path", "tools.NAME.server",
	"tools.NAME.remote_name",
	"serve.listen", "serve.replica_url", "serve.auth.secret", "store.path", "store.postgres", "registry", "profile",
}

// opens lists further keys. Loosening one of them lets tenon reach more, or lets others reach tenon.
var opens = []string{"servers.NAME", "models.NAME", "serve", "telemetry", "tool_tables", "policy.commands",
	"policy.urls", "policy.env_unresolved", "prices", "trust", "secrets", "servers", "models"}

// touches reports whether a key is one of the keys of reach.
func touches(pattern string) bool { return isOneOf(reach, pattern) }

func isOneOf(keys []string, pattern string) bool {
	return slices.ContainsFunc(keys, func(k string) bool {
		rest, ok := strings.CutPrefix(pattern, k)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// starts reports whether a loosening change of a key makes tenon start, call, read or open something. Rules and names
// of tools never do.
func starts(pattern string, after *tree.Node) bool {
	switch {
	case pattern == "tools.NAME.server" || pattern == "tools.NAME.remote_name":
		return false // another tool of a known server
	case touches(pattern):
		return true
	}
	for _, part := range []string{".policy", ".include", ".exclude", ".where", ".transform", ".naming", ".schema",
		".trusted", ".sampling_limits"} {
		if strings.Contains(pattern, part) {
			return false
		}
	}
	switch pattern {
	case "tools.NAME.enabled", "tools.NAME.model", "tools.NAME.agent", "agents.NAME.model",
		"agents.NAME.compaction.model", "servers.NAME.sampling_model", "serve.agent":
		return true
	}
	return isOneOf(opens, pattern) && after != nil
}

// oneLined returns the value at a path on one line, uncut and with secrets masked. It returns "" for nil.
func oneLined(path string, n *tree.Node) string {
	if n == nil {
		return ""
	}
	var b strings.Builder
	writeOneLined(&b, path, n)
	return b.String()
}

func writeOneLined(b *strings.Builder, path string, n *tree.Node) {
	if n.Kind == tree.List && isArgs(path) {
		n = maskedList(n)
	}
	switch n.Kind {
	case tree.List, tree.Map:
		open, end := "[", "]"
		if n.Kind == tree.Map {
			open, end = "{", "}"
		}
		b.WriteString(open)
		for i, v := range n.Vals {
			if i > 0 {
				b.WriteString(", ")
			}
			if n.Kind == tree.Map {
				b.WriteString(scalar(n.Keys[i].Val) + ": ")
				writeOneLined(b, tree.Join(path, n.Keys[i].Val), v)
				continue
			}
			writeOneLined(b, tree.Index(path, i), v)
		}
		b.WriteString(end)
	case tree.Scalar:
		masked := maskLiteral(n.Val, literalNames(path)...)
		if n.Tag == "!!str" || masked != n.Val {
			b.WriteString(scalar(masked))
			return
		}
		b.WriteString(n.Val)
	}
}

// isArgs reports whether the list at a path is a command line.
func isArgs(path string) bool {
	return strings.HasSuffix(path, ".args") || strings.HasSuffix(path, ".command")
}

// maskedList returns the list of a command line with its secrets masked.
func maskedList(n *tree.Node) *tree.Node {
	args := make([]string, len(n.Vals))
	for i, v := range n.Vals {
		args[i] = v.Val
	}
	out := *n
	out.Vals = slices.Clone(n.Vals)
	for i, arg := range servers.MaskArgs(args) {
		if v := n.Vals[i]; v.Kind == tree.Scalar && arg != v.Val {
			out.Vals[i] = tree.TextAt(v, arg)
		}
	}
	return &out
}
