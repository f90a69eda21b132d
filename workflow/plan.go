package workflow

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/policy"
)

// EventPlanned is the kind of the event that says what a step's expressions came to;
// data: Planned. It is stored with what comes next.
const EventPlanned = "planned"

// Planned is what the expressions of an attempt came to.
type Planned struct {
	Skip   bool              `json:"skip,omitempty"` // by when
	Each   bool              `json:"each,omitempty"` // the step is repeated for Items
	Items  []json.RawMessage `json:"items,omitempty"`
	Args   json.RawMessage   `json:"args,omitempty"`      // of a tool or a request
	Params json.RawMessage   `json:"arguments,omitempty"` // of a query
	Text   string            `json:"text,omitempty"`      // of a template; what an agent is asked
	Rows   json.RawMessage   `json:"rows,omitempty"`      // of a table
	Error  *tenon.Error      `json:"error,omitempty"`
}

// PlanCommand plans an attempt, as the Local of a command of kind decide. There is
// nothing left to decide: it is recorded as it is.
type PlanCommand struct {
	Plan *Planned `json:"plan,omitempty"`
}

// planCommand plans an attempt. Item is -1 for the step itself.
func (s *State) planCommand(p *progress, item, try int) tenon.Command {
	plan := s.plan(p, item)
	if plan.Error != nil {
		plan = &Planned{Error: plan.Error}
	}
	return tenon.Command{Step: p.id(item, try), Kind: agent.CommandDecide, Idempotent: true, Local: &PlanCommand{plan}}
}

func (s *State) plan(p *progress, item int) *Planned {
	vars := s.vars
	out := &Planned{}
	if item >= 0 {
		v, err := decodedItem(p.items[item])
		if err != nil {
			return &Planned{Error: err}
		}
		vars = map[string]any{"item": v, "index": int64(item)}
		for k, v := range s.vars {
			vars[k] = v
		}
	}
	if s.left() < 0 {
		out.Error = s.late()
		return out
	}
	if p.items == nil && p.step.items != nil && item < 0 {
		return s.planEach(p, vars)
	}
	if p.when != nil {
		yes, err := p.when.Holds(vars)
		if err != nil {
			return &Planned{Error: asError("when", err)}
		}
		if !yes {
			out.Skip = true
			return out
		}
	}
	for _, name := range p.tables {
		if s.table(name) == nil {
			out.Error = tenon.Errorf(tenon.CodeInvalid, "there is no table '%s': its step was skipped or has failed", name)
			return out
		}
	}
	s.evaluate(p, vars, out)
	return out
}

// planEach finds what a step is repeated for.
func (s *State) planEach(p *progress, vars map[string]any) *Planned {
	if err := s.partial(p.step.items); err != nil {
		return &Planned{Error: asError("foreach", err)}
	}
	raw, err := p.step.items.Typed(vars)
	if err != nil {
		return &Planned{Error: asError("foreach", err)}
	}
	out := &Planned{Each: true}
	if json.Unmarshal(raw, &out.Items) != nil {
		return &Planned{Error: tenon.Errorf(tenon.CodeInvalid, "foreach: '%s' gives no list", p.step.items)}
	}
	if len(out.Items) > maxItems {
		return &Planned{Error: tenon.Errorf(tenon.CodeTooLarge, "foreach: '%s' gives %d values; at most %d are possible", p.step.items, len(out.Items), maxItems)}
	}
	return out
}

// partial fails where an expression goes through rows of which there are more than it
// sees: done for some of them, a step would look as if it had been done for all.
func (s *State) partial(e *policy.Expression) error {
	if e == nil {
		return nil
	}
	for _, use := range e.Uses() {
		if len(use) != 3 || use[2] != "rows" || !wholeRows(e.String(), use[1]) {
			continue
		}
		of, _ := s.vars[use[0]].(map[string]any)
		view, _ := of[use[1]].(map[string]any)
		rows, _ := view["rows"].([]any)
		if n, ok := view["count"].(int64); ok && n > int64(len(rows)) {
			return tenon.Errorf(tenon.CodeTooLarge, "there are %d rows of '%s', and expressions see the first %d: select less of them, or let a query do it, which reads all", n, use[1], len(rows))
		}
	}
	return nil
}

// wholeRows says whether an expression names the rows of a table without an index behind.
func wholeRows(text, table string) bool {
	for {
		_, rest, found := strings.Cut(text, table+".rows")
		if !found {
			return false
		}
		if rest = strings.TrimSpace(rest); !strings.HasPrefix(rest, "[") {
			return true
		}
		text = rest
	}
}

func (s *State) evaluate(p *progress, vars map[string]any, out *Planned) {
	var err error
	what := ""
	switch p.kind {
	case StepTool, StepHTTP:
		what = "args"
		out.Args, err = evalMap(p.args, vars, false)
	case StepSQL:
		what = "params"
		out.Params, err = evalMap(p.params, vars, true)
	case StepTemplate, StepAgent:
		if what = StepTemplate; p.kind == StepAgent {
			what = "message"
		}
		out.Text, err = p.text.Fill(vars)
	case StepTable:
		if what = "rows"; p.rows == nil {
			break
		}
		if err = s.partial(p.rows.expr); err == nil {
			out.Rows, err = p.rows.eval(vars, true)
		}
	}
	if err != nil {
		out.Error = asError(what, err)
	}
}

func decodedItem(raw json.RawMessage) (any, *tenon.Error) {
	v := decoded(raw)
	if v == nil && strings.TrimSpace(string(raw)) != "null" {
		return nil, tenon.Errorf(tenon.CodeStore, "an item of foreach cannot be read")
	}
	return v, nil
}

func asError(what string, err error) *tenon.Error {
	return tenon.Errorf(tenon.ErrorCode(err), "%s: %w", what, err)
}

// sqlName is the name of a table in SQL: that of STEP.PORT is STEP_PORT.
func sqlName(name string) string { return strings.ReplaceAll(name, ".", "_") }

// requestTool describes a step that is a request, for rules and approval.
func (s *State) requestTool(p *step) *tenon.Tool {
	t := &tenon.Tool{Server: StepServer, Remote: s.w.Name + "." + p.ID, Name: s.w.Name + "." + p.ID, Kind: tenon.KindHTTP,
		Description: fmt.Sprintf("Step '%s' of workflow '%s': %s %s", p.ID, s.w.Name, methodOf(p), p.HTTP.URL)}
	if s.spec.Foreign {
		return t
	}
	t.Annotations = p.HTTP.Annotations()
	return t
}

func methodOf(p *step) string {
	if p.HTTP.Method == "" {
		return "GET"
	}
	return p.HTTP.Method
}

// The texts for a caller whom the workflow has nothing to tell.
const (
	MessageNone  = "Tool executed successfully (no custom tool message output)"
	MessageEmpty = "Tool executed successfully (empty custom tool message)"
	// MessageFailed comes before the cause.
	MessageFailed = "Tool execution failed with: "
)

// message is the text that the caller gets.
func (s *State) message() string {
	from := s.w.Message.From
	if from == "" {
		return MessageNone
	}
	v, _ := s.views[from].(map[string]any)
	text, _ := v["text"].(string)
	if strings.TrimSpace(text) == "" {
		return MessageEmpty
	}
	return text
}

// end ends the run: the outputs are collected, and held to what the file promises.
func (s *State) end() []tenon.Command {
	var sum Summary
	for _, out := range s.w.Outputs {
		t := s.table(out.From)
		if t == nil {
			return s.done(tenon.RunFailed, tenon.StopError, tenon.Errorf(tenon.CodeInvalid,
				"there is no table for output '%s': step '%s' was skipped or has failed", out.Name, out.From), sum)
		}
		if miss := misfit(t, out.Columns); miss != "" {
			return s.done(tenon.RunFailed, tenon.StopError, tenon.Errorf(tenon.CodeInvalid, "the table for output '%s' is not as promised: %s", out.Name, miss), sum)
		}
		o := *t
		o.Name, o.Description = out.Name, out.Description
		sum.Outputs = append(sum.Outputs, o)
	}
	return s.done(tenon.RunCompleted, tenon.StopEnd, nil, sum)
}
