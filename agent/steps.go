package agent

import (
	"encoding/json"
	"time"

	"github.com/tenonhq/tenon"
)

// The kinds of a [StepRecord] beside those of the commands.
const (
	StepMessage = "message" // a message into the run
	StepWait    = "wait"    // a person was asked whether to go on
)

// CallOK is the outcome of a step that came to its end. The others are those of
// calls: see [CallRecord].
const CallOK = "ok"

// StepRecord is what a run did in one step and when: a line of its waterfall.
// Times are in milliseconds since the run began.
type StepRecord struct {
	Step     string       `json:"step,omitempty"`
	Kind     string       `json:"kind"`           // model, final, tool, compact, message, wait
	Name     string       `json:"name,omitempty"` // the model, server.tool, the message
	Start    int64        `json:"start_ms"`
	Millis   int64        `json:"duration_ms"` // of the attempts and waits together
	Spans    []Span       `json:"spans,omitempty"`
	Outcome  string       `json:"outcome"` // ok, error, open, unknown, denied, invalid, failed, stopped
	Error    string       `json:"error,omitempty"`
	By       string       `json:"decided_by,omitempty"`
	Attempts int          `json:"attempts,omitempty"`
	Usage    *tenon.Usage `json:"usage,omitempty"`

	open bool // its last span has not ended
}

// Span is one attempt of a step, or one wait for a person.
type Span struct {
	Start  int64 `json:"start_ms"`
	Millis int64 `json:"duration_ms"`
	Wait   bool  `json:"wait,omitempty"`
}

// callStopped is the outcome of a step that was under way when its run ended.
const callStopped = "stopped"

// Steps folds a run's events into its steps, in the order in which they began.
// What is under way lasts until now.
func Steps(events []tenon.Event, now time.Time) []StepRecord {
	if len(events) == 0 {
		return nil
	}
	f := stepFold{began: events[0].Time, last: map[string]*StepRecord{}}
	for _, e := range events {
		f.event(e)
	}
	at := now.Sub(f.began).Milliseconds()
	out := make([]StepRecord, len(f.steps))
	for i, s := range f.steps {
		if s.open {
			s.end(max(at, s.Spans[len(s.Spans)-1].Start))
		}
		for _, span := range s.Spans {
			s.Millis += span.Millis
		}
		out[i] = *s
	}
	return out
}

type stepFold struct {
	began time.Time
	steps []*StepRecord
	last  map[string]*StepRecord // by step
}

func (f *stepFold) add(e tenon.Event, kind, name string) *StepRecord {
	s := &StepRecord{Step: e.Step, Kind: kind, Name: name, Start: f.at(e), Outcome: CallOpen}
	f.steps = append(f.steps, s)
	if e.Step != "" {
		f.last[e.Step] = s
	}
	return s
}

func (f *stepFold) at(e tenon.Event) int64 { return e.Time.Sub(f.began).Milliseconds() }

func (f *stepFold) event(e tenon.Event) {
	s := f.last[e.Step]
	switch e.Kind {
	case EventProposed:
		var t tenon.ToolCall
		_ = json.Unmarshal(e.Data, &t) // an unreadable one shows without a name
		f.add(e, CommandTool, t.Name)
		return
	case EventMessage:
		var m Steer
		_ = json.Unmarshal(e.Data, &m)
		s = f.add(e, StepMessage, m.Text)
		s.By, s.Outcome = m.By, CallOK
		return
	case tenon.EventStarted:
		var d tenon.StartedData
		_ = json.Unmarshal(e.Data, &d)
		switch call := d.Kind == CommandChild || d.Kind == CommandHandoff; {
		case s != nil && call && s.Kind == CommandTool:
			s.Kind = d.Kind // it was proposed as any other call
		case s == nil || s.Kind != d.Kind:
			s = f.add(e, d.Kind, "")
		}
		s.end(f.at(e))
		s.begin(f.at(e), false)
		s.Attempts, s.Outcome, s.Error = max(s.Attempts, e.Attempt), CallOpen, ""
		return
	case tenon.EventDone:
		for _, s := range f.steps {
			if s.Outcome == CallOpen { // also one that was broken off just before
				s.Outcome = callStopped
			}
			s.end(f.at(e))
		}
		return
	case EventModel:
		for _, call := range f.steps { // the core has settled it and told the model so, which is no event
			if call.Kind == CommandTool && call.Outcome == CallOpen && call.Attempts == 0 {
				call.Outcome, call.Error = CallDenied, passedOver
			}
		}
	case EventDecision:
		if s == nil || s.Kind != CommandTool {
			s = f.add(e, StepWait, "") // about a limit: nothing had begun
			s.Outcome = CallOK
		}
	}
	if s != nil {
		f.fold(s, e)
	}
}

// fold takes an event of a step that is there.
func (f *stepFold) fold(s *StepRecord, e tenon.Event) {
	at := f.at(e)
	switch e.Kind {
	case EventDecided:
		var d Decision
		_ = json.Unmarshal(e.Data, &d)
		if d.Server != "" {
			s.Name = d.Server + "." + d.Remote
		}
		s.By = d.By
		switch d.Verdict {
		case tenon.Ask:
			s.begin(at, true)
		case tenon.Deny:
			s.Outcome, s.Error = CallDenied, d.Reason
			if d.By == ByCatalog {
				s.Outcome = CallInvalid
			}
		}
	case EventAdmitted:
		var a Admitted
		_ = json.Unmarshal(e.Data, &a)
		switch {
		case a.Refused != "":
			s.Outcome, s.Error = CallDenied, a.Refused
		case a.Wait > 0:
			s.begin(at, true)
		}
	case EventDecision:
		var r Ruling
		_ = json.Unmarshal(e.Data, &r)
		s.end(at)
		if s.By = r.By; r.Verdict != tenon.Allow {
			s.Outcome, s.Error = CallDenied, r.Reason
		}
	case tenon.EventExpired:
		s.end(at)
		s.Outcome, s.Error = CallDenied, "nobody answered in time"
	case EventInput, EventChild:
		s.end(at)
		s.begin(at, true)
	case EventHandoff:
		s.end(at)
		s.Outcome = CallOK
	case EventAnswer, EventWake, tenon.EventInterrupted:
		s.end(at)
	case EventModel:
		var r Answered
		_ = json.Unmarshal(e.Data, &r)
		s.end(at)
		s.Name, s.Usage, s.Outcome, s.Error = r.Model, r.Usage, CallOK, r.Misfit
		if len(r.Tried) > 0 {
			s.Name += " in place of " + r.Tried[0].Model
		}
		if r.Stop != tenon.StopEnd && r.Stop != tenon.StopToolUse {
			s.Outcome = string(r.Stop)
		}
	case EventCompacted:
		var c Compacted
		_ = json.Unmarshal(e.Data, &c)
		s.end(at)
		s.Name, s.Usage, s.Outcome = c.Why, c.Usage, CallOK
	case EventResult:
		var o Outcome
		_ = json.Unmarshal(e.Data, &o)
		s.end(at)
		if s.Outcome = CallOK; o.Result != nil && o.Result.IsError {
			s.Outcome, s.Error = "error", o.Result.Text()
		}
	case EventFailed, tenon.EventUnknown:
		var d Failure
		_ = json.Unmarshal(e.Data, &d)
		s.end(at)
		if s.Outcome = CallFailed; e.Kind == tenon.EventUnknown {
			s.Outcome = CallUnknown
		}
		if d.Error != nil {
			s.Error = d.Error.Message
		}
	}
}

func (s *StepRecord) begin(at int64, wait bool) {
	s.Spans = append(s.Spans, Span{Start: at, Wait: wait})
	s.open = true
}

func (s *StepRecord) end(at int64) {
	if s.open {
		last := &s.Spans[len(s.Spans)-1]
		last.Millis, s.open = at-last.Start, false
	}
}
