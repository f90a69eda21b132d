package workflow

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/internal/lazyregexp"
	"github.com/tenonhq/tenon/policy"
)

// Workflow is a checked workflow file. It is immutable and safe for concurrent use.
type Workflow struct {
	File

	steps  []*step
	byID   map[string]*step
	inputs map[string]*Input
	order  []string // parameter names in file order
	schema *catalog.ValueSchema
}

// step is a step with its compiled expressions.
type step struct {
	*Step
	kind   string
	at     int
	when   *policy.Expression
	items  *policy.Expression
	args   map[string]value
	params map[string]value
	text   *policy.Template
	rows   *value   // rows of a table step, if given
	tables []string // tables that it reads: inputs, steps, STEP.PORT
	reads  []string // inputs used by its expressions
	needs  []*step
}

// Reporter collects the errors of a file, and returns the keys of a map in file order. A path names a value of the
// file, such as steps[2].when.
type Reporter interface {
	Add(path, message, hint string)
	Keys(path string) []string
}

var (
	toolName = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$`)
	stepName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)
)

// IsName reports whether a text can be the name of a workflow.
func IsName(name string) bool { return toolName().MatchString(name) }

// columnTypes are the types of columns. madeTypes are the types of columns that a table step creates.
var (
	columnTypes = []string{"string", "integer", "number", "boolean", "timestamp", "binary", "list", "any"}
	madeTypes   = []string{"string", "integer", "number", "boolean", "timestamp"}
)

type compiler struct {
	Reporter
	w      *Workflow
	lang   *policy.Expressions
	looped *policy.Expressions // within foreach
	within *policy.Expressions // expressions of the step being compiled
	at     *step               // the step being compiled, or nil
	used   map[*step]map[string]bool
	failed bool
}

func (c *compiler) bad(path, hint, format string, args ...any) {
	c.failed = true
	c.Add(path, fmt.Sprintf(format, args...), strings.TrimSpace(hint))
}

// Compile checks a file. It adds errors of the file to the reporter; the workflow is then nil. The returned
// error is only set if the expression language cannot be initialized.
func Compile(f File, r Reporter) (*Workflow, error) {
	c, err := compile(f, r)
	if err != nil || c.failed {
		return nil, err
	}
	return c.w, nil
}

// Sketch is Compile for a file that is being edited: it also returns the graph of everything that it could read, even
// if the file has errors.
func Sketch(f File, r Reporter) (*Workflow, Graph, error) {
	c, err := compile(f, r)
	if err != nil {
		return nil, Graph{}, err
	}
	g := c.w.Graph()
	if c.failed {
		return nil, g, nil
	}
	return c.w, g, nil
}

func compile(f File, r Reporter) (*compiler, error) {
	c := &compiler{Reporter: r, w: &Workflow{File: f, byID: map[string]*step{}, inputs: map[string]*Input{}},
		used: map[*step]map[string]bool{}}
	var err error
	if c.lang, err = policy.NewExpressions("params", "inputs", "steps", "data"); err != nil {
		return nil, err
	}
	if c.looped, err = policy.NewExpressions("params", "inputs", "steps", "data", "item", "index"); err != nil {
		return nil, err
	}
	c.head()
	c.parameters()
	c.ports()
	c.names()
	for _, s := range c.w.steps {
		c.step(s)
	}
	c.ends()
	c.cycles()
	return c, nil
}

func (c *compiler) head() {
	f := &c.w.File
	if f.Kind == "" {
		c.bad("kind", "write kind: workflow", "'kind' is required")
	}
	switch {
	case f.Version == 0:
		c.bad("version", "write version: 1", "'version' is required")
	case f.Version != 1:
		c.bad("version", "use a newer tenon, or write version: 1",
			"unknown version %d; this tenon supports 1", f.Version)
	}
	switch {
	case f.Name == "":
		c.bad("name", "", "'name' is required")
	case !toolName().MatchString(f.Name):
		c.bad("name", "a name has 1 to 64 of the characters A-Z a-z 0-9 _ . -", "'%s' is not a valid tool name",
			tenon.Visible(f.Name))
	}
	if f.Data != "" && !localPath(f.Data) {
		c.bad("data", "name a folder next to the file, such as data", "'%s' is outside the workflow's folder",
			tenon.Visible(f.Data))
	}
	if f.Timeout < 0 {
		c.bad("timeout", "", "must not be negative")
	}
}

func (c *compiler) parameters() {
	c.w.order = c.Keys("parameters")
	var object map[string]json.RawMessage
	if string(c.w.Parameters["type"]) == `"object"` && json.Unmarshal(c.w.Parameters["properties"], &object) == nil {
		c.bad("parameters",
			"remove the object around its properties: {city: {type: string, description: City to report on}}; "+
				"each is required unless it has a default",
			"must map each name to a JSON Schema; this is the schema of an object")
		c.w.order = slices.Sorted(maps.Keys(object)) // avoids further errors about the parameters that the steps use
		return
	}
	props := []byte("{")
	required := []string{}
	for i, name := range c.w.order {
		at := "parameters." + name
		if !stepName().MatchString(name) {
			c.bad(at, "a name has letters, digits and _, and does not start with a digit",
				"'%s' is not a valid parameter name", tenon.Visible(name))
		}
		raw := c.w.Parameters[name]
		var about struct {
			Description string          `json:"description"`
			Default     json.RawMessage `json:"default"`
			Type        any             `json:"type"`
		}
		if json.Unmarshal(raw, &about) != nil {
			c.bad(at, "such as {type: string, description: City to report on}", "must be a JSON Schema")
			continue
		}
		if bad, ok := unknownType(about.Type); ok {
			c.bad(at+".type", nearHint(bad, jsonTypes)+"types: "+strings.Join(jsonTypes, ", "), "unknown type '%s'",
				tenon.Visible(bad))
			continue
		}
		s, err := catalog.NewValueSchema(raw)
		if err != nil {
			c.bad(at, "", "%s", err)
			continue
		}
		switch {
		case about.Description == "":
			c.bad(at, "describe the value for callers: description: …", "'description' is required")
		case len(about.Default) == 0:
			required = append(required, name)
		default:
			if err := s.Check(about.Default); err != nil {
				c.bad(at+".default", "", "the default does not match the schema: %s", err)
			}
		}
		if i > 0 {
			props = append(props, ',')
		}
		props = append(append(append(props, mustJSON(name)...), ':'), raw...)
	}
	props = append(props, '}')
	if c.failed {
		return
	}
	raw := fmt.Appendf(nil, `{"type":"object","properties":%s,"required":%s,"additionalProperties":false}`, props,
		mustJSON(required))
	var err error
	if c.w.schema, err = catalog.NewValueSchema(raw); err != nil {
		c.bad("parameters", "", "%s", err)
	}
}

func (c *compiler) ports() {
	if len(c.w.Inputs) > maxPorts || len(c.w.Outputs) > maxPorts {
		c.bad("inputs", "", "there are more than %d tables", maxPorts)
	}
	for i := range c.w.Inputs {
		in, at := &c.w.Inputs[i], fmt.Sprintf("inputs[%d]", i)
		switch {
		case in.Name == "":
			c.bad(at+".name", "", "'name' is required")
		case !stepName().MatchString(in.Name):
			c.bad(at+".name", "a name has letters, digits and _, and does not start with a digit",
				"'%s' is not a valid table name", tenon.Visible(in.Name))
		case c.w.inputs[in.Name] != nil:
			c.bad(at+".name", "", "there are two inputs '%s'", in.Name)
		default:
			c.w.inputs[in.Name] = in
		}
		c.columns(at, in.Columns, columnTypes)
	}
	seen := map[string]bool{}
	for i, out := range c.w.Outputs {
		at := fmt.Sprintf("outputs[%d]", i)
		switch {
		case out.Name == "":
			c.bad(at+".name", "", "'name' is required")
		case !stepName().MatchString(out.Name):
			c.bad(at+".name", "a name has letters, digits and _, and does not start with a digit",
				"'%s' is not a valid table name", tenon.Visible(out.Name))
		case seen[out.Name]:
			c.bad(at+".name", "", "there are two outputs '%s'", out.Name)
		}
		seen[out.Name] = true
		c.columns(at, out.Columns, columnTypes)
	}
}

func (c *compiler) columns(at string, columns map[string]string, types []string) {
	for _, name := range c.Keys(at + ".columns") {
		if t := columns[name]; !slices.Contains(types, t) {
			c.bad(at+".columns."+name, nearHint(t, types)+"types: "+strings.Join(types, ", "), "unknown type '%s'",
				tenon.Visible(t))
		}
	}
}

// names indexes the steps by id, so that expressions can refer to them, and determines their kinds.
func (c *compiler) names() {
	switch n := len(c.w.Steps); {
	case n == 0:
		c.bad("steps", "", "there are no steps")
	case n > maxSteps:
		c.bad("steps", "call other workflows as tools", "there are more than %d steps", maxSteps)
		return
	}
	for i := range c.w.Steps {
		s := &step{Step: &c.w.Steps[i], at: i, args: map[string]value{}, params: map[string]value{}}
		c.w.steps = append(c.w.steps, s)
		at := fmt.Sprintf("steps[%d].id", i)
		switch {
		case s.ID == "":
			c.bad(at, "", "'id' is required")
		case !stepName().MatchString(s.ID):
			c.bad(at, "an id has letters, digits and _, and does not start with a digit", "'%s' is not a valid step id",
				tenon.Visible(s.ID))
		case c.w.byID[s.ID] != nil:
			c.bad(at, "", "there are two steps '%s'", s.ID)
		case c.w.inputs[s.ID] != nil:
			c.bad(at, "SQL refers to both by name: choose another", "the input table '%s' has the same name", s.ID)
		default:
			c.w.byID[s.ID] = s
		}
		var kinds []string
		for _, k := range []struct {
			name string
			on   bool
		}{{StepTool, s.Tool != ""}, {StepSQL, s.SQL != ""}, {StepTemplate, s.Template != ""},
			{StepAgent, s.Agent != ""}, {StepHTTP, s.HTTP != nil}, {StepTable, s.Table != nil}} {
			if k.on {
				kinds = append(kinds, k.name)
			}
		}
		switch len(kinds) {
		case 0:
			c.bad(fmt.Sprintf("steps[%d]", i), "add one of tool, sql, template, agent, http, table",
				"the step does nothing")
		case 1:
			s.kind = kinds[0]
		default:
			c.bad(fmt.Sprintf("steps[%d]", i), "split it into several steps", "a step has only one of %s",
				strings.Join(kinds, ", "))
		}
	}
}

// ends checks the outputs and the message of the workflow.
func (c *compiler) ends() {
	c.at = nil
	for i, out := range c.w.Outputs {
		at := fmt.Sprintf("outputs[%d].from", i)
		if out.From == "" {
			c.bad(at, "", "'from' is required")
			continue
		}
		c.tableRef(at, out.From)
	}
	if from := c.w.Message.From; from != "" && c.w.byID[from] == nil {
		c.bad("message.from", nearHint(from, c.stepNames()), "there is no step '%s'", tenon.Visible(from))
	}
}

func (c *compiler) isPort(name string) bool {
	id, port, ok := strings.Cut(name, ".")
	s := c.w.byID[id]
	return ok && port != "" && s != nil && s.kind == StepTool && s.Foreach == nil
}

func (c *compiler) stepNames() []string {
	names := make([]string, len(c.w.steps))
	for i, s := range c.w.steps {
		names[i] = s.ID
	}
	return names
}

// tableRef checks a reference to a table. A valid reference is an input, a step that produces a table, or STEP.PORT of
// a step that calls a workflow.
func (c *compiler) tableRef(at, name string) bool {
	if c.w.inputs[name] != nil {
		return true
	}
	id, _, port := strings.Cut(name, ".")
	s := c.w.byID[id]
	if s == nil {
		known := c.stepNames()
		for _, in := range c.w.Inputs {
			known = append(known, in.Name)
		}
		c.bad(at, nearHint(name, known), "there is no input and no step '%s'", tenon.Visible(name))
		return false
	}
	c.need(s)
	switch {
	case s.Foreach != nil:
		c.bad(at, "", "step '%s' is repeated by foreach and has no single table", id)
		return false
	case port && !c.isPort(name):
		c.bad(at, "", "step '%s' has no ports: only a call of a workflow has", id)
		return false
	case !port && s.kind != StepSQL && s.kind != StepTable && s.kind != "":
		hint := "make a table of it: {table: {rows: steps." + id + ".value}}"
		if s.kind == StepTool {
			hint = "a table of a workflow is " + id + ".PORT; or " + hint
		}
		c.bad(at, hint, "step '%s' returns a text, not a table", id)
		return false
	}
	return true
}

// need records that the current step waits for s.
func (c *compiler) need(s *step) {
	if c.at == nil || slices.Contains(c.at.needs, s) {
		return
	}
	c.at.needs = append(c.at.needs, s)
}

// cycles finds steps that wait for each other.
func (c *compiler) cycles() {
	const open, done = 1, 2
	mark := map[*step]int{}
	var path []*step
	var visit func(s *step) bool
	visit = func(s *step) bool {
		switch mark[s] {
		case done:
			return true
		case open:
			var names []string
			for _, p := range append(path[slices.Index(path, s):], s) {
				names = append(names, p.ID)
			}
			c.bad(fmt.Sprintf("steps[%d]", s.at), "", "the steps wait for each other: %s", strings.Join(names, " -> "))
			return false
		}
		mark[s] = open
		path = append(path, s)
		for _, n := range s.needs {
			if !visit(n) {
				return false
			}
		}
		path, mark[s] = path[:len(path)-1], done
		return true
	}
	for _, s := range c.w.steps {
		if !visit(s) {
			return
		}
	}
}

func nearHint(s string, known []string) string {
	if n := tenon.Nearest(s, known); n != "" {
		return "did you mean '" + n + "'? "
	}
	return ""
}

// localPath reports whether a path stays within the workflow's folder.
func localPath(p string) bool {
	return p != "" && len(p) <= 1000 && !strings.ContainsAny(p, "\\:\x00") && !strings.HasPrefix(p, "/") &&
		!slices.Contains(strings.Split(p, "/"), "..") && p == tenon.Visible(p)
}

// Schema returns the JSON Schema of the parameters, which is the schema of an object.
func (w *Workflow) Schema() json.RawMessage { return w.schema.Raw() }
