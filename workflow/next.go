package workflow

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
)

// The kinds of command of this core, in addition to the kinds of package agent.
const (
	CommandSQL   = "sql"   // runs a query; data: SQLCommand
	CommandTable = "table" // creates a table; data: TableCommand
)

// StepServer is the server name of request steps in rules and records. Their remote name is WORKFLOW.STEP.
const StepServer = catalog.StepServer

// SQLCommand is the data of a [CommandSQL]. The command ends with an event of kind result with the table as
// its only output. The structured content of the result holds the first rows.
type SQLCommand struct {
	SQL     string                 `json:"sql"`
	Params  json.RawMessage        `json:"params,omitempty"` // an object
	Tables  map[string]tenon.Table `json:"tables,omitempty"` // keyed by their names in the query
	Timeout time.Duration          `json:"timeout,omitempty"`
}

// TableCommand is the data of a [CommandTable]. The command ends like a [CommandSQL].
type TableCommand struct {
	Workflow string            `json:"workflow"` // digest of the pack with the file
	Rows     json.RawMessage   `json:"rows,omitempty"`
	CSV      string            `json:"csv,omitempty"`
	Arrow    string            `json:"arrow,omitempty"`
	Columns  map[string]string `json:"columns,omitempty"`
	Timeout  time.Duration     `json:"timeout,omitempty"`
}

const defaultParallel = 8

// Next returns the next commands. See [tenon.Core].
func (s *State) Next() []tenon.Command {
	if s.ended != nil {
		return nil
	}
	cmds, running := s.running()
	switch {
	case s.cancel != nil && running > 0:
		return nil
	case s.cancel != nil:
		reason := cmp.Or(s.cancel.Reason, "the run was cancelled")
		return s.done(tenon.RunCancelled, tenon.StopCancelled,
			tenon.Errorf(tenon.CodeCancelled, "%s", reason), Summary{})
	case s.failed != nil && running > 0: // let running attempts end
		return cmds
	case s.failed != nil:
		return s.done(tenon.RunFailed, tenon.StopError, s.failed, Summary{})
	}
	free := cmp.Or(s.w.Parallel, defaultParallel)
	free -= running
	for _, p := range s.rest {
		if p.isReady() {
			cmds = append(cmds, s.nextOf(p, &free)...)
		}
	}
	if len(s.rest) == 0 {
		return s.end()
	}
	if len(cmds) > 0 && s.timeLeft() < 0 && running == 0 {
		return s.done(tenon.RunFailed, tenon.LimitTime, s.timeoutError(), Summary{})
	}
	return cmds
}

// running returns the number of running attempts, and the waits within them.
func (s *State) running() (waits []tenon.Command, n int) {
	for _, p := range s.rest {
		for _, u := range p.all() {
			switch {
			case u == nil || u.out != nil:
			case u.running:
				n++
			case u.call != nil && u.call.IsRunning():
				n++
				waits = append(waits, u.call.Next(agent.CallContext{})...)
			}
		}
	}
	return waits, n
}

// all returns the current attempts of a step.
func (p *progress) all() []*unit {
	if p.each != nil {
		return p.each
	}
	return []*unit{p.one}
}

// isReady reports whether all steps that the step waits for are done.
func (p *progress) isReady() bool {
	return !slices.ContainsFunc(p.after, func(n *progress) bool { return !n.done })
}

// nextOf returns the commands of a step. free is the number of attempts that may still begin.
func (s *State) nextOf(p *progress, free *int) []tenon.Command {
	if p.one == nil {
		return []tenon.Command{s.planCommand(p, -1, 1)}
	}
	if p.each == nil {
		return s.nextUnit(p.one, free)
	}
	var cmds []tenon.Command
	open := 0
	room := cmp.Or(p.Foreach.Concurrency, 4)
	for i, u := range p.each {
		if open >= room {
			break
		}
		if u != nil && u.out != nil {
			continue
		}
		open++
		if u == nil {
			cmds = append(cmds, s.planCommand(p, i, 1))
			continue
		}
		cmds = append(cmds, s.nextUnit(u, free)...)
	}
	return cmds
}

// nextUnit returns the commands of an attempt.
func (s *State) nextUnit(u *unit, free *int) []tenon.Command {
	switch {
	case u.plan == nil:
		return []tenon.Command{s.planCommand(u.p, u.item, u.try)}
	case u.out != nil, u.running, u.call != nil && u.call.IsRunning():
		return nil
	case u.call != nil:
		return s.nextCall(u, free)
	}
	if *free <= 0 {
		return nil
	}
	*free--
	cmd := tenon.Command{Step: u.id, Idempotent: true, After: u.delay}
	timeout := s.attemptTime(u.p.Timeout)
	if u.p.kind == StepSQL {
		cmd.Kind, cmd.Data = CommandSQL, mustJSON(SQLCommand{SQL: u.p.SQL, Params: u.plan.Params,
			Tables: s.tables(u.p.tables), Timeout: timeout})
	} else {
		t := u.p.Table
		cmd.Kind, cmd.Data = CommandTable, mustJSON(TableCommand{Workflow: s.spec.Workflow, Rows: u.plan.Rows,
			CSV: t.CSV, Arrow: t.Arrow, Columns: t.Columns, Timeout: timeout})
	}
	return []tenon.Command{cmd}
}

// nextCall returns the commands of a call. free is the number of attempts that may still begin.
func (s *State) nextCall(u *unit, free *int) []tenon.Command {
	x := agent.CallContext{Tools: s.spec.Tools, Grant: s.spec.Grant, Grants: s.grants, Inner: s.spec.Grant,
		Debug: s.spec.Debug, After: u.delay,
		Timeout: s.attemptTime(u.p.Timeout), Budget: s.share(u), Again: u.again}
	if u.p.kind == StepHTTP {
		x.Tool = s.requestTool(u.p.step)
	}
	if u.p.kind == StepTool && len(u.p.Inputs) > 0 {
		x.Inputs = map[string]tenon.Table{}
		for port, name := range u.p.Inputs {
			if t := s.table(name); t != nil {
				x.Inputs[port] = *t
			}
		}
	}
	cmds := u.call.Next(x)
	for i := range cmds {
		switch c := &cmds[i]; {
		case c.Kind == tenon.CommandWait:
			// The engine counts After from the beginning of the wait.
			if most := s.timeLimit(); most > 0 {
				c.After = min(cmp.Or(c.After, most), max(most-max(u.since.Sub(s.started), 0), 1))
			}
		case c.Kind == agent.CommandTool || c.Kind == agent.CommandChild:
			if *free <= 0 {
				return nil
			}
			*free--
		}
	}
	return cmds
}

// timeLimit returns the time limit of the run, or 0 if there is none.
func (s *State) timeLimit() time.Duration {
	most := s.w.Timeout
	if t := s.spec.Allowance.Time; t > 0 && (most == 0 || t < most) {
		most = t
	}
	return most
}

// timeLeft returns the remaining time. It is 0 if there is no limit, and negative if the time is up.
func (s *State) timeLeft() time.Duration {
	most := s.timeLimit()
	if most == 0 {
		return 0
	}
	if left := most - s.now.Sub(s.started); left > 0 {
		return left
	}
	return -1
}

// attemptTime returns the time limit of an attempt: its own limit, but at most the remaining time of the run.
func (s *State) attemptTime(own time.Duration) time.Duration {
	left := s.timeLeft()
	switch {
	case left < 0:
		return time.Nanosecond
	case left > 0 && (own == 0 || left < own):
		return left
	}
	return own
}

func (s *State) timeoutError() *tenon.Error {
	return tenon.Errorf(tenon.CodeTimeout,

		"workflow '%s' exceeded its time limit; raise its timeout or reduce its work", s.w.Name)
}

// share returns the allowance for a run that a step calls: the remaining allowance divided by the number of steps that
// have not ended.
func (s *State) share(u *unit) agent.Allowance {
	a := s.spec.Allowance
	open := 0
	for _, p := range s.rest {
		if p.kind == StepAgent || p.kind == StepTool {
			open++
		}
	}
	if u.p.each != nil {
		open += len(u.p.each) - 1
	}
	open = max(open, 1)
	if a.ToolCalls > 0 {
		a.ToolCalls = max((a.ToolCalls-s.used.ToolCalls)/open, 1)
	}
	if a.Tokens > 0 {
		a.Tokens = max((a.Tokens-s.used.Usage.Input-s.used.Usage.Output)/open, 1)
	}
	if a.Cost > 0 {
		a.Cost = max((a.Cost-s.used.Cost)/tenon.USD(open), 1)
	}
	a.Time = s.attemptTime(u.p.Timeout)
	return a
}

// tables returns the tables of a query by their names in SQL.
func (s *State) tables(names []string) map[string]tenon.Table {
	m := map[string]tenon.Table{}
	for _, name := range names {
		if t := s.table(name); t != nil {
			m[sqlName(name)] = *t
		}
	}
	return m
}

// table returns the table of an input, a step or STEP.PORT, or nil if there is none.
func (s *State) table(name string) *tenon.Table {
	if t, ok := s.spec.Inputs[name]; ok {
		return &t
	}
	for _, p := range s.steps {
		if p.out == nil {
			continue
		}
		if p.ID == name {
			return p.out.table
		}
		for _, t := range p.out.tables {
			if p.ID+"."+t.Name == name {
				return &t
			}
		}
	}
	return nil
}

// done returns the last command of a run.
func (s *State) done(state tenon.RunState, stop tenon.StopReason, err *tenon.Error, sum Summary) []tenon.Command {
	message := ""
	if state == tenon.RunCompleted {
		message = s.message()
	}
	sum.Summary, sum.Unknown = s.used, state != tenon.RunCompleted && s.isUnknown()
	return []tenon.Command{{Kind: tenon.CommandDone,
		Data: mustJSON(tenon.DoneData{State: state, Stop: stop, Answer: message, Error: err, Data: mustJSON(sum)})}}
}
