package catalog

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/policy"
)

// A rule, a person and the server must read the same value under a key of the arguments. A server that ignores case
// takes Amount for amount, but a rule about args.amount has not seen Amount. Therefore, an object whose schema names
// keys must not contain lookalikes of these keys (see foldKey), or two keys that are lookalikes of each other. The
// same holds, whatever the schema names, for the arguments themselves and for objects of which a rule reads a key.
// Keys that rules read are treated as named. All other objects, whose schema names no key, are free-form and may
// contain any keys.

// keyCheck refuses lookalikes in the arguments of one tool. It is safe for concurrent use.
type keyCheck struct {
	mu     sync.Mutex
	shape  *keyShape
	start  *keyState
	states map[string]*keyState // keyed by the ids of the nodes
	kept   int                  // nodes and names in states
	left   int                  // nodes that the current check may still visit
}

// keyState is the set of all schema parts that apply to a value.
type keyState struct {
	nodes []*keyNode
	names map[string]bool
	folds map[string]string    // name by folded name; nil until a key is not a name
	next  map[string]*keyState // by name; nil means free-form
	rest  *keyState            // state of all other keys, if no pattern tells them apart
	items *keyState
	// hasRest and hasItems report that rest and items are set. patterns: the schema has patterns. kept: the state is
	// kept for the next check.
	hasRest, hasItems, patterns, kept bool
}

const (
	maxKeyKept   = 1 << 17 // nodes and names of the states that are kept
	maxKeyVisits = 1 << 20 // nodes of the schema, in one check
)

// newKeyCheck reads the keys that a tool accepts: the keys of its schema, and the keys that the configuration sets,
// hides or describes.
func newKeyCheck(t *tenon.Tool) *keyCheck {
	c := &keyCheck{states: map[string]*keyState{}, left: maxKeyVisits}
	var root *keyNode
	c.shape, root = newKeyShape(t.Input)
	own := append([]string(nil), t.Rules.Hidden...)
	if fixed, ok := parseObject(t.Rules.Fixed); ok {
		own = append(own, fixed.keys()...)
	}
	for _, floor := range t.Rules.Floors { // schemas of more trusted layers
		root, _ := parseObject(floor)
		props, _ := parseObject(root.get("properties"))
		own = append(own, props.keys()...)
	}
	if len(own) > 0 {
		root = &keyNode{id: c.shape.count, names: own, same: []*keyNode{root}}
		c.shape.count++
	}
	c.start, _ = c.state([]*keyNode{root})
	return c
}

// check returns an error about the first lookalike; its text is for a model. read are the keys that rules read.
func (c *keyCheck) check(t *tenon.Tool, args map[string]any, read policy.Keys) error {
	if read == nil {
		read = policy.Keys{}
	}
	if t.Rules.Wrapped { // the server and the rules get the value itself as the arguments
		read = policy.Keys{wrapper: read}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = maxKeyVisits
	reason, at := c.value(c.start, read, args)
	if reason == "" {
		return nil
	}
	slices.Reverse(at)
	where := ""
	if len(at) > 0 {
		where = " at " + tenon.Visible(shorten(strings.Join(at, "."), 200))
	}
	return tenon.Errorf(tenon.CodeInvalid, "the arguments of tool '%s' are ambiguous%s: %s", t.Name, where, reason)
}

// errIntricate is part of an error about a schema that no honest server sends.
const errIntricate = "the tool's schema has too many parts that apply to them; the server should simplify it"

// value checks a value. If s is nil, the schema names none of its keys. If read is nil, no rule reads one. at is the
// path to the faulty value, innermost key first.
func (c *keyCheck) value(s *keyState, read policy.Keys, v any) (reason string, at []string) {
	if s == nil && read == nil {
		return "", nil
	}
	switch v := v.(type) {
	case map[string]any:
		if reason := s.lookalike(v, read); reason != "" {
			return reason, nil
		}
		return c.members(s, read, v)
	case []any:
		for i, e := range v {
			if !isContainer(e) {
				continue
			}
			next, ok := c.element(s, i)
			if !ok {
				return errIntricate, nil
			}
			if reason, at = c.value(next, read, e); reason != "" {
				return reason, append(at, fmt.Sprint(i))
			}
		}
	}
	return "", nil
}

func (c *keyCheck) members(s *keyState, read policy.Keys, v map[string]any) (reason string, at []string) {
	var keys []string
	for k, e := range v {
		if isContainer(e) {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys) // so that the error is always the same
	for _, k := range keys {
		next, ok := c.member(s, k)
		if !ok {
			return errIntricate, nil
		}
		if reason, at = c.value(next, read[k], v[k]); reason != "" {
			return reason, append(at, k)
		}
	}
	return "", nil
}

// isContainer reports whether a value is a non-empty object or list, so that it may contain objects.
func isContainer(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return len(v) > 0
	case []any:
		return len(v) > 0
	}
	return false
}

// lookalike returns an error text for a key of an object that the tool does not know and that looks like a known key,
// or like another key of the object. It returns "" if there is none. read has the keys that rules read; if it is nil,
// an object whose schema names no key is free-form.
func (s *keyState) lookalike(v map[string]any, read policy.Keys) string {
	if s == nil {
		s = &keyState{}
	}
	if len(s.names) == 0 && read == nil {
		return ""
	}
	var odd []string
	for k := range v {
		if !s.names[k] {
			odd = append(odd, k)
		}
	}
	if len(odd) == 0 {
		return ""
	}
	if s.folds == nil {
		s.folds = make(map[string]string, len(s.names))
		for _, name := range slices.Sorted(maps.Keys(s.names)) {
			s.folds[foldKey(name)] = name
		}
	}
	slices.Sort(odd)
	twins := map[string]string{}
	for _, k := range odd {
		if strings.Contains(k, "\x00") {
			return fmt.Sprintf("the key '%s' holds a NUL, at which some servers stop reading%s", visibleKey(k),
				s.expected())
		}
		folded := foldKey(k)
		if name, ok := s.folds[folded]; ok {
			return fmt.Sprintf("the key '%s' differs from '%s' only in case, width or characters that are not seen; "+
				"write '%s'", visibleKey(k), tenon.Visible(name), tenon.Visible(name))
		}
		if name, ok := readAs(read, k, folded); ok {
			return fmt.Sprintf("the key '%s' differs from '%s', which a rule reads, only in case, width or "+
				"characters that are not seen; write '%s'", visibleKey(k), tenon.Visible(name), tenon.Visible(name))
		}
		if twin, ok := twins[folded]; ok {
			return fmt.Sprintf("the keys '%s' and '%s' differ only in case, width or characters that are not seen; "+
				"send one of them%s", visibleKey(twin), visibleKey(k), s.expected())
		}
		twins[folded] = k
	}
	return ""
}

// readAs returns the key that rules read and that another key, with the given folded form, looks like.
func readAs(read policy.Keys, key, folded string) (string, bool) {
	if _, exact := read[key]; exact {
		return "", false
	}
	name, found := "", false
	for r := range read {
		if foldKey(r) == folded && (!found || r < name) {
			name, found = r, true
		}
	}
	return name, found
}

// expected returns the end of a message: a list of the keys that the schema names.
func (s *keyState) expected() string {
	if len(s.names) == 0 {
		return ""
	}
	names := slices.Sorted(maps.Keys(s.names))
	more := ""
	if len(names) > maxNames {
		names, more = names[:maxNames], fmt.Sprintf(" and %d more", len(names)-maxNames)
	}
	for i := range names {
		names[i] = tenon.Visible(names[i])
	}
	return "; expected keys: " + strings.Join(names, ", ") + more
}

// visibleKey returns a key for a message. It escapes characters other than ASCII, so that two lookalikes look
// different.
func visibleKey(k string) string {
	var b strings.Builder
	for _, r := range shorten(k, 100) {
		if r > ' ' && r < 0x7f || r == '…' {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\u{%x}`, r)
		}
	}
	return b.String()
}

// member returns the state of a key's value, or nil if the value is free-form. It returns false if the schema has too
// many parts.
func (c *keyCheck) member(s *keyState, key string) (*keyState, bool) {
	if s == nil {
		return nil, true
	}
	next, ok := s.next[key]
	switch {
	case ok:
		return next, true
	case s.hasRest && !s.names[key]:
		return s.rest, true
	}
	if c.left -= len(s.nodes); c.left < 0 {
		return nil, false
	}
	var nodes []*keyNode
	for _, n := range s.nodes {
		nodes = append(nodes, n.below(key)...)
	}
	next, ok = c.state(nodes)
	lasting := ok && s.kept && (next == nil || next.kept)
	switch {
	case lasting && s.names[key]:
		s.next[key] = next
	case lasting && !s.patterns:
		s.rest, s.hasRest = next, true
	}
	return next, ok
}

// below returns the nodes of the schema that apply to the value of a key.
func (n *keyNode) below(key string) []*keyNode {
	var nodes []*keyNode
	if p := n.props[key]; p != nil {
		nodes = append(nodes, p)
	}
	for _, p := range n.patterns {
		if p.match == nil || p.match.MatchString(key) {
			nodes = append(nodes, p.node)
		}
	}
	if len(nodes) == 0 && n.other != nil {
		nodes = append(nodes, n.other)
	}
	return nodes
}

// element returns the state of a list's element, with the same results as member.
func (c *keyCheck) element(s *keyState, i int) (*keyState, bool) {
	switch {
	case s == nil:
		return nil, true
	case s.hasItems:
		return s.items, true
	}
	if c.left -= len(s.nodes); c.left < 0 {
		return nil, false
	}
	var nodes []*keyNode
	prefixed := false
	for _, n := range s.nodes {
		if i < len(n.prefix) {
			nodes = append(nodes, n.prefix[i])
		}
		prefixed = prefixed || len(n.prefix) > 0
		nodes = append(nodes, n.items...)
	}
	next, ok := c.state(nodes)
	if ok && s.kept && (next == nil || next.kept) && !prefixed {
		s.items, s.hasItems = next, true
	}
	return next, ok
}

// state returns the state of a value to which the nodes apply, together with all nodes that they include. It returns
// nil if these nodes say nothing about keys, and false if there are too many of them.
func (c *keyCheck) state(nodes []*keyNode) (*keyState, bool) {
	s := &keyState{}
	for seen := map[*keyNode]bool{}; len(nodes) > 0; {
		n := nodes[len(nodes)-1]
		nodes = nodes[:len(nodes)-1]
		if seen[n] {
			continue
		}
		if c.left -= 1 + len(n.names); c.left < 0 {
			return nil, false
		}
		seen[n] = true
		nodes = append(nodes, n.same...)
		for _, ref := range n.refs {
			if to := c.shape.resolve(ref); to != nil {
				nodes = append(nodes, to)
			}
		}
		if len(n.names)+len(n.patterns)+len(n.prefix)+len(n.items) > 0 || n.other != nil {
			s.nodes = append(s.nodes, n)
		}
	}
	if len(s.nodes) == 0 {
		return nil, true
	}
	slices.SortFunc(s.nodes, func(a, b *keyNode) int { return a.id - b.id })
	var id []byte
	for _, n := range s.nodes {
		id = binary.AppendUvarint(id, uint64(n.id)) //nolint:gosec // a count
	}
	if known := c.states[string(id)]; known != nil {
		return known, true
	}
	s.names, s.next = map[string]bool{}, map[string]*keyState{}
	for _, n := range s.nodes {
		s.patterns = s.patterns || len(n.patterns) > 0
		for _, name := range n.names {
			s.names[name] = true
		}
	}
	if size := len(s.nodes) + len(s.names); c.kept+size <= maxKeyKept {
		c.kept, s.kept = c.kept+size, true
		c.states[string(id)] = s
	}
	return s, true
}

// plain reports whether arguments need no check: the schema names all their keys, and they contain no objects. This
// is true of nearly all arguments.
func (v *validator) plain(args map[string]any) bool {
	if len(v.names) > maxNames {
		return false
	}
	for k, e := range args {
		if _, ok := e.(map[string]any); ok || !slices.Contains(v.names, k) {
			return false
		}
		if list, ok := e.([]any); ok && slices.ContainsFunc(list, isContainer) {
			return false
		}
	}
	return true
}

// lookalikes returns an error if the arguments contain keys that a server may take for others. It reads the schema
// when arguments first need it.
func (s *Snapshot) lookalikes(t *tenon.Tool, args map[string]any, read policy.Keys) error {
	v := s.validator(t)
	if len(args) == 0 || v.plain(args) {
		return nil
	}
	v.once.Do(func() { v.keys = newKeyCheck(t) })
	return v.keys.check(t, args, read)
}
