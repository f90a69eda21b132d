package workflow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/policy"
)

// keysOf lists the keys of each kind of step.
var keysOf = map[string][]string{
	StepTool:     {"server", "args", "inputs"},
	StepSQL:      {"params", "tables"},
	StepTemplate: {},
	StepAgent:    {"message"},
	StepHTTP:     {"args"},
	StepTable:    {},
}

// step compiles one step.
func (c *compiler) step(s *step) {
	at := fmt.Sprintf("steps[%d]", s.at)
	c.at, c.within = s, c.lang
	defer func() { c.at = nil }()
	if s.Foreach != nil {
		if s.Foreach.Items == "" {
			c.bad(at+".foreach", "write CEL that returns a list, such as params.cities",
				"the list is missing")
		} else {
			s.items = c.expression(at+".foreach.items", s.Foreach.Items)
		}
		if s.kind == StepSQL || s.kind == StepTable {
			c.bad(at+".foreach", "SQL and tables process many rows at once",
				"a step of kind %s cannot be repeated", s.kind)
		}
		c.within = c.looped
	}
	if s.When != "" {
		c.condition(at+".when", s)
	}
	for i, id := range s.After {
		if o := c.w.byID[id]; o != nil {
			c.need(o)
		} else {
			c.bad(fmt.Sprintf("%s.after[%d]", at, i), nearHint(id, c.stepNames()), "there is no step '%s'",
				tenon.Visible(id))
		}
	}
	c.foreign(at, s)
	for _, name := range slices.Sorted(maps.Keys(s.Args)) {
		s.args[name] = c.compileValue(at+".args."+name, s.Args[name])
	}
	for _, name := range slices.Sorted(maps.Keys(s.Params)) {
		s.params[name] = c.compileValue(at+".params."+name, s.Params[name])
	}
	switch s.kind {
	case StepTool:
		for _, port := range slices.Sorted(maps.Keys(s.Inputs)) {
			if c.tableRef(at+".inputs."+port, s.Inputs[port]) {
				s.tables = append(s.tables, s.Inputs[port])
			}
		}
	case StepSQL:
		c.query(at, s)
	case StepTemplate:
		s.text = c.template(at+".template", s.Template)
	case StepAgent:
		if s.Message == "" {
			c.bad(at+".message", "write the question for the agent", "'message' is required")
		}
		s.text = c.template(at+".message", s.Message)
	case StepHTTP:
		c.request(at+".http", s)
	case StepTable:
		c.source(at+".table", s)
	}
	c.behaviour(at, s)
}

// foreign reports keys that belong to other kinds of steps.
func (c *compiler) foreign(at string, s *step) {
	if s.kind == "" {
		return
	}
	for _, k := range []struct {
		name string
		on   bool
	}{{"server", s.Server != ""}, {"args", s.Args != nil}, {"inputs", s.Inputs != nil},
		{"params", s.Step.Params != nil}, {"tables", s.Tables != nil}, {"message", s.Message != ""}} {
		if k.on && !slices.Contains(keysOf[s.kind], k.name) {
			c.bad(at+"."+k.name, "remove it", "a step of kind %s has no '%s'", s.kind, k.name)
		}
	}
}

// behaviour checks retry, timeout and on_error.
func (c *compiler) behaviour(at string, s *step) {
	if s.Timeout < 0 {
		c.bad(at+".timeout", "", "must not be negative")
	}
	if s.Timeout > 0 && s.kind == StepTemplate {
		c.bad(at+".timeout", "remove it", "a template needs no timeout")
	}
	if s.Retry != nil && (s.kind == StepTemplate || s.kind == StepSQL || s.kind == StepTable) {
		c.bad(at+".retry", "remove it", "a step of kind %s has the same result each time", s.kind)
	}
	if s.Retry != nil && s.Retry.Delay < 0 {
		c.bad(at+".retry.delay", "", "must not be negative")
	}
	if e := s.OnError; e != nil && len(e.Default) > 0 {
		if e.Do != "" {
			c.bad(at+".on_error", "write only {default: VALUE}", "'do' and 'default' exclude each other")
		}
		if s.kind == StepSQL || s.kind == StepTable {
			c.bad(at+".on_error.default", "write on_error: continue", "a value cannot replace a table")
		}
	}
}

// query determines the tables of a query and checks that SQL can tell them apart. In SQL, STEP.PORT is STEP_PORT, and
// names are case-insensitive.
func (c *compiler) query(at string, s *step) {
	c.findTables(at, s)
	seen := map[string]string{}
	for _, name := range s.tables {
		key := strings.ToLower(sqlName(name))
		if other, ok := seen[key]; ok && other != name {
			c.bad(at+".sql", "rename one of them", "SQL cannot distinguish the tables '%s' and '%s'",
				other, name)
		}
		seen[key] = name
	}
}

func (c *compiler) findTables(at string, s *step) {
	if s.Tables != nil {
		for i, name := range s.Tables {
			if c.tableRef(fmt.Sprintf("%s.tables[%d]", at, i), name) {
				s.tables = append(s.tables, name)
			}
		}
		return
	}
	for _, word := range sqlNames(s.SQL) {
		for _, name := range c.tablesCalled(word) {
			o := c.w.byID[name]
			if o == s || slices.Contains(s.tables, name) {
				continue
			}
			if o != nil {
				c.need(o)
			}
			s.tables = append(s.tables, name)
		}
	}
}

// tablesCalled returns the inputs and table steps that SQL knows by a name: an exact match, or otherwise all
// names that differ only in case.
func (c *compiler) tablesCalled(word string) (names []string) {
	for _, in := range c.w.Inputs {
		if strings.EqualFold(in.Name, word) {
			names = append(names, in.Name)
		}
	}
	for _, o := range c.w.steps {
		if (o.kind == StepSQL || o.kind == StepTable) && strings.EqualFold(o.ID, word) {
			names = append(names, o.ID)
		}
	}
	if slices.Contains(names, word) {
		return []string{word}
	}
	return names
}

// source checks the source of a table.
func (c *compiler) source(at string, s *step) {
	t := s.Table
	n := 0
	for _, on := range []bool{len(t.Rows) > 0, t.CSV != "", t.Arrow != ""} {
		if on {
			n++
		}
	}
	if n != 1 {
		c.bad(at, "", "a table comes from one of rows, csv and arrow")
	}
	for key, p := range map[string]string{"csv": t.CSV, "arrow": t.Arrow} {
		if p != "" && !localPath(p) {
			c.bad(at+"."+key, "name a file in the workflow's folder", "'%s' is outside the workflow's folder", p)
		}
	}
	if t.Arrow != "" && t.Columns != nil {
		c.bad(at+".columns", "remove it", "an Arrow file contains its types")
	}
	c.columns(at, t.Columns, madeTypes)
	if len(t.Rows) == 0 {
		return
	}
	var text string
	if json.Unmarshal(t.Rows, &text) == nil {
		v := c.compileValue(at+".rows", t.Rows)
		s.rows = &v
		return
	}
	var rows []map[string]json.RawMessage
	if json.Unmarshal(t.Rows, &rows) != nil {
		c.bad(at+".rows", "such as [{city: London, amount: 3}]", "must be a list of maps, or CEL")
		return
	}
	s.rows = &value{raw: bytes.TrimSpace(t.Rows)}
}

// request checks a request and its templates. The executor compiles them again when it sends the request.
func (c *compiler) request(at string, s *step) {
	r := s.HTTP
	templates, err := policy.NewTemplates()
	if err != nil {
		c.bad(at, "", "%s", err)
		return
	}
	read := func(path, text string, secrets bool) *policy.Template {
		t, err := templates.Compile(text, secrets)
		if err != nil {
			hint := ""
			if strings.Contains(err.Error(), "undeclared reference") {
				hint = "the templates of a request see only args: add the value to the step's args"
			}
			c.bad(path, hint, "%s", err)
		}
		return t
	}
	if r.URL == "" {
		c.bad(at+".url", "", "'url' is required")
	} else if t := read(at+".url", r.URL, false); t != nil {
		fixed, whole := t.Fixed()
		u, err := url.Parse(fixed)
		_, rest, _ := strings.Cut(fixed, "://")
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil ||
			!whole && !strings.ContainsAny(rest, "/?#") {
			c.bad(at+".url", "such as https://example.com/search?q={{ args.q }}",
				"scheme, host and port must be written out: expressions are allowed only after them")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Headers)) {
		if !catalog.IsHeader(name) {
			c.bad(at+".headers."+name, "", "this is not a valid header name")
		}
		read(at+".headers."+name, r.Headers[name], true)
	}
	read(at+".body", r.Body, false)
	if r.Body != "" && (r.Method == "" || r.Method == http.MethodGet || r.Method == http.MethodHead) {
		c.bad(at+".body", "write method: POST", "a request of this method has no body")
	}
}

func (c *compiler) condition(at string, s *step) {
	e, err := c.within.Condition(s.When)
	if err != nil {
		c.bad(at, "", "%s", err)
		return
	}
	c.uses(at, e.Uses())
	s.when = e
}

func (c *compiler) expression(at, text string) *policy.Expression {
	e, err := c.within.Compile(text)
	if err != nil {
		hint := ""
		if stepName().MatchString(text) && strings.Contains(err.Error(), "undeclared reference") {
			hint = fmt.Sprintf("values are CEL; for a literal string write \"'%s'\"", text)
		}
		c.bad(at, hint, "%s", err)
		return nil
	}
	c.uses(at, e.Uses())
	return e
}

func (c *compiler) template(at, text string) *policy.Template {
	t, err := c.within.Template(text)
	if err != nil {
		c.bad(at, "", "%s", err)
		return nil
	}
	c.uses(at, t.Uses())
	return t
}

// uses checks the names that expressions refer to.
func (c *compiler) uses(at string, list []policy.Use) {
	for _, u := range list {
		switch u[0] {
		case "params":
			if len(u) > 1 && !slices.Contains(c.w.order, u[1]) {
				c.bad(at, nearHint(u[1], c.w.order), "there is no parameter '%s'", u[1])
			}
		case "inputs":
			c.useInput(at, u)
		case "steps":
			c.useStep(at, u)
		case "data":
			if c.w.Data == "" {
				c.bad(at, "name a folder: data: data", "the workflow has no data")
			}
		}
	}
}

func (c *compiler) useInput(at string, u policy.Use) {
	var names []string
	for _, in := range c.w.Inputs {
		names = append(names, in.Name)
	}
	switch {
	case len(u) == 1:
		c.bad(at, "name one of them: inputs.NAME", "'inputs' is not one table")
	case c.w.inputs[u[1]] == nil:
		c.bad(at, nearHint(u[1], names), "there is no input '%s'", u[1])
	case len(u) > 2 && !slices.Contains(tableFields, u[2]):
		c.bad(at, nearHint(u[2], tableFields)+"it has "+strings.Join(tableFields, ", "), "a table has no '%s'", u[2])
	}
	if c.at != nil && len(u) > 1 {
		c.at.reads = append(c.at.reads, u[1])
	}
}

func (c *compiler) useStep(at string, u policy.Use) {
	if len(u) == 1 {
		c.bad(at, "name one of them: steps.ID", "'steps' is not one step")
		return
	}
	s := c.w.byID[u[1]]
	if s == nil {
		c.bad(at, nearHint(u[1], c.stepNames()), "there is no step '%s'", u[1])
		return
	}
	c.need(s)
	if len(u) > 2 && s.kind != "" {
		if known := s.fields(); !slices.Contains(known, u[2]) {
			c.bad(at, nearHint(u[2], known)+"it has "+strings.Join(known, ", "), "the result of step '%s' has no '%s'",
				s.ID, u[2])
		}
	}
}

// The keys of a result in expressions.
var (
	tableFields = []string{"rows", "columns", "count"}
	textFields  = []string{"text", "value"}
	anyFields   = []string{"ok", "skipped", "error"}
)

func (s *step) fields() []string {
	switch {
	case s.Foreach != nil:
		return slices.Concat([]string{"items", "count", "text"}, anyFields)
	case s.kind == StepSQL || s.kind == StepTable:
		return slices.Concat(tableFields, []string{"text"}, anyFields)
	case s.kind == StepTool:
		return slices.Concat(textFields, []string{"tables"}, anyFields)
	}
	return slices.Concat(textFields, anyFields)
}
