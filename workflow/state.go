package workflow

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/policy"
)

// Version identifies the logic of this package in the rows of runs. It changes when a journal is interpreted
// differently.
const Version = "workflow@1"

// Spec is the start state of a workflow run.
type Spec struct {
	Workflow string                     `json:"workflow"` // digest of the pack
	Name     string                     `json:"name"`
	Params   json.RawMessage            `json:"arguments"` // including defaults
	Inputs   map[string]tenon.Table     `json:"inputs,omitempty"`
	Heads    map[string]json.RawMessage `json:"heads,omitempty"` // the first rows of the inputs
	Tools    string                     `json:"tools,omitempty"` // digest of the tool snapshot
	Names    map[string]string          `json:"names,omitempty"` // step -> exposed name of its tool
	Folder   string                     `json:"folder,omitempty"`
	Debug    bool                       `json:"debug,omitempty"`
	// Foreign means that the workflow came with a table. The annotations of its requests are then not trusted.
	Foreign   bool              `json:"foreign,omitempty"`
	Grant     string            `json:"grant,omitempty"` // principal that allowed all calls in advance
	Grants    map[string]string `json:"grants,omitempty"`
	Depth     int               `json:"depth,omitempty"`
	MaxDepth  int               `json:"max_depth,omitempty"`
	Allowance agent.Allowance   `json:"allowance,omitzero"`
	// Brought lists the servers for which the caller supplied its own credentials.
	Brought []string `json:"own_credentials,omitempty"`
	// Schedule is the name of the schedule that began the run, and its time; see [agent.Spec].
	Schedule string `json:"schedule,omitempty"`
}

// Summary is this core's part of a [tenon.DoneData].
type Summary struct {
	agent.Summary
	Outputs []tenon.Table `json:"outputs,omitempty"` // named after the ports
	// Unknown says that the run did not complete, and that a call of it may or may not have taken effect.
	Unknown bool `json:"unknown,omitempty"`
}

// State is the core of a workflow run: the fold of its events. See [tenon.Core].
type State struct {
	w       *Workflow
	spec    Spec
	run     string
	vars    map[string]any // variables of all expressions
	views   map[string]any // results of finished steps
	started time.Time
	now     time.Time // time of the last event

	steps  []*progress
	rest   []*progress // unfinished steps, in order
	byID   map[string]*progress
	units  map[string]*unit // open attempts, by id
	called map[string]int
	grants map[string]string
	used   agent.Summary

	failed *tenon.Error
	cancel *tenon.CancelData
	ended  *tenon.DoneData
}

// progress is the state of a step.
type progress struct {
	*step
	after []*progress // the steps it waits for
	one   *unit       // attempt of a step without foreach
	each  []*unit     // attempts by item; nil elements have not begun
	items []json.RawMessage
	done  bool
	out   *outcome // result of a step without foreach
}

// New returns the state of a run without events.
func New(w *Workflow, spec Spec) (*State, error) {
	s := &State{w: w, spec: spec, byID: map[string]*progress{}, units: map[string]*unit{}, called: map[string]int{},
		grants: map[string]string{}}
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
				if in.Columns[c.Name] == "number" { // the declared type; integers are numbers
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

// Apply folds one event into the state. A refused event changes nothing, not even the run's time, because it is not
// stored in the journal. See [tenon.Core].
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
		s.retryFailed(e.Time)
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

// settle handles the end of an attempt. It opens the next attempt, or finishes the step.
func (s *State) settle(u *unit) {
	p := u.p
	delete(s.units, u.id)
	if u.out.err != nil && u.out.err.Code == tenon.CodeTimeout && s.timeLeft() < 0 {
		// The time limit of the attempt was the remaining time of the run, so report the limit of the run.
		u.out.err = s.timeoutError()
	}
	if u.out.err != nil && u.left > 1 && s.cancel == nil {
		next := s.reopen(u, u.left-1)
		next.delay = cmp.Or(p.Retry.Delay, defaultWait)
		next.delay = min(min(next.delay, maxDelay)<<min(u.try-1, 12), maxDelay)
		return
	}
	if p.each == nil {
		s.finish(p)
		return
	}
	if u.item < 0 && len(p.each) > 0 {
		return // the items begin next
	}
	if u.item >= 0 && u.out.err != nil && !p.toleratesFailure() {
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

// toleratesFailure reports whether the workflow continues when the step fails.
func (s *step) toleratesFailure() bool {
	return s.OnError != nil && (s.OnError.Do == OnErrorContinue || len(s.OnError.Default) > 0)
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
	switch {
	case u.unknown && !strings.HasSuffix(err.Message, resumeAsks):
		err.Message = strings.TrimSuffix(err.Message, ".") + "." + resumeAsks
	case u.again && (err.Code == tenon.CodeDenied || err.Code == tenon.CodeWaiting):
		err.Message += "; the call was made before with an unknown outcome, and was not made again." + resumeAsks
	}
	s.failed = &err
}

// resumeAsks says what a retry of the run does with a call whose outcome is unknown.
const resumeAsks = " If the run is resumed, a person is asked before the call is made again."

// isUnknown reports whether a failed step has a call that may or may not have taken effect.
func (s *State) isUnknown() bool {
	return slices.ContainsFunc(s.rest, func(p *progress) bool {
		return slices.ContainsFunc(p.all(), func(u *unit) bool { return u != nil && (u.unknown || u.again) })
	})
}

// finish marks a step as done.
func (s *State) finish(p *progress) {
	u := p.one
	if p.each == nil {
		if u.out.err != nil && !p.toleratesFailure() {
			s.fail(u)
			return
		}
		p.out = u.out
	}
	p.done = true
	s.rest = slices.DeleteFunc(s.rest, func(o *progress) bool { return o == p })
	s.views[p.ID] = p.view()
}

// retryFailed opens new attempts of the failed steps.
func (s *State) retryFailed(at time.Time) {
	s.started = at
	s.ended, s.failed = nil, nil
	for _, p := range s.rest {
		for _, u := range append(slices.Clone(p.each), p.one) {
			if u == nil || u.out == nil || u.out.err == nil || p.toleratesFailure() || u.item < 0 && p.each != nil {
				continue
			}
			s.reopen(u, p.attempts())
		}
	}
}

func decode(e tenon.Event, into any) error {
	if len(e.Data) == 0 {
		return nil
	}
	if err := json.Unmarshal(e.Data, into); err != nil {
		return tenon.Errorf(tenon.CodeStore, "run %s: event %d (%s of step %q) cannot be read: %w", e.Run, e.Seq,
			e.Kind, e.Step, err)
	}
	return nil
}

func outOfPlace(e tenon.Event) error {
	return tenon.Errorf(tenon.CodeStore,
		"run %s: event %d (%s of step %q) does not follow from what came before; the journal is damaged", e.Run, e.Seq,
		e.Kind, e.Step)
}

var _ tenon.Core = (*State)(nil)
