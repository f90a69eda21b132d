package view

import (
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
)

// Run is the fold of a run's events. The zero value is ready for the first event of a journal. It is not safe for
// concurrent use.
type Run struct {
	calls  []*Call
	byStep map[string]*Call
	unended

	steps stepFold
	total totals
}

// Of folds the events of a journal.
func Of(events []tenon.Event) *Run {
	r := &Run{}
	for _, e := range events {
		r.Apply(e)
	}
	return r
}

// Apply folds the next event. A live event changes nothing. An event whose data cannot be read is ignored.
func (r *Run) Apply(e tenon.Event) {
	data, err := Decode(e)
	r.applyCall(e, data)
	r.steps.byStep = r.byStep
	r.steps.apply(e, data)
	if err == nil {
		r.total.apply(e, data)
	}
}

func (r *Run) applyCall(e tenon.Event, data any) {
	switch e.Kind {
	case agent.EventProposed:
		if r.byStep == nil {
			r.byStep = map[string]*Call{}
		}
		c := newCall(e, data)
		r.calls = append(r.calls, c)
		r.byStep[e.Step] = c
		r.propose(c)
		return
	}
	r.unended.apply(e, data)
	step := tenon.ParseStep(e.Step)
	switch c := r.byStep[step.Asker().String()]; {
	case c == nil:
	case step.IsQuestion(), e.Kind == agent.EventInput, e.Kind == agent.EventAnswer:
		c.applyQuestion(e.Step, data)
		c.asked = c.asked || e.Kind == agent.EventInput
	default:
		c.apply(e, data)
	}
}

// Calls returns the records of the run's tool calls in the order in which the model proposed them.
func (r *Run) Calls() []Call {
	list := make([]Call, len(r.calls))
	for i, c := range r.calls {
		list[i] = *c
	}
	return list
}

// Call returns the record of the call with this step.
func (r *Run) Call(step string) (Call, bool) {
	c := r.byStep[step]
	if c == nil {
		return Call{}, false
	}
	return *c, true
}

// Steps returns the steps of the run in the order in which they began. Steps that have not ended last until now.
func (r *Run) Steps(now time.Time) []Step { return r.steps.list(now) }

// Report returns the report of the run. If the run has not ended, row contains its state.
func (r *Run) Report(row tenon.Run) Report { return r.total.report(row, r.Calls()) }
