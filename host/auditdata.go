package host

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/workflow"
)

// auditTables are the tables of a run that is written as a workflow, by their ids: an
// input of the workflow, a step that gives a table, or STEP.PORT.
type auditTables struct {
	refs  []string
	given []tenon.Table // of refs, those that are inputs, of which the used ones get a name
	// from is the call that gave a table: its step and what it called the table.
	from []tableOrigin
	// ports are the inputs of a call that a person made, by port.
	ports map[string]tenon.Table
	// workflow is set where the run is one of a workflow: its tables have names in there.
	workflow *workflow.Workflow
	offered  []*catalog.Snapshot // the tools of the run
}

type tableOrigin struct{ step, name string }

// tables reads which tables a run was given, and which of its calls gave others.
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
		var spec agent.DirectSpec
		begun, err := specOf(run, events)
		if err == nil {
			err = json.Unmarshal(begun.Data, &spec)
		}
		if err != nil {
			return nil, tenon.Errorf(tenon.CodeStore, "run %s: its spec cannot be read: %w", run, err)
		}
		t.ports = spec.Inputs
	case workflow.Version:
		spec, err := w.h.flowSpec(ctx, run)
		if err != nil {
			return nil, err
		}
		p, err := w.h.packOf(ctx, spec.Workflow)
		if err != nil {
			return nil, err
		}
		t.workflow = p.w
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
		var o agent.Outcome
		if e.Kind == agent.EventResult && json.Unmarshal(e.Data, &o) == nil {
			for _, out := range o.Outputs {
				t.from = append(t.from, tableOrigin{e.Step, out.Name})
			}
		}
	}
	t.refs = make([]string, len(t.from))
	return t, nil
}

// toolDigests are the digests of the tools on offer in a run, also to agents that took over.
func toolDigests(events []tenon.Event) (list []string) {
	for i, e := range events {
		var spec struct{ Tools string }
		var whole engine.Spec
		switch {
		case i == 0 && json.Unmarshal(e.Data, &whole) == nil:
			_ = json.Unmarshal(whole.Data, &spec) // no spec of ours: it names no tools
		case e.Kind == agent.EventHandoff:
			_ = json.Unmarshal(e.Data, &spec) // the same
		}
		if spec.Tools != "" && !slices.Contains(list, spec.Tools) {
			list = append(list, spec.Tools)
		}
	}
	return list
}

// tool is the tool of a call as the run had it, nil where it is not known.
func (t *auditTables) tool(c agent.CallRecord) *tenon.Tool {
	for _, s := range t.offered {
		for _, tool := range s.Tools() {
			if tool.Server == c.Server && tool.Remote == c.Remote {
				return tool
			}
		}
	}
	return nil
}

// request is the request of a call that is a step of kind http, nil where it is another call.
func (t *auditTables) request(c agent.CallRecord) *catalog.Request {
	if t.workflow == nil || c.Server != workflow.StepServer {
		return nil
	}
	for _, s := range t.workflow.Steps {
		if s.HTTP != nil && t.workflow.Name+"."+s.ID == c.Remote {
			return s.HTTP
		}
	}
	return nil
}

// requestKeys is a request as a file has it.
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

// ref is what a step calls the table of an id.
func (w *auditor) ref(t *auditTables, id int, c agent.CallRecord) (string, error) {
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

func unnamed(c agent.CallRecord, id string) error {
	return tenon.Errorf(tenon.CodeInvalid, "call %s of '%s' got the table %s, which no step of a workflow can name", c.Step, c.Remote, id)
}

// input makes an input of the workflow.
func (w *auditor) input(t tenon.Table, name string) string {
	if plain := notWord.ReplaceAllString(name, "_"); plain == name && name != "" && !w.ids[name] && len(name) <= 50 && (name[0] < '0' || name[0] > '9') {
		w.ids[name] = true
	} else {
		name = w.name(name)
	}
	w.inputs = append(w.inputs, fmt.Sprintf("  - {name: %s, description: %s}\n", name, encode(tenon.Visible(t.Description))))
	return name
}

// split takes the arguments of a call of a workflow apart: its parameters, and by port what
// its tables are called here.
func (w *auditor) split(t *auditTables, c agent.CallRecord) (params json.RawMessage, inputs map[string]string, err error) {
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
		step, _, _ := strings.Cut(c.Step, ".")
		return nil, nil, tenon.Errorf(tenon.CodeInvalid, "the run is one of workflow '%s', whose step '%s' got tables; what makes it again is the workflow itself: tenon workflows run", t.workflow.Name, step)
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

// made notes what the tables are called that a call gave.
func (w *auditor) made(id string, c agent.CallRecord, t *auditTables) error {
	for i, from := range t.from {
		switch {
		case from.step != c.Step || i < len(t.given):
		case c.Server == catalog.WorkflowServer:
			t.refs[i] = id + "." + from.name
		case c.Server == dataServer:
			t.refs[i] = id
		default: // the rows of a large result
			rows, ok := rowsIn(c.Result, "steps."+id+".value")
			if !ok {
				continue // whoever names it is told
			}
			t.refs[i] = w.name(c.Remote + "_rows")
			fmt.Fprintf(&w.steps, "  - id: %s\n    table: {rows: %s}\n", t.refs[i], encode(rows))
		}
	}
	return nil
}

// rowsIn is the expression for the rows of a structured result, of which value is the
// whole; false where they cannot be seen. A result that was cut for the model says no more where
// they stand: the expression looks.
func rowsIn(r *tenon.Result, value string) (string, bool) {
	if r == nil {
		return "", false
	}
	if len(r.Structured) == 0 {
		return fmt.Sprintf("type(%[1]s) == list ? %[1]s : %[1]s[%[1]s.filter(k, type(%[1]s[k]) == list)[0]]", value), true
	}
	var list []json.RawMessage
	if json.Unmarshal(r.Structured, &list) == nil && list != nil {
		return value, true
	}
	var whole map[string]json.RawMessage
	_ = json.Unmarshal(r.Structured, &whole)
	for key, v := range whole {
		if json.Unmarshal(v, &list) == nil && list != nil {
			if !plainKey.MatchString(key) {
				return value + "[" + string(encode(key)) + "]", true
			}
			return value + "." + key, true
		}
	}
	return "", false
}

var plainKey = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// queriedName finds the names of tables in a query, and its texts, in which there are none.
var queriedName = regexp.MustCompile(`(?i)'(?:[^']|'')*'|\btable_[0-9]{1,6}\b`)

// query writes a look into tables as a step of its own.
func (w *auditor) query(id string, c agent.CallRecord, after []string, t *auditTables) error {
	var args struct{ SQL string }
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return tenon.Errorf(tenon.CodeStore, "the arguments of call %s cannot be read: %w", c.Step, err)
	}
	var failed error
	names := []string{}
	sql := queriedName.ReplaceAllStringFunc(args.SQL, func(word string) string {
		if word[0] == '\'' {
			return word
		}
		n, _ := strconv.Atoi(word[len("table_"):]) // it has digits alone
		if n >= len(t.refs) {
			return word // a column or a comment: the query has run without such a table
		}
		ref, err := w.ref(t, n, c)
		if err != nil {
			failed = err
			return word
		}
		if !slices.Contains(names, ref) {
			names = append(names, ref)
		}
		return strings.ReplaceAll(ref, ".", "_") // as SQL knows it
	})
	if failed != nil {
		return failed
	}
	fmt.Fprintf(&w.steps, "  - id: %s\n    sql: %s\n    tables: [%s]\n", id, encode(sql), strings.Join(names, ", "))
	w.end(c, after)
	return w.made(id, c, t)
}
