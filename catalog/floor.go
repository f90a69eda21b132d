package catalog

import (
	"encoding/json"
	"slices"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/jsonschema"
)

// hasFloors reports whether more trusted layers have transforms or entries for this server.
func (c *shaper) hasFloors() bool {
	return slices.ContainsFunc(c.src.Floors, func(f Filter) bool { return len(f.Transform) > 0 || len(f.Entries) > 0 })
}

// floors applies the transforms and argument schemas of more trusted layers to the tool, before the server's own
// transforms. It returns the reason why the tool is left out, or "".
func (c *shaper) floors() string {
	c.floor = tenon.ToolRules{}
	if !c.hasFloors() {
		return ""
	}
	for i := range c.src.Floors {
		f := &c.src.Floors[i]
		for j := range f.Transform {
			if reason := c.transform(j, &f.Transform[j]); reason != "" {
				return f.By + ": " + reason
			}
		}
		e, ok := f.Entries[c.t.Remote]
		if !ok || e.ArgumentsMode == ArgumentsIgnore || e.Validate == ValidateOff || e.Validate == ValidateWarn {
			continue
		}
		// Describe the tool as this layer alone would offer it.
		own := shaper{src: c.src, used: map[string]bool{}, entry: c.t.Remote}
		seen := *c.t
		own.t = &seen
		if reason := own.arguments(&e); reason != "" {
			c.broken = true
			return f.By + ": " + reason
		}
		if !seen.Rules.Wrapped {
			c.floor.Floors = append(c.floor.Floors, seen.Input)
		}
	}
	c.floor.Fixed, c.floor.Hidden = c.t.Rules.Fixed, slices.Clone(c.t.Rules.Hidden)
	return ""
}

// floorsAgain removes parameters that more trusted layers set or hide, if a transform or an entry of a less trusted
// layer has brought them back. It returns the reason why the tool is left out, or "".
func (c *shaper) floorsAgain() string {
	r := &c.t.Rules
	r.Floors = c.floor.Floors
	fixed, _ := parseObject(c.floor.Fixed)
	names := append(fixed.keys(), c.floor.Hidden...)
	if len(names) == 0 {
		return ""
	}
	if r.Wrapped {
		return "its schema has no named arguments, and a more trusted layer sets or hides some of them"
	}
	root, ok := parseObject(c.t.Input)
	if !ok {
		return ""
	}
	props, _ := parseObject(root.get("properties"))
	required := slices.DeleteFunc(texts(root.get("required")), func(n string) bool { return slices.Contains(names, n) })
	c.t.Input = withParameters(root, props.without(names...), required)
	own, _ := parseObject(r.Fixed)
	own = own.without(c.floor.Hidden...)
	for _, m := range fixed {
		own = own.set(m.key, m.value)
	}
	r.Fixed = nil
	if len(own) > 0 {
		r.Fixed = own.raw()
	}
	for _, h := range c.floor.Hidden {
		if !slices.Contains(r.Hidden, h) {
			r.Hidden = append(r.Hidden, h)
		}
	}
	return ""
}

// fitsFloors checks the arguments of a call, as they are sent, against the schemas of more trusted layers. Errors:
// invalid.
func (s *Snapshot) fitsFloors(t *tenon.Tool, sent json.RawMessage) error {
	if len(t.Rules.Floors) == 0 {
		return nil
	}
	args, ok := parseObject(sent)
	if !ok {
		return tenon.Errorf(tenon.CodeInvalid, "the arguments of tool '%s' are not a JSON object, which a rule of a "+
			"more trusted file needs", t.Name)
	}
	fixed, _ := parseObject(t.Rules.Fixed)
	for _, schema := range t.Rules.Floors {
		root, _ := parseObject(schema)
		props, _ := parseObject(root.get("properties"))
		rest := args
		for _, name := range fixed.keys() {
			if !props.has(name) { // the layer itself sets the parameter
				rest = rest.without(name)
			}
		}
		compiled, err := s.compiled.get(schema, t.Rules.Formats)
		if err != nil {
			return tenon.Errorf(tenon.CodeInvalid, "the arguments of tool '%s' cannot be checked: "+
				"the schema of a more trusted file is no schema: %w", t.Name, err)
		}
		v, err := jsonschema.Decode(rest.raw())
		if err != nil {
			return tenon.Errorf(tenon.CodeInvalid, "the arguments of tool '%s' are not valid JSON: %w", t.Name, err)
		}
		if err := compiled.Validate(v); err != nil {
			return tenon.Errorf(tenon.CodeInvalid, "the arguments of tool '%s' do not fit the schema of a more "+
				"trusted file: %w", t.Name, err)
		}
	}
	return nil
}
