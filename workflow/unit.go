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
	"github.com/tenonhq/tenon/catalog"
)

// unit is one attempt of a step, or of one of its items.
type unit struct {
	id      string
	p       *progress
	item    int // -1 for a step without foreach
	try     int // number of the attempt, from 1
	left    int // remaining attempts, including this one
	delay   time.Duration
	plan    *Planned
	call    *agent.CallStep
	since   time.Time // start of the call's wait for a person
	running bool
	out     *outcome
	unknown bool // a call may or may not have taken effect
	again   bool // an earlier attempt is unknown, so that a person is asked before this one
}

// outcome is the result of a unit.
type outcome struct {
	skipped bool
	err     *tenon.Error
	text    string
	value   json.RawMessage // if nil, the value is parsed from text
	table   *tenon.Table
	rows    json.RawMessage // the first rows
	tables  []tenon.Table
}

func (u *unit) granted(e tenon.Event) (key, by string) {
	if u.call == nil {
		return "", ""
	}
	return u.call.Granted(e)
}

// apply handles an event of the attempt.
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
			f.Error = tenon.Errorf(tenon.CodeUnknown, "the outcome of the step is unknown")
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

// begin handles the plan of an attempt.
func (s *State) begin(u *unit) {
	p := u.plan
	switch {
	case p.Error != nil:
		u.out, u.left = &outcome{err: p.Error}, 0 // a retry would have the same result
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
		u.call = agent.NewCallStep(s.run, u.id, tenon.ToolCall{Name: s.w.Name + "." + u.p.ID, Arguments: p.Args},
			bounds)
	case StepAgent:
		u.call = agent.NewChildStep(s.run, u.id, catalog.AgentServer, u.p.Agent,
			mustJSON(map[string]string{"message": p.Text}), bounds)
		if u.again {
			u.call.AskAgain()
		}
		if u.call.IsSettled() {
			s.callEnded(u)
		}
	}
}

// callEnded sets the outcome of an attempt from its call.
func (s *State) callEnded(u *unit) {
	used := u.call.Used()
	s.used.Usage.Add(&used.Usage)
	s.used.Unmetered += used.Unmetered
	s.used.Cost += used.Cost
	s.used.ToolCalls += used.ToolCalls
	if u.p.kind != StepAgent {
		s.used.ToolCalls++
	}
	o, unknown, err := u.call.Outcome()
	switch {
	case err != nil && err.Code == tenon.CodeWaiting && s.timeLeft() < 0: // the wait ended because the run's time is up
		u.out, u.left = &outcome{err: s.timeoutError()}, 0
	case err != nil:
		u.out, u.unknown = &outcome{err: err}, unknown
		if unknown || !mayRepeat(err.Code) {
			u.left = 0
		}
	case o.Result.IsError:
		text := cmp.Or(strings.TrimSpace(o.Result.Text()), "the tool gave no reason")
		u.out, u.unknown = &outcome{err: tenon.Errorf(tenon.CodeTool, "%s", text)}, o.Unknown
		if o.Unknown {
			u.left = 0
		}
	default:
		u.out = &outcome{text: o.Result.Text(), value: o.Result.Structured, tables: o.Outputs}
	}
}

// mayRepeat reports whether another attempt may have a different result.
func mayRepeat(c tenon.Code) bool {
	return !slices.Contains([]tenon.Code{tenon.CodeUnknown, tenon.CodeDenied, tenon.CodeInvalid, tenon.CodeLimit,
		tenon.CodeConfig, tenon.CodeNotFound, tenon.CodeWaiting, tenon.CodeCancelled, tenon.CodeAuth}, c)
}

// open creates an attempt that is not planned yet.
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

// reopen creates the next attempt after one that has ended.
func (s *State) reopen(u *unit, left int) *unit {
	next := s.open(u.p, u.item, u.try+1, left)
	next.again = u.unknown || u.again
	return next
}

// openFor opens the first attempt with this id. It returns nil if no such attempt can begin.
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

// attempts returns the maximum number of attempts of a step or an item.
func (s *step) attempts() int {
	switch {
	case s.Retry == nil:
		return 1
	case s.Retry.Attempts == 0:
		return 3
	}
	return s.Retry.Attempts
}

// id returns the id of an attempt: STEP or STEP.ITEM, with ~TRY from the second attempt on. The id of a tool
// call always contains a dot, even without foreach.
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
