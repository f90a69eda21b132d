package view

import (
	"slices"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
)

// The kinds of a [Step], in addition to the kinds of commands.
const (
	StepMessage = "message" // a message into the run
	StepWait    = "wait"    // a person was asked whether the run may continue
)

// CallOK is the outcome of a step that succeeded. A [Call] defines the other outcomes.
const CallOK = "ok"

// Step is one line of a run's waterfall: one step and when it ran. Times are in milliseconds since the run began.
type Step struct {
	Step     string       `json:"step,omitempty"`
	Kind     string       `json:"kind"`           // model, final, tool, compact, message, wait
	Name     string       `json:"name,omitempty"` // the model, server.tool, or the message
	Start    int64        `json:"start_ms"`
	Millis   int64        `json:"duration_ms"` // sum of the spans
	Spans    []Span       `json:"spans,omitempty"`
	Outcome  string       `json:"outcome"` // ok, error, open, unknown, denied, invalid, failed, stopped
	Error    string       `json:"error,omitempty"`
	By       string       `json:"decided_by,omitempty"`
	Attempts int          `json:"attempts,omitempty"`
	Usage    *tenon.Usage `json:"usage,omitempty"`

	open bool // the last span has not ended
}

// Span is one attempt of a step, or one wait for a person.
type Span struct {
	Start  int64 `json:"start_ms"`
	Millis int64 `json:"duration_ms"`
	Wait   bool  `json:"wait,omitempty"`
}

// callStopped is the outcome of a step that was open when its run ended.
const callStopped = "stopped"

// stepFold folds events into steps.
type stepFold struct {
	byStep    map[string]*Call
	began     time.Time
	steps     []*Step
	last      map[string]*Step // the latest step of each name
	unstarted []*Step          // calls proposed since the model's last answer that have not started
}

// list returns the steps. Open steps end at the time now.
func (f *stepFold) list(now time.Time) []Step {
	at := now.Sub(f.began).Milliseconds()
	out := make([]Step, len(f.steps))
	for i, s := range f.steps {
		out[i] = *s
		if s.open {
			out[i].Spans = slices.Clone(s.Spans)
			last := len(s.Spans) - 1
			out[i].end(max(at, s.Spans[last].Start))
		}
		for _, span := range out[i].Spans {
			out[i].Millis += span.Millis
		}
	}
	return out
}

func (f *stepFold) add(e tenon.Event, kind, name string) *Step {
	s := &Step{Step: e.Step, Kind: kind, Name: name, Start: f.at(e), Outcome: CallOpen}
	f.steps = append(f.steps, s)
	if e.Step != "" {
		f.last[e.Step] = s
	}
	return s
}

func (f *stepFold) at(e tenon.Event) int64 { return e.Time.Sub(f.began).Milliseconds() }

func (f *stepFold) apply(e tenon.Event, data any) {
	if f.last == nil {
		f.began, f.last = e.Time, map[string]*Step{}
	}
	s := f.last[e.Step]
	switch d := data.(type) {
	case *tenon.ToolCall:
		f.unstarted = append(f.unstarted, f.add(e, agent.CommandTool, d.Name))
	case *agent.Steer:
		s = f.add(e, StepMessage, d.Text)
		s.By, s.Outcome = d.By, CallOK
	case *tenon.StartedData:
		f.started(s, e, d)
	case *tenon.DoneData:
		f.done(e)
	case *agent.Answered:
		f.passOver()
		if s != nil {
			s.end(f.at(e))
			s.answered(d)
		}
	case *agent.Ruling:
		if s == nil || s.Kind != agent.CommandTool {
			s = f.add(e, StepWait, "") // a decision about a limit belongs to no open step
			s.Outcome = CallOK
		}
		s.end(f.at(e))
		s.ruled(d)
	default:
		if s != nil {
			s.apply(e.Kind, f.at(e), data)
		}
	}
}

func (f *stepFold) started(s *Step, e tenon.Event, d *tenon.StartedData) {
	delegates := d.Kind == agent.CommandChild || d.Kind == agent.CommandHandoff
	switch {
	case s != nil && delegates && s.Kind == agent.CommandTool:
		s.Kind = d.Kind // the call was proposed like any other call
	case s == nil || s.Kind != d.Kind:
		s = f.add(e, d.Kind, "")
	}
	s.end(f.at(e))
	s.begin(f.at(e), false)
	s.Attempts, s.Outcome, s.Error = max(s.Attempts, e.Attempt), CallOpen, ""
}

func (f *stepFold) done(e tenon.Event) {
	for _, s := range f.steps {
		if s.Outcome == CallOpen { // including a step that was interrupted just before
			s.Outcome = callStopped
		}
		s.end(f.at(e))
	}
}

// passOver ends the calls that had not started when the model answered again; see [Call].
func (f *stepFold) passOver() {
	for _, s := range f.unstarted {
		if c := f.byStep[s.Step]; s.Outcome == CallOpen && s.Attempts == 0 && c != nil {
			s.Outcome, s.Error = c.Outcome, c.Error
		}
	}
	f.unstarted = nil
}

// apply folds an event of a step that has begun.
func (s *Step) apply(kind string, at int64, data any) {
	switch d := data.(type) {
	case *agent.Decision:
		s.decided(at, d)
		return
	case *agent.Admitted:
		switch {
		case d.Refused != "":
			s.Outcome, s.Error = CallDenied, d.Refused
		case d.Wait > 0:
			s.begin(at, true)
		}
		return
	}
	switch kind {
	case tenon.EventExpired, agent.EventInput, agent.EventChild, agent.EventHandoff, agent.EventAnswer,
		agent.EventWake, tenon.EventInterrupted, agent.EventCompacted, agent.EventResult, agent.EventFailed,
		tenon.EventUnknown:
		s.end(at)
	}
	switch d := data.(type) {
	case *tenon.ExpiredData:
		s.Outcome, s.Error = CallDenied, expired
	case *agent.Input, *agent.ChildWaits:
		s.begin(at, true)
	case *agent.Handoff:
		s.Outcome = CallOK
	case *agent.Compacted:
		s.Name, s.Usage, s.Outcome = d.Why, d.Usage, CallOK
	case *agent.Outcome:
		s.Outcome = CallOK
		if d.Result != nil && d.Result.IsError {
			s.Outcome, s.Error = "error", d.Result.Text()
		}
	case *agent.Failure:
		s.Outcome = CallFailed
		if kind == tenon.EventUnknown {
			s.Outcome = CallUnknown
		}
		if d.Error != nil {
			s.Error = d.Error.Message
		}
	}
}

func (s *Step) decided(at int64, d *agent.Decision) {
	if d.Server != "" {
		s.Name = d.Server + "." + d.Remote
	}
	s.By = d.By
	switch d.Verdict {
	case tenon.Ask:
		s.begin(at, true)
	case tenon.Deny:
		s.Outcome, s.Error = CallDenied, d.Reason
		if d.By == agent.ByCatalog {
			s.Outcome = CallInvalid
		}
	}
}

func (s *Step) ruled(d *agent.Ruling) {
	s.By = d.By
	if d.Verdict != tenon.Allow {
		s.Outcome, s.Error = CallDenied, d.Reason
	}
}

func (s *Step) answered(d *agent.Answered) {
	s.Name, s.Usage, s.Outcome, s.Error = d.Model, d.Usage, CallOK, d.Misfit
	if len(d.Tried) > 0 {
		s.Name += " in place of " + d.Tried[0].Model
	}
	if d.Stop != tenon.StopEnd && d.Stop != tenon.StopToolUse {
		s.Outcome = string(d.Stop)
	}
}

func (s *Step) begin(at int64, wait bool) {
	s.Spans = append(s.Spans, Span{Start: at, Wait: wait})
	s.open = true
}

func (s *Step) end(at int64) {
	if s.open {
		last := &s.Spans[len(s.Spans)-1]
		last.Millis, s.open = at-last.Start, false
	}
}
