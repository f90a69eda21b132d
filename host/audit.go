package host

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/internal/lazyregexp"
	"github.com/tenonhq/tenon/view"
)

func (h runDataHandle) Export(ctx context.Context) ([]byte, error) {
	row, err := h.host.store.Run(ctx, h.id)
	if err != nil {
		return nil, err
	}
	if err := h.host.registerForExport(ctx); err != nil {
		return nil, err
	}
	w := &auditor{h: h.host, ids: map[string]bool{}}
	if err := w.run(ctx, row.ID, nil); err != nil {
		return nil, err
	}
	if w.steps.Len() == 0 {
		return nil, tenon.Errorf(tenon.CodeInvalid, "run %s made no tool call that returned a result", h.id)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# The tool calls of run %s. They are made again by: tenon workflows run FILE\n", row.ID)
	fmt.Fprintf(&b, "kind: workflow\nversion: 1\nname: audit_%s\ndescription: %s\n",
		strings.TrimPrefix(strings.ReplaceAll(row.ID, "/", "_"), "run_"),
		encode("The tool calls of: "+tenon.Visible(row.Title)))
	if len(w.inputs) > 0 {
		fmt.Fprintf(&b, "inputs:\n%s", strings.Join(w.inputs, ""))
	}
	fmt.Fprintf(&b, "steps:\n%s", w.steps.String())
	return visibleYAML(h.host.redactor.Bytes([]byte(b.String()))), nil
}

// visibleYAML writes hidden characters as escapes of YAML (1.2, section 5.7). Such characters occur in quoted texts
// only.
func visibleYAML(b []byte) []byte {
	var out []byte
	for _, r := range string(b) {
		switch {
		case !tenon.IsHidden(r) || r == '\n' || r == '\t':
			out = utf8.AppendRune(out, r)
		case r > 0xffff:
			out = fmt.Appendf(out, `\U%08x`, r)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}

// auditor collects the tool calls of a run and of the runs that it called.
type auditor struct {
	h      *Host
	steps  strings.Builder
	ids    map[string]bool
	inputs []string // inputs in the order of the file
}

// maxAudited bounds the calls of one file. A workflow has the same bound.
const maxAudited = 500

// run writes the calls of a run so that they depend on the steps in after. It replaces after by the last steps that it
// wrote.
func (w *auditor) run(ctx context.Context, run string, after *[]string) error {
	events, err := w.h.Runs().Open(run).Journal(ctx, 0, 0)
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
		if now := tenon.ParseStep(c.Step).Unit; now != turn {
			turn = now
			if len(made) > 0 {
				*after, made = made, nil
			}
			behind = slices.Clone(*after)
		}
		k := w.h.kinds[c.Server]
		if c.Outcome != view.CallDone || k.unaudited {
			continue
		}
		if k.queries && !c.Success {
			continue // an invalid query, which read nothing
		}
		if k.agents {
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

// callsAndAgents returns the tool calls of a run, and the agents that steps of a workflow asked, in the order in which
// they began. No tool call records such an agent step.
func callsAndAgents(events []tenon.Event) []view.Call {
	calls, next := view.Of(events).Calls(), 0 // one record for each proposed call
	seen := map[string]bool{}
	var list []view.Call
	for _, e := range events {
		switch e.Kind {
		case agent.EventProposed:
			seen[e.Step] = true
			list = append(list, calls[next])
			next++
		case tenon.EventStarted:
			if view.As[tenon.StartedData](e).Kind == agent.CommandChild && !seen[e.Step] {
				seen[e.Step] = true
				list = append(list, view.Call{Run: e.Run, Step: e.Step, Server: catalog.AgentServer,
					Outcome: view.CallDone})
			}
		}
	}
	return list
}

// step writes one call and returns the id of its step.
func (w *auditor) step(c view.Call, after []string, tables *auditTables) (id string, err error) {
	if len(w.ids) >= maxAudited {
		return "", tenon.Errorf(tenon.CodeTooLarge, "the run has made more than %d tool calls, which do not fit one "+
			"workflow", maxAudited)
	}
	id = w.name(c.Remote)
	args := c.Args
	k := w.h.kinds[c.Server]
	if k.queries {
		return id, w.query(id, c, after, tables)
	}
	var inputs map[string]string
	if k.flows {
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
	if r := tables.request(c); k.requests && r != nil {
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

// end writes the keys that all kinds of steps have.
func (w *auditor) end(c view.Call, after []string) {
	if len(after) > 0 {
		fmt.Fprintf(&w.steps, "    after: [%s]\n", strings.Join(after, ", "))
	}
	if !c.Success {
		w.steps.WriteString("    on_error: continue\n")
	}
}

// name makes an unused id for a step, or an unused name for an input.
func (w *auditor) name(of string) (id string) {
	base := notWord().ReplaceAllString(of, "_")
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

var notWord = lazyregexp.New(`[^A-Za-z0-9_]`)

// asExpression returns a value in the form that a workflow file has for it. A text becomes an expression with this text
// as its value.
func asExpression(v any) any {
	switch v := v.(type) {
	case string:
		b, err := json.Marshal(v) // a JSON string is also a string of CEL
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

// unmarshalNumbers decodes JSON and keeps numbers as they are written.
func unmarshalNumbers(raw json.RawMessage, into any) error {
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	return d.Decode(into)
}
