package config

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config/tree"
)

// splicer changes single values of a file. After each change it parses the file again: a change that would alter
// another value, such as one behind an anchor, is refused.
type splicer struct {
	label string
	data  []byte
	known *Spellings
}

// set changes the value at a path of keys and indexes, or removes it if value is nil.
func (s *splicer) set(path []any, value *tree.Node) error {
	root := s.tree()
	was := at(root, path)
	switch {
	case was == nil && value == nil, was != nil && value != nil && sameValue(was, value):
		return nil
	case was == nil || value == nil || was.Kind == tree.Scalar:
		return s.change(root, path, value)
	}
	place, before := dotted(path), s.region(path)
	for _, old := range s.known.texts(place, value) {
		if old.result == before && old.result != "" && s.restore(root, path, value, old.text) {
			return nil
		}
	}
	if err := s.setParts(root, path, was, value); err != nil {
		return err
	}
	s.known.remember(place, was, spelled{text: before, result: s.region(path)})
	return nil
}

// setParts changes the items or keys of a collection that differ.
func (s *splicer) setParts(root *tree.Node, path []any, was, value *tree.Node) error {
	shared := was.Kind == tree.List
	for _, k := range was.Keys {
		if v, _ := value.Get(k.Val); v != nil {
			shared = true
		}
	}
	switch {
	case was.Kind != value.Kind || len(value.Vals) == 0 || len(was.Vals) == 0 || !shared:
		return s.change(root, path, value)
	case was.Kind == tree.List:
		return s.setList(path, was, value)
	}
	for i, k := range value.Keys {
		if err := s.set(append(slices.Clip(path), k.Val), value.Vals[i]); err != nil {
			return err
		}
	}
	for _, k := range was.Keys {
		if v, _ := value.Get(k.Val); v == nil {
			if err := s.set(append(slices.Clip(path), k.Val), nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// span returns the byte range of the value at a path. ok is false if there is none.
func (s *splicer) span(path []any) (from, to int, ok bool) {
	t := openText(s.label, s.data)
	if t == nil {
		return 0, 0, false
	}
	n, indent := t.root, 0
	for _, step := range path {
		next, key, _ := childOf(n, step)
		if next == nil {
			return 0, 0, false
		}
		indent = n.Column - 1
		if key != nil {
			indent = key.Column - 1
		}
		n = next
	}
	return t.offset(n), t.end(n, indent), true
}

// region returns the text of the value at a path.
func (s *splicer) region(path []any) string {
	from, to, _ := s.span(path)
	return string(s.data[from:to])
}

// restore writes the former text of a collection, if the file then has the wanted value.
func (s *splicer) restore(root *tree.Node, path []any, value *tree.Node, text string) bool {
	from, to, ok := s.span(path)
	if !ok {
		return false
	}
	before := s.data
	s.data = slices.Concat(before[:from], []byte(text), before[to:])
	sink := &tree.Sink{}
	if now := tree.Parse(&tree.Source{Label: s.label}, s.data, sink); len(sink.Errs) == 0 && now != nil &&
		sameValue(now, with(root, path, value)) {
		return true
	}
	s.data = before
	return false
}

// setList changes the items that differ, and adds or removes items at the end of the list.
func (s *splicer) setList(path []any, was, value *tree.Node) error {
	first, same := 0, min(len(was.Vals), len(value.Vals))
	for first < same && sameValue(was.Vals[first], value.Vals[first]) {
		first++
	}
	last := 0
	for last < same-first && sameValue(was.Vals[len(was.Vals)-1-last], value.Vals[len(value.Vals)-1-last]) {
		last++
	}
	had, has := len(was.Vals)-last, len(value.Vals)-last
	for i := first; i < min(had, has); i++ {
		if err := s.set(append(slices.Clip(path), i), value.Vals[i]); err != nil {
			return err
		}
	}
	for i := had - 1; i >= has; i-- {
		if err := s.set(append(slices.Clip(path), i), nil); err != nil {
			return err
		}
	}
	if had >= has {
		return nil
	}
	if last == 0 {
		for i := had; i < has; i++ {
			if err := s.set(append(slices.Clip(path), i), value.Vals[i]); err != nil {
				return err
			}
		}
		return nil
	}
	return s.change(s.tree(), path, value) // items were added in the middle: write the whole list
}

func (s *splicer) tree() *tree.Node {
	n := tree.Parse(&tree.Source{Label: s.label}, s.data, &tree.Sink{})
	if n == nil {
		n = &tree.Node{Kind: tree.Map}
	}
	return n
}

// at returns the value at a path, or nil if there is none.
func at(n *tree.Node, path []any) *tree.Node {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			n, _ = n.Get(step)
		case int:
			if n == nil || n.Kind != tree.List || step >= len(n.Vals) {
				return nil
			}
			n = n.Vals[step]
		}
		if n == nil {
			return nil
		}
	}
	return n
}

// sameValue compares two values. The order of keys does not matter.
func sameValue(a, b *tree.Node) bool {
	if a.Kind != b.Kind || len(a.Vals) != len(b.Vals) {
		return false
	}
	switch a.Kind {
	case tree.Scalar:
		return a.Tag == b.Tag && a.Val == b.Val || tree.SameJSON(a, b)
	case tree.List:
		for i := range a.Vals {
			if !sameValue(a.Vals[i], b.Vals[i]) {
				return false
			}
		}
	default:
		for i, k := range a.Keys {
			if v, _ := b.Get(k.Val); v == nil || !sameValue(a.Vals[i], v) {
				return false
			}
		}
	}
	return true
}

// with returns a copy of a tree with the value at a path changed, added or removed.
func with(n *tree.Node, path []any, value *tree.Node) *tree.Node {
	out := *n
	out.Keys, out.Vals = slices.Clone(n.Keys), slices.Clone(n.Vals)
	i := -1
	switch step := path[0].(type) {
	case string:
		i = slices.IndexFunc(out.Keys, func(k *tree.Node) bool { return k.Val == step })
		if i < 0 && value != nil {
			if out.Kind != tree.Map {
				out = tree.Node{Kind: tree.Map}
			}
			i = len(out.Keys)
			out.Keys, out.Vals = append(out.Keys, tree.Text(step)), append(out.Vals, &tree.Node{Kind: tree.Map})
		}
	case int:
		if i = step; i >= len(out.Vals) {
			out.Vals, i = append(out.Vals, nil), len(out.Vals)
		}
	}
	switch {
	case i < 0:
	case len(path) > 1:
		out.Vals[i] = with(out.Vals[i], path[1:], value)
	case value != nil:
		out.Vals[i] = value
	default:
		if out.Kind == tree.Map {
			out.Keys = slices.Delete(out.Keys, i, i+1)
		}
		out.Vals = slices.Delete(out.Vals, i, i+1)
	}
	return &out
}

// change tries the possible ways to write a change, until the file has the wanted value.
func (s *splicer) change(root *tree.Node, path []any, value *tree.Node) error {
	t := openText(s.label, s.data)
	if t == nil {
		return s.refused(path)
	}
	want := with(root, path, value)
	was := at(root, path)
	place := dotted(path)
	for _, try := range s.ways(t, path, value, place) {
		after := slices.Concat(s.data[:try.from], []byte(try.text), s.data[try.to:])
		sink := &tree.Sink{}
		now := tree.Parse(&tree.Source{Label: s.label}, after, sink)
		if len(sink.Errs) == 0 && now != nil && sameValue(now, want) {
			if was != nil && (was.Kind == tree.Scalar || value == nil) {
				s.known.remember(place, was, spelled{text: string(s.data[try.from:try.to]), after: try.behind(t)})
			}
			s.data = after
			return nil
		}
	}
	return s.refused(path)
}

func (s *splicer) refused(path []any) error {
	return tenon.Errorf(tenon.CodeInvalid, "%s: the value of %s is written in a form, such as an anchor, that cannot "+
		"be changed here; edit the file", s.label, dotted(path))
}

func dotted(path []any) string {
	out := ""
	for _, step := range path {
		switch step := step.(type) {
		case string:
			out = tree.Join(out, step)
		case int:
			out = tree.Index(out, step)
		}
	}
	return out
}

// way is one way to write a change: text replaces the bytes from from up to to.
type way struct {
	from, to int
	text     string
}

// behind returns the line before the change. If a removed value is added again, this line shows where it was.
func (w way) behind(t *yamlText) string {
	start := t.lineStart(w.from)
	if start == 0 {
		return ""
	}
	return string(t.data[t.lineStart(start-1):start])
}

// ways lists the ways to make a change, the best first.
func (s *splicer) ways(t *yamlText, path []any, value *tree.Node, place string) []way {
	n, key, parent, depth := t.root, (*yaml.Node)(nil), (*yaml.Node)(nil), 0
	position := -1
	for ; depth < len(path); depth++ {
		next, k, i := childOf(n, path[depth])
		if next == nil {
			break
		}
		parent, key, n, position = n, k, next, i
	}
	indent := 0
	if key != nil {
		indent = key.Column - 1
	} else if parent != nil {
		indent = parent.Column - 1
	}
	var list []way
	switch {
	case depth == len(path) && value == nil:
		return t.removals(parent, position)
	case depth == len(path):
		from, to := t.offset(n), t.end(n, indent)
		for _, old := range s.known.texts(place, value) {
			if old.result == "" {
				list = append(list, way{from, to, old.text})
			}
		}
		for _, text := range t.spell(n, value, indent) {
			list = append(list, way{from, to, text})
		}
		return list
	case value == nil:
		return nil
	}
	for i := len(path) - 1; i > depth; i-- { // create the maps in between
		name, ok := path[i].(string)
		if !ok {
			return nil
		}
		outer := &tree.Node{Kind: tree.Map}
		outer.Put(name, value)
		value = outer
	}
	for _, old := range s.known.texts(place, value) {
		list = append(list, t.again(old)...)
	}
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" && depth > 0 { // the entry has no value yet
		inner := &tree.Node{Kind: tree.Map}
		inner.Put(fmt.Sprint(path[depth]), value)
		from, to := t.offset(n), t.end(n, indent)
		var b strings.Builder
		writeValue(&b, &tree.Node{Kind: tree.Map, Keys: inner.Keys, Vals: inner.Vals}, indent, maxFlow)
		return append(list, way{t.lineEnd(from), t.lineEnd(from), t.breaks(strings.TrimSuffix(b.String(), "\n"))},
			way{from, to, " " + inline(inner)})
	}
	return append(list, t.additions(n, path[depth], value)...)
}

// again returns the places where a removed line may have been.
func (t *yamlText) again(old spelled) (list []way) {
	if old.after == "" || old.result != "" {
		return nil
	}
	for from := 0; len(list) < maxPlaces; {
		i := bytes.Index(t.data[from:], []byte(old.after))
		if i < 0 {
			break
		}
		from += i + len(old.after)
		list = append(list, way{from, from, old.text})
	}
	return list
}

// maxPlaces is the maximum number of places that are tried for a removed line.
const maxPlaces = 20

// breaks converts line breaks to the kind that the file uses.
func (t *yamlText) breaks(text string) string { return strings.ReplaceAll(text, "\n", t.eol) }

// additions lists the ways to add a key to a map, or an item to a list.
func (t *yamlText) additions(n *yaml.Node, step any, value *tree.Node) []way {
	name, isKey := step.(string)
	flow := t.flow(value)
	if isKey {
		flow = t.flow(tree.Text(name)) + ": " + flow
	}
	start := t.skipMarks(t.offset(n))
	if n.Style&yaml.FlowStyle != 0 || len(n.Content) == 0 {
		if len(n.Content) == 0 {
			return []way{{start + 1, start + 1, flow}}
		}
		end := t.end(n.Content[len(n.Content)-1], 0)
		return []way{{end, end, ", " + flow}}
	}
	indent := n.Column - 1
	last := n.Content[len(n.Content)-1]
	if n.Anchor != "" && n.Kind == yaml.MappingNode {
		indent = n.Content[0].Column - 1
	}
	end := t.lineEnd(t.end(last, indent))
	var b strings.Builder
	b.WriteString("\n")
	if isKey {
		writeKey(&b, name, value, indent)
	} else {
		b.WriteString(pad(indent) + "-")
		var item strings.Builder
		if value.Kind == tree.Map && len(value.Keys) > 0 && (last.Style&yaml.FlowStyle == 0 || apartItem(value)) {
			for i, k := range value.Keys {
				writeKey(&item, k.Val, value.Vals[i], indent+2)
			}
			b.WriteString(" " + item.String()[indent+2:])
		} else {
			writeValue(&b, value, indent, indent+2)
		}
	}
	text := t.breaks(strings.TrimSuffix(b.String(), "\n"))
	mark := ""
	if !isKey {
		mark = "- "
	}
	return []way{{end, end, text}, {end, end, t.eol + pad(indent) + mark + flow}}
}

// flow writes a value on one line.
func (t *yamlText) flow(value *tree.Node) string {
	if !t.json {
		return inline(value)
	}
	var b bytes.Buffer
	value.WriteJSON(&b, "", &tree.Sink{}, nil)
	return b.String()
}

func apartItem(v *tree.Node) bool { return len(inline(v)) > maxFlow }

// removals lists the ways to remove a key with its value, or an item.
func (t *yamlText) removals(parent *yaml.Node, position int) []way {
	width := 1
	if parent.Kind == yaml.MappingNode {
		width = 2
	}
	first := parent.Content[position]
	last := parent.Content[position+width-1]
	indent := parent.Column - 1
	start, end := t.offset(first), t.end(last, first.Column-1)
	if parent.Kind == yaml.SequenceNode {
		end = t.end(last, indent)
	}
	more := position+width < len(parent.Content)
	if parent.Style&yaml.FlowStyle != 0 {
		switch {
		case more:
			return []way{{start, t.offset(parent.Content[position+width]), ""}}
		case position > 0:
			return []way{{t.end(parent.Content[position-1], 0), end, ""}}
		}
		return []way{{start, end, ""}}
	}
	if len(parent.Content) == width { // the only entry is removed: write an empty collection
		empty := "{}"
		if parent.Kind == yaml.SequenceNode {
			empty, start = "[]", t.offset(parent)
		}
		return []way{{start, end, empty}}
	}
	if dash := bytes.LastIndexByte(t.data[:start], '-'); parent.Kind == yaml.SequenceNode && dash >= 0 &&
		strings.TrimSpace(string(t.data[dash+1:start])) == "" {
		start = dash // the dash may be on an earlier line
	}
	from := t.lineStart(start)
	lead := strings.TrimSpace(strings.TrimPrefix(string(t.data[from:start]), "\ufeff"))
	if lead != "" { // the first key after a dash: the next key takes its place
		if more {
			return []way{{start, t.offset(parent.Content[position+width]), ""}}
		}
		return nil
	}
	to := t.lineEnd(end)
	if next := bytes.IndexByte(t.data[to:], '\n'); next >= 0 {
		return []way{{from, to + next + 1, ""}}
	}
	if from > 0 { // the file has no line break at its end
		from--
	}
	if from > 0 && t.data[from-1] == '\r' {
		from--
	}
	return []way{{from, to, ""}}
}

// spell returns the ways to write a value instead of old, beginning with the style of old.
func (t *yamlText) spell(old *yaml.Node, value *tree.Node, indent int) []string {
	if t.json {
		return []string{t.flow(value)}
	}
	var list []string
	lead := ""
	if from := t.offset(old); from > 0 && t.data[from-1] == ':' { // there was no value
		lead = " "
	}
	add := func(s string) { list = append(list, lead+s) }
	if value.Kind == tree.Scalar && value.Tag == "!!str" {
		s := value.Val
		switch plain := !strings.ContainsAny(s, "\n\r\t") && s != ""; {
		case old.Kind != yaml.ScalarNode:
		case old.Style&yaml.DoubleQuotedStyle != 0:
			add(jsonQuoted(s))
		case old.Style&yaml.SingleQuotedStyle != 0 && plain:
			add("'" + strings.ReplaceAll(s, "'", "''") + "'")
		case old.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
			list = append(list, t.block(old, s, indent)...)
		case plain:
			add(s)
		}
	}
	if old.Kind != yaml.ScalarNode && old.Style&yaml.FlowStyle == 0 && value.Kind != tree.Scalar &&
		len(value.Vals) > 0 {
		var b strings.Builder
		writeValue(&b, value, max(0, old.Column-3), maxFlow)
		list = append(list, strings.TrimLeft(t.breaks(strings.TrimSuffix(b.String(), "\n")), "\r\n "))
	}
	if old.Tag != "!!null" || old.Value != "" || value.Kind != tree.Scalar || lead != "" {
		add(inline(value))
	} else {
		list = append(list, inline(value), " "+inline(value))
	}
	if value.Kind == tree.Scalar && value.Tag == "!!str" {
		add(jsonQuoted(value.Val))
	}
	return list
}

// block writes a text as a literal or folded block, with the header and the indentation of the old one.
func (t *yamlText) block(old *yaml.Node, s string, indent int) []string {
	from := t.skipMarks(t.offset(old))
	end := t.lineEnd(from)
	header := string(t.data[from:end])
	body := string(t.data[end:t.end(old, indent)])
	inner := indent + 2
	for _, line := range strings.Split(body, "\n") {
		if text := strings.TrimLeft(line, " "); strings.TrimSpace(text) != "" {
			inner = len(line) - len(text)
			break
		}
	}
	mark, comment, _ := strings.Cut(header, " ")
	if mark == "" {
		return nil
	}
	if comment != "" {
		comment = " " + comment
	}
	chomp := "-"
	if strings.HasSuffix(s, "\n") {
		chomp = ""
	}
	lines := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	if mark[0] == '>' {
		lines = strings.Split(strings.ReplaceAll(strings.TrimSuffix(s, "\n"), "\n", "\n\n"), "\n")
	}
	var b strings.Builder
	for _, l := range lines {
		b.WriteString("\n")
		if l != "" {
			b.WriteString(pad(inner) + l)
		}
	}
	text := t.breaks(b.String())
	bare := strings.Trim(mark, "+-")
	return []string{mark + comment + text, bare + chomp + comment + text, "|" + chomp + text}
}

// jsonQuoted writes a text in double quotes. The escapes of JSON are valid in YAML.
func jsonQuoted(s string) string {
	return cmp.Or(strings.TrimSpace(string(tree.Text(s).JSON())), `""`)
}
