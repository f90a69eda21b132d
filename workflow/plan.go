package workflow

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
)

// EventPlanned is the kind of the event that records the values of a step's expressions; data: Planned. It is
// stored together with the next event.
const EventPlanned = "planned"

// Planned holds the values of the expressions of an attempt.
type Planned struct {
	Skip   bool              `json:"skip,omitempty"` // when is false
	Each   bool              `json:"each,omitempty"` // the step is repeated for Items
	Items  []json.RawMessage `json:"items,omitempty"`
	Args   json.RawMessage   `json:"args,omitempty"`      // arguments of a tool or a request
	Params json.RawMessage   `json:"arguments,omitempty"` // parameters of a query
	Text   string            `json:"text,omitempty"`      // text of a template, or message to an agent
	Rows   json.RawMessage   `json:"rows,omitempty"`      // rows of a table
	Error  *tenon.Error      `json:"error,omitempty"`
}

// PlanCommand is the Local data of a decide command that plans an attempt. The plan is complete; the executor records
// it unchanged.
type PlanCommand struct {
	Plan *Planned `json:"plan,omitempty"`
}

// planCommand plans an attempt. item is the index of the attempt's item, or -1 for a step without foreach.
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
	if s.timeLeft() < 0 {
		out.Error = s.timeoutError()
		return out
	}
	if p.items == nil && p.step.items != nil && item < 0 {
		return s.planEach(p, vars)
	}
	if p.when != nil {
		if err := s.partial(p.when); err != nil {
			return &Planned{Error: asError("when", err)}
		}
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
			out.Error = tenon.Errorf(tenon.CodeInvalid, "there is no table '%s': its step was skipped or failed",
				name)
			return out
		}
	}
	s.evaluate(p, vars, out)
	return out
}

// planEach evaluates the list of a foreach.
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
		return &Planned{Error: tenon.Errorf(tenon.CodeInvalid, "foreach: '%s' does not return a list", p.step.items)}
	}
	if len(out.Items) > maxItems {
		return &Planned{Error: tenon.Errorf(tenon.CodeTooLarge,
			"foreach: '%s' returns %d values; the limit is %d", p.step.items, len(out.Items), maxItems)}
	}
	return out
}

func (s *State) evaluate(p *progress, vars map[string]any, out *Planned) {
	var err error
	what := ""
	switch p.kind {
	case StepTool, StepHTTP:
		what = "args"
		if err = s.partialMap(p.args); err == nil {
			out.Args, err = evalMap(p.args, vars, false)
		}
	case StepSQL:
		what = "params"
		if err = s.partialMap(p.params); err == nil {
			out.Params, err = evalMap(p.params, vars, true)
		}
	case StepTemplate, StepAgent:
		what = StepTemplate
		if p.kind == StepAgent {
			what = "message"
		}
		if err = s.partial(p.text); err == nil {
			out.Text, err = p.text.Fill(vars)
		}
	case StepTable:
		what = "rows"
		if p.rows == nil {
			break
		}
		if err = s.partialValue(p.rows); err == nil {
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

// sqlName returns the name of a table in SQL: STEP.PORT becomes STEP_PORT.
func sqlName(name string) string { return strings.ReplaceAll(name, ".", "_") }

// requestTool returns a tool that represents a request step, for rules and approval.
func (s *State) requestTool(p *step) *tenon.Tool {
	t := &tenon.Tool{Server: StepServer, Remote: s.w.Name + "." + p.ID, Name: s.w.Name + "." + p.ID,
		Kind:        tenon.KindHTTP,
		Description: fmt.Sprintf("Step '%s' of workflow '%s': %s %s", p.ID, s.w.Name, methodOf(p), p.HTTP.URL)}
	if s.spec.Foreign {
		return t
	}
	t.Annotations = p.HTTP.Annotations()
	return t
}

func methodOf(p *step) string {
	return cmp.Or(p.HTTP.Method, "GET")
}

// The messages of a workflow without a text.
const (
	MessageNone  = "Tool executed successfully (no custom tool message output)"
	MessageEmpty = "Tool executed successfully (empty custom tool message)"
	// MessageFailed precedes the cause.
	MessageFailed = "Tool execution failed with: "
)

// message returns the text of the workflow for its caller.
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

// end ends the run. It collects the outputs and checks them against the file.
func (s *State) end() []tenon.Command {
	var sum Summary
	for _, out := range s.w.Outputs {
		t := s.table(out.From)
		if t == nil {
			return s.done(tenon.RunFailed, tenon.StopError, tenon.Errorf(tenon.CodeInvalid,
				"there is no table for output '%s': step '%s' was skipped or failed", out.Name, out.From), sum)
		}
		if miss := columnMismatch(t, out.Columns); miss != "" {
			return s.done(tenon.RunFailed, tenon.StopError, tenon.Errorf(tenon.CodeInvalid,
				"the table for output '%s' does not match its declaration: %s", out.Name, miss), sum)
		}
		o := *t
		o.Name, o.Description = out.Name, out.Description
		sum.Outputs = append(sum.Outputs, o)
	}
	return s.done(tenon.RunCompleted, tenon.StopEnd, nil, sum)
}
