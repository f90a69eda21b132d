package catalog

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/jsonschema"
)

// transform applies entry i of a server's transform list to the tool. It returns the reason why the tool is left out,
// or "".
func (c *shaper) transform(i int, t *Transform) string {
	switch {
	case t.Prefix != "":
		return c.step(key(i, "prefix"), func(c *shaper) string { c.t.Name = t.Prefix + c.t.Name; return "" })
	case t.Describe != "":
		return c.step(key(i, "describe"),
			func(c *shaper) string { c.t.Description = fill(t.Describe, c.t, c.t.Name); return "" })
	case len(t.Rename) > 0:
		return c.step(key(i, "rename"), func(c *shaper) string {
			if to, ok := t.Rename[c.t.Name]; ok {
				c.used[key(i, "rename."+c.t.Name)] = true
				c.t.Name = to
			}
			return ""
		})
	case len(t.HideParams) > 0:
		return c.step(key(i, "hide_params"), func(c *shaper) string {
			return c.take(t.HideParams, func(p string) (json.RawMessage, bool) {
				c.used[key(i, "hide_params."+p)] = true
				return nil, false
			})
		})
	case len(t.SetParams) > 0:
		return c.step(key(i, "set_params"), func(c *shaper) string {
			return c.take(slices.Sorted(maps.Keys(t.SetParams)), func(p string) (json.RawMessage, bool) {
				c.used[key(i, "set_params."+p)] = true
				return t.SetParams[p], true
			})
		})
	case t.Func != nil:
		return c.step(key(i, "func"), func(c *shaper) string { return c.call(i, t.Func) })
	}
	return ""
}

// call runs a transform function of a Go program.
func (c *shaper) call(i int, f func(tenon.Tool) *tenon.Tool) string {
	t, failed := guarded(f, *c.t)
	if failed != "" {
		c.broken = true
		return fmt.Sprintf("transform[%d]: the function %s", i, failed)
	}
	if t == nil {
		return fmt.Sprintf("transform[%d]: the function left it out", i)
	}
	server, remote, wrapped := c.t.Server, c.t.Remote, c.t.Rules.Wrapped
	*c.t = *t
	c.t.Server, c.t.Remote = server, remote
	input, again, err := objectSchema(c.t.Input)
	if err != nil {
		c.broken = true
		return fmt.Sprintf("transform[%d]: the function's schema: %v", i, err)
	}
	c.t.Input, c.t.Rules.Wrapped = input, wrapped || again
	return ""
}

// guarded calls a function of a Go program in a new goroutine. A panic, or a call of [runtime.Goexit], as
// t.Fatal of a test makes one, concerns only this tool.
func guarded(f func(tenon.Tool) *tenon.Tool, t tenon.Tool) (out *tenon.Tool, failed string) {
	failed = "ended its goroutine (runtime.Goexit, which t.Fatal of a test calls)"
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				out, failed = nil, "panicked: "+shorten(tenon.Visible(fmt.Sprint(p)), 200)
			}
		}()
		out = f(t)
		failed = ""
	}()
	<-done
	return out, failed
}

// take removes parameters from the schema that the model sees. of returns the value that a call gets for a parameter,
// or false if calls get none. take ignores parameters that the tool does not have.
func (c *shaper) take(params []string, of func(string) (json.RawMessage, bool)) string {
	root, ok := parseObject(c.t.Input)
	if !ok || c.t.Rules.Wrapped {
		return ""
	}
	props, _ := parseObject(root.get("properties"))
	required := texts(root.get("required"))
	fixed, _ := parseObject(c.t.Rules.Fixed)
	for _, p := range params {
		if !props.has(p) {
			continue
		}
		value, set := of(p)
		if set {
			if err := valueFits(root, props.get(p), value); err != nil {
				c.broken = true
				return fmt.Sprintf("set_params.%s: the value does not fit the parameter: %v", p, err)
			}
			fixed = fixed.set(p, value)
			c.t.Rules.Fixed = fixed.raw()
		} else {
			if slices.Contains(required, p) {
				c.broken = true
				return fmt.Sprintf("hide_params would hide the required parameter '%s'; "+
					"give it a value with set_params", p)
			}
			c.t.Rules.Hidden = append(slices.Clip(c.t.Rules.Hidden), p)
		}
		props = props.without(p)
		required = slices.DeleteFunc(required, func(r string) bool { return r == p })
	}
	c.t.Input = withParameters(root, props, required)
	return ""
}

// withParameters returns a schema with new properties and a new list of required names.
func withParameters(root, props object, required []string) json.RawMessage {
	if root.has("properties") || len(props) > 0 {
		root = root.set("properties", props.raw())
	}
	switch {
	case len(required) > 0:
		root = root.set("required", encode(required))
	case root.has("required"):
		root = root.without("required")
	}
	return root.raw()
}

// valueFits checks a value against the schema of one parameter. A schema that is not usable allows every value.
func valueFits(root object, schema, value json.RawMessage) error {
	alone, ok := parseObject(schema)
	if !ok {
		return nil
	}
	for _, k := range []string{"$defs", "definitions"} { // targets of its references
		if d := root.get(k); d != nil && !alone.has(k) {
			alone = alone.set(k, d)
		}
	}
	compiled, err := jsonschema.Compile(alone.raw(), jsonschema.Options{})
	if err != nil {
		return nil
	}
	v, err := jsonschema.Decode(value)
	if err != nil {
		return err
	}
	return compiled.Validate(v)
}

// NotSimple returns why schema.types: simple leaves out a tool with this input schema, or "".
func NotSimple(schema json.RawMessage) string {
	return (&shaper{t: &tenon.Tool{Input: schema}}).simple()
}

// simple allows only parameters of plain types.
func (c *shaper) simple() string {
	root, ok := parseObject(c.t.Input)
	if !ok {
		return ""
	}
	props, _ := parseObject(root.get("properties"))
	required := texts(root.get("required"))
	var gone []string
	for _, p := range props {
		s, _ := parseObject(p.value)
		switch t := strings.Trim(string(s.get("type")), `"`); t {
		case "string", "integer", "number":
			continue
		}
		if slices.Contains(required, p.key) {
			return fmt.Sprintf("schema.types is simple, and the required parameter '%s' is %s", p.key, typeName(s))
		}
		gone = append(gone, p.key)
	}
	c.t.Rules.Hidden = append(slices.Clip(c.t.Rules.Hidden), gone...)
	c.t.Input = withParameters(root, props.without(gone...), required)
	return ""
}

// typeName describes the type of a parameter in words.
func typeName(schema object) string {
	switch t := schema.get("type"); {
	case t == nil:
		return "of no plain type"
	case t[0] == '"':
		return "of type " + strings.Trim(string(t), `"`)
	default:
		return "of several types"
	}
}
