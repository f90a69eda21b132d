package host

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/internal/lazyregexp"
	"github.com/tenonhq/tenon/view"
	"github.com/tenonhq/tenon/workflow"
)

// auditTables are the tables of a run that is written as a workflow, by their ids. A reference is an input of the
// workflow, a step that returns a table, or STEP.PORT.
type auditTables struct {
	refs  []string
	given []tenon.Table // the inputs among refs; inputs in use get a name
	// from is the call that returned a table: its step and the table's name there.
	from []tableOrigin
	// ports are the inputs of a call that a person made, by port.
	ports map[string]tenon.Table
	// workflow is set if the run is the run of a workflow, whose tables have names there.
	workflow *workflow.Workflow
	offered  []*catalog.Snapshot // the tools of the run
}

type tableOrigin struct{ step, name string }

// tables reads which tables a run was given, and which tables its calls returned.
func (w *auditor) tables(ctx context.Context, run string, events []tenon.Event) (*auditTables, error) {
	t := &auditTables{}
	row, err := w.h.store.Run(ctx, run)
	if err != nil {
		return nil, err
	}
	switch row.Core {
	case agent.Version:
		s, err := w.h.state(ctx, run)
		if err != nil {
			return nil, err
		}
		all, given := s.Tables()
		t.given = all[:given]
	case agent.DirectVersion:
		_, spec, err := view.FirstSpec[agent.DirectSpec](run, events)
		if err != nil {
			return nil, err
		}
		t.ports = spec.Inputs
	case workflow.Version:
		spec, err := w.h.flows.Spec(ctx, run)
		if err != nil {
			return nil, err
		}
		p, err := w.h.flows.Stored(ctx, spec.Workflow)
		if err != nil {
			return nil, err
		}
		t.workflow = p.Workflow
	}
	for _, digest := range toolDigests(events) {
		s, err := w.h.snapshot(ctx, digest)
		if err != nil {
			return nil, err
		}
		t.offered = append(t.offered, s)
	}
	t.from = make([]tableOrigin, len(t.given))
	for _, e := range events {
		if e.Kind == agent.EventResult {
			for _, out := range view.As[agent.Outcome](e).Outputs {
				t.from = append(t.from, tableOrigin{e.Step, out.Name})
			}
		}
	}
	t.refs = make([]string, len(t.from))
	return t, nil
}

// toolDigests returns the digests of the snapshots of tools that a run offered, also to agents that took over and
// after servers changed their tools.
func toolDigests(events []tenon.Event) (list []string) {
	for i, e := range events {
		tools := ""
		switch {
		case i == 0:
			_, spec, _ := view.Spec[struct{ Tools string }](e) // another kind of spec names no tools
			tools = spec.Tools
		case e.Kind == agent.EventHandoff:
			tools = view.As[agent.Handoff](e).Tools
		case e.Kind == agent.EventTools:
			tools = view.As[agent.ToolsChanged](e).Tools
		}
		if tools != "" && !slices.Contains(list, tools) {
			list = append(list, tools)
		}
	}
	return list
}

// tool returns the tool of a call as the run had it, or nil if unknown.
func (t *auditTables) tool(c view.Call) *tenon.Tool {
	for _, s := range t.offered {
		for _, tool := range s.Tools() {
			if tool.Server == c.Server && tool.Remote == c.Remote {
				return tool
			}
		}
	}
	return nil
}

// request returns the request of a call of a step of kind http, or nil if the workflow has no such step.
func (t *auditTables) request(c view.Call) *catalog.Request {
	if t.workflow == nil {
		return nil
	}
	for _, s := range t.workflow.Steps {
		if s.HTTP != nil && t.workflow.Name+"."+s.ID == c.Remote {
			return s.HTTP
		}
	}
	return nil
}

// requestKeys returns a request as the keys of a workflow file.
func requestKeys(r *catalog.Request) map[string]any {
	keys := map[string]any{"url": r.URL}
	if r.Method != "" {
		keys["method"] = r.Method
	}
	if len(r.Headers) > 0 {
		keys["headers"] = r.Headers
	}
	if r.Body != "" {
		keys["body"] = r.Body
	}
	if r.AllowPrivate {
		keys["allow_private"] = true
	}
	return keys
}

// ref returns the name that a step uses for the table of an id.
func (w *auditor) ref(t *auditTables, id int, c view.Call) (string, error) {
	if id >= len(t.refs) {
		return "", unnamed(c, strconv.Itoa(id))
	}
	if t.refs[id] == "" && id < len(t.given) {
		t.refs[id] = w.input(t.given[id], t.given[id].Name)
	}
	if t.refs[id] == "" {
		return "", unnamed(c, strconv.Itoa(id))
	}
	return t.refs[id], nil
}

func unnamed(c view.Call, id string) error {
	return tenon.Errorf(tenon.CodeInvalid, "call %s of '%s' got the table %s, which no step of a workflow can name",
		c.Step, c.Remote, id)
}

// input adds an input to the workflow and returns its name.
func (w *auditor) input(t tenon.Table, name string) string {
	if plain := notWord().ReplaceAllString(name, "_"); plain == name && name != "" && !w.ids[name] && len(name) <= 50 &&
		(name[0] < '0' || name[0] > '9') {
		w.ids[name] = true
	} else {
		name = w.name(name)
	}
	w.inputs = append(w.inputs, fmt.Sprintf("  - {name: %s, description: %s}\n", name,
		encode(tenon.Visible(t.Description))))
	return name
}

// split separates the arguments of a call of a workflow into its parameters and, by port, the references to its tables
// in the new file.
func (w *auditor) split(t *auditTables, c view.Call) (params json.RawMessage, inputs map[string]string, err error) {
	var args struct {
		Configuration json.RawMessage            `json:"configuration"`
		Inputs        map[string]json.RawMessage `json:"data_inputs"`
	}
	f := w.h.flows.tools[c.Remote]
	if f != nil && len(f.Inputs) == 0 || json.Unmarshal(c.Args, &args) != nil || len(args.Inputs) == 0 {
		return c.Args, nil, nil
	}
	if params = args.Configuration; len(params) == 0 {
		params = json.RawMessage("{}")
	}
	if t.workflow != nil {
		step := tenon.ParseStep(c.Step).Unit
		return nil, nil, tenon.Errorf(tenon.CodeInvalid, "the run is one of workflow '%s', whose step '%s' got "+
			"tables; run the workflow itself again: tenon workflows run", t.workflow.Name, step)
	}
	inputs = map[string]string{}
	for port, raw := range args.Inputs {
		if in, ok := t.ports[port]; ok {
			inputs[port] = w.input(in, port)
			continue
		}
		id, ok := agent.DataID(raw)
		if !ok {
			return nil, nil, unnamed(c, tenon.Visible(string(raw)))
		}
		if inputs[port], err = w.ref(t, id, c); err != nil {
			return nil, nil, err
		}
	}
	return params, inputs, nil
}

// made records the names under which later steps of the exported workflow refer to the tables that a call returned.
func (w *auditor) made(id string, c view.Call, t *auditTables) error {
	k := w.h.kinds[c.Server]
	for i, from := range t.from {
		switch {
		case from.step != c.Step || i < len(t.given):
		case k.flows:
			t.refs[i] = id + "." + from.name
		case k.queries:
			t.refs[i] = id
		default: // the rows of a large result
			rows, ok := rowsIn(c.Result, "steps."+id+".value")
			if !ok {
				continue // a step that refers to it reports the error
			}
			t.refs[i] = w.name(c.Remote + "_rows")
			fmt.Fprintf(&w.steps, "  - id: %s\n    table: {rows: %s}\n", t.refs[i], encode(rows))
		}
	}
	return nil
}

// rowsIn returns the expression for the rows of a structured result; value is the expression for the whole result. It
// returns false if the rows cannot be found. A result that was cut for the model no longer shows where its rows are, so
// the expression searches for them.
func rowsIn(r *tenon.Result, value string) (string, bool) {
	if r == nil {
		return "", false
	}
	if len(r.Structured) == 0 {
		return fmt.Sprintf("type(%[1]s) == list ? %[1]s : %[1]s[%[1]s.filter(k, type(%[1]s[k]) == list)[0]]", value),
			true
	}
	var list []json.RawMessage
	if json.Unmarshal(r.Structured, &list) == nil && list != nil {
		return value, true
	}
	var whole map[string]json.RawMessage
	_ = json.Unmarshal(r.Structured, &whole)
	for key, v := range whole {
		if json.Unmarshal(v, &list) == nil && list != nil {
			if !plainKey().MatchString(key) {
				return value + "[" + string(encode(key)) + "]", true
			}
			return value + "." + key, true
		}
	}
	return "", false
}

var plainKey = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

// queriedName finds the names of tables in a query. It also matches string literals, in which names do not count.
var queriedName = lazyregexp.New(`(?i)'(?:[^']|'')*'|\btable_[0-9]{1,6}\b`)

// query writes a query of tables as a separate step.
func (w *auditor) query(id string, c view.Call, after []string, t *auditTables) error {
	var args struct{ SQL string }
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return tenon.Errorf(tenon.CodeStore, "the arguments of call %s cannot be read: %w", c.Step, err)
	}
	var failed error
	names := []string{}
	sql := queriedName().ReplaceAllStringFunc(args.SQL, func(word string) string {
		if word[0] == '\'' {
			return word
		}
		n, _ := strconv.Atoi(word[len("table_"):]) // the pattern allows only digits
		if n >= len(t.refs) {
			return word // a column or a comment: the query ran without such a table
		}
		ref, err := w.ref(t, n, c)
		if err != nil {
			failed = err
			return word
		}
		if !slices.Contains(names, ref) {
			names = append(names, ref)
		}
		return strings.ReplaceAll(ref, ".", "_") // the name of the table in SQL
	})
	if failed != nil {
		return failed
	}
	fmt.Fprintf(&w.steps, "  - id: %s\n    sql: %s\n    tables: [%s]\n", id, encode(sql), strings.Join(names, ", "))
	w.end(c, after)
	return w.made(id, c, t)
}
