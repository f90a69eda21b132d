package jsonschema

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	validator "github.com/santhosh-tekuri/jsonschema/v6"
)

// harden adds limits to the compiled schemas, and reports the parts that they do not check. The library checks the
// format of a value before any other keyword. Therefore every schema gets a format that counts the work.
func (b *builder) harden() {
	h := hardener{builder: b, seen: map[*validator.Schema]bool{}}
	for _, s := range b.roots {
		h.visit(s)
	}
	c := cutter{builder: b, state: map[*validator.Schema]int{}}
	for _, s := range h.all {
		c.visit(s)
	}
	for _, s := range h.all {
		h.bound(s)
	}
	if !b.options.Formats {
		return
	}
	eachSchema(b.doc, nil, func(m map[string]any, path []string) {
		if name, ok := m["format"].(string); ok && !slices.Contains(formats, name) {
			b.note(pointer(append(path, "format")), "the format %.100q is not known", name)
		}
	})
}

// formats lists the formats that the library can assert.
var formats = strings.Fields("json-pointer relative-json-pointer uuid duration period ipv4 ipv6 hostname email date " +
	"time date-time uri iri uri-reference iri-reference uri-template semver regex idn-email")

type hardener struct {
	*builder
	seen map[*validator.Schema]bool
	all  []*validator.Schema
}

// visit collects all schemas that a check of s can reach.
func (h *hardener) visit(s *validator.Schema) {
	for todo := []*validator.Schema{s}; len(todo) > 0; {
		s, todo = todo[len(todo)-1], todo[:len(todo)-1]
		if s == nil || h.seen[s] {
			continue
		}
		h.seen[s] = true
		h.all = append(h.all, s)
		todo = append(append(todo, samePlace(s)...), below(s)...)
	}
}

// samePlace returns the schemas within s that apply to the same value as s.
func samePlace(s *validator.Schema) []*validator.Schema {
	list := slices.Concat([]*validator.Schema{s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else}, s.AllOf, s.AnyOf,
		s.OneOf)
	if s.DynamicRef != nil {
		list = append(list, s.DynamicRef.Ref)
	}
	for _, sub := range s.DependentSchemas {
		list = append(list, sub)
	}
	for _, v := range s.Dependencies {
		if sub, ok := v.(*validator.Schema); ok {
			list = append(list, sub)
		}
	}
	return list
}

// below returns the schemas within s that apply to members, elements and names of the value.
func below(s *validator.Schema) []*validator.Schema {
	list := slices.Concat([]*validator.Schema{s.PropertyNames, s.UnevaluatedProperties, s.Contains, s.Items2020,
		s.UnevaluatedItems, s.ContentSchema}, s.PrefixItems)
	for _, sub := range s.Properties {
		list = append(list, sub)
	}
	for _, sub := range s.PatternProperties {
		list = append(list, sub)
	}
	for _, v := range []any{s.AdditionalProperties, s.Items, s.AdditionalItems} {
		switch v := v.(type) {
		case *validator.Schema:
			list = append(list, v)
		case []*validator.Schema:
			list = append(list, v...)
		}
	}
	return list
}

// bound changes a schema so that a check counts its work, and stops after a few wrong elements of a long list.
func (h *hardener) bound(s *validator.Schema) {
	if s.Bool != nil {
		return
	}
	cost := 1
	for _, sub := range slices.Concat(samePlace(s), below(s)) {
		cost += entry(sub)
	}
	h.patterns(s)
	var check func(any) error
	if old := s.Format; old != nil && h.options.Formats {
		check = old.Validate
		if old.Name == "regex" {
			check = h.work.isPattern
		}
	}
	name, unique := "", s.UniqueItems
	if s.Format != nil {
		name = s.Format.Name
	}
	s.Format = &validator.Format{Name: name, Validate: func(v any) error {
		h.work.charge(cost + size(v)/4)
		if _, isList := v.([]any); isList && unique {
			h.work.charge(measure(v, maxValues).values)
		}
		if check == nil {
			return nil
		}
		return check(v)
	}}
	h.loops(s)
}

// patterns reports patterns that cannot be used, and removes them or replaces their schemas by true.
func (h *hardener) patterns(s *validator.Schema) {
	if p, ok := s.Pattern.(*pattern); ok && p.bad != nil {
		h.note(at(s)+"/pattern", "the pattern %.100q cannot be used: %v", p.source, p.bad)
		s.Pattern = nil
	}
	for re := range s.PatternProperties {
		if p, ok := re.(*pattern); ok && p.bad != nil {
			h.note(at(s)+"/patternProperties", "the pattern %.100q cannot be used: %v; no property counts as "+
				"additional", p.source, p.bad)
			anything := true
			s.PatternProperties[re] = &validator.Schema{Bool: &anything}
		}
	}
}

// loops replaces the library's loops over elements and additional members, because they collect an error for each
// wrong one.
func (h *hardener) loops(s *validator.Schema) {
	l := loop{work: h.work}
	if s.Items2020 != nil {
		l.items, l.from, s.Items2020 = s.Items2020, len(s.PrefixItems), nil
	}
	if items, ok := s.Items.(*validator.Schema); ok && s.DraftVersion < 2020 {
		l.items, s.Items = items, nil
	}
	if others, ok := s.AdditionalProperties.(*validator.Schema); ok && len(s.PatternProperties) == 0 {
		l.others, l.named, s.AdditionalProperties = others, s.Properties, nil
	}
	if l.items != nil || l.others != nil {
		l.itemCost, l.otherCost = entry(l.items), entry(l.others)
		s.Extensions = append(s.Extensions, &l)
	}
}

// maxErrors is the number of wrong elements or members after which a loop ends.
const maxErrors = 5

// loop checks elements and additional members one by one.
type loop struct {
	work                *meter
	items, others       *validator.Schema
	from                int
	named               map[string]*validator.Schema
	itemCost, otherCost int
}

// Validate implements [validator.SchemaExt].
func (l *loop) Validate(ctx *validator.ValidatorContext, v any) {
	wrong := 0
	check := func(s *validator.Schema, v any, key string, cost int) bool {
		l.work.charge(cost)
		if err := ctx.Validate(s, v, []string{key}); err != nil {
			ctx.AddErr(err)
			wrong++
		}
		return wrong < maxErrors
	}
	switch v := v.(type) {
	case []any:
		for i := l.from; l.items != nil && i < len(v); i++ {
			if !check(l.items, v[i], strconv.Itoa(i), l.itemCost) {
				return
			}
		}
	case map[string]any:
		if l.others == nil {
			return
		}
		for key, member := range v {
			if _, known := l.named[key]; !known && !check(l.others, member, key, l.otherCost) {
				return
			}
		}
	}
}

// entry returns the number of steps for comparisons with the constants of a schema.
func entry(s *validator.Schema) int {
	n := 0
	if s == nil {
		return n
	}
	if s.Enum != nil {
		n += measure(s.Enum.Values, MaxNodes).values / 16
	}
	if s.Const != nil {
		n += measure(*s.Const, MaxNodes).values / 16
	}
	return n
}

func size(v any) int {
	switch v := v.(type) {
	case map[string]any:
		return len(v)
	case []any:
		return len(v)
	}
	return 0
}

// at returns the JSON pointer to a schema.
func at(s *validator.Schema) string {
	_, fragment, _ := strings.Cut(s.Location, "#")
	if p, err := url.PathUnescape(fragment); err == nil {
		return p
	}
	return fragment
}

// cutter removes references that lead back to their own schema for the same value, since such a check would never
// end.
type cutter struct {
	*builder
	state map[*validator.Schema]int
	way   []*validator.Schema
}

const (
	fresh = iota
	open
	done
)

func (c *cutter) visit(s *validator.Schema) {
	if s == nil || c.state[s] != fresh {
		return
	}
	c.state[s] = open
	c.way = append(c.way, s)
	for _, next := range samePlace(s) {
		if next != nil && c.state[next] == open {
			c.cut(next)
		}
		c.visit(next)
	}
	c.way = c.way[:len(c.way)-1]
	c.state[s] = done
}

// cut removes a reference from the circle of open schemas that begins at a schema.
func (c *cutter) cut(to *validator.Schema) {
	circle := c.way[slices.Index(c.way, to):]
	for i := len(circle) - 1; i >= 0; i-- {
		s, next := circle[i], to
		if i+1 < len(circle) {
			next = circle[i+1]
		}
		if s.Ref == next {
			c.note(at(s)+"/$ref", "the reference leads back to itself")
			s.Ref = nil
			return
		}
	}
}

// isPattern asserts the format regex.
func (m *meter) isPattern(v any) error {
	text, ok := v.(string)
	if !ok {
		return nil
	}
	if p := newPattern(text, m); p.bad != nil {
		return fmt.Errorf("%w", p.bad)
	}
	return nil
}

// idnEmail asserts the format idn-email, which the library lacks. RFC 6531 allows nearly all characters.
func idnEmail(v any) error {
	text, ok := v.(string)
	if local, domain, found := strings.Cut(text, "@"); !ok || found && local != "" && domain != "" {
		return nil
	}
	return errors.New("it is not LOCAL@DOMAIN")
}
