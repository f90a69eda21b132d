package host

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
)

// RunWorkflow writes the tool calls that a run has made as a workflow file, which makes
// them again without a model: those of a turn side by side, turns one after another. Calls
// of agents that the run asked stand in their place; what was refused, or never came to
// a result, is left out. Tables that the run was given are inputs of the workflow; those
// that a call gave are its own. Arguments that a redact rule names are masked, and so are the
// values of configured secrets, which are read for that. Errors: auth_required (a secret),
// not_found, invalid (the run has made no call; a call that got a table that cannot be
// named).
func (h *Host) RunWorkflow(ctx context.Context, run string) ([]byte, error) {
	row, err := h.store.Run(ctx, run)
	if err != nil {
		return nil, err
	}
	if err := h.learnSecrets(ctx); err != nil {
		return nil, err
	}
	w := &auditor{h: h, ids: map[string]bool{}}
	if err := w.run(ctx, row.ID, nil); err != nil {
		return nil, err
	}
	if w.steps.Len() == 0 {
		return nil, tenon.Errorf(tenon.CodeInvalid, "run %s has made no tool call that came to a result", run)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# The tool calls of run %s. They are made again by: tenon workflows run FILE\n", row.ID)
	fmt.Fprintf(&b, "kind: workflow\nversion: 1\nname: audit_%s\ndescription: %s\n", strings.TrimPrefix(strings.ReplaceAll(row.ID, "/", "_"), "run_"), encode("The tool calls of: "+tenon.Visible(row.Title)))
	if len(w.inputs) > 0 {
		fmt.Fprintf(&b, "inputs:\n%s", strings.Join(w.inputs, ""))
	}
	fmt.Fprintf(&b, "steps:\n%s", w.steps.String())
	return h.redactor.Bytes([]byte(b.String())), nil
}

// auditor collects the calls of a run and of those that it called.
type auditor struct {
	h      *Host
	steps  strings.Builder
	ids    map[string]bool
	inputs []string // as they stand in the file
}

// maxAudited bounds the calls of one file; it is the bound of a workflow.
const maxAudited = 500

// run writes the calls of a run, all behind some steps. What stands last is returned
// through after.
func (w *auditor) run(ctx context.Context, run string, after *[]string) error {
	events, err := w.h.Journal(ctx, run, 0)
	if err != nil {
		return err
	}
	if after == nil {
		after = new([]string)
	}
	tables, err := w.tables(ctx, run, events)
	if err != nil {
		return err
	}
	turn := ""
	var behind, made []string
	for _, c := range callsAndAgents(events) {
		if now, _, _ := strings.Cut(c.Step, "."); now != turn {
			if turn = now; len(made) > 0 {
				*after, made = made, nil
			}
			behind = slices.Clone(*after)
		}
		if c.Outcome != agent.CallDone || slices.Contains([]string{handoffServer, finderServer, artifactServer}, c.Server) {
			continue
		}
		if c.Server == dataServer && !c.Success {
			continue // a mistake in a query, which looked at nothing
		}
		if c.Server == catalog.AgentServer {
			inner := slices.Clone(behind)
			if err := w.run(ctx, run+"/"+c.Step, &inner); err != nil && tenon.ErrorCode(err) != tenon.CodeNotFound {
				return err
			}
			if !slices.Equal(inner, behind) {
				made = append(made, inner...)
			}
			continue
		}
		id, err := w.step(c, behind, tables)
		if err != nil {
			return err
		}
		made = append(made, id)
	}
	if len(made) > 0 {
		*after = made
	}
	return nil
}

// callsAndAgents is the tool calls of a run, and the agents that steps of a workflow asked,
// which no call stands for, in the order in which they began.
func callsAndAgents(events []tenon.Event) []agent.CallRecord {
	calls, next := agent.Calls(events), 0 // a record for each that was proposed
	seen := map[string]bool{}
	var list []agent.CallRecord
	for _, e := range events {
		switch e.Kind {
		case agent.EventProposed:
			seen[e.Step] = true
			list = append(list, calls[next])
			next++
		case tenon.EventStarted:
			var d tenon.StartedData
			if json.Unmarshal(e.Data, &d) == nil && d.Kind == agent.CommandChild && !seen[e.Step] {
				seen[e.Step] = true
				list = append(list, agent.CallRecord{Run: e.Run, Step: e.Step, Server: catalog.AgentServer, Outcome: agent.CallDone})
			}
		}
	}
	return list
}

// step writes one call.
func (w *auditor) step(c agent.CallRecord, after []string, tables *auditTables) (id string, err error) {
	if len(w.ids) >= maxAudited {
		return "", tenon.Errorf(tenon.CodeTooLarge, "the run has made more than %d tool calls, which do not fit one workflow", maxAudited)
	}
	id = w.name(c.Remote)
	args := c.Args
	if c.Server == dataServer {
		return id, w.query(id, c, after, tables)
	}
	var inputs map[string]string
	if c.Server == catalog.WorkflowServer {
		if args, inputs, err = w.split(tables, c); err != nil {
			return "", err
		}
	} else if t := tables.tool(c); t != nil {
		args = catalog.Given(t, args)
	}
	var decoded any
	if err := unmarshalNumbers(args, &decoded); err != nil {
		return "", tenon.Errorf(tenon.CodeStore, "the arguments of call %s cannot be read: %w", c.Step, err)
	}
	if r := tables.request(c); r != nil {
		fmt.Fprintf(&w.steps, "  - id: %s\n    http: %s\n", id, encode(requestKeys(r)))
	} else {
		fmt.Fprintf(&w.steps, "  - id: %s\n    tool: %s\n    server: %s\n", id, encode(c.Remote), encode(c.Server))
	}
	if string(args) != "{}" {
		fmt.Fprintf(&w.steps, "    args: %s\n", encode(asExpression(decoded)))
	}
	if len(inputs) > 0 {
		fmt.Fprintf(&w.steps, "    inputs: %s\n", encode(inputs))
	}
	w.end(c, after)
	return id, w.made(id, c, tables)
}

// end writes what all steps end with.
func (w *auditor) end(c agent.CallRecord, after []string) {
	if len(after) > 0 {
		fmt.Fprintf(&w.steps, "    after: [%s]\n", strings.Join(after, ", "))
	}
	if !c.Success {
		w.steps.WriteString("    on_error: continue\n")
	}
}

// name makes an id of a step, or the name of an input, that there is not yet.
func (w *auditor) name(of string) (id string) {
	base := notWord.ReplaceAllString(of, "_")
	if base == "" || base[0] >= '0' && base[0] <= '9' {
		base = "_" + base
	}
	base = base[:min(len(base), 50)]
	for n := 1; ; n++ {
		if id = fmt.Sprint(base, "_", n); !w.ids[id] {
			w.ids[id] = true
			return id
		}
	}
}

var notWord = regexp.MustCompile(`[^A-Za-z0-9_]`)

// asExpression makes a value what stands for it in a workflow: a text becomes an
// expression that is this text.
func asExpression(v any) any {
	switch v := v.(type) {
	case string:
		b, err := json.Marshal(v) // a JSON string is one of CEL
		if err != nil {
			return `""`
		}
		return string(b)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = asExpression(e)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = asExpression(e)
		}
		return out
	}
	return v
}

// unmarshalNumbers decodes JSON with its numbers as they are written.
func unmarshalNumbers(raw json.RawMessage, into any) error {
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	return d.Decode(into)
}
