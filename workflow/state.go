package workflow

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/policy"
)

// Version names the logic of this package in the rows of runs. It changes when
// journals would be read otherwise.
const Version = "workflow@1"

// Spec is what the run of a workflow begins with.
type Spec struct {
	Workflow string                     `json:"workflow"` // digest of the pack
	Name     string                     `json:"name"`
	Params   json.RawMessage            `json:"arguments"` // with the defaults
	Inputs   map[string]tenon.Table     `json:"inputs,omitempty"`
	Heads    map[string]json.RawMessage `json:"heads,omitempty"` // the first rows of the inputs
	Tools    string                     `json:"tools,omitempty"` // digest of the tool snapshot
	Names    map[string]string          `json:"names,omitempty"` // step -> the exposed name of its tool
	Folder   string                     `json:"folder,omitempty"`
	Debug    bool                       `json:"debug,omitempty"`
	// Foreign says that the workflow came with a table: what it says of the effects of its
	// requests counts for nothing.
	Foreign   bool              `json:"foreign,omitempty"`
	Grant     string            `json:"grant,omitempty"` // who allowed beforehand whatever asks
	Grants    map[string]string `json:"grants,omitempty"`
	Depth     int               `json:"depth,omitempty"`
	MaxDepth  int               `json:"max_depth,omitempty"`
	Allowance agent.Allowance   `json:"allowance,omitzero"`
	// Brought are the servers for which the caller brought credentials of its own.
	Brought []string `json:"own_credentials,omitempty"`
}

// Summary is the core's own part of a [tenon.DoneData].
type Summary struct {
	agent.Summary
	Outputs []tenon.Table `json:"outputs,omitempty"` // by the names of the ports
}

// State is the core of a workflow's run: the fold of its events. See [tenon.Core].
type State struct {
	w       *Workflow
	spec    Spec
	run     string
	vars    map[string]any // of all expressions; steps and data come with them
	views   map[string]any // of the steps that are done
	started time.Time
	now     time.Time // of the last event

	steps  []*progress
	rest   []*progress // those that are not done, in order
	byID   map[string]*progress
	units  map[string]*unit // that are open, by id
	called map[string]int
	grants map[string]string
	used   agent.Summary

	failed *tenon.Error
	cancel *tenon.CancelData
	ended  *tenon.DoneData
}

// progress is how far a step has come.
type progress struct {
	*step
	after []*progress // what it needs
	one   *unit       // of a step that is not repeated
	each  []*unit     // of one that is, nil where it has not begun
	items []json.RawMessage
	done  bool
	out   *outcome // of a step that is not repeated
}

// unit is one attempt of a step, or of one item of it.
type unit struct {
	id      string
	p       *progress
	item    int // -1: the step is not repeated
	try     int // from 1
	left    int // attempts, this one included
	delay   time.Duration
	plan    *Planned
	call    *agent.CallStep
	since   time.Time // from when the call waits for a person, if it does
	running bool
	out     *outcome
}

// outcome is how a unit ended.
type outcome struct {
	skipped bool
	err     *tenon.Error
	text    string
	value   json.RawMessage // nil: what the text stands for
	table   *tenon.Table
	rows    json.RawMessage // the first ones
	tables  []tenon.Table
}

// New returns the state of a run that has no events yet.
func New(w *Workflow, spec Spec) (*State, error) {
	s := &State{w: w, spec: spec, byID: map[string]*progress{}, units: map[string]*unit{}, called: map[string]int{}, grants: map[string]string{}}
	for k, by := range spec.Grants {
		s.grants[k] = by
	}
	params, err := policy.DecodeValue(spec.Params)
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeStore, "the parameters of the workflow cannot be read: %w", err)
	}
	if values, ok := params.(map[string]any); ok {
		for name, v := range values {
			if w.isNumber(name) {
				values[name] = fraction(v)
			}
		}
	}
	inputs := map[string]any{}
	for name, t := range spec.Inputs {
		if in := w.inputs[name]; in != nil {
			t.Columns = slices.Clone(t.Columns)
			for i, c := range t.Columns {
				if in.Columns[c.Name] == "number" { // what the file was written for; whole numbers are numbers
					t.Columns[i].Type = "number"
				}
			}
		}
		inputs[name] = tableView(&t, spec.Heads[name])
	}
	s.views = map[string]any{}
	s.vars = map[string]any{"params": params, "inputs": inputs, "steps": s.views, "data": spec.Folder + "/data"}
	for _, st := range w.steps {
		p := &progress{step: st}
		s.steps = append(s.steps, p)
		s.byID[st.ID] = p
	}
	for _, p := range s.steps {
		for _, n := range p.needs {
			p.after = append(p.after, s.byID[n.ID])
		}
	}
	s.rest = slices.Clone(s.steps)
	return s, nil
}

// id is the id of an attempt: STEP, STEP.ITEM, and ~TRY from the second on. Tool calls
// have a dot in their ids in every run, also where there is but one.
func (s *step) id(item, try int) string {
	id := s.ID
	if item < 0 && s.isSingleCall() {
		item = 0
	}
	if item >= 0 {
		id += "." + strconv.Itoa(item)
	}
	if try > 1 {
		id += "~" + strconv.Itoa(try)
	}
	return id
}

// isSingleCall reports whether the step is one tool call.
func (s *step) isSingleCall() bool {
	return s.Foreach == nil && (s.kind == StepTool || s.kind == StepHTTP)
}

// Apply folds one event into the state. One that is refused changes nothing, not the
// run's time either: it will not be in the journal. See [tenon.Core].
func (s *State) Apply(e tenon.Event) error {
	now := s.now
	s.now = e.Time
	err := s.apply(e)
	if err != nil {
		s.now = now
	}
	return err
}

func (s *State) apply(e tenon.Event) error {
	switch e.Kind {
	case tenon.EventRun:
		s.run, s.started = e.Run, e.Time
		return nil
	case tenon.EventDone:
		var d tenon.DoneData
		if err := decode(e, &d); err != nil {
			return err
		}
		s.ended = &d
		return nil
	case tenon.EventRetry:
		s.again(e.Time)
		return nil
	case tenon.EventCancel:
		var c tenon.CancelData
		if err := decode(e, &c); err != nil {
			return err
		}
		s.cancel = &c
		return nil
	case agent.EventMessage, agent.EventProposed:
		return nil
	}
	id, _, _ := strings.Cut(e.Step, "/")
	u := s.units[id]
	if u == nil && e.Kind == EventPlanned {
		u = s.openFor(id)
	}
	if u == nil {
		return outOfPlace(e)
	}
	key, by := u.granted(e)
	if err := u.apply(s, e); err != nil {
		return err
	}
	if by != "" {
		s.grants[key] = by
	}
	if u.out != nil {
		s.settle(u)
	}
	return nil
}

func (u *unit) granted(e tenon.Event) (key, by string) {
	if u.call == nil {
		return "", ""
	}
	return u.call.Granted(e)
}

// apply takes an event of the attempt.
func (u *unit) apply(s *State, e tenon.Event) error {
	switch {
	case u.out != nil:
		return outOfPlace(e)
	case e.Kind == EventPlanned && u.plan == nil:
		var p Planned
		if err := decode(e, &p); err != nil {
			return err
		}
		u.plan = &p
		s.begin(u)
		return nil
	case u.plan == nil, e.Kind == EventPlanned:
		return outOfPlace(e)
	case u.call != nil:
		if err := u.call.Apply(e); err != nil {
			return err
		}
		switch e.Kind {
		case agent.EventDecided, agent.EventInput, agent.EventChild:
			u.since = e.Time
		}
		if u.call.IsSettled() {
			s.callEnded(u)
		}
		return nil
	}
	switch e.Kind {
	case tenon.EventStarted:
		u.running = true
	case tenon.EventInterrupted:
		u.running = false
	case agent.EventFailed, tenon.EventUnknown:
		var f agent.Failure
		if err := decode(e, &f); err != nil {
			return err
		}
		if f.Error == nil {
			f.Error = tenon.Errorf(tenon.CodeUnknown, "it is not known how the step ended")
		}
		u.running, u.out = false, &outcome{err: f.Error}
	case agent.EventResult:
		var o agent.Outcome
		if err := decode(e, &o); err != nil {
			return err
		}
		u.running = false
		if len(o.Outputs) == 0 || o.Result == nil {
			return outOfPlace(e)
		}
		u.out = &outcome{table: &o.Outputs[0], rows: o.Result.Structured}
	default:
		return outOfPlace(e)
	}
	return nil
}

// begin takes what was planned for an attempt.
func (s *State) begin(u *unit) {
	p := u.plan
	switch {
	case p.Error != nil:
		u.out, u.left = &outcome{err: p.Error}, 0 // it would come to the same again
		return
	case p.Skip:
		u.out = &outcome{skipped: true}
		return
	case p.Each:
		u.p.items, u.p.each = p.Items, make([]*unit, len(p.Items))
		u.out = &outcome{}
		return
	}
	bounds := agent.CallBounds{Depth: s.spec.Depth + 1, MaxDepth: s.spec.MaxDepth, Called: s.called}
	switch u.p.kind {
	case StepTemplate:
		u.out = &outcome{text: p.Text}
	case StepTool:
		u.call = agent.NewCallStep(s.run, u.id, tenon.ToolCall{Name: s.spec.Names[u.p.ID], Arguments: p.Args}, bounds)
	case StepHTTP:
		u.call = agent.NewCallStep(s.run, u.id, tenon.ToolCall{Name: s.w.Name + "." + u.p.ID, Arguments: p.Args}, bounds)
	case StepAgent:
		u.call = agent.NewChildStep(s.run, u.id, catalog.AgentServer, u.p.Agent, mustJSON(map[string]string{"message": p.Text}), bounds)
		if u.call.IsSettled() {
			s.callEnded(u)
		}
	}
}

// callEnded makes an outcome of how a call ended.
func (s *State) callEnded(u *unit) {
	used := u.call.Used()
	s.used.Usage.Add(&used.Usage)
	s.used.Cost += used.Cost
	s.used.ToolCalls += used.ToolCalls
	if u.p.kind != StepAgent {
		s.used.ToolCalls++
	}
	o, unknown, err := u.call.Outcome()
	switch {
	case err != nil && err.Code == tenon.CodeWaiting && s.left() < 0: // the wait ended with the run's time
		u.out, u.left = &outcome{err: s.late()}, 0
	case err != nil:
		if u.out = (&outcome{err: err}); unknown || !mayRepeat(err.Code) {
			u.left = 0
		}
	case o.Result.IsError:
		text := strings.TrimSpace(o.Result.Text())
		if text == "" {
			text = "it gave no reason"
		}
		u.out = &outcome{err: tenon.Errorf(tenon.CodeTool, "%s", text)}
	default:
		u.out = &outcome{text: o.Result.Text(), value: o.Result.Structured, tables: o.Outputs}
	}
}

// mayRepeat reports whether another attempt can come to something else.
func mayRepeat(c tenon.Code) bool {
	return !slices.Contains([]tenon.Code{tenon.CodeUnknown, tenon.CodeDenied, tenon.CodeInvalid, tenon.CodeLimit, tenon.CodeConfig, tenon.CodeNotFound,
		tenon.CodeWaiting, tenon.CodeCancelled, tenon.CodeAuth}, c)
}

// settle takes the end of an attempt: another one, or the end of its step.
func (s *State) settle(u *unit) {
	p := u.p
	delete(s.units, u.id)
	if u.out.err != nil && u.left > 1 && s.cancel == nil {
		next := s.open(p, u.item, u.try+1, u.left-1)
		next.delay = p.Retry.Delay
		if next.delay == 0 {
			next.delay = defaultWait
		}
		next.delay = min(next.delay<<min(u.try-1, 12), maxDelay)
		return
	}
	if p.each == nil {
		s.finish(p)
		return
	}
	if u.item < 0 && len(p.each) > 0 {
		return // the items begin
	}
	if u.item >= 0 && u.out.err != nil && !p.forgives() {
		s.fail(u)
		return
	}
	for _, o := range p.each {
		if o == nil || o.out == nil {
			return
		}
	}
	s.finish(p)
}

// open makes an attempt that is yet to be planned.
func (s *State) open(p *progress, item, try, left int) *unit {
	u := &unit{id: p.id(item, try), p: p, item: item, try: try, left: left}
	s.units[u.id] = u
	if item < 0 {
		p.one = u
	} else {
		p.each[item] = u
	}
	return u
}

// openFor opens the first attempt that an id stands for, nil where it stands for none
// that can begin.
func (s *State) openFor(id string) *unit {
	name, rest, isItem := strings.Cut(id, ".")
	p := s.byID[name]
	switch {
	case p == nil || p.done:
		return nil
	case p.one == nil && id == p.id(-1, 1):
		return s.open(p, -1, 1, p.attempts())
	case !isItem:
		return nil
	}
	i, err := strconv.Atoi(rest)
	if err != nil || i < 0 || i >= len(p.each) || p.each[i] != nil || p.id(i, 1) != id {
		return nil
	}
	return s.open(p, i, 1, p.attempts())
}

// attempts is how often a step, or an item of it, is tried.
func (s *step) attempts() int {
	switch {
	case s.Retry == nil:
		return 1
	case s.Retry.Attempts == 0:
		return 3
	}
	return s.Retry.Attempts
}

// forgives reports whether the workflow goes on when the step fails.
func (p *progress) forgives() bool {
	return p.OnError != nil && (p.OnError.Do == OnErrorContinue || len(p.OnError.Default) > 0)
}

func (s *State) fail(u *unit) {
	if s.failed != nil {
		return
	}
	err := *u.out.err
	at := "step '" + u.p.ID + "'"
	if u.item >= 0 {
		at += ", item " + strconv.Itoa(u.item)
	}
	err.Message = at + ": " + err.Message
	s.failed = &err
}

// finish ends a step.
func (s *State) finish(p *progress) {
	u := p.one
	if p.each == nil {
		if u.out.err != nil && !p.forgives() {
			s.fail(u)
			return
		}
		p.out = u.out
	}
	p.done = true
	s.rest = slices.DeleteFunc(s.rest, func(o *progress) bool { return o == p })
	s.views[p.ID] = p.view()
}

// again has the steps that failed tried once more.
func (s *State) again(at time.Time) {
	s.started = at
	s.ended, s.failed = nil, nil
	for _, p := range s.rest {
		for _, u := range append(slices.Clone(p.each), p.one) {
			if u == nil || u.out == nil || u.out.err == nil || p.forgives() || u.item < 0 && p.each != nil {
				continue
			}
			s.open(p, u.item, u.try+1, p.attempts())
		}
	}
}

func decode(e tenon.Event, into any) error {
	if len(e.Data) == 0 {
		return nil
	}
	if err := json.Unmarshal(e.Data, into); err != nil {
		return tenon.Errorf(tenon.CodeStore, "run %s: event %d (%s of step %q) cannot be read: %w", e.Run, e.Seq, e.Kind, e.Step, err)
	}
	return nil
}

func outOfPlace(e tenon.Event) error {
	return tenon.Errorf(tenon.CodeStore, "run %s: event %d (%s of step %q) does not follow from what came before; the journal is damaged", e.Run, e.Seq, e.Kind, e.Step)
}

var _ tenon.Core = (*State)(nil)
